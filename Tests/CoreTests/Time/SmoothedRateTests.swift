import Testing

@testable import Core

@Suite("Smoothed rate")
struct SmoothedRateTests {
    private static func at(_ seconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(seconds * 1e9))
    }

    @Test("the rate is that of windows of a second, and half of the window before")
    func windows() {
        var rate = SmoothedRate(at: Self.at(0))
        rate.move(to: 500, at: Self.at(0.5))
        #expect(rate.smoothed == 0)
        rate.move(to: 1000, at: Self.at(1))
        #expect(rate.smoothed == 1000)
        rate.move(to: 4000, at: Self.at(2))
        #expect(rate.smoothed == 2000)
        #expect(rate.shown(at: 4000, Self.at(2.5)) == 2000)
    }

    @Test("without a window that has ended, what has moved so far is shown; after a stop, the truth")
    func shown() {
        var rate = SmoothedRate(at: Self.at(0))
        #expect(rate.shown(at: 100, Self.at(0.01)) == 0)
        #expect(rate.shown(at: 100, Self.at(0.2)) == 200)
        rate.move(to: 1000, at: Self.at(1))
        #expect(rate.shown(at: 1000, Self.at(3.9)) == 1000)
        #expect(rate.shown(at: 1000, Self.at(5)) == 0)
    }

    @Test("bytes that were there before, or are sent again, do not count")
    func skipped() {
        var rate = SmoothedRate(at: Self.at(0))
        rate.skip(10_000)
        rate.move(to: 10_500, at: Self.at(1))
        #expect(rate.smoothed == 500)
        rate.move(to: 0, at: Self.at(1.5))
        #expect(rate.smoothed == 250)
        rate.restart(from: 0, at: Self.at(2))
        rate.move(to: 250, at: Self.at(3))
        #expect(rate.smoothed == 250)
    }
}
