internal import Core
internal import Transport

/// Time limits of the requests to a destination: its `stall_timeout` and `reply_timeout`.
struct RequestLimits: Sendable {
    /// Time limit for reading an answer that has begun within ``Limits/replyWait``. The answers that are read here are
    /// small.
    private static let answering: Duration = .seconds(60)

    /// For a request that carries bytes of the file.
    var sending = Limits(answer: Limits().replyWait + answering)
    /// For a request without bytes of the file: a minute for all of it, where `reply_timeout` is not set.
    var small = Limits(whole: .seconds(60))
    /// For the request to assemble a file from its parts. It may take as long as an answer to bytes.
    var ending: Limits { Limits(replyWait: sending.replyWait, answer: sending.answer) }
    /// For a request for which the remote reads a whole file.
    var reading = Limits(whole: .seconds(600))
    /// `reply_timeout`, where it is set.
    var reply: Duration?

    private var replyWait: Duration {
        get { sending.replyWait }
        set {
            reply = newValue
            sending.replyWait = newValue
            // An answer that arrives in small pieces must end, too.
            sending.answer = newValue + Self.answering
            small = Limits(replyWait: newValue, whole: newValue + Self.answering)
            reading = small
        }
    }
}

extension RequestLimits: DeclaredSettings {
    static let defaults = RequestLimits()

    static let keys = keys(reply: "How long it may take to answer after the last byte; {default} by default.")

    /// - Parameter summary: The description of `reply_timeout`.
    static func keys(reply summary: String) -> [DestinationKey<Self>] {
        DestinationKey.table {
            DestinationKey(
                "stall_timeout", \.sending.sendingStall,
                "How long the server may accept no byte; {default} by default.")
            DestinationKey("reply_timeout", \.replyWait, summary)
        }
    }
}
