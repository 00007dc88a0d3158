internal import Core
internal import Linux

/// The most that connections to one peer can have put on the wire together, by what links have carried since the first of them was opened.
///
/// TCP counts a segment whenever it hands one down, also one that a full queue of this machine throws away at once, and counts it
/// again when it goes again. A link counts what it was handed by its queue. Whatever else went there meanwhile counts as well, so this
/// is a bound and no count. It is one of all connections to a peer, since a link does not tell them apart: what each of them is charged
/// with adds up to no less than they have sent, or to all that TCP says.
struct CarriedBound {
    /// Those that share one.
    struct Key: Hashable {
        var interface: String?
        var peer: IPAddress
    }

    /// What the links have sent; `nil` where nobody can tell.
    typealias Look = @Sendable (_ interface: String?) -> [String: UInt64]?

    /// What TCP says of a connection.
    struct Member {
        var counts: SocketCounts
        /// Bytes of packets that it has handed down, with all headers, and what it sends at its end.
        var total: Int64
    }

    private let interface: String?
    private let look: Look
    private let joinsSegments: Bool
    private var before: [String: UInt64]
    private var lookedAt: ContinuousClock.Instant
    /// Bytes since the first connection was opened; `nil` once that cannot be told any more.
    private var carried: UInt64? = 0
    /// What they may have sent together.
    private var most: Int64 = 0
    /// What they were charged with, those that are closed included.
    private var charged: Int64 = 0
    /// Of those that are open: what TCP said last.
    private var totals: [CInt: Int64] = [:]
    /// Of those that are closed: what may still leave of them, with headers that links do not count; and what was acknowledged.
    private var closed: (rest: Int64, acknowledged: Int64) = (0, 0)
    private var hasRepeated = false

    /// How far apart two looks are at least: where segments go again, what was supposed in between cannot be taken back.
    private static let pause: Duration = .milliseconds(250)
    private static let shortPause: Duration = .milliseconds(25)
    /// Later a counter of 32 bits may have begun anew.
    private static let longest: Duration = .seconds(30)

    /// - Parameters:
    ///   - interface: That the connections are bound to; `nil` counts all links.
    ///   - joinsSegments: Whether the link may be handed many segments as one, with one header.
    /// - Returns: `nil` where nobody can tell.
    init?(interface: String?, joinsSegments: Bool, now: ContinuousClock.Instant, look: @escaping Look) {
        guard let before = look(interface) else { return nil }
        (self.interface, self.look, self.joinsSegments) = (interface, look, joinsSegments)
        (self.before, lookedAt) = (before, now)
    }

    /// What a connection is to be charged with in all.
    ///
    /// - Parameters:
    ///   - socket: Of the connection.
    ///   - own: What TCP says of it now.
    ///   - before: What it was charged with.
    ///   - end: What it sends at its end besides, when it is about to be closed.
    ///   - overhead: What is added to each packet behind the link.
    ///   - others: What TCP says of the other connections that are open.
    mutating func charge(
        _ socket: CInt, _ own: Member, before paid: Int64, end: Int64?, overhead: Int64, now: ContinuousClock.Instant,
        others: () -> [CInt: Member]
    ) -> Int64 {
        let wanted = own.total + (end ?? 0)
        if own.counts.hasRepeated { hasRepeated = true }
        let time = lookedAt.duration(to: now)
        if carried != nil, end != nil || time >= (hasRepeated ? Self.shortPause : Self.pause) {
            var members = others()
            members[socket] = own
            refresh(members, overhead: overhead, time: time, now: now)
        } else {
            // All that TCP counted since the last look is supposed to have left.
            most += max(0, own.total - (totals[socket] ?? 0))
            totals[socket] = max(own.total, totals[socket] ?? 0)
        }
        var total = wanted
        if carried != nil, hasRepeated { total = min(wanted, paid + max(0, most - charged) + (end ?? 0)) }
        total = max(total, paid)
        charged += total - paid
        if let end {
            let rest = end + waiting(own.counts) + uncounted(own.counts, overhead) + own.counts.farewell
            closed = (closed.rest + rest, closed.acknowledged + own.counts.acknowledged)
            totals[socket] = nil
            most += end
        }
        return total
    }

    /// What waits in queues is sent later.
    private func waiting(_ counts: SocketCounts) -> Int64 { counts.unanswered * (counts.largest + counts.header) }

    /// Headers that the link's own count has not.
    private func uncounted(_ counts: SocketCounts, _ overhead: Int64) -> Int64 {
        // The sum over all links has what tunnels add.
        counts.segments * (joinsSegments ? counts.header : interface == nil ? 0 : overhead)
    }

    private mutating func refresh(
        _ members: [CInt: Member], overhead: Int64, time: Duration, now: ContinuousClock.Instant
    ) {
        guard let known = carried else { return }
        carried = nil
        guard time <= Self.longest, let after = look(interface) else { return }
        var sum = known
        for (link, bytes) in after {
            // One that has come since.
            let earlier = before[link] ?? 0
            guard bytes >= earlier else { return }
            sum += min(bytes - earlier, UInt64(Int64.max) / 1024)
        }
        let acknowledged = members.values.reduce(closed.acknowledged) { $0 + $1.counts.acknowledged }
        guard before.keys.allSatisfy({ after[$0] != nil }), let left = Int64(exactly: sum),
            // Some drivers learn what they have sent once a second or two. What was acknowledged has been sent.
            left >= acknowledged
        else { return }
        (carried, before, lookedAt) = (sum, after, now)
        most = left + closed.rest
        for (socket, member) in members {
            let counts = member.counts
            most += waiting(counts) + uncounted(counts, overhead) + counts.farewell
            totals[socket] = member.total
        }
    }
}
