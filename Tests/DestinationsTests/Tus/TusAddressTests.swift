import Core
import Destinations
import TestKit
import Testing
import Transport

/// An upload with an address of its own at its destination's server.
@Suite("tus at an upload's own address", .timeLimit(.minutes(Patience.minutes(2))))
struct TusAddressTests {
    let script = ScriptedTusServer()

    @Test("the upload is created there, the destination's own address gets no request, and credentials are sent")
    func created() async throws {
        let server = try FakeServer { [script] exchange in script.serve(exchange) }
        var journey = try UploadScenario(server.url + "/files", values: ["token": .secret(.literal("word"))])
        journey.order.url = .creation(server.url + "/other/place?a=b")
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(server.seen.contains("POST /other/place?a=b"), "\(server.seen)")
        #expect(server.seen.contains("OPTIONS /other/place?a=b"), "\(server.seen)")
        #expect(!server.seen.contains { $0.hasSuffix(" /files") }, "\(server.seen)")
    }

    @Test("a creation with a lost answer is repeated at the same address")
    func lost() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "POST", script.time("POST") == 0 else { return script.serve(exchange) }
            exchange.cut()
        }
        var journey = try UploadScenario(server.url + "/files")
        journey.order.url = .creation(server.url + "/other")
        _ = try await journey.failedAttempt()
        let remote = try await journey.attempt()
        #expect(server.seen.filter { $0.hasPrefix("POST") } == ["POST /other", "POST /other"])
        #expect(remote.warnings.contains { $0.contains("1 creation(s) got no answer") })
    }

    @Test(
        "only an address of the destination's own origin is accepted",
        arguments: [
            ("http://127.0.0.1:4000/other", nil), ("HTTP://127.0.0.1:4000/x?y", nil),
            ("https://127.0.0.1:4000/other", "configure a destination for that server"),
            ("http://127.0.0.1:4001/other", "configure a destination for that server"),
            ("http://127.0.0.2:4000/other", "configure a destination for that server"),
            ("http://127.0.0.1:4000@evil.example/", "user name"), ("http://u:p@127.0.0.1:4000/", "user name"),
            ("ftp://127.0.0.1:4000/", "an http or https address"), ("/other", "an http or https address"),
            ("", "an http or https address"), ("http://127.0.0.1:4000/a b", "an http or https address"),
            ("http://127.0.0.1:4000/ü", "an http or https address"), ("http:///x", "an http or https address"),
        ] as [(String, String?)])
    func origin(_ url: String, _ words: String?) throws {
        let journey = try UploadScenario("http://127.0.0.1:4000/files")
        let objection = journey.destination.objection(toURL: url)
        #expect((objection == nil) == (words == nil), "\(objection ?? "taken")")
        if let words { #expect(objection?.contains(words) == true, "\(objection ?? "")") }
    }

    @Test("an address from before the destination's server changed sends nothing, and is reported")
    func stale() async throws {
        let server = try FakeServer { [script] exchange in script.serve(exchange) }
        var journey = try UploadScenario(server.url + "/files")
        journey.order.url = .creation("http://127.0.0.1:1/other")
        let error = try await journey.failedAttempt()
        #expect(error.failure.code == .urlRefused)
        #expect(error.remedy == .failUpload)
        #expect(server.seen.isEmpty)
    }
}
