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

    init() {}

    init(_ values: [String: SettingValue]) {
        if case .duration(let limit)? = values["stall_timeout"] { sending.sendingStall = limit }
        guard case .duration(let limit)? = values["reply_timeout"] else { return }
        reply = limit
        sending.replyWait = limit
        // An answer that arrives in small pieces must end, too.
        sending.answer = limit + Self.answering
        small = Limits(replyWait: limit, whole: limit + Self.answering)
        reading = small
    }
}
