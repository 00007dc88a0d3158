import Core
import Destinations
import Synchronization
import TestKit
import Testing

/// Intermediaries between a tus server and its client that answer in its place.
@Suite("tus behind an intermediary that answers instead", .timeLimit(.minutes(Patience.minutes(2))))
struct TusPathTests {
    let script = ScriptedTusServer()

    /// Lengths of the bodies of all `PATCH` so far.
    private final class Bodies: Sendable {
        private let state = Mutex<[Int]>([])
        var all: [Int] { state.withLock { $0 } }
        func note(_ count: Int) { state.withLock { $0.append(count) } }
    }

    /// POST in place of PATCH has tests of its own.
    private static let patchOnly = ["method_override": SettingValue.text("never")]

    private func server(_ answer: @escaping @Sendable (_ number: Int) -> Int?, _ bodies: Bodies) throws -> FakeServer {
        try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let number = bodies.all.count
            guard let status = answer(number) else {
                bodies.note(exchange.header("content-length").flatMap { Int($0) } ?? -1)
                return script.serve(exchange)
            }
            bodies.note(exchange.body().count)
            exchange.reply(status, [], "not here")
        }
    }

    @Test(
        "a server that refuses requests with bytes itself gets no body before it accepts one without",
        arguments: [405, 501])
    func method(_ status: Int) async throws {
        let bodies = Bodies()
        let server = try server({ $0 < 3 ? status : nil }, bodies)
        let journey = try UploadScenario(server.url + "/files", values: Self.patchOnly)
        for _ in 0..<3 {
            let error = try await journey.failedAttempt()
            #expect(error.remedy == .misconfigured && error.failure.http == status, "\(error)")
        }
        #expect(bodies.all == [1000, 0, 0])
        _ = try await journey.attempt()
        #expect(bodies.all == [1000, 0, 0, 0, 1000] && script.held == journey.content)
        // It is forgotten then, for the next file as well.
        let next = try UploadScenario(server.url + "/files", checkpoint: nil)
        _ = try await next.attempt()
        #expect(bodies.all.suffix(1) == [1000])
    }

    @Test("after a restart no body is sent either, and a server that accepts no empty request gets one with bytes")
    func restart() async throws {
        let bodies = Bodies()
        let server = try server({ [405, 400][safe: $0] }, bodies)
        let journey = try UploadScenario(server.url + "/files", values: Self.patchOnly)
        _ = try await journey.failedAttempt()
        let later = try UploadScenario(
            server.url + "/files", values: Self.patchOnly, checkpoint: journey.ledger.last)
        _ = try await later.attempt()
        #expect(bodies.all == [1000, 0, 1000])
    }

    @Test("a server that accepts an empty request and refuses those with bytes gets small bodies until it accepts one")
    func emptyOnly() async throws {
        let bodies = Bodies()
        let server = try server({ [0, 2, 4].contains($0) ? 405 : nil }, bodies)
        let journey = try UploadScenario(server.url + "/files", size: 300_000, values: Self.patchOnly)
        for _ in 0..<3 { #expect(try await journey.failedAttempt().remedy == .misconfigured) }
        #expect(bodies.all == [300_000, 0, 65_536, 0, 65_536])
        _ = try await journey.attempt()
        #expect(bodies.all.dropFirst(5) == [0, 65_536, 234_464] && script.held == journey.content)
    }

    @Test(
        "a path that keeps nothing of a body above a size gets smaller ones, also below 1 MiB, and they are remembered")
    func cutBodies() async throws {
        let bodies = Bodies()
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let length = exchange.header("content-length").flatMap { Int($0) } ?? 0
            bodies.note(length)
            if length <= 200_000 { return script.serve(exchange) }
            _ = exchange.body()
            exchange.cut(reset: true)
        }
        let journey = try UploadScenario(server.url + "/files", size: 900_000)
        for _ in 0..<6 { _ = try await journey.failedAttempt() }
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(bodies.all.prefix(7) == [900_000, 900_000, 900_000, 262_144, 262_144, 262_144, 65_536])
        // Twice the size after eight requests without trouble, but not the size that failed.
        #expect(bodies.all.dropFirst(6).allSatisfy { $0 <= 131_072 })
        #expect(journey.destination.requestSize == RequestSize(most: 131_072, failed: 262_144, requiredRun: 64))
    }

    @Test(
        "answers of a firewall, an account or a disconnected client hold the destination after one query",
        arguments: [402, 406, 417, 418, 426, 428, 451, 499])
    func path(_ status: Int) async throws {
        let bodies = Bodies()
        let server = try server({ $0 == 0 ? status : nil }, bodies)
        let journey = try UploadScenario(server.url + "/files")
        let error = try await journey.failedAttempt()
        #expect(error.remedy == .holdDestination(after: nil) && error.failure.http == status, "\(error)")
        #expect(verbs(server) == ["POST", "PATCH", "HEAD"])
        _ = try await journey.attempt()
        #expect(script.held == journey.content && bodies.all == [1000, 1000])
        // The same for a creation.
        let closed = try FakeServer { exchange in exchange.reply(exchange.method == "POST" ? status : 404) }
        #expect(try await UploadScenario(closed.url + "/files").failedAttempt().remedy == .holdDestination(after: nil))
    }

    @Test("a server that refuses `Expect` and closes gets the same bytes at once without it")
    func expectation() async throws {
        let expects = Mutex<[Bool]>([])
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let isExpected = exchange.header("expect") != nil
            expects.withLock { $0.append(isExpected) }
            if !isExpected { return script.serve(exchange) }
            exchange.closeAfterwards()
            exchange.reply(417, [("Connection", "close")])
        }
        let journey = try UploadScenario(server.url + "/files", size: 3 << 20)
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(expects.withLock { $0 } == [true, false])
    }

    @Test("an upload that accepted the bytes anyway is resumed")
    func taken() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH", script.time("PATCH") == 0 else { return script.serve(exchange) }
            let body = exchange.body()
            script.state.withLock { $0.held += body }
            exchange.reply(499)
        }
        let journey = try UploadScenario(server.url + "/files", chunk: 400)
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
    }
}

extension Array {
    fileprivate subscript(safe index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}
