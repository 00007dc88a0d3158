internal import Linux

/// The position in a request's body, and how many of its bytes the peer has received at least and at most.
struct SentBody {
    /// Drops to 0 when libcurl starts again.
    private(set) var sent: Int64 = 0
    /// Bytes that have left still count when libcurl starts again.
    private(set) var maxSent: Int64 = 0
    /// Bytes of the body that the peer's kernel has certainly acknowledged.
    private var acknowledged: Int64 = 0
    /// The last bytes of the connection that carried the body, as of the last reading; `nil` where the kernel does not
    /// tell.
    private var tail: Tail?
    /// libcurl may hold bytes that it counts as sent, in frames of HTTP/2.
    private let isFramed: Bool

    init(isFramed: Bool = false) { self.isFramed = isFramed }

    /// The last bytes that were written to a connection.
    private struct Tail {
        /// Bytes that were written and not acknowledged.
        var queued: Int64
        /// Bytes among them that have not left and never will.
        var kept: Int64
        /// TLS holds more bytes than libcurl counts as sent: only whole records are written.
        var isSecure: Bool
    }

    /// - Returns: Whether the position has changed.
    mutating func progressed(to now: Int64) -> Bool {
        guard now != sent else { return false }
        sent = now
        maxSent = max(maxSent, now)
        return true
    }

    /// Records the kernel's present counters of the connection. A body is the last data written to it, except for TLS's
    /// close notification.
    mutating func observe(_ counts: SocketCounts, isSecure: Bool, at end: SocketCounts.End?) {
        acknowledged = max(acknowledged, maxSent - counts.queued)
        let kept: Int64 =
            switch end {
            // Timers may still send three segments: see ``SocketCounts/onWire(isSecure:at:)``.
            case .reset: max(0, counts.unsent - 3 * counts.largest)
            case .orderly, nil: counts.isOver ? counts.unsent : 0
            }
        tail = Tail(queued: counts.queued, kept: kept, isSecure: isSecure)
    }

    /// The bytes that the peer has received, at least and at most. Valid when writing has ended and all written bytes are
    /// counted.
    ///
    /// - Parameter given: Bytes of the body that libcurl has fetched.
    func delivered(given: Int64) -> ClosedRange<Int64> {
        guard let tail else { return 0...max(given, maxSent) }
        // With encryption there are fewer bytes of the body than waiting bytes: so this is only a lower bound.
        let least = isFramed ? 0 : max(acknowledged, maxSent - tail.queued, 0)
        let most = tail.isSecure || isFramed ? max(given, maxSent) : maxSent - tail.kept
        return least...max(least, most)
    }
}
