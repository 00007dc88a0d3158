import Core
import Testing

@testable import Daemon

@Suite("Failing uploads in the scheduler")
struct UploadTrackerTests {
    private let retry = Backoff(first: .seconds(10), ceiling: .seconds(1000))

    private func ownWait(
        _ uploads: inout UploadTracker, _ remedy: Remedy, accepted: Int = 0, isHeld: Bool = false
    ) -> Duration? {
        uploads.ownWait("a", remedy, accepted: accepted, isHeld: isHeld, retry: retry, jitter: 0)
    }

    @Test("the first failure holds the destination, the second in a row only the upload")
    func second() {
        var uploads = UploadTracker()
        #expect(ownWait(&uploads, .holdDestination(after: nil)) == nil)
        let wait = ownWait(&uploads, .holdDestination(after: nil))
        #expect(wait ?? .zero > .zero)
        let longer = ownWait(&uploads, .misconfigured)
        #expect(longer ?? .zero > wait ?? .zero)
    }

    @Test("a destination with known trouble or its own retry time stays at fault")
    func destinationsFault() {
        var uploads = UploadTracker()
        _ = ownWait(&uploads, .holdDestination(after: nil))
        #expect(ownWait(&uploads, .holdDestination(after: nil), isHeld: true) == nil)
        #expect(ownWait(&uploads, .holdDestination(after: .seconds(5))) == nil)
        #expect(ownWait(&uploads, .rateLimit(after: nil)) == nil)
    }

    @Test("an upload waits alone for space if others were accepted since its last refusal")
    func space() {
        var uploads = UploadTracker()
        #expect(ownWait(&uploads, .outOfSpace(after: nil), accepted: 3) == nil)
        #expect(ownWait(&uploads, .outOfSpace(after: nil), accepted: 3) == nil)
        #expect(ownWait(&uploads, .outOfSpace(after: .seconds(7)), accepted: 4) == .seconds(7))
    }

    @Test("a file is refused if others were accepted after an earlier refusal of it, with the same settings")
    func refused() {
        var uploads = UploadTracker()
        func refuse(_ generation: Int, accepted: Int, isHeld: Bool = false) -> Bool {
            uploads.isFileRefused("a", generation: generation, accepted: accepted, isHeld: isHeld)
        }
        #expect(!refuse(0, accepted: 3) && !refuse(0, accepted: 3) && uploads.refused.isEmpty)
        #expect(refuse(0, accepted: 4) && refuse(0, accepted: 4) && uploads.refused == ["a"])
        #expect(!refuse(0, accepted: 4, isHeld: true))
        #expect(!refuse(1, accepted: 9) && uploads.refused.isEmpty)
    }

    @Test("failures caused by the upload count in a row, and restart from one after accepted bytes")
    func setbacks() {
        var uploads = UploadTracker()
        #expect(uploads.recordSetback("a", wasAnswered: false) == 1)
        #expect(uploads.recordSetback("a", wasAnswered: false) == 2)
        #expect(uploads.recordSetback("a", wasAnswered: true) == 1)
        uploads.forget("a")
        #expect(uploads.recordSetback("a", wasAnswered: false) == 1)
    }

    @Test("waste is logged when it has grown")
    func waste() {
        var uploads = UploadTracker()
        #expect(uploads.shouldLog(waste: 100, of: "a") == true)
        #expect(uploads.shouldLog(waste: 100, of: "a") == false)
        #expect(uploads.shouldLog(waste: 101, of: "a") == true)
    }
}
