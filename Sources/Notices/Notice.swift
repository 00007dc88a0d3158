/// One event for one hook.
package struct Notice: Hashable, Sendable {
    /// The same at each try, so that a receiver recognises a repeat. It contains no full stop.
    package var id: String
    /// The event as JSON, in the form of `/v1/events`.
    package var body: [UInt8]

    package init(id: String, body: [UInt8]) {
        self.id = id
        self.body = body
    }
}

/// The result of a try.
package enum DeliveryResult: Hashable, Sendable {
    /// Delivered; contains a description for a person who tried it by hand.
    case delivered(String)
    /// It may succeed later, not before `after`. The code is the same for all errors that are described in the same
    /// way.
    case retry(String, code: String, after: Duration?)
    /// It will never succeed.
    case refused(String)
    /// The task was cancelled: the result is unknown.
    case stopped
}
