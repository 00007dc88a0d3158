import Core
import Digests
import Foundation
import Glibc
import Linux
import TestKit
import Testing

/// `sluice trace`, and the way to a destination in `sluice check`.
@Suite("Looking at the requests to a destination", .timeLimit(.minutes(Patience.minutes(2))))
struct TraceEndToEndTests {
    private struct Entry: Decodable {
        struct Body: Decodable {
            var bytes: Int64?
            var sha256: String?
        }
        struct Answer: Decodable { var status: Int }
        var method: String
        var url: String
        var body: Body
        var answer: Answer?
    }

    @Test("a trace has each request with lengths and digests, in a file for its owner alone, and no secret")
    func trace() async throws {
        let canary = "Zq7canaryX9k2"
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.destinationKeys =
            ", token: {literal: \"\(canary)-token\"}, http: {headers: {X-Site: {literal: \"\(canary)-header\"}}}"
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await eventually("the daemon answers") { try await fixture.runVerb("status") != nil }
        let output = fixture.folder.path.appending("trace")
        let words = ["trace", "nas", "--config", fixture.config.display, "--max", "1MB", "-o", output.display]
        let follower = try Child(
            fixture.binary, words, output: fixture.folder.path.appending("trace.out"),
            errors: fixture.folder.path.appending("trace.err"))
        defer { follower.end(with: SIGKILL) }
        try await eventually("the trace has begun") {
            // The daemon logs the command before the client has the answer and makes the file.
            try FileStatus.ifPresent(at: output) != nil
                && fixture.daemon?.standardError().contains("a person gave a command") == true
        }
        let clip = Clip(number: 0, size: 3_000_000, relative: "secret-name-of-a-clip.mp4")
        try Camera(fixture, dice: Dice(seed: 1)).drop(clip)
        func entries() throws -> [Entry] {
            let text = String(decoding: try Files.read(output, limit: 1 << 20), as: UTF8.self)
            let decoder = JSONDecoder()
            return try text.split(separator: "\n").map { try decoder.decode(Entry.self, from: Data($0.utf8)) }
        }
        try await eventually("the last request is recorded") {
            try entries().contains { $0.method == "PATCH" && $0.answer?.status == 204 }
        }
        let patch = try #require(try entries().first { $0.method == "PATCH" })
        #expect(
            patch.body.bytes == 3_000_000 && patch.body.sha256 == hexadecimal(Hasher.digest(.sha256, of: clip.content)))
        let text = String(decoding: try Files.read(output, limit: 1 << 20), as: UTF8.self)
        for secret in [canary, "secret-name-of-a-clip", "/files/"] { #expect(!text.contains(secret), "\(text)") }
        #expect(try FileStatus(at: output).mode & 0o777 == 0o600)
        // A file that exists is not overwritten.
        let second = try Child(
            fixture.binary, words, output: fixture.folder.path.appending("second.out"),
            errors: fixture.folder.path.appending("second.err"))
        #expect(try await second.end(within: .seconds(20)) == .status(64))
        #expect(try second.standardError().contains("there is such a file already"))
        // A refused command leaves no file.
        let third = fixture.folder.path.appending("third")
        let refused = try Child(
            fixture.binary, ["trace", "nope", "--config", fixture.config.display, "-o", third.display],
            output: fixture.folder.path.appending("third.out"), errors: fixture.folder.path.appending("third.err"))
        #expect(try await refused.end(within: .seconds(20)) == .status(66))
        #expect(try FileStatus.ifPresent(at: third) == nil)
        // When the daemon stops, the command says how much it has written.
        _ = try await fixture.stopDaemon()
        #expect(try await follower.end(within: .seconds(20)) != .status(0))
        #expect(try follower.standardError().contains("requests recorded"))
    }

    @Test(
        "a check walks the way to a destination in words, up to the step that fails",
        .enabled("\(Gateway.need(.nginx))") { await Gateway.areHere(.nginx) })
    func way() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        let certificates = try await TestCertificates(in: fixture.folder.path.appending("tls"))
        let (nginx, port) = try await Gateway.nginx.start(in: fixture.folder.path.appending("nginx")) { port in
            """
            server {
              listen 127.0.0.1:\(port) ssl;
              ssl_certificate \(certificates.server.certificate.display);
              ssl_certificate_key \(certificates.server.key.display);
              location / { proxy_pass http://\(fixture.address); proxy_set_header Host $http_host; }
            }
            """
        }
        defer { nginx.end(with: SIGKILL) }
        fixture.destination = "https://nas.example:\(port)/files/"
        fixture.destinationKeys =
            ", http: {ca_file: \(certificates.authority.display), resolve: [\"nas.example:\(port):127.0.0.1\"]}"
        try fixture.writeConfiguration()
        let printed = try #require(try await fixture.runVerb("check", ["--destination", "nas"]))
        // Long lines are wrapped.
        let text = printed.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(text.contains(#/name nas.example is 127.0.0.1/#), "\(text)")
        #expect(text.contains(#/route to 127.0.0.1, on this machine/#), "\(text)")
        #expect(
            text.contains(#/tls warning: certificate of CN = nas, signed by CN = Authority of a test, valid until 20/#),
            "\(text)")
        #expect(text.contains(#/server nginx.* answers with HTTP\/1.1 after [0-9]+ ms/#), "\(text)")
        #expect(text.contains(#/clock as this machine's/#), "\(text)")
        fixture.destinationKeys = ", http: {resolve: [\"nas.example:\(port):127.0.0.1\"]}"
        try fixture.writeConfiguration()
        let child = try Child(
            fixture.binary, ["check", "--config", fixture.config.display, "--destination", "nas", "--json"],
            output: fixture.folder.path.appending("check.out"), errors: fixture.folder.path.appending("check.err"))
        #expect(try await child.end(within: .seconds(20)) == .status(76))
        let failed = try child.standardOutput()
        #expect(
            failed.contains(#/"step":"tls","verdict":"failed"/#)
                || failed.contains(#/"verdict":"failed","step":"tls"/#), "\(failed)")
        #expect(!failed.contains(#/"step":"server"/#))
    }
}
