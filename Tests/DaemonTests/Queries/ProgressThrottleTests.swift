import Core
import TestKit
import Testing

@testable import Daemon

@Suite("Throttled progress events")
struct ProgressThrottleTests {
    private static func at(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 1_000_000_000 + milliseconds * 1_000_000)
    }

    private static func running(_ count: Int, sent: Int64, total: Int64 = 1_000_000) -> [ProgressThrottle.Progress] {
        (0..<count).map { .init(id: "\($0)", sent: sent, total: total) }
    }

    @Test("small changes wait for a second, larger ones do not, and no change is reported twice")
    func changes() {
        var throttle = ProgressThrottle()
        #expect(throttle.due(Self.running(1, sent: 0), now: Self.at(0)) == ["0"])
        #expect(throttle.due(Self.running(1, sent: 0), now: Self.at(5_000)) == [])
        #expect(throttle.due(Self.running(1, sent: 999), now: Self.at(500)) == [])
        #expect(throttle.due(Self.running(1, sent: 1_000), now: Self.at(500)) == ["0"])
        #expect(throttle.due(Self.running(1, sent: 1_001), now: Self.at(1_499)) == [])
        #expect(throttle.due(Self.running(1, sent: 1_001), now: Self.at(1_500)) == ["0"])
        // The remote has less than was reported.
        #expect(throttle.due(Self.running(1, sent: 0), now: Self.at(1_501)) == ["0"])
        // An upload that started again is new.
        #expect(throttle.due([], now: Self.at(1_502)) == [])
        #expect(throttle.due(Self.running(1, sent: 0), now: Self.at(1_503)) == ["0"])
    }

    @Test("many simultaneous changes are reported some at a time, and each gets its turn")
    func many() {
        var throttle = ProgressThrottle()
        var counts: [String: Int] = [:]
        for round in 0..<64 {
            let told = throttle.due(Self.running(64, sent: Int64(round) * 10_000), now: Self.at(Int64(round) * 500))
            #expect(told.count == ProgressThrottle.maxPerCheck)
            for id in told { counts[id, default: 0] += 1 }
        }
        #expect(counts.count == 64)
        #expect(counts.values.allSatisfy { (9...11).contains($0) })
    }
}
