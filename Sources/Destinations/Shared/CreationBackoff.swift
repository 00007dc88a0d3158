internal import Core
internal import Synchronization

/// Creations at a remote whose answers were not understood or did not come: each may have made an empty upload that
/// stays. Shared by all uploads to a destination, so that a queue of uploads creates as few of them as one upload.
///
/// The first costs no wait, since it may be an accident. Each further one waits longer, up to six hours.
final class CreationBackoff: Sendable {
    private struct State {
        var count: Int64 = 0
        var until: MonotonicTime?
    }

    private let state = Mutex(State())

    /// How long no creation is sent after this many in a row.
    static func wait(after count: Int64) -> Duration {
        count < 2 ? .zero : min(.seconds(30) * (1 << (2 * min(count - 2, 5))), .seconds(6 * 3600))
    }

    /// - Throws: ``UploadError`` while no creation may be sent.
    func check(_ client: AuthorizedClient) throws(UploadError) {
        let now = client.clocks.monotonic()
        let left = state.withLock { $0.until?.since(now) }
        if let left, left > .zero { throw client.tooManyCreations(left) }
    }

    /// - Parameters:
    ///   - error: The outcome of a creation that may have made something.
    ///   - atLeast: How many failed creations of this upload are known, also from before a restart.
    /// - Returns: `error` with the wait for the next one.
    func failed(_ error: UploadError, _ client: AuthorizedClient, atLeast: Int64 = 1) -> UploadError {
        let now = client.clocks.monotonic()
        let wait = state.withLock { state in
            state.count = max(state.count + 1, atLeast)
            let wait = Self.wait(after: state.count)
            state.until = now.advanced(by: wait)
            return wait
        }
        var error = error
        if wait > .zero {
            error.remedy = .holdDestination(after: wait)
            error.failure.message +=
                "; it is not known what this request has made there, so the next one like it waits \(writtenTime(wait))"
            error.failure.explainsWait = true
        }
        return error
    }

    /// Which unsuccessful creations count.
    enum Lost: Sendable {
        case never
        /// From the second one on, where something may have been made.
        case repeated
        /// Creations without an answer, or with one that was cut.
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

    /// Sends a creation to the remote, unless it has to wait. After an unusable answer with which something may have
    /// been made, the next one waits longer.
    ///
    /// - Parameters:
    ///   - earlier: How many earlier creations of this upload have failed.
    ///   - countsLost: A lost answer counts too, because its object cannot be looked for.
    /// - Throws: Errors of `creation`; ``UploadError`` while no creation may be sent.
    func make<Made>(
        _ client: AuthorizedClient, after earlier: Int64, countsLost: Lost = .never, _ creation: () async throws -> Made
    ) async throws -> Made {
        try check(client)
        do {
            let made = try await creation()
            succeeded()
            return made
        } catch let error as UploadError
            where error.isUnusableCreation || countsLost.counts(error, after: earlier)
        {
            throw failed(error, client, atLeast: earlier + 1)
        }
    }
}

extension UploadError {
    /// The request may have arrived, and no answer came, or only part of one.
    var isUnanswered: Bool { [.connectionLost, .noReply].contains(failure.code) }

    private static let ofUnusableCreations: Set<Failure.Code> = [
        .unusableAnswer, .unreadableAnswer, .authorisationUnusable, .noLocation, .badLocation, .noToken,
    ]

    /// A creation may have made something, and its answer is unusable. A lost answer is an accident; an unusable one, or
    /// one that breaks off after a status of success, comes again.
    var isUnusableCreation: Bool {
        Self.ofUnusableCreations.contains(failure.code)
            || statusOfBrokenAnswer.map { (200..<300).contains($0) } ?? false
    }
}

extension AuthorizedClient {
    /// The error of an upload whose creation has to wait.
    func tooManyCreations(_ left: Duration) -> UploadError {
        var failure = failure(
            .protocol, .creationsUnknown,
            "the results of earlier creations are not known, because their answers were lost or could not be used; the next "
                + "one waits \(Int(left.inSeconds.rounded(.up))) s more, to avoid many empty uploads",
            retryable: true)
        failure.explainsWait = true
        return UploadError(failure, remedy: .holdDestination(after: left))
    }
}
