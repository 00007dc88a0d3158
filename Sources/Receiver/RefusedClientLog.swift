internal import Core
internal import Synchronization

/// Logs refused clients: a few a minute are logged one by one, and the others as a number.
final class RefusedClientLog: Sendable {
    private struct State {
        var began: MonotonicTime?
        var count = 0
    }
    private let state = Mutex(State())

    static let maxLines = 20

    /// - Returns: The line to log; `nil` for none.
    func line(_ words: String, at now: MonotonicTime) -> String? {
        state.withLock { state in
            let left = max(0, state.count - Self.maxLines)
            if state.began.map({ now.since($0) >= .seconds(60) }) ?? true { state = State(began: now) }
            state.count += 1
            if state.count == 1, left > 0 { return "\(words) (and \(left) more before that were not logged)" }
            return state.count <= Self.maxLines ? words : nil
        }
    }
}
