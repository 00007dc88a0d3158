internal import Core

/// How often parts are sent again to a remote that does not assemble the file: once, and then the upload fails with the
/// remote's message.
///
/// Where the remote's list shows the missing parts, they go again at once, and the second time after a wait. Where
/// nothing shows them, the remote is queried once more after a wait before a part is sent again.
struct CompletionRetryLimit: Sendable {
    /// Number of refusals, including this one.
    let times: Int64
    /// The remote's list shows which parts it lacks.
    let isListed: Bool
    /// There is a part that can be sent again.
    let hasParts: Bool

    /// Long enough for a list that is updated late.
    static let wait = Duration.seconds(5)

    var isAtEnd: Bool { times > 2 || times > 1 && !hasParts }
    /// Whether the parts are sent again, now or in the next attempt.
    var sendsAgain: Bool { !isAtEnd && hasParts && (isListed || times == 2) }
    private var waits: Bool { isListed ? times == 2 : times == 1 }

    /// - Returns: `nil` where the parts are sent again at once.
    func error(_ refusal: UploadError) -> UploadError? {
        var error = refusal
        error.failure.retryable = !isAtEnd
        if isAtEnd {
            error.remedy = .failUpload
        } else if waits {
            error.remedy = .pending(after: Self.wait)
        } else {
            return nil
        }
        return error
    }
}
