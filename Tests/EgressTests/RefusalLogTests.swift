import Testing

@testable import Egress

@Suite("The log of refused connections")
struct RefusalLogTests {
    @Test("of many refusals within half a second one is logged, and the next one has the number of the others")
    func limited() {
        var log = RefusalLog()
        let now = ContinuousClock.now
        #expect(log.note(at: now) == 0)
        for _ in 0..<7 { #expect(log.note(at: now + .milliseconds(499)) == nil) }
        #expect(log.note(at: now + .milliseconds(500)) == 7)
        #expect(log.note(at: now + .seconds(2)) == 0)
    }
}
