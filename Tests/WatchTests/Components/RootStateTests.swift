import Core
import Testing

@testable import Watch

@Suite("State of a root")
struct RootStateTests {
    private let start = MonotonicTime.start
    private var state = RootState(nextCheck: .start)

    @Test("the first scan ends when the folder is there and no visit is left, and only once")
    mutating func firstScan() {
        #expect(state.beginScan(next: start + .seconds(100)) == .first)
        state.visitQueued()
        state.visitQueued()
        state.visitEnded()
        #expect(state.endFirstScan() == false)
        #expect(state.found() == false)
        #expect(state.endFirstScan() == false)
        state.visitEnded()
        #expect(!state.isScanned(at: start))
        #expect(state.endFirstScan() == true)
        #expect(state.endFirstScan() == false)
        #expect(state.beginScan(next: start + .seconds(100)) == .reconcile)
    }

    @Test("a root is scanned until its next scan is due, or a visit is queued")
    mutating func scanned() {
        _ = state.beginScan(next: start + .seconds(100))
        _ = state.found()
        #expect(state.endFirstScan() == true)
        #expect(state.isScanned(at: start + .seconds(99)) && !state.isScanned(at: start + .seconds(100)))
        state.visitQueued()
        #expect(!state.isScanned(at: start))
        state.visitEnded()
        #expect(state.isScanned(at: start))
        #expect(state.lost(.absent("no disk"), again: start + .seconds(50)) == true)
        #expect(!state.isScanned(at: start))
    }

    @Test("a request brings the next scan forward, and never puts it off")
    mutating func requests() {
        _ = state.beginScan(next: start + .seconds(100))
        state.requestCheck(at: start + .seconds(30))
        #expect(state.nextCheck == start + .seconds(30))
        state.requestCheck(at: start + .seconds(60))
        #expect(state.nextCheck == start + .seconds(30))
    }

    @Test("each reason for an absence is reported once, and so is the return")
    mutating func away() {
        _ = state.beginScan(next: start + .seconds(100))
        #expect(state.found() == false)
        #expect(state.lost(.absent("no disk"), again: start + .seconds(5)) == true)
        #expect(state.nextCheck == start + .seconds(5))
        #expect(state.lost(.absent("no disk"), again: start + .seconds(5)) == false)
        #expect(state.lost(.failed("denied"), again: start + .seconds(5)) == true)
        #expect(state.condition.isAway)
        #expect(state.found() == true)
        #expect(!state.found() && state.condition == .present)
    }

    @Test("changed rules scan it as if for the first time, at once")
    mutating func rules() {
        _ = state.beginScan(next: start + .seconds(100))
        _ = state.found()
        #expect(state.endFirstScan() == true)
        state.matchesChanged(at: start + .seconds(1))
        #expect(state.isFirstScan && state.nextCheck == start + .seconds(1))
        #expect(state.beginScan(next: start + .seconds(100)) == .first)
    }

    @Test("a failing disk is reported once, until all visits of a later scan have ended without a failure")
    mutating func disk() {
        _ = state.beginScan(next: start + .seconds(100))
        state.visitQueued()
        #expect(state.diskFailed(again: start + .seconds(5)) == true)
        #expect(state.diskFailed(again: start + .seconds(1)) == false)
        #expect(state.nextCheck == start + .seconds(5))
        state.visitEnded()
        #expect(state.diskFailed(again: start + .seconds(5)) == false)
        _ = state.beginScan(next: start + .seconds(100))
        state.visitQueued()
        state.visitEnded()
        #expect(state.diskFailed(again: start + .seconds(5)) == true)
    }
}
