internal import Core
internal import Synchronization

/// Creations at a remote that were not understood, or whose answers did not come: each may have made something that is empty and stays.
/// Shared by all uploads to a destination, so that a queue of them makes no more than one would.
///
/// The first costs no wait, since it may be an accident. Each further one waits longer, up to six hours.
final class CreationPatience: Sendable {
    private struct State {
        var count: Int64 = 0
        var until: MonotonicTime?
    }

    private let state = Mutex(State())

    /// How long no other is made behind so many in a row.
    static func wait(after count: Int64) -> Duration {
        count < 2 ? .zero : min(.seconds(30) * (1 << (2 * min(count - 2, 5))), .seconds(6 * 3600))
    }

    /// - Returns: `nil` when another may be made now.
    func left(_ now: MonotonicTime) -> Duration? {
        state.withLock { state in
            guard let until = state.until, until > now else { return nil }
            return until.since(now)
        }
    }

    /// - Parameter atLeast: So many one upload is known to have asked for in vain, also before a restart.
    /// - Returns: How long the next one waits.
    @discardableResult
    func failed(_ now: MonotonicTime, atLeast: Int64 = 1) -> Duration {
        state.withLock { state in
            state.count = max(state.count + 1, atLeast)
            let wait = Self.wait(after: state.count)
            state.until = now.advanced(by: wait)
            return wait
        }
    }

    func succeeded() { state.withLock { $0 = State() } }
}

extension Asking {
    /// The code of an answer of success that does not say what it has to.
    static let unusableAnswer = "unusable_answer"

    /// What an upload is told whose creation has to wait.
    func tooManyCreations(_ left: Duration) -> UploadError {
        UploadError(
            failure(
                .protocol, "creations_unknown",
                "what earlier creations made there is not known, since no answer to them could be used; the next one waits "
                    + "\(Int(left.inSeconds.rounded(.up))) s more, so that no heap of empty uploads is made",
                retryable: true), remedy: .holdDestination(after: left))
    }
}
