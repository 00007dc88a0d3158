internal import Core
internal import Linux
internal import Synchronization

/// Notices that a thread does not return from its file system.
///
/// No timer runs while the thread sleeps, and none is set for each of its turns.
final class Watchdog: Sendable {
    private struct State {
        /// Start of the current turn.
        var since: MonotonicTime?
        var alarm: Alarms.ID?
        var isStuck = false
    }

    private let state = Mutex(State())
    private let timeout: Duration
    private let clocks: any Clocks
    private let onChange: @Sendable (_ isStuck: Bool) -> Void

    /// - Parameter onChange: Called on any thread; must not wait.
    init(timeout: Duration, clocks: any Clocks, onChange: @escaping @Sendable (_ isStuck: Bool) -> Void) {
        self.timeout = timeout
        self.clocks = clocks
        self.onChange = onChange
    }

    /// The time for which the file system has not answered; `nil` while it does.
    var stuckFor: Duration? {
        state.withLock { state in
            guard state.isStuck, let since = state.since else { return nil }
            return clocks.monotonic().since(since)
        }
    }

    /// Notes the start of a turn.
    func beginTurn(at now: MonotonicTime) {
        let (wasStuck, isNew) = state.withLock { state in
            let was = state.isStuck
            state.since = now
            state.isStuck = false
            return (was, state.alarm == nil)
        }
        if wasStuck { onChange(false) }
        if isNew { set(after: timeout) }
    }

    /// Notes that the thread is about to sleep, or to end.
    func endTurn() {
        let (wasStuck, alarm) = state.withLock { state in
            defer { state = State() }
            return (state.isStuck, state.alarm)
        }
        if let alarm { Alarms.shared.cancel(alarm) }
        if wasStuck { onChange(false) }
    }

    private func set(after delay: Duration) {
        let alarm = Alarms.shared.set(after: delay) { [weak self] in self?.check() }
        state.withLock { $0.alarm = alarm }
    }

    private func check() {
        let (left, isStuck) = state.withLock { state -> (Duration?, Bool) in
            state.alarm = nil
            guard let since = state.since, !state.isStuck else { return (nil, false) }
            let left = timeout - clocks.monotonic().since(since)
            if left > .zero { return (left, false) }
            state.isStuck = true
            return (nil, true)
        }
        if isStuck { onChange(true) }
        if let left { set(after: left) }
    }
}
