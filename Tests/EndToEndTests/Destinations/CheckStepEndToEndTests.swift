import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// The way to a destination, as `sluice check` prints it.
@Suite("The steps of a check, with the built program", .timeLimit(.minutes(Patience.minutes(2))))
struct CheckStepEndToEndTests {
    private struct Report: Decodable {
        struct Check: Decodable {
            struct Step: Decodable {
                let step: String
                let verdict: String
                let detail: String
            }
            let about: String
            let verdict: String
            let detail: String
            let steps: [Step]?
        }
        let checks: [Check]
    }

    private func check(_ fixture: DaemonFixture, _ name: String, _ more: String...) async throws -> [Report.Check] {
        try fixture.writeConfiguration()
        // Of its own: a process appends to a file that is there.
        let folder = fixture.folder.path.appending(FilePath("check-\(hexadecimal(Random.bytes(4)))"))
        try Files.makeFolders(folder)
        let child = try Child(
            fixture.binary, ["check", "--json", "--config", fixture.config.display, "--destination", name] + more,
            output: folder.appending("check.out"), errors: folder.appending("check.err"))
        _ = try await child.end(within: .seconds(30))
        let output = try child.standardOutput()
        let errors = try child.standardError()
        try #require(output.hasPrefix("{"), "\(errors)")
        return try JSONDecoder().decode(Report.self, from: Data(output.utf8)).checks
    }

    private func steps(_ checks: [Report.Check]) throws -> [String: (verdict: String, detail: String)] {
        let steps = try #require(checks.first { $0.about == "destination" }?.steps)
        return Dictionary(uniqueKeysWithValues: steps.map { ($0.step, ($0.verdict, $0.detail)) })
    }

    @Test(
        "every step is named up to the configured flow; a certificate that ends soon is a warning, and an unknown authority ends the way at TLS",
        .enabled("\(Gateway.need(.nginx))") { await Gateway.areHere(.nginx) })
    func secure() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        let token = try fixture.folder.write("token", Array("token-of-a-test-1234\n".utf8))
        fixture.receiverKeys = ["--token-file", token.display]
        try await fixture.startReceiver()
        let receiver = fixture.address
        let certificates = try await TestCertificates(in: fixture.folder.path.appending("certificates"))
        let (nginx, port) = try await Gateway.nginx.start(in: fixture.folder.path.appending("nginx")) { port in
            """
            server {
              listen 127.0.0.1:\(port) ssl;
              ssl_certificate \(certificates.server.certificate.display);
              ssl_certificate_key \(certificates.server.key.display);
              location / { proxy_pass http://\(receiver); proxy_set_header Host $http_host; }
            }
            """
        }
        defer { nginx.end(with: 9) }
        fixture.destination = "https://localhost:\(port)/files/"
        let keys = ", token: {file: \(token.display)}, parallel: 4"
        fixture.destinationKeys = keys + ", http: {ca_file: \(certificates.authority.display)}"
        let checks = try await check(fixture, "nas", "--test-file", "removable", "--test-size", "2MB")
        let steps = try steps(checks)
        #expect(Set(steps.keys) == ["name", "route", "tls", "server", "clock", "credentials", "room", "flow"])
        #expect(steps["name"]?.detail == "localhost is 127.0.0.1")
        #expect(steps["tls"]?.verdict == "warning", "\(String(describing: steps["tls"]))")
        #expect(steps["tls"]?.detail.contains("signed by") == true)
        for name in steps.keys where name != "tls" { #expect(steps[name]?.verdict == "ok", "\(name)") }
        #expect(steps["credentials"]?.detail == "sent, and the server did not refuse them")
        #expect(steps["room"]?.detail.contains("free") == true, "\(String(describing: steps["room"]))")
        #expect(steps["flow"]?.detail.contains("so `parallel: 4` has no effect") == true)
        // The speed is measured with a file that is gone afterwards.
        let test = try #require(checks.first { $0.about == "test" })
        #expect(test.verdict == "ok" && test.detail.contains("was removed again; 2.0 MB took "), "\(test.detail)")
        #expect(test.detail.hasSuffix("/s)"))
        #expect(try Outcome.files(in: fixture.received, hidden: false).isEmpty)

        fixture.destinationKeys = keys
        let untrusted = try self.steps(try await check(fixture, "nas"))
        #expect(Set(untrusted.keys) == ["route", "tls"])
        #expect(untrusted["tls"]?.verdict == "failed")

        let wrong = try fixture.folder.write("wrong", Array("another-token-5678\n".utf8))
        fixture.destinationKeys =
            ", token: {file: \(wrong.display)}, http: {ca_file: \(certificates.authority.display)}"
        let refused = try self.steps(try await check(fixture, "nas"))
        #expect(refused["credentials"]?.verdict == "failed")
        #expect(refused["flow"] == nil && refused["room"] == nil)
    }

    @Test("an account's own words about its token, its room and its flow are steps")
    func account() async throws {
        let server = try VimeoServer()
        defer { server.stop() }
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        let token = try fixture.folder.write("token", Array("vimeo-token-1".utf8))
        fixture.uploadTo = ["film"]
        fixture.moreDestinations = [
            "film: {type: vimeo, url: \"\(server.url)\", token: {file: \(token.display)}, allow_origins: [\(server.bytesURL)]}"
        ]
        let steps = try steps(try await check(fixture, "film"))
        #expect(steps["credentials"]?.detail == "the token is good")
        #expect(steps["room"]?.detail.contains("free") == true, "\(String(describing: steps["room"]))")
        #expect(steps["flow"]?.detail == "`flow: tus` is accepted")
    }

    @Test("the steps past a proxy that closes its connections are those of the destination's own request")
    func closingProxy() async throws {
        let proxy = try FakeServer { _ in }
        defer { proxy.stop() }
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.destination = "http://192.0.2.7/files/"
        fixture.destinationKeys = ", http: {proxy: \"http://127.0.0.1:\(proxy.port)\"}"
        let steps = try steps(try await check(fixture, "nas"))
        let route = try #require(steps["route"]?.detail)
        #expect(route.contains("127.0.0.1:\(proxy.port), as `http.proxy` says") && !route.contains("https"), "\(route)")
        #expect(steps["server"]?.verdict == "failed" && steps["server"]?.detail.contains("CONNECT") == false)
    }

    @Test(
        "a size without a test file, and one out of bounds, are usage errors",
        arguments: [
            ["--test-size", "1MB"], ["--test-file", "any", "--test-size", "1GB"],
            ["--test-file", "any", "--test-size", "0"],
        ])
    func usage(_ words: [String]) async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try fixture.writeConfiguration()
        let folder = fixture.folder.path
        let child = try Child(
            fixture.binary, ["check", "--config", fixture.config.display] + words,
            output: folder.appending("check.out"), errors: folder.appending("check.err"))
        #expect(try await child.end(within: .seconds(30)) == .status(64))
        #expect(try child.standardError().contains("--test-size"))
    }
}
