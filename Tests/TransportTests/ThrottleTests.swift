import Core
import Synchronization
import TestKit
import Testing

@testable import Transport

@Suite("Throttle", .timeLimit(.minutes(Patience.minutes(1))))
struct ThrottleTests {
    let transport = Transport()
    let folder = TemporaryFolder()

    /// Times when the bytes of bodies arrived, at a server that reads as fast as possible.
    private final class TrafficCounter: Sendable {
        private let began = ContinuousClock.now
        private let arrivals = Mutex<[(at: ContinuousClock.Instant, count: Int)]>([])

        var bytes: Int { arrivals.withLock { $0.reduce(0) { $0 + $1.count } } }
        /// Bytes a second without the first piece, which is sent at once. From before the request on: a server whose
        /// first read is late reads several pieces together.
        var rate: Double {
            arrivals.withLock { arrivals in
                guard let last = arrivals.last else { return 0 }
                let later = arrivals.dropFirst().reduce(0) { $0 + $1.count }
                return Double(later) / began.duration(to: last.at).inSeconds
            }
        }

        func read(_ exchange: Exchange) {
            while true {
                let count = exchange.piece(64 << 10).count
                if count == 0 { return }
                arrivals.withLock { $0.append((.now, count)) }
            }
        }
    }

    private func metered(_ meter: TrafficCounter) throws -> FakeServer {
        try FakeServer {
            meter.read($0)
            $0.reply(204)
        }
    }

    @Test("sent bytes keep the limit, with one transfer and with eight", arguments: [1, 8])
    func rate(_ count: Int) async throws {
        // Never faster than the limit. Slower only where the machine was busy, so one good run of three is enough.
        var rates: [Double] = []
        while rates.last.map({ $0 < 0.85 * 200_000 }) ?? true, rates.count < 3 {
            let meter = TrafficCounter()
            let server = try metered(meter)
            let throttle = Throttle(rate: 200_000)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<count {
                    group.addTask { [transport] in
                        let body = noise(500_000 / count)
                        let request = Request("PATCH", server.url, body: .bytes(body), throttles: [throttle])
                        let response = try await transport.send(request)
                        #expect(response.bytesSent == Int64(body.count))
                    }
                }
                try await group.waitForAll()
            }
            #expect(meter.bytes == 500_000 / count * count)
            rates.append(meter.rate)
            #expect(meter.rate <= 1.15 * 200_000)
        }
        #expect(rates.contains { $0 >= 0.85 * 200_000 }, "\(rates)")
    }

    @Test("a throttled transfer does not count as stalled, and continues as soon as the limit is removed")
    func held() async throws {
        let meter = TrafficCounter()
        let server = try metered(meter)
        let throttle = Throttle(rate: 0)
        async let response = transport.send(
            Request(
                "PATCH", server.url, body: .bytes(noise(300_000)), limits: Limits(sendingStall: .short, whole: .short),
                throttles: [throttle]))
        try await eventually("the server has received the request") { !server.seen.isEmpty }
        let start = ContinuousClock.now
        try await eventually("the limits of the request would have passed") { ContinuousClock.now - start > .short * 3 }
        #expect(meter.bytes == 0)
        throttle.rate = nil
        #expect(try await response.status == 204)
        #expect(meter.bytes == 300_000)
    }

    @Test("a limit set during a transfer takes effect at once")
    func comes() async throws {
        let meter = TrafficCounter()
        let server = try metered(meter)
        let throttle = Throttle()
        let path = try folder.write("video", noise(8 << 20))
        let maxSent = Mutex<Int64>(0)
        async let response = transport.send(
            Request(
                "PATCH", server.url, headers: [("Expect", "")], body: .file(.path(path), offset: 0, count: 8 << 20),
                throttles: [throttle],
                onSent: { sent in
                    maxSent.withLock { $0 = sent }
                    if sent > 1 << 20, throttle.rate == nil { throttle.rate = 0 }
                }))
        try await eventually("the transfer is stopped") { throttle.rate == 0 }
        try await eventually("the server has received all sent bytes") {
            meter.bytes > 1 << 20 && meter.bytes == maxSent.withLock { $0 }
        }
        // libcurl had at most one buffer when the limit was set.
        #expect(meter.bytes <= 1 << 20 + 4 * (64 << 10))
        throttle.rate = 1 << 40
        #expect(try await response.status == 204)
    }

    @Test("a limit that joins a set or leaves it applies at once to the transfers that draw from the set")
    func joins() async throws {
        let meter = TrafficCounter()
        let server = try metered(meter)
        let (still, set) = (Throttle(rate: 0), Throttle(members: []))
        let path = try folder.write("video", noise(8 << 20))
        let maxSent = Mutex<Int64>(0)
        async let response = transport.send(
            Request(
                "PATCH", server.url, headers: [("Expect", "")], body: .file(.path(path), offset: 0, count: 8 << 20),
                throttles: [set],
                onSent: { sent in
                    maxSent.withLock { $0 = sent }
                    if sent > 1 << 20, set.rate == nil { set.replaceMembers([still]) }
                }))
        try await eventually("the transfer is stopped") { set.rate == 0 }
        try await eventually("the server has received all sent bytes") {
            meter.bytes > 1 << 20 && meter.bytes == maxSent.withLock { $0 }
        }
        #expect(meter.bytes <= 1 << 20 + 4 * (64 << 10))
        set.replaceMembers([Throttle(rate: 1 << 40)])
        #expect(try await response.status == 204)
    }

    @Test("a throttled transfer still receives an early response, and can be cancelled")
    func early() async throws {
        let throttle = Throttle(rate: 0)
        let server = try FakeServer { exchange in
            if exchange.target == "/refused" { return exchange.reply(409, [("Connection", "close")]) }
            exchange.hang()
        }
        func patch(_ path: String) -> Request {
            Request("PATCH", server.url + path, body: .bytes(noise(1000)), throttles: [throttle])
        }
        #expect(try await transport.send(patch("/refused")).status == 409)
        let task = Task { [transport] in try await transport.send(patch("/held")) }
        try await eventually("the server has received the request") { server.seen.contains("PATCH /held") }
        task.cancel()
        let error = await #expect(throws: TransportError.self) { try await task.value }
        #expect(error?.kind == .cancelled)
        #expect(error?.bytesSent == 0)
    }

    @Test("a transfer throttled by one limit does not delay transfers under another")
    func beside() async throws {
        let server = try metered(TrafficCounter())
        let (held, ample) = (Throttle(rate: 0), Throttle(rate: 1 << 30))
        let task = Task { [transport] in
            try await transport.send(
                Request("PATCH", server.url, body: .bytes(noise(1000)), throttles: [ample, held]))
        }
        try await eventually("the server has received the request") { !server.seen.isEmpty }
        // The same thread carries other requests.
        let response = try await transport.send(
            Request("PATCH", server.url, body: .bytes(noise(300_000)), throttles: [ample]))
        #expect(response.bytesSent == 300_000)
        task.cancel()
        _ = await task.result
    }
}
