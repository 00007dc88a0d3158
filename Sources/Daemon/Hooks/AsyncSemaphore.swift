internal import Synchronization

/// The limit on programs and requests of hooks that run at the same time, for notices and uploads alike.
///
/// Uploads that ask come before notices: an upload that waits here gets the next free slot.
final class AsyncSemaphore: Sendable {
    static let most = 4

    private struct State {
        var acquired = 0
        var next = 0
        /// Waiting uploads, in order.
        var waiting: [(number: Int, continuation: CheckedContinuation<Bool, Never>)] = []
        /// Uploads that were cancelled before they could wait.
        var cancelled: Set<Int> = []
    }

    private let state = Mutex(State())
    private let onGive: @Sendable () -> Void

    /// - Parameter onGive: Called when a slot was given back, also where an upload has it already.
    init(onGive: @escaping @Sendable () -> Void) { self.onGive = onGive }

    /// - Parameter reserve: Slots that stay free for uploads that may ask.
    func tryAcquire(leaving reserve: Int) -> Bool {
        state.withLock { state in
            if state.acquired >= Self.most - reserve { return false }
            state.acquired += 1
            return true
        }
    }

    /// Waits for a slot.
    ///
    /// - Returns: `false` when the task was cancelled before there was one.
    func acquireForUpload() async -> Bool {
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        let isTaken = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now: Bool? = state.withLock { state in
                    if state.cancelled.contains(number) { return false }
                    if state.acquired < Self.most {
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

    func release() {
        releaseUnused()
        onGive()
    }

    /// Gives back a slot in which nothing was run. That wakes no loop: the loop that has taken it uses it for another
    /// notice.
    func releaseUnused() {
        let waiter = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            if !state.waiting.isEmpty { return state.waiting.removeFirst().continuation }
            state.acquired -= 1
            return nil
        }
        waiter?.resume(returning: true)
    }
}
