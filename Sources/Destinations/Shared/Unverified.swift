internal import Core

// A remote that has every byte, and does not say yet that it can use them.

extension Asking {
    /// The code of a wait that is longer than a person wanted to know nothing of.
    static let verifyTimeout = "verify_timeout"

    /// What an upload is told that waits for the remote's word. It keeps waiting: nothing is released by time alone.
    ///
    /// - Parameters:
    ///   - thing: What the remote makes of the bytes, `the video`.
    ///   - status: What it says of that.
    ///   - waited: Since every byte was there.
    ///   - poll: Until it is asked again; more, the longer it lasts.
    func unverified(
        _ thing: String, _ status: String, waited: Duration, timeout: Duration, poll: Duration
    ) -> UploadError {
        let status = FilePath(status).display
        guard waited > timeout else {
            return UploadError(
                failure(
                    .transient, "remote_works",
                    "every byte is there, and the service is still at work on \(thing) (\(status))", retryable: true),
                remedy: .pending(after: poll))
        }
        let rare = min(max(poll, waited / 24), max(poll, .seconds(3600)))
        return UploadError(
            failure(
                .transient, Self.verifyTimeout,
                "every byte has been there for \(waited.inWords), and the service still does not say that \(thing) can be used "
                    + "(\(status)): the source and the copy stay until it does, and it is asked again every "
                    + "\(rare.inWords); look at it there, or cancel it", retryable: true),
            remedy: .pending(after: rare))
    }
}

extension UploadError {
    /// A look at what a remote has made of the bytes, which have all arrived, got an answer that says nothing of it, or none: it is looked at
    /// again, and nobody else waits for that.
    var isNoWord: Bool {
        switch remedy {
        // Where nobody can be reached nothing else can be sent either.
        case .holdDestination, .again: failure.code != "unreachable"
        case .refused, .noRoom, .rateLimit, .pending, .authenticate, .misconfigured, .giveUp, .restage: false
        }
    }
}

extension Duration {
    /// For a person: `26 h`, `5 min`, `40 s`.
    var inWords: String {
        let seconds = Int64(inSeconds.rounded())
        if seconds >= 2 * 3600 { return "\(seconds / 3600) h" }
        return seconds >= 120 ? "\(seconds / 60) min" : "\(seconds) s"
    }
}
