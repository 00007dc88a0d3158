import Core
import Testing

@Suite("Time")
struct TimeTests {
    @Test("time is limited to its range and does not trap")
    func ends() {
        let end = WallTime(milliseconds: .max)
        #expect(end.advanced(by: .seconds(Int64.max)) == end)
        #expect(WallTime(milliseconds: 0).advanced(by: .seconds(Int64.max)) == end)
        #expect(WallTime(milliseconds: .min).advanced(by: .seconds(-1)) == WallTime(milliseconds: .min))
        #expect(MonotonicTime(nanoseconds: .max).advanced(by: .seconds(1)) == MonotonicTime(nanoseconds: .max))
        #expect(Duration.seconds(Int64.max).inMilliseconds == .max)
        #expect(MonotonicTime(nanoseconds: .max).since(MonotonicTime(nanoseconds: .min)) > .zero)
        #expect(end.description == "292278994-08-17T07:12:55.807Z")
        #expect(WallTime(milliseconds: .min).description == "-292275055-05-16T16:47:04.192Z")
        #expect(WallTime(milliseconds: -1).description == "1969-12-31T23:59:59.999Z")
    }

    @Test(
        "durations count whole units, and stop at the maximum",
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
