import Core
import Linux
import Synchronization
import Testing

@testable import Transport

@Suite("Bounding connections by link counters")
struct LinkByteBoundTests {
    private final class Links: Sendable {
        let sent = Mutex<[String: LinkBytes.Sent]?>(["lte0:3": LinkBytes.Sent(bytes: 1000, packets: 10)])
        func set(_ bytes: UInt64, packets: UInt64 = 10, _ name: String = "lte0:3") {
            sent.withLock { $0?[name] = LinkBytes.Sent(bytes: bytes, packets: packets) }
        }
    }

    private static let start = ContinuousClock.now
    /// The assumed bytes at the end of each connection.
    private let farewell: Int64 = 20 + 4 * 52 + 64 + 36

    private static func member(
        _ total: Int64, acknowledged: Int64 = 1, unanswered: Int64 = 0, sent: Int64 = 100_000, segments: Int64 = 0,
        overhead: Int64 = 0, hasRepeated: Bool = true
    ) -> LinkByteBound.Member {
        // Fewer bytes are acknowledged than were sent, so some were sent again.
        let counts = SocketCounts(
            sent: hasRepeated ? max(sent, acknowledged + 1) : acknowledged, received: 0, segments: segments, unsent: 0,
            queued: 0,
            unanswered: unanswered, largest: 1448, header: 52, acknowledged: acknowledged)
        return LinkByteBound.Member(counts: counts, total: total, overhead: overhead)
    }

    /// A bound, and the bytes that were charged to each connection.
    private struct Book {
        var bound: LinkByteBound
        var paid: [CInt: Int64] = [:]
        var open: [CInt: LinkByteBound.Member] = [:]

        init(_ links: Links, joinsSegments: Bool = false) throws {
            let linkBytes: LinkByteBound.LinkBytesReader = { _ in links.sent.withLock { $0 } }
            let first = LinkByteBound(
                interface: "lte0", now: start, joins: { _ in joinsSegments }, linkBytes: linkBytes)
            bound = try #require(first)
        }

        /// - Returns: The total that was charged to it.
        mutating func charge(
            _ member: LinkByteBound.Member, of socket: CInt = 1, after time: Duration, end: Int64? = nil
        ) -> Int64 {
            let others = open.filter { $0.key != socket }
            let total = bound.charge(
                socket, member, before: paid[socket] ?? 0, end: end, now: start + time,
                others: { others })
            paid[socket] = total
            open[socket] = end == nil ? member : nil
            return total
        }

        var sum: Int64 { paid.values.reduce(0, +) }
    }

    @Test("the bound is the bytes carried since opening, plus those still in queues")
    func sum() throws {
        let links = Links()
        var book = try Book(links)
        links.set(501_000)
        let first = book.charge(Self.member(7_000_000, acknowledged: 400_000, unanswered: 10), after: .seconds(1))
        #expect(first == 515_000 + farewell)
        links.set(2_101_000)
        let last = book.charge(Self.member(7_000_000, acknowledged: 2_000_000), after: .seconds(2), end: 0)
        #expect(last == 2_100_000 + farewell)
    }

    @Test("if one header covers many segments, each is charged its own")
    func joined() throws {
        let links = Links()
        var book = try Book(links, joinsSegments: true)
        links.set(501_000, packets: 60)
        let total = book.charge(Self.member(7_000_000, segments: 400), after: .seconds(1))
        #expect(total == 500_000 - 50 * 40 + 400 * 52 + farewell)
    }

    @Test("a segment dropped by a queue has no header, even if the link might have merged it")
    func thrownAway() throws {
        let links = Links()
        var book = try Book(links, joinsSegments: true)
        // A thousand segments were passed down twice; each was sent once and separately.
        links.set(1000 + 1000 * 1514, packets: 1010)
        let member = Self.member(
            3_100_000, acknowledged: 1_448_000, sent: 2 * 1_448_000, segments: 2000)
        let total = book.charge(member, after: .seconds(1))
        #expect(total >= 1000 * 1500 + farewell)
        #expect(total <= 1000 * 1530 + farewell)
    }

    @Test("a link that counts segments as packets but one header only is charged one for each")
    func oneHeader() throws {
        let links = Links()
        var book = try Book(links, joinsSegments: true)
        links.set(1000 + 100 * (14_480 + 66), packets: 1010)
        let member = Self.member(3_100_000, acknowledged: 1_448_000, sent: 1_448_001, segments: 1000)
        #expect(book.charge(member, after: .seconds(1)) >= 1000 * 1500)
    }

    @Test("whatever a queue drops and a link merges, no less is charged than was sent", arguments: 0..<40)
    func joinedNever(_ seed: UInt64) throws {
        var dice = Random(seed: seed)
        let links = Links()
        var book = try Book(links, joinsSegments: true)
        let link = Int64([0, 14].randomElement(using: &dice) ?? 0)
        var (bytes, packets, wire) = (UInt64(1000), UInt64(10), Int64(0))
        var (sent, segments, acknowledged) = (Int64(0), Int64(0), Int64(0))
        for step in 1...200 {
            for _ in 0..<Int.random(in: 0...20, using: &dice) {
                let payload = Int64.random(in: 1...20_000, using: &dice)
                let count = (payload + 1447) / 1448
                sent += payload
                segments += count
                guard Bool.random(using: &dice) else { continue }
                wire += payload + count * 52
                acknowledged += payload
                // Sent together, or each alone.
                let own = Bool.random(using: &dice) ? count : 1
                bytes += UInt64(payload + own * (52 + link))
                packets += UInt64(own)
            }
            if Int.random(in: 0..<5, using: &dice) == 0 {
                bytes += 400
                packets += 10
            }
            links.set(bytes, packets: packets)
            let member = Self.member(sent + segments * 52, acknowledged: acknowledged, sent: sent, segments: segments)
            let total = book.charge(member, after: .milliseconds(300 * Int64(step)))
            #expect(total >= wire)
        }
        #expect(book.sum <= wire * 102 / 100 + 200 * 400 + farewell)
    }

    @Test("the overhead of a tunnel is not included in its interface's counter")
    func tunnel() throws {
        let links = Links()
        var book = try Book(links)
        links.set(501_000)
        #expect(
            book.charge(Self.member(7_000_000, segments: 400, overhead: 50), after: .seconds(1)) == 520_000 + farewell)
    }

    @Test("without retransmissions, every byte that TCP counts was sent")
    func untouched() throws {
        let links = Links()
        var book = try Book(links)
        links.set(1500)
        #expect(book.charge(Self.member(400_000, hasRepeated: false), after: .seconds(1)) == 400_000)
    }

    @Test("bytes acknowledged by each peer are charged to its connection, whatever others are charged")
    func least() throws {
        let links = Links()
        var book = try Book(links)
        links.set(1000)
        // All bytes counted in a moment are assumed to have left, although most of them were dropped.
        #expect(book.charge(Self.member(900_000), of: 1, after: .milliseconds(10)) == 900_000)
        links.set(301_000)
        let counted = Self.member(800_000, acknowledged: 144_800)
        let total = book.charge(counted, of: 2, after: .milliseconds(400))
        #expect(total == 144_800 + 100 * 52)
    }

    @Test("connections over one link are charged together for its bytes, not each for all")
    func shared() throws {
        let links = Links()
        var book = try Book(links)
        // Each has passed down twice the bytes that it sent.
        for step in 1...10 {
            let sent = Int64(step) * 100_000
            links.set(UInt64(1000 + 2 * sent))
            let member = Self.member(2 * sent, acknowledged: sent - 50_000)
            // The kernel is asked about both at the same moment.
            if step > 1 { book.open = [1: member, 2: member] }
            for socket in [CInt(1), 2] {
                _ = book.charge(member, of: socket, after: .milliseconds(1000 * step + 100 * Int(socket)))
                #expect(book.sum >= (socket == 2 ? 2 * sent : 0))
            }
        }
        for socket in [CInt(1), 2] {
            _ = book.charge(
                Self.member(2_000_000, acknowledged: 950_000), of: socket,
                after: .milliseconds(11_000 + 100 * Int(socket)), end: 500)
        }
        #expect(book.sum >= 2_000_000)
        #expect(book.sum <= 2_000_000 + 4 * (farewell + 500))
    }

    @Test("in any sequence, no less is charged than was sent", arguments: 0..<40)
    func never(_ seed: UInt64) throws {
        var dice = Random(seed: seed)
        let links = Links()
        var book = try Book(links)
        var (wire, counted, acknowledged): ([CInt: Int64], [CInt: Int64], [CInt: Int64]) = ([:], [:], [:])
        var (total, time, next) = (Int64(0), Duration.zero, CInt(3))
        var open: [CInt] = [1, 2]
        for _ in 0..<300 {
            time += .milliseconds(Int64.random(in: 1...400, using: &dice))
            if open.isEmpty || Int.random(in: 0..<20, using: &dice) == 0 {
                open.append(next)
                next += 1
            }
            // Some of the segments are dropped; other traffic uses the link as well.
            for socket in open {
                let more = Int64.random(in: 0...200_000, using: &dice)
                let left = Bool.random(using: &dice) ? more : Int64.random(in: 0...more, using: &dice)
                counted[socket, default: 0] += more
                wire[socket, default: 0] += left
                total += left + (Int.random(in: 0..<9, using: &dice) == 0 ? 1000 : 0)
                acknowledged[socket] = Int64.random(in: (acknowledged[socket] ?? 0)...(wire[socket] ?? 0), using: &dice)
            }
            links.set(UInt64(1000 + total))
            guard let socket = open.randomElement(using: &dice) else { continue }
            let ends = Int.random(in: 0..<12, using: &dice) == 0
            let member = Self.member(counted[socket] ?? 0, acknowledged: acknowledged[socket] ?? 0)
            // The kernel is asked about all of them at the same moment.
            for other in open where other != socket && book.open[other] != nil {
                book.open[other] = Self.member(counted[other] ?? 0, acknowledged: acknowledged[other] ?? 0)
            }
            _ = book.charge(member, of: socket, after: time, end: ends ? 100 : nil)
            if ends { open.removeAll { $0 == socket } }
        }
        for socket in open {
            let member = Self.member(counted[socket] ?? 0, acknowledged: acknowledged[socket] ?? 0)
            _ = book.charge(member, of: socket, after: time, end: 100)
        }
        #expect(book.sum >= wire.values.reduce(0, +))
    }

    private struct Random: RandomNumberGenerator {
        var seed: UInt64
        mutating func next() -> UInt64 {
            seed &+= 0x9E37_79B9_7F4A_7C15
            var value = (seed ^ seed >> 30) &* 0xBF58_476D_1CE4_E5B9
            value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
            return value ^ value >> 31
        }
    }

    @Test(
        "a link counter that is behind, missing, reset, or not read for long gives no bound"
    )
    func untrusted() throws {
        func whole(_ change: (Links) -> Void, acknowledged: Int64 = 1, after time: Duration = .seconds(1)) throws
            -> Bool
        {
            let links = Links()
            var book = try Book(links)
            change(links)
            return book.charge(Self.member(7_000_000, acknowledged: acknowledged), after: time, end: 0) == 7_000_000
        }
        #expect(try whole({ $0.set(101_000) }, acknowledged: 100_001))
        #expect(
            try whole { links in
                links.sent.withLock { $0 = ["wan0:2": LinkBytes.Sent(bytes: 7_000_000, packets: 5000)] }
            })
        #expect(try whole { $0.set(999) })
        #expect(try whole({ $0.set(900_000) }, after: .seconds(31)))
        #expect(try !whole { $0.set(900_000) })
    }

    @Test("between two readings, every byte that TCP counts is assumed sent")
    func between() throws {
        let links = Links()
        var book = try Book(links)
        links.set(501_000)
        #expect(book.charge(Self.member(90_000), after: .milliseconds(10)) == 90_000)
        #expect(book.charge(Self.member(900_000), after: .milliseconds(300)) == 500_000 + farewell)
        links.set(501_500)
        #expect(book.charge(Self.member(950_000), after: .milliseconds(310)) == 550_000 + farewell)
        links.set(601_000)
        #expect(book.charge(Self.member(990_000), after: .milliseconds(400)) == 600_000 + farewell)
    }
}
