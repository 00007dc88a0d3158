internal import Synchronization

/// Asks a loop to prove that it takes its turns. Only the loop itself can answer, at the start of a turn: a thread or an
/// actor that still answers messages proves nothing about a loop that hangs.
package final class TurnProbe: Sendable {
    private let asked = Atomic(0)
    private let answered = Atomic(0)
    private let answer = AsyncSignal()

    package init() {}

    /// Returns when the loop has begun a turn after this call, or when the task is cancelled. One task asks at a time.
    ///
    /// - Parameter wake: Wakes the loop, which may sleep without a deadline.
    package func confirm(waking wake: () -> Void) async {
        let number = asked.add(1, ordering: .acquiringAndReleasing).newValue
        wake()
        while answered.load(ordering: .acquiring) < number, !Task.isCancelled { await answer.wait() }
    }

    /// Called by the loop at the start of each turn.
    package func beginTurn() {
        let last = asked.load(ordering: .acquiring)
        if answered.exchange(last, ordering: .acquiringAndReleasing) != last { answer.signal() }
    }
}
