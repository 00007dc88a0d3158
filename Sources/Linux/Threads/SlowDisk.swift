internal import Synchronization

/// Runs work on a disk that may stop answering, such as a mount whose server is gone.
///
/// A call into the kernel may block there without limit, and cannot be cancelled. So each piece of work has a thread of
/// its own, outside every pool. The waiting task continues when it is cancelled, at most half a second later, or when
/// there was no progress for `timeout`; the thread is free again when its call returns. While a silent call has not
/// returned, new work is refused at once, so that retries do not accumulate threads.
package final class SlowDisk: Sendable {
    /// There was no progress for this long.
    package struct TimeoutError: Error, Hashable, Sendable {
        package let timeout: Duration
    }

    /// The work's connection to its caller: it reports progress, and learns that it has to end.
    package final class Pulse: Sendable {
        private let beats = Atomic<Int>(0)
        private let isOver = Atomic<Bool>(false)

        /// Must be called between two calls into the kernel.
        ///
        /// - Throws: `CancellationError` when no task waits for the work any more.
        package func reportProgress() throws {
            if isOver.load(ordering: .acquiring) { throw CancellationError() }
            beats.wrappingAdd(1, ordering: .relaxed)
        }

        var count: Int { beats.load(ordering: .relaxed) }
        func end() { isOver.store(true, ordering: .releasing) }
    }

    /// Far more than there are parallel uploads: a thread that does not come back is not missed.
    private static let threads = Workers<@Sendable () -> Void>("slow-disk", most: 256, linger: .seconds(5)) { $0() }

    private let timeout: Duration
    /// Pieces of work that fell silent and have not returned yet.
    private let out = Atomic<Int>(0)

    /// How long a cancelled task waits for its work to return.
    private static let grace: Duration = .milliseconds(500)

    package init(timeout: Duration) { self.timeout = timeout }

    /// - Throws: ``TimeoutError``; `CancellationError`; errors of `body`.
    package func run<R: Sendable>(_ body: @escaping @Sendable (Pulse) throws -> R) async throws -> R {
        try Task.checkCancellation()
        if out.load(ordering: .acquiring) > 0 { throw TimeoutError(timeout: timeout) }
        let pulse = Pulse()
        let answer = Answer<R>()
        let watch = Watch(timeout) {
            pulse.count
        } onSilence: {
            pulse.end()
            answer.resolve(.failure(TimeoutError(timeout: self.timeout))) {
                self.out.wrappingAdd(1, ordering: .relaxed)
            }
        }
        defer { watch.end() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                answer.wait(continuation)
                Self.threads.add {
                    let result = Result {
                        try pulse.reportProgress()
                        return try body(pulse)
                    }
                    if answer.resolve(result) == .silent { self.out.wrappingSubtract(1, ordering: .relaxed) }
                }
            }
        } onCancel: {
            pulse.end()
            _ = Alarms.shared.set(after: Self.grace) { answer.resolve(.failure(CancellationError())) }
        }
    }

    /// Calls back when a counter has not changed for a while.
    private final class Watch: Sendable {
        private struct State {
            var alarm: Alarms.ID?
            var last = -1
            var since: SuspendingClock.Instant
            var isOver = false
        }
        private let state: Mutex<State>
        private let timeout: Duration
        private let count: @Sendable () -> Int
        private let onSilence: @Sendable () -> Void

        init(_ timeout: Duration, _ count: @escaping @Sendable () -> Int, onSilence: @escaping @Sendable () -> Void) {
            self.timeout = timeout
            self.count = count
            self.onSilence = onSilence
            state = Mutex(State(since: SuspendingClock().now))
            check()
        }

        func end() {
            let alarm = state.withLock { state in
                state.isOver = true
                return state.alarm
            }
            if let alarm { Alarms.shared.cancel(alarm) }
        }

        private func check() {
            let count = count()
            let lacksChangeEvents = state.withLock { state in
                if state.isOver { return false }
                // Not the alarm's clock, which includes the time that the machine is suspended.
                let now = SuspendingClock().now
                if count != state.last { state.since = now }
                state.last = count
                let left = timeout - state.since.duration(to: now)
                if left <= .zero { return true }
                state.alarm = Alarms.shared.set(after: left) { self.check() }
                return false
            }
            if lacksChangeEvents { onSilence() }
        }
    }

    /// The first answer counts.
    private final class Answer<R: Sendable>: Sendable {
        enum Earlier { case none, given, silent }
        private enum State {
            case open
            case waiting(CheckedContinuation<R, any Error>)
            case given
            case silent
        }
        private let state = Mutex(State.open)

        func wait(_ continuation: CheckedContinuation<R, any Error>) { state.withLock { $0 = .waiting(continuation) } }

        /// - Parameter onSilence: Called when the answer is a ``TimeoutError``, before the waiting task gets it.
        /// - Returns: The earlier answer, if there is one; then this answer is dropped.
        @discardableResult
        func resolve(_ result: Result<R, any Error>, onSilence: (() -> Void)? = nil) -> Earlier {
            let (waiting, earlier): (CheckedContinuation<R, any Error>?, Earlier) = state.withLock { state in
                switch state {
                case .silent: return (nil, .silent)
                case .open, .given: return (nil, .given)
                case .waiting(let continuation):
                    state = onSilence == nil ? .given : .silent
                    onSilence?()
                    return (continuation, .none)
                }
            }
            waiting?.resume(with: result)
            return earlier
        }
    }
}
