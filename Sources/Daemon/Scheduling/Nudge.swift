internal import Core
internal import Linux
internal import Synchronization

/// Wakes one loop. Rung by every component that has work for the loop; only the loop waits for it.
///
/// Rings that come while the loop works are kept as one, so that none is lost and none is handled twice. A loop that
/// waits without a deadline does not wake at all.
final class Nudge: Sendable {
    private struct State {
        var isRung = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())
    private let rest: Rest?

    /// - Parameter rest: Notified of every ring, and whenever the loop waits.
    init(_ rest: Rest? = nil) { self.rest = rest }

    /// Whether the loop has finished the work it was rung for, and sleeps.
    var isWaiting: Bool { state.withLock { $0.waiter != nil } }

    func ring() {
        rest?.rung()
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
                if isDue { continuation.resume() } else { rest?.bell.ring() }
            }
        } onCancel: {
            ring()
        }
        if let alarm { Alarms.shared.cancel(alarm) }
    }
}

/// Wakes all tasks that wait for the same news at the moment.
final class Bells: Sendable {
    private let bells = Mutex<[ObjectIdentifier: Nudge]>([:])
    private let hasEnded = Atomic(false)

    /// Whether no more news will come.
    var isOver: Bool { hasEnded.load(ordering: .acquiring) }

    func end() {
        hasEnded.store(true, ordering: .releasing)
        ring()
    }

    func ring() { for bell in bells.withLock({ Array($0.values) }) { bell.ring() } }

    func waitForEnd() async throws {
        try await lend { bell in
            while !isOver {
                await bell.wait()
                try Task.checkCancellation()
            }
        }
    }

    /// Provides a bell that is rung for all news until the body ends.
    func lend<R: Sendable>(_ body: (Nudge) async throws -> R) async rethrows -> R {
        let bell = Nudge()
        bells.withLock { $0[ObjectIdentifier(bell)] = bell }
        defer { _ = bells.withLock { $0.removeValue(forKey: ObjectIdentifier(bell)) } }
        return try await body(bell)
    }
}

/// Tells when all loops of a daemon may be at rest.
///
/// Every piece of work begins with a ring: a loop's own deadline rings its bell as well. So if all loops wait for their
/// bells, and no bell was rung during the check, all loops were at rest at the same time.
final class Rest: Sendable {
    /// Rung when one more loop waits.
    let bell = Nudge()
    private let count = Atomic(0)

    func rung() { count.add(1, ordering: .relaxed) }
    /// The number of rings so far.
    var rings: Int { count.load(ordering: .relaxed) }
}
