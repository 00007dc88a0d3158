internal import Core
internal import Linux
internal import Synchronization

/// Wakes one loop: rung by whoever has work for it, waited for by the loop alone.
///
/// Rings that come while the loop works are kept as one, so that none is lost and none is done twice. A loop that
/// waits without a deadline does not wake at all.
final class Nudge: Sendable {
    private struct State {
        var isRung = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    func ring() {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard let waiter = state.waiter else {
                state.isRung = true
                return nil
            }
            state.waiter = nil
            return waiter
        }
        waiter?.resume()
    }

    /// Returns when rung, when `limit` is over, or when the task is cancelled.
    func wait(atMost limit: Duration? = nil) async {
        let alarm = limit.map { Alarms.shared.set(after: $0) { self.ring() } }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDue = state.withLock { state in
                    if state.isRung || Task.isCancelled {
                        state.isRung = false
                        return true
                    }
                    state.waiter = continuation
                    return false
                }
                if isDue { continuation.resume() }
            }
        } onCancel: {
            ring()
        }
        if let alarm { Alarms.shared.cancel(alarm) }
    }
}
