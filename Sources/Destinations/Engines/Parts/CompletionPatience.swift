internal import Core

/// How often a remote that does not make a file of its parts is given some of them again: once, and then the upload fails with its words.
///
/// Where its list shows what it lacks, that goes again at once, and the second time after a wait. Where nothing shows it, the remote is asked once
/// more after a wait before a part goes again.
struct CompletionPatience: Sendable {
    /// This time among them.
    let times: Int64
    /// The remote's list shows which parts it lacks.
    let isListed: Bool
    /// There is a part that could go again.
    let hasParts: Bool

    /// Long enough for a list that is late.
    static let wait = Duration.seconds(5)

    var isAtEnd: Bool { times > 2 || times > 1 && !hasParts }
    /// The parts go again, now or in the next attempt.
    var sendsAgain: Bool { !isAtEnd && hasParts && (isListed || times == 2) }
    private var waits: Bool { isListed ? times == 2 : times == 1 }

    /// - Returns: `nil` where the parts go again at once.
    func error(_ refusal: UploadError) -> UploadError? {
        var error = refusal
        error.failure.retryable = !isAtEnd
        if isAtEnd {
            error.remedy = .giveUp
        } else if waits {
            error.remedy = .pending(after: Self.wait)
        } else {
            return nil
        }
        return error
    }
}
