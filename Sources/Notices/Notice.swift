/// One event on its way to one hook.
package struct Notice: Hashable, Sendable {
    /// The same at each try, so that who gets it twice can tell. No full stop is in it.
    package var id: String
    /// The event as JSON, as `/v1/events` has it.
    package var body: [UInt8]

    package init(id: String, body: [UInt8]) {
        self.id = id
        self.body = body
    }
}

/// What came of a try.
package enum Telling: Hashable, Sendable {
    /// Told; in words for whoever tried it by hand.
    case told(String)
    /// It may work later, and not before `after`. The code is the same for what would be told the same way.
    case again(String, code: String, after: Duration?)
    /// It will not work, however often.
    case refused(String)
    /// The task was cancelled: nobody knows.
    case stopped
}
