import Core
import Testing

@testable import Daemon

@Suite("Cycles of the scheduler")
struct CyclesTests {
    @Test("the destination that was served last is tried last")
    func turns() {
        var cycles = Cycles()
        #expect(cycles.inTurn(["a", "b", "c"]) == ["a", "b", "c"])
        cycles.served("a")
        #expect(cycles.inTurn(["a", "b", "c"]) == ["b", "c", "a"])
        cycles.served("c")
        #expect(cycles.inTurn(["a", "b", "c"]) == ["a", "b", "c"])
        // It was removed from the configuration.
        cycles.served("d")
        #expect(cycles.inTurn(["a", "b", "c"]) == ["a", "b", "c"])
        #expect(cycles.inTurn([]).isEmpty)
    }

    @Test("a repetition follows once, however often it was asked for")
    func repetition() {
        var cycles = Cycles()
        #expect(cycles.takeRepeat() == false)
        cycles.repeatSoon()
        cycles.repeatSoon()
        #expect(cycles.takeRepeat() == true)
        #expect(cycles.takeRepeat() == false)
    }

    @Test("a cycle is counted when it begins, with the time by both clocks")
    func counts() {
        var cycles = Cycles()
        #expect(cycles.count == 0 && cycles.beganWall == nil)
        cycles.begin(at: MonotonicTime(nanoseconds: 5), WallTime(milliseconds: 7))
        cycles.evaluated(classes: 3)
        cycles.uploadCompleted()
        #expect(cycles.count == 1 && cycles.evaluations == 3 && cycles.completed == 1)
        #expect(cycles.began == MonotonicTime(nanoseconds: 5) && cycles.beganWall == WallTime(milliseconds: 7))
    }
}
