internal import Core
internal import Synchronization

/// Records whether a statement has found the database damaged while the daemon ran.
///
/// Data read from a damaged file may be wrong, and the caller that met the error may see only one failed step. So the
/// first error is kept, and the daemon exits with it.
package final class Damage: Sendable {
    private struct State {
        var first: StoreError?
        var waiting: [Int: CheckedContinuation<StoreError?, Never>] = [:]
        var next = 0
    }
    private let state = Mutex(State())

    func report(_ error: StoreError) {
        let waiting = state.withLock { state in
            if state.first == nil { state.first = error }
            defer { state.waiting = [:] }
            return state.waiting
        }
        for continuation in waiting.values { continuation.resume(returning: error) }
    }

    /// Returns when damage is found, or with `nil` when the task is cancelled.
    package func first() async -> StoreError? {
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let known = state.withLock { state -> StoreError?? in
                    // Cancelled earlier: the handler has run, or waits for this lock and finds the entry.
                    if Task.isCancelled { return .some(nil) }
                    if let first = state.first { return first }
                    state.waiting[number] = continuation
                    return nil
                }
                if let known { continuation.resume(returning: known) }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: number) }?.resume(returning: nil)
        }
    }
}
