internal import Core
internal import Transport

/// How long the requests to a destination may take: its `stall_timeout` and `reply_timeout`.
struct RequestLimits: Sendable {
    /// So long an answer may take that has begun within ``Limits/replyWait``. Those that are read here are small.
    private static let answering: Duration = .seconds(60)

    /// Of a request that carries bytes of the file.
    var sending = Limits(answer: Limits().replyWait + answering)
    /// Of a request without bytes of the file: a minute for the whole of it, where `reply_timeout` is not set.
    var small = Limits(whole: .seconds(60))
    /// Of the wish for a whole file, which the remote makes of its parts. It may take as long as an answer to bytes.
    var ending: Limits { Limits(replyWait: sending.replyWait, answer: sending.answer) }
    /// Of a request for which the remote reads a whole file.
    var reading = Limits(whole: .seconds(600))
    /// `reply_timeout`, where it is set.
    var reply: Duration?

    init() {}

    init(_ values: [String: SettingValue]) {
        if case .duration(let limit)? = values["stall_timeout"] { sending.sendingStall = limit }
        guard case .duration(let limit)? = values["reply_timeout"] else { return }
        reply = limit
        sending.replyWait = limit
        // An answer that comes in small pieces ends one day, too.
        sending.answer = limit + Self.answering
        small = Limits(replyWait: limit, whole: limit + Self.answering)
        reading = small
    }
}
