import Core
import Testing

@Suite("Trust in the clock")
struct ClockTrustTests {
    private static let made = utc("2026-11-01T00:00:00")

    private static func monotonic(_ seconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: seconds * 1_000_000_000)
    }

    @Test("a clock before the build time is unset, and trusted as soon as it is set")
    func unset() {
        var trust = ClockTrust(oldest: Self.made)
        let first = trust.evaluate(wall: utc("1970-01-01T00:01:00"), monotonic: Self.monotonic(60), isSynchronised: nil)
        #expect(first?.kind == .clock)
        let later = trust.evaluate(
            wall: utc("1970-01-01T01:01:00"), monotonic: Self.monotonic(3660), isSynchronised: nil)
        #expect(later == first, "the text stays the same with each second")
        #expect(
            trust.evaluate(wall: utc("2026-11-20T08:00:00"), monotonic: Self.monotonic(3661), isSynchronised: true)
                == nil)
    }

    @Test("a clock that jumps by more than a minute is trusted after a stable minute", arguments: [-61, 61])
    func jump(_ seconds: Int64) {
        var trust = ClockTrust(oldest: Self.made)
        let start = utc("2026-11-20T08:00:00")
        #expect(trust.evaluate(wall: start, monotonic: Self.monotonic(0), isSynchronised: nil) == nil)
        let jumped = start.advanced(by: .seconds(10 + seconds))
        let hold = trust.evaluate(wall: jumped, monotonic: Self.monotonic(10), isSynchronised: nil)
        #expect(hold?.kind == .clock)
        #expect(hold?.until == jumped.advanced(by: .seconds(60)))
        #expect(hold?.text.contains(seconds < 0 ? "back by 61 s" : "forward by 61 s") == true)
        let soon = trust.evaluate(
            wall: jumped.advanced(by: .seconds(59)), monotonic: Self.monotonic(69), isSynchronised: nil)
        #expect(soon == hold)
        #expect(
            trust.evaluate(wall: jumped.advanced(by: .seconds(60)), monotonic: Self.monotonic(70), isSynchronised: nil)
                == nil)
    }

    @Test("small corrections and passing time are no jump")
    func steady() {
        var trust = ClockTrust(oldest: Self.made)
        let start = utc("2026-11-20T08:00:00")
        for (wall, passed) in [(0, 0), (3600, 3600), (3659, 3600), (90_000, 90_000)] as [(Int64, Int64)] {
            let found = trust.evaluate(
                wall: start.advanced(by: .seconds(wall)), monotonic: Self.monotonic(passed), isSynchronised: nil)
            #expect(found == nil, "\(wall)")
        }
    }

    @Test("the system's statement about its clock counts, and without one nothing is assumed")
    func synchronised() {
        var trust = ClockTrust(oldest: Self.made)
        let now = utc("2026-11-20T08:00:00")
        #expect(trust.evaluate(wall: now, monotonic: Self.monotonic(0), isSynchronised: false)?.kind == .clock)
        #expect(trust.evaluate(wall: now, monotonic: Self.monotonic(0), isSynchronised: true) == nil)
        #expect(trust.evaluate(wall: now, monotonic: Self.monotonic(0), isSynchronised: nil) == nil)
    }
}
