internal import Synchronization

/// A number of slots, for work that runs at the same time.
///
/// Tasks that wait for a slot come before those that only try to get one: the next free slot is theirs, in order.
package final class AsyncSemaphore: Sendable {
    private struct State {
        var acquired = 0
        var next = 0
        /// Waiting tasks, in order.
        var waiting: [(number: Int, continuation: CheckedContinuation<Bool, Never>)] = []
        /// Tasks that were cancelled before they could wait.
        var cancelled: Set<Int> = []
    }

    private let state = Mutex(State())
    private let slots: Int
    private let onRelease: @Sendable () -> Void

    /// - Parameter onRelease: Called when a slot was given back, also where a waiting task has it already.
    package init(slots: Int, onRelease: @escaping @Sendable () -> Void) {
        self.slots = slots
        self.onRelease = onRelease
    }

    /// - Parameter reserve: Slots that stay free for tasks that may come to wait.
    /// - Returns: Whether there was a slot.
    package func tryAcquire(leaving reserve: Int) -> Bool {
        state.withLock { state in
            if state.acquired >= slots - reserve { return false }
            state.acquired += 1
            return true
        }
    }

    /// Waits for a slot.
    ///
    /// - Returns: `false` when the task was cancelled before there was one.
    package func acquire() async -> Bool {
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        let isTaken = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now: Bool? = state.withLock { state in
                    if state.cancelled.contains(number) { return false }
                    if state.acquired < slots {
                        state.acquired += 1
                        return true
                    }
                    state.waiting.append((number, continuation))
                    return nil
                }
                if let now { continuation.resume(returning: now) }
            }
        } onCancel: {
            let waiter = state.withLock { state -> CheckedContinuation<Bool, Never>? in
                guard let index = state.waiting.firstIndex(where: { $0.number == number }) else {
                    state.cancelled.insert(number)
                    return nil
                }
                return state.waiting.remove(at: index).continuation
            }
            waiter?.resume(returning: false)
        }
        state.withLock { _ = $0.cancelled.remove(number) }
        return isTaken
    }

    package func release() {
        releaseUnused()
        onRelease()
    }

    /// Gives back a slot in which nothing was run. That wakes no loop: the loop that has taken it uses it for another
    /// notice.
    package func releaseUnused() {
        let waiter = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            if !state.waiting.isEmpty { return state.waiting.removeFirst().continuation }
            state.acquired -= 1
            return nil
        }
        waiter?.resume(returning: true)
    }
}
