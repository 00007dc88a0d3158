package import Core

/// How an attempt ended, for ``AttemptEndings/finish(_:)``.
package enum AttemptOutcome: Sendable, Hashable {
    /// No result: a hold, a stop. Uses no attempt.
    case yielded
    /// The destination was at fault. Uses no attempt; others are tried before this one.
    ///
    /// - Parameter knowing: The files that travel with it as it found them, if it asked for them. If one of them has
    ///   ended by now, it does not wait.
    /// - Parameter isFault: Whether something failed; `false` where it is only too early.
    case held(Failure, until: MonotonicTime, knowing: [Companion]? = nil, isFault: Bool = true)
    /// This upload waits until then and tries again. Uses an attempt.
    case retry(Failure, until: MonotonicTime)
    /// - Parameter usesAttempt: Whether it is the last of the permitted refusals.
    case refused(Failure, usesAttempt: Bool = false)
    /// The staged copy is not as recorded.
    ///
    /// - Parameter until: When the upload may be sent again at the earliest; `nil` for as soon as it is staged again.
    case copyLost(Failure, CopyDefect, until: MonotonicTime? = nil)
    /// The source that was uploaded in place is another version now: it comes back as a new file.
    ///
    /// - Parameter isFinished: Whether the destination holds everything that was sent.
    case sourceChanged(Failure, isFinished: Bool)
    /// `before_upload` rejected it: it ends like a cancelled upload, and its source stays.
    case skipped(Failure)
    case verified(RemoteObject)
}
