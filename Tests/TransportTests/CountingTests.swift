import Core
import Dispatch
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

@testable import Transport

@Suite("Counting sent bytes", .timeLimit(.minutes(Patience.minutes(1))))
struct CountingTests {
    let folder = TemporaryFolder()

    /// The kernel's last counters for each socket of a transport; socket numbers are reused.
    private final class Witness: Sendable {
        private let seen = Mutex<[CInt: SocketCounts]>([:])

        var last: SocketCounts? { seen.withLock { $0.values.first } }
        func counts(_ socket: CInt) -> SocketCounts? {
            let counts = Sockets.counts(socket)
            seen.withLock { $0[socket] = counts }
            return counts
        }
    }

    @Test(
        "a transfer is charged with the kernel's count, and the server received no more",
        arguments: [0, 1, 3_000_000])
    func body(_ count: Int) async throws {
        let witness = Witness()
        let transport = Transport(counts: witness.counts)
        let received = Mutex<Int64>(0)
        let server = try FakeServer { exchange in
            _ = exchange.body()
            received.withLock { $0 = exchange.counts?.received ?? 0 }
            exchange.reply(204)
        }
        let increments = Mutex<[Int64]>([])
        let path = try folder.write("video", noise(count))
        let response = try await transport.send(
            Request(
                "PATCH", server.url, body: .file(.path(path), offset: 0, count: Int64(count)),
                onWire: { more in increments.withLock { $0.append(more) } }))
        let counts = try #require(witness.last)
        #expect(response.bytesOnWire == counts.onWire(isSecure: false))
        // More bytes where the receiver was full and dropped some.
        #expect(counts.sent >= received.withLock { $0 } && received.withLock { $0 } > Int64(count))
        #expect(counts.segments >= 4)
        #expect(increments.withLock { $0.reduce(0, +) } == response.bytesOnWire)
        #expect(increments.withLock { $0.allSatisfy { $0 > 0 } })
        // A large body is reported while it is sent.
        #expect(increments.withLock(\.count) > (count > 1 << 20 ? 5 : 0))
        #expect(Double(response.bytesOnWire) <= 1.02 * Double(counts.sent) + 1000)
    }

    @Test("requests over one connection are each charged with their own part")
    func kept() async throws {
        let witness = Witness()
        let transport = Transport(counts: witness.counts)
        let server = try FakeServer {
            _ = $0.body()
            $0.reply(200)
        }
        var charged: [Int64] = []
        for size in [0, 200_000, 0, 1000] {
            let body: Request.Body = size == 0 ? .none : .bytes(noise(size))
            charged.append(try await transport.send(Request("POST", server.url, body: body)).bytesOnWire)
        }
        #expect(server.connectionCount == 1)
        #expect(charged.reduce(0, +) == witness.last?.onWire(isSecure: false))
        #expect(charged[1] >= 200_000)
        // The first request was charged for the connection.
        #expect(charged[2] > 0 && charged[2] < charged[0])
        #expect(charged[3] >= 1000 && charged[3] < charged[1])
    }

    @Test("concurrent requests are charged with the total together")
    func many() async throws {
        let transport = Transport()
        let received = Mutex<[Int64]>([])
        let server = try FakeServer { exchange in
            _ = exchange.body()
            received.withLock { $0.append(exchange.counts?.received ?? 0) }
            exchange.reply(204, [("Connection", "close")])
            exchange.closeAfterwards()
        }
        let charged = try await withThrowingTaskGroup(of: Int64.self) { group in
            for index in 1...20 {
                let body = noise(index * 10_000)
                group.addTask {
                    try await transport.send(Request("PATCH", server.url, body: .bytes(body))).bytesOnWire
                }
            }
            return try await group.reduce(0, +)
        }
        let sum = received.withLock { $0.reduce(0, +) }
        #expect(charged >= sum)
        // Bytes that a full receiver dropped were sent again.
        #expect(charged <= 2 * sum + 20 * 1000)
    }

    @Test("failed requests are charged with their bytes too", arguments: ["cut", "reset", "cancelled"])
    func failed(_ how: String) async throws {
        let witness = Witness()
        let transport = Transport(counts: witness.counts)
        let received = Mutex<Int64>(0)
        let server = try FakeServer { exchange in
            _ = exchange.body(100_000)
            received.withLock { $0 = exchange.counts?.received ?? 0 }
            if how == "cancelled" { return exchange.hang() }
            exchange.cut(reset: how == "reset")
        }
        let path = try folder.write("video", noise(8 << 20))
        let task = Task {
            try await transport.send(
                Request(
                    "PATCH", server.url, headers: [("Expect", "")], body: .file(.path(path), offset: 0, count: 8 << 20))
            )
        }
        if how == "cancelled" {
            try await eventually("the server has received bytes") { received.withLock { $0 > 0 } }
            task.cancel()
        }
        let error = await #expect(throws: TransportError.self) { try await task.value }
        #expect((error?.bytesOnWire ?? 0) >= received.withLock { $0 })
        #expect((error?.bytesOnWire ?? 0) >= witness.last?.onWire(isSecure: false) ?? .max)
    }

    @Test("a failed connection and a failed handshake are charged")
    func handshakes() async throws {
        let transport = Transport()
        let server = try FakeServer { $0.reply(200) }
        let (url, port) = (server.url, server.port)
        let limits = Limits(connect: .seconds(2))
        let handshake = await #expect(throws: TransportError.self) {
            try await transport.send(Request("GET", "https://127.0.0.1:\(port)/", limits: limits))
        }
        #expect((handshake?.bytesOnWire ?? 0) > 300, "a ClientHello and its segments are charged")
        server.stop()
        let refused = await #expect(throws: TransportError.self) { try await transport.send(Request("GET", url)) }
        #expect(refused?.kind == .connect && (refused?.bytesOnWire ?? 0) >= 40)
    }

    @Test("if the kernel does not count, 3 % are added to libcurl's count")
    func estimate() async throws {
        let transport = Transport(counts: { _ in nil })
        let server = try FakeServer {
            _ = $0.body()
            $0.reply(200)
        }
        for _ in 0..<2 {
            let sum = Mutex<Int64>(0)
            let response = try await transport.send(
                Request(
                    "PATCH", server.url, body: .bytes(noise(1_000_000)), onWire: { more in sum.withLock { $0 += more } }
                ))
            #expect((1_030_050...1_031_000).contains(response.bytesOnWire))
            #expect(sum.withLock { $0 } == response.bytesOnWire)
        }
    }

    @Test("headers, options, the close and pending bytes are added to the kernel's count")
    func formula() {
        let counts = SocketCounts(
            sent: 1000, received: 7, segments: 10, unsent: 3000, queued: 6000, unanswered: 4, largest: 1400, header: 52)
        let plain: Int64 = 1000 + 520 + 20 + 156 + 36
        #expect(counts.onWire(isSecure: false) == plain)
        #expect(counts.onWire(isSecure: true) == plain + 116)
        #expect(counts.onWire(isSecure: false, at: .orderly) == plain + 3000 + 156)
        #expect(counts.onWire(isSecure: false, at: .reset) == plain + 6 * 52 + 3 * 1452)
    }
}
