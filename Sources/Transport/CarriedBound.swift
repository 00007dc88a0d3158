internal import Linux

/// The most that one connection can have put on the wire, by what links have carried since it was opened.
///
/// TCP counts a segment whenever it hands one down, also one that a full queue of this machine throws away at once, and counts it
/// again when it goes again. A link counts what it was handed by its queue. Whatever else went there meanwhile counts as well, so this
/// is a bound and no count.
struct CarriedBound {
    /// What the links have sent; `nil` where nobody can tell.
    typealias Look = @Sendable (_ interface: String?) -> [String: UInt64]?

    private let interface: String?
    private let look: Look
    private let joinsSegments: Bool
    /// What is added to each packet behind the link, which does not count it.
    private let overhead: Int64
    private var before: [String: UInt64]
    private var lookedAt: ContinuousClock.Instant
    /// Bytes since the connection was opened; `nil` once that cannot be told any more.
    private var carried: UInt64? = 0
    /// Of the last look: what it said, and what TCP said then.
    private var last: (most: Int64, total: Int64) = (0, 0)

    /// How far apart two looks at a connection under way are at least, and at most: later a counter of 32 bits may have begun anew.
    private static let pause: Duration = .milliseconds(250)
    private static let longest: Duration = .seconds(30)

    /// - Parameters:
    ///   - interface: That the connection is bound to; `nil` counts all links.
    ///   - joinsSegments: Whether the link may be handed many segments as one, with one header.
    ///   - overhead: What is added to each packet on its way out of this machine.
    /// - Returns: `nil` where nobody can tell.
    init?(interface: String?, joinsSegments: Bool, overhead: Int64, now: ContinuousClock.Instant, look: @escaping Look)
    {
        guard let before = look(interface) else { return nil }
        (self.interface, self.look, self.joinsSegments) = (interface, look, joinsSegments)
        // The sum over all links has it.
        self.overhead = interface == nil ? 0 : overhead
        (self.before, lookedAt) = (before, now)
    }

    /// Looks again, if it is time; in between, all that TCP counted since the last look is supposed to have left.
    ///
    /// - Parameters:
    ///   - counts: What TCP said just before.
    ///   - total: The same with all headers: never below what is on the wire.
    ///   - isEnd: Looks whatever the time.
    /// - Returns: Bytes of IP packets; `nil` where nobody can tell.
    mutating func most(
        _ counts: SocketCounts, total: Int64, now: ContinuousClock.Instant, isEnd: Bool
    ) -> Int64? {
        guard let known = carried else { return nil }
        let time = lookedAt.duration(to: now)
        if time < Self.pause, !isEnd { return last.most + max(0, total - last.total) }
        carried = nil
        guard time <= Self.longest, let after = look(interface) else { return nil }
        var sum = known
        for (link, bytes) in after {
            // One that has come since.
            let earlier = before[link] ?? 0
            guard bytes >= earlier else { return nil }
            sum += min(bytes - earlier, UInt64(Int64.max) / 1024)
        }
        guard before.keys.allSatisfy({ after[$0] != nil }), let left = Int64(exactly: sum),
            // Some drivers learn what they have sent once a second or two. What was acknowledged has been sent.
            left >= counts.acknowledged
        else { return nil }
        (carried, before, lookedAt) = (sum, after, now)
        // What waits in queues is sent later.
        let waiting = counts.unanswered * (counts.largest + counts.header)
        last = (left + waiting + counts.segments * (joinsSegments ? counts.header : overhead), total)
        return last.most
    }
}
