import API
import Core
import Linux
import TestKit
import Testing

@testable import Config
@testable import Daemon
@testable import Store
@testable import Watch

@Suite("End of a --once run")
struct OnceRunTests {
    private static let last = MonotonicTime(nanoseconds: 100_000_000_000)

    private static func mayProgress(settling: Int, young: Int, next: MonotonicTime?) -> Bool {
        var state = WatchState(folder: "cam", path: "/cam", condition: .watching)
        state.settling = settling
        state.belowMinAge = WatchState.Young(files: young, next: next)
        return OnceRun.mayProgress([state], by: last)
    }

    @Test("a run waits for a changing file, and for a file that is too recent only if it reaches its age in time")
    func files() {
        #expect(!Self.mayProgress(settling: 0, young: 0, next: nil))
        #expect(Self.mayProgress(settling: 1, young: 0, next: nil))
        #expect(Self.mayProgress(settling: 1, young: 1, next: Self.last))
        #expect(!Self.mayProgress(settling: 1, young: 1, next: Self.last.advanced(by: .seconds(1))))
    }
}
