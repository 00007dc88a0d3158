import Core
import Destinations
import Synchronization
import TestKit
import Testing

/// What a destination has learned about its server, after a restart of the daemon: another value, with the checkpoint
/// and the facts that the daemon keeps.
@Suite("tus after a restart", .timeLimit(.minutes(Patience.minutes(2))))
struct TusRestartTests {
    let script = ScriptedTusServer()

    @Test("the size that 413 has taught is kept", arguments: [413, 0])
    func size(_ status: Int) async throws {
        let sizes = Sizes()
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let length = exchange.header("content-length").flatMap { Int($0) } ?? 0
            sizes.add(length)
            if length <= 600_000 { return script.serve(exchange) }
            _ = exchange.body()
            // Without a status: the body is swallowed.
            status > 0 ? exchange.reply(status) : exchange.cut(reset: true)
        }
        let scenario = try UploadScenario(server.url + "/files", size: 2 << 20)
        _ = try await scenario.arrive()
        #expect(script.held == scenario.content && sizes.all.first == 2 << 20)
        let learned = try #require(scenario.destination.requestSize)
        sizes.forget()
        let later = try UploadScenario(server.url + "/files", size: 2 << 20)
        later.destination.recall(learned)
        _ = try await later.attempt()
        #expect(script.held == later.content && sizes.all.allSatisfy { $0 <= 600_000 }, "\(sizes.all)")
    }

    @Test("a server that has refused PATCH gets no body of any file, before it accepts a request without one")
    func method() async throws {
        let bodies = Sizes()
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            bodies.add(exchange.body().count)
            exchange.reply(405)
        }
        let values = ["method_override": SettingValue.text("never")]
        let first = try UploadScenario(server.url + "/files", values: values)
        #expect(try await first.failedAttempt().failure.http == 405)
        let learned = try #require(first.destination.requestSize)
        #expect(learned.refusesBytes && bodies.all == [1000])
        // Another file.
        let later = try UploadScenario(server.url + "/files", size: 3000, values: values)
        later.destination.recall(learned)
        #expect(try await later.failedAttempt().failure.http == 405)
        #expect(bodies.all == [1000, 0] && later.destination.requestSize == learned)
    }

    @Test("a success without `Location` is not posted again at each start")
    func nameless() async throws {
        let created = Sizes()
        let server = try FakeServer { exchange in
            if exchange.method == "POST" { created.add(0) }
            exchange.reply(exchange.method == "POST" ? 201 : 404)
        }
        let (clocks, ledger) = (ManualClocks(), CountingReporter())
        // A daemon that is started again every minute of an hour.
        for _ in 0..<60 {
            let scenario = try UploadScenario(server.url + "/files", ledger: ledger, clocks: clocks)
            let error = try await scenario.failedAttempt()
            #expect([.noLocation, .creationsUnknown].contains(error.failure.code))
            clocks.advance(by: .seconds(60))
        }
        #expect((3...7).contains(created.all.count), "\(created.all.count) creations in an hour")
    }
}

private final class Sizes: Sendable {
    private let sizes = Mutex<[Int]>([])
    var all: [Int] { sizes.withLock { $0 } }
    func add(_ size: Int) { sizes.withLock { $0.append(size) } }
    func forget() { sizes.withLock { $0 = [] } }
}
