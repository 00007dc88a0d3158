import Core
import Linux
import Synchronization
import TestKit
import Testing

@testable import Transport

@Suite("Counting received bytes", .timeLimit(.minutes(Patience.minutes(1))))
struct ReceivedByteTests {
    private static func counts(
        received: Int64 = 1000, incoming: Int64 = 10, gaps: Int64 = 0, isGapped: Bool = false, unanswered: Int64 = 0,
        unsent: Int64 = 0
    ) -> SocketCounts {
        SocketCounts(
            sent: 0, received: received, segments: 0, unsent: unsent, queued: unsent, unanswered: unanswered,
            largest: 1448, header: 52, incoming: incoming, gaps: gaps, isGapped: isGapped, perTrip: 14_480)
    }

    @Test("received bytes are payload, headers and one connection close, each time since the last count")
    func increments() {
        var arrived = ReceivedByteCount()
        #expect(arrived.newBytes(Self.counts(received: 0, incoming: 0), isSecure: true) == 0)
        #expect(arrived.newBytes(Self.counts(), isSecure: false) == 1000 + 13 * 52 + 20)
        #expect(arrived.newBytes(Self.counts(), isSecure: false) == 0)
        #expect(arrived.newBytes(Self.counts(received: 1300, incoming: 12), isSecure: false) == 300 + 2 * 52)
        var secure = ReceivedByteCount()
        #expect(secure.newBytes(Self.counts(), isSecure: true) == 1000 + 14 * 52 + 20 + 64)
    }

    @Test("acknowledgements that may carry SACK have their maximal length, and others do not")
    func gaps() {
        var arrived = ReceivedByteCount()
        _ = arrived.newBytes(Self.counts(), isSecure: false)
        #expect(arrived.newBytes(Self.counts(incoming: 15, gaps: 1), isSecure: false) == 5 * (52 + 28))
        #expect(arrived.newBytes(Self.counts(incoming: 16, gaps: 1), isSecure: false) == 52)
        #expect(arrived.newBytes(Self.counts(incoming: 18, gaps: 1, isGapped: true), isSecure: false) == 2 * (52 + 28))
        #expect(arrived.newBytes(Self.counts(incoming: 19, gaps: 1), isSecure: false) == 52 + 28)
        #expect(arrived.newBytes(Self.counts(incoming: 20, gaps: 1), isSecure: false) == 52)
    }

    @Test("bytes in flight at the end are acknowledged, and an interrupted response still arrives")
    func ends() {
        let counts = Self.counts(unanswered: 4, unsent: 1449)
        let before = counts.arrived(isSecure: false, at: nil, isBrokenOff: false)
        #expect(counts.arrived(isSecure: false, at: .orderly, isBrokenOff: false) == before + 6 * 52)
        #expect(counts.arrived(isSecure: false, at: .reset, isBrokenOff: false) == before + 6 * 52 + 7 * 28)
        #expect(counts.arrived(isSecure: false, at: .reset, isBrokenOff: true) == before + 6 * 52 + 7 * 28 + 14_480)
    }

    @Test("requests over one connection are charged for their responses, never less than the server sent")
    func kept() async throws {
        let transport = Transport()
        let sent = Mutex<SocketCounts?>(nil)
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.reply(200, [], String(repeating: "a", count: 20_000))
            sent.withLock { $0 = exchange.counts }
        }
        var told: [Int64] = []
        for _ in 0..<5 {
            let sum = Mutex<Int64>(0)
            var request = Request("POST", server.url, body: .bytes(noise(100_000)))
            request.onArrived = { more in sum.withLock { $0 += more } }
            _ = try await transport.send(request)
            told.append(sum.withLock { $0 })
        }
        #expect(server.connectionCount == 1)
        #expect(told.allSatisfy { $0 > 20_000 && $0 < 40_000 }, "\(told)")
        let counts = try #require(sent.withLock { $0 })
        #expect(told.reduce(0, +) >= counts.sent + counts.segments * counts.header)
    }
}
