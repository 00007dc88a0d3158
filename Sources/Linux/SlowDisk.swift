internal import Synchronization

/// Runs work on a disk that may stop answering, as a mount does whose server is gone.
///
/// A call into the kernel may wait there for as long as it likes, and nothing takes it back. So each piece of work has a
/// thread of its own, which counts for no pool. Whoever waits for it is let go when the task is cancelled, half a
/// second later at most, or when nothing has moved for `patience`; the thread ends when its call returns. While a silent
/// one is still out, work is refused at once, so that tries do not collect threads.
package final class SlowDisk: Sendable {
    /// Nothing moved for so long.
    package struct Silent: Error, Hashable, Sendable {
        package let patience: Duration
    }

    /// A piece of work as seen from inside: it says that it goes on, and hears that it is to end.
    package final class Pulse: Sendable {
        private let beats = Atomic<Int>(0)
        private let isOver = Atomic<Bool>(false)

        /// To be called between two calls into the kernel.
        ///
        /// - Throws: `CancellationError` when nobody waits for the work any more.
        package func beat() throws {
            if isOver.load(ordering: .acquiring) { throw CancellationError() }
            beats.wrappingAdd(1, ordering: .relaxed)
        }

        var count: Int { beats.load(ordering: .relaxed) }
        func end() { isOver.store(true, ordering: .releasing) }
    }

    private let patience: Duration
    /// Pieces of work that fell silent and did not return yet.
    private let out = Atomic<Int>(0)

    /// What a task that is cancelled waits for its work to come back by itself.
    private static let grace: Duration = .milliseconds(500)

    package init(patience: Duration) { self.patience = patience }

    /// - Throws: ``Silent``; `CancellationError`; what `body` throws; `SystemError` where the kernel gives no thread.
    package func run<R: Sendable>(_ body: @escaping @Sendable (Pulse) throws -> R) async throws -> R {
        try Task.checkCancellation()
        if out.load(ordering: .acquiring) > 0 { throw Silent(patience: patience) }
        let pulse = Pulse()
        let answer = Answer<R>()
        let patience = patience
        let watch = Task {
            var last = -1
            while pulse.count != last {
                last = pulse.count
                // Not the clock that counts a suspended machine's sleep. Ends early when the work is done.
                do { try await Alarms.shared.sleep(awakeFor: patience) } catch { return }
            }
            pulse.end()
            answer.give(.failure(Silent(patience: patience))) { self.out.wrappingAdd(1, ordering: .relaxed) }
        }
        defer { watch.cancel() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                answer.wait(continuation)
                do {
                    try startThread("slow-disk") {
                        let result = Result {
                            try pulse.beat()
                            return try body(pulse)
                        }
                        if answer.give(result) == .silent { self.out.wrappingSubtract(1, ordering: .relaxed) }
                    }
                } catch { answer.give(.failure(error)) }
            }
        } onCancel: {
            pulse.end()
            _ = Alarms.shared.set(after: Self.grace) { answer.give(.failure(CancellationError())) }
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

        /// - Parameter onSilence: Called when the answer is that none comes, before anybody can hear it.
        /// - Returns: What was answered before; then this answer is dropped.
        @discardableResult
        func give(_ result: Result<R, any Error>, onSilence: (() -> Void)? = nil) -> Earlier {
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
