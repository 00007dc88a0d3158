import Core
import Testing

@Suite("durations")
struct TimeTests {
    @Test(
        "count whole units, and stop at the most there is",
        arguments: [
            (Duration.seconds(0), Int64(0), Int64(0)),
            (.milliseconds(1500), 1500, 1_500_000_000),
            (.milliseconds(-1500), -1500, -1_500_000_000),
            (.nanoseconds(1), 0, 1),
            (.seconds(10_000_000_000), 10_000_000_000_000, .max),
            (.seconds(-10_000_000_000), -10_000_000_000_000, .min),
            (.seconds(Int64.max), .max, .max),
            (.seconds(Int64.min), .min, .min),
        ])
    func whole(duration: Duration, milliseconds: Int64, nanoseconds: Int64) {
        #expect(duration.inMilliseconds == milliseconds)
        #expect(duration.inNanoseconds == nanoseconds)
    }
}
