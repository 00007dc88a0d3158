import Core
import Linux
import Staging
import TestKit
import Testing

@testable import Daemon

@Suite("Stop requests")
struct StopRequestsTests {
    @Test("only the uploads that are meant pause, until their pause is taken back")
    func pause() {
        let stops = StopRequests()
        stops.pause(afterPart: ["a", "b"])
        #expect(stops.shouldPause("a") && stops.shouldPause("b") && !stops.shouldPause("c"))
        stops.clearPause("a")
        #expect(!stops.shouldPause("a"))
        #expect(stops.pausing == ["b"])
    }

    @Test("the end of all attempts pauses none of them, and a pause ends none")
    func end() {
        let stops = StopRequests()
        stops.pause(afterPart: ["a"])
        #expect(!stops.endsAll)
        stops.clearPause("a")
        stops.endAll()
        #expect(stops.endsAll && !stops.shouldPause("a"))
    }
}
