/// A hook, and the state of its notices.
package struct HookView: Codable, Sendable, Hashable {
    package var name: String
    /// The program; or scheme, host and port.
    package var target: String
    /// Waiting notices.
    package var waiting: Int
    /// When the event of the oldest notice happened.
    package var oldest: String?
    /// The reason for the last failure, or the hold that keeps notices from being sent.
    package var hold: HoldView?
    /// Counters since the start of the daemon.
    package var delivered: Int
    package var givenUp: Int
    package var dropped: Int
    package var lastDelivered: String?

    package init(
        name: String, target: String, waiting: Int, oldest: String? = nil, hold: HoldView? = nil, delivered: Int,
        givenUp: Int, dropped: Int, lastDelivered: String? = nil
    ) {
        self.name = name
        self.target = target
        self.waiting = waiting
        self.oldest = oldest
        self.hold = hold
        self.delivered = delivered
        self.givenUp = givenUp
        self.dropped = dropped
        self.lastDelivered = lastDelivered
    }

}

/// The result of sending a hook a made-up event.
package struct HookTestResult: Codable, Sendable, Hashable {
    package var hook: String
    /// Whether the hook accepted it.
    package var ok: Bool
    package var detail: String
    /// Bytes that were sent for it; absent for a command with `network: any`, whose bytes are not counted.
    package var sent: Int64?
    /// Bytes that were received for it.
    package var received: Int64?
    /// The hold that kept it from being sent; nothing was sent.
    package var hold: HoldView?
    /// Whether the daemon did it, so that its cost is part of `usage`.
    package var counted: Bool

    package init(
        hook: String, ok: Bool, detail: String, sent: Int64?, received: Int64?, hold: HoldView?,
        counted: Bool
    ) {
        self.hook = hook
        self.ok = ok
        self.detail = detail
        self.sent = sent
        self.received = received
        self.hold = hold
        self.counted = counted
    }

}
