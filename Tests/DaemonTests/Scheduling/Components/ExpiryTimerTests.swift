import Core
import Testing

@testable import Daemon

@Suite("ExpiryTimer")
struct ExpiryTimerTests {
    private let now = WallTime(milliseconds: 1_000_000)

    @Test("a search follows when the first upload may be too old, and at once after an invalidation")
    func times() {
        var timer = ExpiryTimer()
        #expect(timer.begin(at: now, shortest: .seconds(60)) == true)
        timer.end(now.advanced(by: .seconds(10)))
        #expect(timer.begin(at: now.advanced(by: .seconds(9)), shortest: .seconds(60)) == false)
        #expect(timer.begin(at: now.advanced(by: .seconds(10)), shortest: .seconds(60)) == true)
        timer.end(now.advanced(by: .seconds(70)))
        timer.invalidate()
        #expect(timer.begin(at: now.advanced(by: .seconds(11)), shortest: .seconds(60)) == true)
    }

    @Test("an invalidation during a search, and a search that failed, lead to another one")
    func again() {
        var timer = ExpiryTimer()
        #expect(timer.begin(at: now, shortest: .seconds(60)) == true)
        timer.invalidate()
        timer.end(now.advanced(by: .seconds(50)))
        #expect(timer.next == nil)
        #expect(timer.begin(at: now, shortest: .seconds(60)) == true)
        timer.end(nil)
        #expect(timer.begin(at: now, shortest: .seconds(60)) == true)
    }

    @Test("nothing is searched while no upload can be too old")
    func never() {
        var timer = ExpiryTimer()
        #expect(timer.begin(at: now, shortest: nil) == false)
        #expect(timer.next == nil)
    }
}
