internal import Core

// A remote that has every byte, and does not say yet that it can use them.

extension AuthorizedClient {
    /// The error of an upload that waits for the remote's verdict. It keeps waiting: time alone releases nothing.
    ///
    /// - Parameters:
    ///   - thing: The object that the remote makes of the bytes, `the video`.
    ///   - status: The remote's status of it.
    ///   - waited: Time since every byte was there.
    ///   - poll: Time until the next question; it grows with the wait.
    func unverified(
        _ thing: String, _ status: String, waited: Duration, timeout: Duration, poll: Duration
    ) -> UploadError {
        let status = FilePath(status).display
        guard waited > timeout else {
            return UploadError(
                failure(
                    .transient, .remoteWorks,
                    "every byte is there, and the service is still processing \(thing) (\(status))", retryable: true),
                remedy: .pending(after: poll))
        }
        let rare = min(max(poll, waited / 24), max(poll, .seconds(3600)))
        return UploadError(
            failure(
                .transient, .verifyTimeout,
                "every byte has been there for \(waited.inWords), and the service still does not report that \(thing) can be used "
                    + "(\(status)): the source and the copy stay until it does, and it is asked again every "
                    + "\(rare.inWords); check it there, or cancel it", retryable: true),
            remedy: .pending(after: rare))
    }
}

extension UploadError {
    /// A question about the object that was made from the bytes, which have all arrived, got no usable answer: it is
    /// repeated, and no other upload waits for that.
    var lacksAnswer: Bool {
        switch remedy {
        // Where the remote cannot be reached, no other upload can be sent either.
        case .holdDestination, .retry: contact != .none
        case .refused, .outOfSpace, .rateLimit, .pending, .lackQuota, .authenticate, .misconfigured, .failUpload,
            .restage:
            false
        }
    }
}

extension Duration {
    /// For messages: `26 h`, `5 min`, `40 s`.
    var inWords: String {
        let seconds = Int64(inSeconds.rounded())
        if seconds >= 2 * 3600 { return "\(seconds / 3600) h" }
        return seconds >= 120 ? "\(seconds / 60) min" : "\(seconds) s"
    }
}
