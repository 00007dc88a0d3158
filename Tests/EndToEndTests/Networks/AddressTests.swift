import Core
import Linux
import TestKit
import TestTraits
import Testing
import Transport

/// The API over TCP, from the built program.
@Suite("The API on a TCP address", .needsPackages, .timeLimit(.minutes(Patience.minutes(4))))
struct AddressTests {
    /// Checked with a third-party program: the requests and answers, and that the API never fails on nonsense.
    @Test("the API matches its description for every request")
    func description() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.destination = "http://127.0.0.1:1/"
        let token = fixture.folder.path.appending("token")
        try Files.replace(token, with: Array("first-word".utf8))
        fixture.controlKeys = ", listen: \"127.0.0.1:0\", tokens: [{name: me, secret: {file: \(token.display)}}]"
        try fixture.startDaemon()
        let port = try await port(of: fixture)
        let camera = Camera(fixture, dice: Dice(seed: 1))
        for number in 0..<3 { try camera.drop(Clip(number: number, size: 10_000, relative: FilePath("\(number).mp4"))) }
        let description = Repository.root.appending("docs/api/openapi.yaml")
        let asker = try await blocking { try Tools.python("schemathesis") }.appending("schemathesis")
        // It keeps a cache in its working directory.
        let child = try Child(
            "/usr/bin/env",
            [
                "-C", fixture.folder.path.display, asker.display, "run", description.display, "--url",
                "http://127.0.0.1:\(port)", "--header",
                "Authorization: Bearer first-word", "--phases", "examples,coverage,fuzzing", "--max-examples", "20",
                "--seed", "1", "--generation-database", "none", "--exclude-path", "/v1/events",
                // Rules that no schema expresses: values that exclude each other.
                "--exclude-checks", "positive_data_acceptance",
            ], environment: ["no_proxy": "127.0.0.1"], output: fixture.folder.path.appending("said"),
            errors: fixture.folder.path.appending("complaint"))
        let ending = try await child.end(within: .seconds(180))
        let said = try child.standardOutput().suffix(4_000) + child.standardError().suffix(1_000)
        #expect(ending == .status(0), "\(said)")
        try fixture.daemon?.requireRunning()
        #expect(try await fixture.runVerb("status", ["--json"])?.contains("\"starting\":false") == true)
    }

    private func port(of fixture: DaemonFixture) async throws -> Substring {
        try await eventually("the log names the port of the API", every: .milliseconds(50)) {
            try fixture.daemon?.standardError().firstMatch(
                of: /listening address="127.0.0.1:0 \(port ([0-9]+)\)" tls=no/)?
                .1
        }
    }

    @Test("the log names the address, the present token opens it, and a reload with another address is refused")
    func address() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.destination = "http://127.0.0.1:1/"
        let token = fixture.folder.path.appending("token")
        try Files.replace(token, with: Array("first-word\n".utf8))
        fixture.controlKeys = ", listen: \"127.0.0.1:0\", tokens: [{name: me, secret: {file: \(token.display)}}]"
        try fixture.startDaemon()
        let port = try await port(of: fixture)
        let transport = Transport()
        func ask(_ method: String, _ path: String, _ token: String?) async throws -> (status: Int, text: String) {
            let answer = try await transport.send(
                Request(
                    method, "http://127.0.0.1:\(port)\(path)",
                    headers: token.map { [("Authorization", "Bearer \($0)")] } ?? []))
            return (answer.status, String(decoding: answer.body, as: UTF8.self))
        }
        let refused = try await ask("GET", "/v1/status", nil)
        #expect(refused.status == 401)
        #expect(refused.text.contains("needs a token"))
        let status = try await ask("GET", "/v1/status", "first-word")
        #expect(status.status == 200)
        #expect(status.text.contains("\"starting\":false"))
        #expect(try await ask("POST", "/v1/pause", "first-word").status == 202)
        #expect(try await fixture.runVerb("status", ["--json"])?.contains("\"scope\":\"all\"") == true)
        #expect(try await ask("POST", "/v1/resume", "second").status == 401)
        let words = String(decoding: try Files.read(fixture.config, limit: 1 << 20), as: UTF8.self)
        try Files.replace(fixture.config, with: Array(words.replacing("127.0.0.1:0", with: "127.0.0.2:0").utf8))
        let child = try Child(
            fixture.binary, ["reload", "--config", fixture.config.display],
            output: fixture.folder.path.appending("output"), errors: fixture.folder.path.appending("errors"))
        #expect(try await child.end(within: .seconds(20)) == .status(78))
        let said = try child.standardError()
        #expect(
            said.contains("control.listen: cannot change from 127.0.0.1:0 to 127.0.0.2:0 while the daemon runs"),
            "\(said)")
        await transport.stop()
        #expect(try await fixture.stopDaemon() == .status(0))
        let log = try #require(try fixture.daemon?.standardError())
        #expect(!log.contains("first-word"))
    }
}
