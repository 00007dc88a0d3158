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

    /// - Throws: ``UploadError`` while no other may be made.
    func check(_ asking: Asking) throws(UploadError) {
        let now = asking.clocks.monotonic()
        let left = state.withLock { $0.until?.since(now) }
        if let left, left > .zero { throw asking.tooManyCreations(left) }
    }

    /// - Parameters:
    ///   - error: What became of a creation that may have made something.
    ///   - atLeast: So many one upload is known to have asked for in vain, also before a restart.
    /// - Returns: `error` with the wait for the next one.
    func failed(_ error: UploadError, _ asking: Asking, atLeast: Int64 = 1) -> UploadError {
        let now = asking.clocks.monotonic()
        let wait = state.withLock { state in
            state.count = max(state.count + 1, atLeast)
            let wait = Self.wait(after: state.count)
            state.until = now.advanced(by: wait)
            return wait
        }
        var error = error
        if wait > .zero { error.remedy = .holdDestination(after: wait) }
        return error
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
