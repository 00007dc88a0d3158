import Linux
import Synchronization
import Testing

@testable import Transport

@Suite("What links have carried bounds a connection")
struct CarriedBoundTests {
    private final class Links: Sendable {
        let sent = Mutex<[String: UInt64]?>(["lte0:3": 1000])
        func set(_ bytes: UInt64, _ name: String = "lte0:3") { sent.withLock { $0?[name] = bytes } }
    }

    private let start = ContinuousClock.now

    private func counts(acknowledged: Int64, unanswered: Int64 = 0, segments: Int64 = 0) -> SocketCounts {
        SocketCounts(
            sent: 5_000_000, received: 0, segments: segments, unsent: 0, queued: 0, unanswered: unanswered,
            largest: 1448, header: 52, acknowledged: acknowledged)
    }

    private func bound(_ links: Links, joinsSegments: Bool = false, overhead: Int64 = 0) throws -> CarriedBound {
        try #require(
            CarriedBound(interface: "lte0", joinsSegments: joinsSegments, overhead: overhead, now: start) { _ in
                links.sent.withLock { $0 }
            })
    }

    @Test("it is what was carried since the opening, and what still waits in queues")
    func sum() throws {
        let links = Links()
        var bound = try bound(links)
        links.set(501_000)
        let first = bound.most(
            counts(acknowledged: 400_000, unanswered: 10), total: 7_000_000, now: start + .seconds(1), isEnd: false)
        #expect(first == 515_000)
        links.set(2_101_000)
        #expect(
            bound.most(counts(acknowledged: 2_000_000), total: 7_000_000, now: start + .seconds(2), isEnd: true)
                == 2_100_000)
    }

    @Test("where one header stands for many segments, each has another one")
    func joined() throws {
        let links = Links()
        var bound = try bound(links, joinsSegments: true)
        links.set(501_000)
        let most = bound.most(
            counts(acknowledged: 1, segments: 400), total: 7_000_000, now: start + .seconds(1), isEnd: false)
        #expect(most == 520_800)
    }

    @Test("what a tunnel adds to each packet is not in what its interface has carried")
    func tunnel() throws {
        let links = Links()
        var bound = try bound(links, overhead: 50)
        links.set(501_000)
        let most = bound.most(
            counts(acknowledged: 1, segments: 400), total: 7_000_000, now: start + .seconds(1), isEnd: false)
        #expect(most == 520_000)
    }

    @Test(
        "a link whose count is behind what was acknowledged, or is gone, or began anew, or was not looked at for long, tells nothing"
    )
    func untrusted() throws {
        var links = Links()
        var bound = try bound(links)
        links.set(101_000)
        #expect(
            bound.most(counts(acknowledged: 100_001), total: 7_000_000, now: start + .seconds(1), isEnd: false) == nil)
        links.set(9_000_000)
        #expect(
            bound.most(counts(acknowledged: 100_001), total: 7_000_000, now: start + .seconds(2), isEnd: false) == nil,
            "for good")

        links = Links()
        bound = try self.bound(links)
        links.sent.withLock { $0 = ["wan0:2": 7_000_000] }
        #expect(bound.most(counts(acknowledged: 1), total: 7_000_000, now: start + .seconds(1), isEnd: true) == nil)

        links = Links()
        bound = try self.bound(links)
        links.set(999)
        #expect(bound.most(counts(acknowledged: 1), total: 7_000_000, now: start + .seconds(1), isEnd: true) == nil)

        links = Links()
        bound = try self.bound(links)
        links.set(9_000_000)
        #expect(bound.most(counts(acknowledged: 1), total: 7_000_000, now: start + .seconds(31), isEnd: true) == nil)
    }

    @Test("between two looks all that TCP counts is supposed to have left")
    func between() throws {
        let links = Links()
        var bound = try bound(links)
        links.set(501_000)
        let counts = counts(acknowledged: 1)
        #expect(bound.most(counts, total: 90_000, now: start + .milliseconds(100), isEnd: false) == 90_000)
        #expect(bound.most(counts, total: 900_000, now: start + .milliseconds(300), isEnd: false) == 500_000)
        links.set(501_500)
        #expect(bound.most(counts, total: 950_000, now: start + .milliseconds(400), isEnd: false) == 550_000)
        #expect(bound.most(counts, total: 950_000, now: start + .milliseconds(450), isEnd: true) == 500_500)
    }
}
