import Core
import Destinations
import Synchronization
import TestKit
import Testing

/// An upload that another API has created, and whose address a person gives.
@Suite("tus to an upload that exists", .timeLimit(.minutes(Patience.minutes(2))))
struct TusGivenUploadTests {
    let script = ScriptedTusServer()

    /// A server without creation that has an upload at `/u`.
    private func server(_ extensions: String = "termination") throws -> FakeServer {
        script.state.withLock { ($0.exists, $0.length) = (true, 1000) }
        return try FakeServer { [script] exchange in
            guard exchange.method == "OPTIONS" else { return script.serve(exchange) }
            exchange.reply(204, [("Tus-Version", "1.0.0"), ("Tus-Extension", extensions)])
        }
    }

    private func scenario(_ server: FakeServer, size: Int = 1000, chunk: Int64? = nil) throws -> UploadScenario {
        var scenario = try UploadScenario(server.url + "/files", size: size, chunk: chunk)
        scenario.order.url = .upload(server.url + "/u")
        return scenario
    }

    @Test("it is opened with HEAD, gets the bytes, and no POST is sent; a second attempt continues")
    func opened() async throws {
        let server = try server()
        let scenario = try scenario(server, chunk: 600)
        _ = try await scenario.attempt()
        #expect(script.held == scenario.content)
        #expect(server.seen == ["HEAD /u", "PATCH /u", "PATCH /u", "HEAD /u"])
        script.state.withLock { $0.held = Array($0.held.prefix(600)) }
        _ = try await scenario.attempt()
        #expect(script.held == scenario.content && verbs(server).suffix(3) == ["HEAD", "PATCH", "HEAD"])
    }

    @Test(
        "an upload that is gone, has bytes of another writer, or another length fails the file and is left alone",
        arguments: ["gone", "bytes", "length", "deferred"])
    func unusable(_ problem: String) async throws {
        let server = try server()
        let words: String
        switch problem {
        case "gone":
            script.state.withLock { $0.exists = false }
            words = "it is gone"
        case "bytes":
            script.state.withLock { $0.held = [1, 2, 3] }
            words = "second writer"
        case "length":
            script.state.withLock { $0.length = 999 }
            words = "its length is 999"
        default:
            script.state.withLock { $0.isDeferred = true }
            words = "its length is not fixed yet"
        }
        let scenario = try scenario(server)
        for generation in 1...2 {
            var again = scenario
            again.order.generation = generation
            let error = try await again.failedAttempt()
            #expect(error.failure.code == .givenUploadUnusable && error.remedy == .failUpload, "\(error)")
            #expect(error.failure.message.contains(words) && !error.failure.message.contains("/u"), "\(error)")
        }
        #expect(verbs(server) == ["HEAD", "HEAD"])
    }

    @Test("one that is lost in the middle is not created again")
    func lost() async throws {
        let server = try server()
        let scenario = try scenario(server, chunk: 600)
        try await scenario.ledger.record(
            Checkpoint(["url": server.url + "/u", "offset": "600", "reach": "600"]))
        script.state.withLock { $0.exists = false }
        #expect(try await scenario.failedAttempt().failure.code == .givenUploadUnusable)
        #expect(verbs(server) == ["HEAD"])
    }

    @Test("a cancel removes it only where the server offers that")
    func cancelled() async throws {
        for (extensions, sent) in [("termination", true), ("expiration", false)] {
            let server = try server(extensions)
            let scenario = try scenario(server)
            _ = try await scenario.attempt()
            let checkpoint = try #require(scenario.ledger.last)
            #expect(try await scenario.destination.discard(checkpoint) == sent)
            #expect(verbs(server).contains("DELETE") == sent)
            script.state.withLock { $0.held = [] }
        }
    }

    @Test("one of another origin is refused, also after the configuration has changed")
    func origin() async throws {
        var scenario = try UploadScenario("http://127.0.0.1:4000/files")
        #expect(scenario.destination.objection(toUploadURL: "http://127.0.0.1:4000/u/1") == nil)
        #expect(scenario.destination.objection(toUploadURL: "http://127.0.0.1:4001/u/1") != nil)
        scenario.order.url = .upload("http://127.0.0.1:1/u")
        #expect(try await scenario.failedAttempt().failure.code == .urlRefused)
    }

    @Test("an address keeps its kind in the database")
    func stored() {
        for url in [GivenURL.creation("http://a/b"), .upload("http://a/b")] {
            #expect(GivenURL(stored: url.stored) == url)
        }
        #expect(GivenURL(stored: "http://a/b") == .creation("http://a/b"))
    }
}
