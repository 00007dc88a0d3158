internal import Core
internal import Transport

/// How long the requests to a destination may take: its `stall_timeout` and `reply_timeout`.
struct RequestLimits: Sendable {
    /// Of a request that carries bytes of the file.
    var sending = Limits()
    /// Of a request without bytes of the file: a minute for the whole of it, where `reply_timeout` is not set.
    var small = Limits(whole: .seconds(60))
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
        small = Limits(replyWait: limit, whole: limit + .seconds(60))
        reading = small
    }
}
