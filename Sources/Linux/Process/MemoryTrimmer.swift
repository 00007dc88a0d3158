internal import CLinux
internal import Core
internal import Synchronization

/// Returns memory to the kernel while the process is idle.
///
/// Start-up, an upload and an answer each need code and buffers that are not needed while waiting afterwards. When
/// nothing has happened for a while, the free pieces of the heap and the mapping of the code are returned to the
/// kernel. Code that runs again comes back from the page cache, some pages with each fault.
package enum MemoryTrimmer {
    private static let quiet = Duration.seconds(10)

    private struct State {
        var isPostponed = false
        var isWaiting = false
    }

    private static let state = Mutex(State())

    /// Records activity: a request, a transfer, a start. Cheap; at most one alarm is set, and none once all is quiet.
    package static func scheduleTrim() {
        let isFirst = state.withLock { state in
            state.isPostponed = state.isWaiting
            defer { state.isWaiting = true }
            return !state.isWaiting
        }
        if isFirst { checkLater() }
    }

    private static func checkLater() { _ = Alarms.shared.set(after: quiet) { check() } }

    private static func check() {
        let isQuiet = state.withLock { state in
            state.isWaiting = state.isPostponed
            state.isPostponed = false
            return !state.isWaiting
        }
        if isQuiet { inBackground { sluice_give_back_memory() } } else { checkLater() }
    }
}
