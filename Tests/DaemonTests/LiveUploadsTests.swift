import Core
import Linux
import Staging
import TestKit
import Testing

@testable import Daemon

@Suite("Uploads in progress")
struct LiveUploadsTests {
    @Test("the rate covers the last seconds and falls when no bytes move")
    func rate() {
        let clocks = ManualClocks()
        let live = LiveUploads(clocks: clocks)
        live.begin("a", to: "nas", acked: 1_000, size: 100_000)
        clocks.advance(by: .seconds(1))
        live.sent("a", 11_000)
        #expect(live["a"]?.rate == 10_000)
        clocks.advance(by: .seconds(10))
        #expect(live["a"]?.rate == 0)
        live.end("a")
        #expect(live["a"] == nil)
        #expect(live.isEmpty)
    }

    @Test("acknowledged bytes count as sent")
    func acknowledged() {
        let live = LiveUploads(clocks: ManualClocks())
        live.begin("a", to: "nas", acked: 0, size: 10)
        live.acked("a", 7)
        #expect(live["a"]?.sent == 7)
    }
}
