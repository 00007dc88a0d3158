import Core
import Destinations
import Synchronization
import TestKit
import Testing

/// Gateways that block PATCH or DELETE, in front of servers that obey `X-HTTP-Method-Override` or do not.
@Suite("tus behind a gateway that blocks methods", .timeLimit(.minutes(Patience.minutes(2))))
struct TusMethodTests {
    let script = ScriptedTusServer()
    /// Lengths of the bodies that the gateway has blocked.
    private let bodies = Blocked()

    private final class Blocked: Sendable {
        private let counts = Mutex<[Int]>([])
        var all: [Int] { counts.withLock { $0 } }
        func add(_ count: Int) { counts.withLock { $0.append(count) } }
    }

    private static let page = "<html><body>Request blocked</body></html>"

    /// A gateway that lets GET, HEAD, POST and OPTIONS through, and a server that obeys the header.
    private func gateway(_ status: Int, obeys: Bool = true) throws -> FakeServer {
        try FakeServer { [script, bodies] exchange in
            switch exchange.method {
            case "PATCH", "DELETE":
                let count = exchange.body().count
                bodies.add(count)
                exchange.reply(status, [], Self.page)
            case "POST" where obeys: script.serve(exchange, as: exchange.header("x-http-method-override"))
            default: script.serve(exchange)
            }
        }
    }

    @Test(
        "where the gateway blocks PATCH, the same bytes are sent with POST after a try without any",
        arguments: [405, 501, 403, 400])
    func adopted(_ status: Int) async throws {
        let server = try gateway(status)
        let journey = try UploadScenario(server.url + "/files", chunk: 600)
        let object = try await journey.attempt()
        #expect(script.held == journey.content && object.warnings.isEmpty, "\(object.warnings)")
        // The creation, the block, the block without bytes, a question on both sides of the try, and the bytes; HEAD
        // names each new offset.
        #expect(
            verbs(server) == [
                "POST", "PATCH", "HEAD", "PATCH", "HEAD", "POST", "HEAD", "POST", "HEAD", "POST", "HEAD",
            ])
        #expect(bodies.all == [600, 0])
        // It is known for the next file, and after a restart for this one.
        let seen = server.seen.count
        try await journey.ledger.record(Checkpoint())
        _ = try await journey.attempt()
        #expect(!server.seen.dropFirst(seen).contains { $0.hasPrefix("PATCH") })
        script.state.withLock { $0.held = [] }
        let later = try UploadScenario(
            server.url + "/files", checkpoint: Checkpoint(["url": server.url + "/u", "method_override": "1"]))
        _ = try await later.attempt()
        #expect(verbs(server).suffix(3) == ["HEAD", "POST", "HEAD"])
    }

    @Test("a server that takes such a POST for a creation gets one, and no byte with it")
    func mistaken() async throws {
        let server = try gateway(405, obeys: false)
        let journey = try UploadScenario(server.url + "/files")
        for _ in 0..<3 {
            let error = try await journey.failedAttempt()
            #expect(error.remedy == .misconfigured && error.failure.http == 405, "\(error)")
        }
        #expect(script.held.isEmpty)
        // The second is the try.
        #expect(verbs(server).filter { $0 == "POST" }.count == 2, "\(server.seen)")
    }

    @Test("a success for such a POST that stores nothing is no progress")
    func unstored() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "POST", exchange.header("x-http-method-override") != nil else {
                return exchange.method == "PATCH" ? exchange.reply(405) : script.serve(exchange)
            }
            _ = exchange.body()
            exchange.reply(204, [("Upload-Offset", exchange.header("upload-offset") ?? "")])
        }
        let journey = try UploadScenario(server.url + "/files", chunk: 600)
        let error = try await journey.failedAttempt()
        #expect(error.failure.code == .noProgress, "\(error)")
        #expect(journey.ledger.book.withLock { $0.accepted }.allSatisfy { $0 == 0 })
    }

    @Test("a refusal by the server itself, or an address whose HEAD does not work, is no block")
    func notBlocked() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            _ = exchange.body()
            exchange.reply(403, [("Tus-Resumable", "1.0.0")], Self.page)
        }
        _ = try await UploadScenario(server.url + "/files").failedAttempt()
        #expect(verbs(server).filter { $0 == "POST" }.count == 1)
        let silent = try FakeServer { [script] exchange in
            switch exchange.method {
            case "PATCH", "HEAD":
                _ = exchange.body()
                exchange.reply(405)
            default: script.serve(exchange)
            }
        }
        _ = try await UploadScenario(silent.url + "/files").failedAttempt()
        #expect(verbs(silent).filter { $0 != "HEAD" } == ["POST", "PATCH"])
    }

    @Test("`always` never sends PATCH or DELETE, and `never` sends nothing else")
    func chosen() async throws {
        let server = try gateway(405)
        let journey = try UploadScenario(server.url + "/files", values: ["method_override": .text("always")])
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        let checkpoint = try #require(journey.ledger.last)
        #expect(try await journey.destination.discard(checkpoint))
        #expect(verbs(server) == ["POST", "POST", "HEAD", "POST", "HEAD"])
        let never = try UploadScenario(server.url + "/files", values: ["method_override": .text("never")])
        _ = try await never.failedAttempt()
        #expect(verbs(server).suffix(3) == ["POST", "PATCH", "HEAD"])
    }

    @Test(
        "a removal that the gateway blocks is sent with POST, and counts when the upload is gone",
        arguments: [true, false])
    func removal(_ obeys: Bool) async throws {
        let server = try gateway(405, obeys: obeys)
        script.state.withLock { ($0.exists, $0.length) = (true, 1000) }
        let journey = try UploadScenario(server.url + "/files")
        let checkpoint = Checkpoint(["url": server.url + "/u"])
        #expect(try await journey.destination.discard(checkpoint) == obeys)
        #expect(verbs(server) == ["DELETE", "HEAD", "POST", "HEAD"])
    }
}
