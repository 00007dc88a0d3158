internal import Synchronization

/// Wakes those who wait for it.
package protocol Waking: Sendable {
    func signal()
}

/// Wakes one loop. Every component that has work for the loop sets the signal; only the loop waits for it.
///
/// A signal that is set several times while the loop works counts once: no work is missed, and none is done twice. A
/// loop that waits without a deadline does not wake at all.
package final class AsyncSignal: Waking {
    private struct State {
        var isSet = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())
    private let rest: QuiescenceCounter?

    /// - Parameter rest: Notified of every signal, and whenever the loop waits.
    package init(_ rest: QuiescenceCounter? = nil) { self.rest = rest }

    /// Whether the loop has finished the signalled work, and sleeps.
    package var isWaiting: Bool { state.withLock { $0.waiter != nil } }

    package func signal() {
        rest?.signalled()
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard let waiter = state.waiter else {
                state.isSet = true
                return nil
            }
            state.waiter = nil
            return waiter
        }
        waiter?.resume()
    }

    /// Returns when the signal is set, when `limit` is over, or when the task is cancelled.
    package func wait(atMost limit: Duration? = nil) async {
        let alarm = limit.map { Alarms.shared.set(after: $0) { self.signal() } }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDue = state.withLock { state in
                    if state.isSet || Task.isCancelled {
                        state.isSet = false
                        return true
                    }
                    state.waiter = continuation
                    return false
                }
                if isDue { continuation.resume() } else { rest?.signal.signal() }
            }
        } onCancel: {
            signal()
        }
        if let alarm { Alarms.shared.cancel(alarm) }
    }

    /// Returns when these tasks have ended, or when `limit` is over. The tasks continue.
    package static func wait(for tasks: [Task<Void, Never>], atMost limit: Duration) async {
        if tasks.isEmpty { return }
        let ended = AsyncSignal()
        let all = Task {
            for task in tasks { await task.value }
            ended.signal()
        }
        await ended.wait(atMost: limit)
        all.cancel()
    }
}

/// Wakes all tasks that wait for the same event at the moment.
package final class AsyncBroadcast: Waking {
    private let signals = Mutex<[ObjectIdentifier: AsyncSignal]>([:])
    private let hasEnded = Atomic(false)
    private let count = Atomic(0)

    package init() {}

    /// The number of events so far. A task that an event has woken finds it counted.
    package var eventCount: Int { count.load(ordering: .acquiring) }

    /// Whether no further event will come.
    package var isOver: Bool { hasEnded.load(ordering: .acquiring) }

    package func end() {
        hasEnded.store(true, ordering: .releasing)
        signal()
    }

    package func signal() {
        count.add(1, ordering: .acquiringAndReleasing)
        for signal in signals.withLock({ Array($0.values) }) { signal.signal() }
    }

    /// Sets `signal` for each event from now on, until it is removed.
    package func add(_ signal: AsyncSignal) { signals.withLock { $0[ObjectIdentifier(signal)] = signal } }

    package func remove(_ signal: AsyncSignal) {
        _ = signals.withLock { $0.removeValue(forKey: ObjectIdentifier(signal)) }
    }

    package func waitForEnd() async throws {
        try await withSignal { signal in
            while !isOver {
                await signal.wait()
                try Task.checkCancellation()
            }
        }
    }

    /// Provides a signal that is set for each event until the body ends.
    package func withSignal<R: Sendable>(_ body: (AsyncSignal) async throws -> R) async rethrows -> R {
        let signal = AsyncSignal()
        add(signal)
        defer { remove(signal) }
        return try await body(signal)
    }
}

/// Detects when all loops of a daemon may be idle.
///
/// All work starts with a signal: a loop's own deadline sets its signal as well. So if all loops wait for their
/// signals, and no signal was set during the check, all loops were idle at the same time.
package final class QuiescenceCounter: Sendable {
    /// Set when one more loop waits.
    package let signal = AsyncSignal()
    private let count = Atomic(0)

    package init() {}

    func signalled() { count.add(1, ordering: .relaxed) }
    /// The number of signals so far.
    package var signalCount: Int { count.load(ordering: .relaxed) }
}
