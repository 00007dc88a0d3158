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

    /// Which creations count that were not answered with success.
    enum Lost: Sendable {
        case never
        /// From the second one on, where something may have been made.
        case repeated
        /// Those without an answer, or with one that was cut.
        case unanswered

        func counts(_ error: UploadError, after earlier: Int64) -> Bool {
            switch self {
            case .never: false
            case .repeated: earlier > 0 && !error.leavesNothingBehind
            case .unanswered: error.isUnanswered
            }
        }
    }

    func succeeded() { state.withLock { $0 = State() } }

    /// Has something made at the remote, unless that has to wait. An answer by which something may have been made, and that is of no use,
    /// makes the next one wait.
    ///
    /// - Parameters:
    ///   - earlier: So many creations of this upload have come to nothing before.
    ///   - countsLost: So does an answer that did not come: it cannot be looked for what was made.
    /// - Throws: What `creation` throws; ``UploadError`` while no other may be made.
    func make<Made>(
        _ asking: Asking, after earlier: Int64, countsLost: Lost = .never, _ creation: () async throws -> Made
    ) async throws -> Made {
        try check(asking)
        do {
            let made = try await creation()
            succeeded()
            return made
        } catch let error as UploadError
            where error.isUnusableCreation || countsLost.counts(error, after: earlier)
        {
            throw failed(error, asking, atLeast: earlier + 1)
        }
    }
}

extension UploadError {
    /// The request may have arrived, and no answer to it came, or not all of one.
    var isUnanswered: Bool { ["connection_lost", "no_reply"].contains(failure.code) }

    private static let ofUnusableCreations: Set = [
        Asking.unusableAnswer, Asking.unreadableAnswer, OwnService.unusable, "no_location", "bad_location", "no_token",
    ]

    /// A creation was answered, by which something may have been made, and the answer is of no use. One that is lost on the way is an
    /// accident; this one comes again.
    var isUnusableCreation: Bool { Self.ofUnusableCreations.contains(failure.code) }
}

extension Asking {
    /// The code of an answer of success that does not say what it has to.
    static let unusableAnswer = "unusable_answer"
    /// The code of an answer of success whose body cannot be decoded.
    static let unreadableAnswer = "unreadable_answer"

    /// The code of a creation that has to wait, and was not asked for.
    static let creationsUnknown = "creations_unknown"

    /// What an upload is told whose creation has to wait.
    func tooManyCreations(_ left: Duration) -> UploadError {
        UploadError(
            failure(
                .protocol, Self.creationsUnknown,
                "what earlier creations made there is not known, since no answer to them could be used; the next one waits "
                    + "\(Int(left.inSeconds.rounded(.up))) s more, so that no heap of empty uploads is made",
                retryable: true), remedy: .holdDestination(after: left))
    }
}
