internal import Synchronization

extension Alarms {
    /// Waits for `duration`, including the time that the machine is suspended.
    ///
    /// Replaces `Task.sleep`, which bypasses the hooks of the runtime and uses libdispatch (Swift 6.3), starts its
    /// pool, and keeps its deadline when it is cancelled. `make lint` refuses `Task.sleep`.
    ///
    /// - Throws: `CancellationError`, at once when the task is cancelled.
    package func sleep(for duration: Duration) async throws {
        let sleeper = Sleeper()
        let alarm = set(after: duration) { sleeper.end(.success(())) }
        defer { cancel(alarm) }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { sleeper.wait($0) }
        } onCancel: {
            sleeper.end(.failure(CancellationError()))
        }
    }

    /// Like ``sleep(for:)``, not counting the time that the machine was suspended.
    package func sleep(awakeFor duration: Duration) async throws {
        let end = SuspendingClock.now.advanced(by: duration)
        repeat {
            try await sleep(for: SuspendingClock.now.duration(to: end))
        } while SuspendingClock.now < end
    }
}

/// A waiting task. The first of two events ends the wait.
private final class Sleeper: Sendable {
    private typealias Outcome = Result<Void, any Error>
    private enum State {
        case open
        case waiting(CheckedContinuation<Void, any Error>)
        case over(Outcome)
    }

    private let state = Mutex(State.open)

    func wait(_ continuation: CheckedContinuation<Void, any Error>) {
        let outcome = state.withLock { state -> Outcome? in
            if case .over(let outcome) = state { return outcome }
            state = .waiting(continuation)
            return nil
        }
        if let outcome { continuation.resume(with: outcome) }
    }

    func end(_ outcome: Result<Void, any Error>) {
        let waiting = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            if case .over = state { return nil }
            defer { state = .over(outcome) }
            if case .waiting(let continuation) = state { return continuation }
            return nil
        }
        waiting?.resume(with: outcome)
    }
}
