internal import Transport

extension Limits {
    /// Of a request without bytes of the file.
    ///
    /// - Parameter reply: `reply_timeout` of the destination; `nil` where it is not set, which is a minute for the whole request.
    static func small(_ reply: Duration?) -> Limits {
        guard let reply else { return Limits(whole: .seconds(60)) }
        // An answer that comes in small pieces ends one day, too.
        return Limits(replyWait: reply, whole: reply + .seconds(60))
    }
}
