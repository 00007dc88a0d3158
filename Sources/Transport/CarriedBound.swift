internal import Core
internal import Linux

/// The most that connections can have put on the wire together, by what links have carried since the first of them was opened.
///
/// TCP counts a segment whenever it hands one down, also one that a full queue of this machine throws away at once, and counts it
/// again when it goes again. A link counts what it was handed by its queue. Whatever else went there meanwhile counts as well, so this
/// is a bound and no count. It is one of all connections by a link, since that does not tell them apart: what each of them is charged
/// with adds up to no less than they have sent, or to all that TCP says.
struct CarriedBound {
    /// What the links have sent; `nil` where nobody can tell.
    typealias Look = @Sendable (_ interface: String?) -> [String: LinkBytes.Sent]?

    /// What TCP says of a connection.
    struct Member {
        var counts: SocketCounts
        /// Bytes of packets that it has handed down, with all headers, and what it sends at its end.
        var total: Int64
        /// Of its header, what is added to each packet behind the link.
        var overhead: Int64

        /// What the peer has acknowledged has left, whatever became of the rest.
        var least: Int64 {
            let segments = (counts.acknowledged + counts.largest - 1) / max(1, counts.largest)
            return min(total, counts.acknowledged + segments * counts.header)
        }
    }

    /// What TCP said of connections, added up.
    private struct Sum {
        var sent: Int64 = 0
        /// Of all segments, and what of them is added behind the link.
        var headers: Int64 = 0
        var overheads: Int64 = 0
        var acknowledged: Int64 = 0
        /// What is still to leave of them.
        var rest: Int64 = 0

        mutating func add(_ member: Member) {
            let counts = member.counts
            sent += counts.sent
            headers += counts.segments * counts.header
            overheads += counts.segments * member.overhead
            acknowledged += counts.acknowledged
            // What waits in queues is sent later.
            rest += counts.unanswered * (counts.largest + counts.header) + counts.farewell
        }
    }

    private let interface: String?
    private let look: Look
    private let joins: @Sendable (_ link: String) -> Bool
    private var joinsSegments: Bool
    private var before: [String: LinkBytes.Sent]
    private var lookedAt: ContinuousClock.Instant
    /// Since the first connection was opened; `nil` once that cannot be told any more.
    private var carried: LinkBytes.Sent? = LinkBytes.Sent(bytes: 0, packets: 0)
    /// What they may have sent together.
    private var most: Int64 = 0
    /// What they were charged with, those that are closed included.
    private var charged: Int64 = 0
    /// A connection that is open: what TCP said last, and what it was charged with.
    private struct Open {
        var total: Int64 = 0
        var least: Int64 = 0
        var paid: Int64 = 0
    }
    private var open: [CInt: Open] = [:]
    private var closed = Sum()
    /// Of all segments the longest, and those with the shortest header.
    private var largest: Int64 = 1
    private var shortest: (header: Int64, overhead: Int64) = (.max, .max)
    private var hasRepeated = false

    /// How far apart two looks are at least: where segments go again, what was supposed in between cannot be taken back.
    private static let pause: Duration = .milliseconds(250)
    private static let shortPause: Duration = .milliseconds(25)
    /// Later a counter of 32 bits may have begun anew.
    private static let longest: Duration = .seconds(30)
    /// No packet is shorter, but very few: its headers of IPv4 and TCP.
    private static let leastPacket: Int64 = 40

    /// - Parameters:
    ///   - interface: That the connections are bound to; `nil` counts all links.
    ///   - joins: Whether a link may be handed many segments as one, with one header.
    /// - Returns: `nil` where nobody can tell.
    init?(
        interface: String?, now: ContinuousClock.Instant, joins: @escaping @Sendable (_ link: String) -> Bool,
        look: @escaping Look
    ) {
        guard let before = look(interface) else { return nil }
        (self.interface, self.look, self.joins) = (interface, look, joins)
        (self.before, lookedAt) = (before, now)
        joinsSegments = before.keys.contains(where: joins)
    }

    /// What a connection is to be charged with in all.
    ///
    /// - Parameters:
    ///   - socket: Of the connection.
    ///   - own: What TCP says of it now.
    ///   - before: What it was charged with.
    ///   - end: What it sends at its end besides, when it is about to be closed.
    ///   - others: What TCP says of the other connections that are open.
    mutating func charge(
        _ socket: CInt, _ own: Member, before paid: Int64, end: Int64?, now: ContinuousClock.Instant,
        others: () -> [CInt: Member]
    ) -> Int64 {
        let wanted = own.total + (end ?? 0)
        if own.counts.hasRepeated { hasRepeated = true }
        let time = lookedAt.duration(to: now)
        if carried != nil, end != nil || time >= (hasRepeated ? Self.shortPause : Self.pause) {
            var members = others()
            members[socket] = own
            refresh(members, time: time, now: now)
        } else {
            // All that TCP counted since the last look is supposed to have left.
            let known = open[socket]?.total ?? 0
            most += max(0, own.total - known)
            open[socket, default: Open()].total = max(own.total, known)
        }
        var total = wanted
        if carried != nil, hasRepeated {
            // The others are to be charged with what they have sent for sure.
            let owed = open.reduce(0) { $0 + ($1.key == socket ? 0 : max(0, $1.value.least - $1.value.paid)) }
            total = min(wanted, paid + max(0, most - charged - owed) + (end ?? 0))
        }
        total = max(total, paid, own.least)
        charged += total - paid
        open[socket, default: Open()].paid = total
        if let end {
            close(socket, own)
            closed.rest += end
            most += end
        }
        return total
    }

    /// A connection that nobody pays for any more.
    mutating func close(_ socket: CInt, _ own: Member) {
        closed.add(own)
        open[socket] = nil
    }

    /// Headers that the links' own counts have not.
    ///
    /// A segment that a queue threw away has left no header. How many those are at least follows from the payload that TCP handed
    /// down and no link carried.
    private func uncounted(_ carried: (bytes: Int64, packets: Int64), _ sum: Sum) -> Int64 {
        let counted = carried.packets * Self.leastPacket
        // Some drivers count each segment as a packet, and one header only.
        let isWhole = carried.bytes - counted >= sum.acknowledged
        let payload = carried.bytes - (isWhole ? counted : 0)
        let thrownAway = max(0, sum.sent - payload) / largest
        if joinsSegments {
            return max(0, sum.headers - thrownAway * shortest.header - (isWhole ? counted : 0))
        }
        // The sum over all links has what tunnels add.
        return interface == nil ? 0 : max(0, sum.overheads - thrownAway * shortest.overhead)
    }

    private mutating func refresh(
        _ members: [CInt: Member], time: Duration, now: ContinuousClock.Instant
    ) {
        guard let known = carried else { return }
        carried = nil
        guard time <= Self.longest, let after = look(interface) else { return }
        var sum = known
        for (link, now) in after {
            // One that has come since.
            let earlier = before[link] ?? LinkBytes.Sent(bytes: 0, packets: 0)
            guard now.bytes >= earlier.bytes, now.packets >= earlier.packets else { return }
            sum.bytes += min(now.bytes - earlier.bytes, Self.mostBytes)
            sum.packets += min(now.packets - earlier.packets, Self.mostBytes)
        }
        var told = closed
        for member in members.values {
            told.add(member)
            largest = max(largest, member.counts.largest)
            shortest.header = min(shortest.header, member.counts.header)
            shortest.overhead = min(shortest.overhead, member.overhead)
        }
        guard before.keys.allSatisfy({ after[$0] != nil }), let bytes = Int64(exactly: sum.bytes),
            let packets = Int64(exactly: sum.packets), packets <= bytes,
            // Some drivers learn what they have sent once a second or two. What was acknowledged has been sent.
            bytes >= told.acknowledged
        else { return }
        if after.count != before.count { joinsSegments = after.keys.contains(where: joins) }
        (carried, before, lookedAt) = (sum, after, now)
        most = bytes + uncounted((bytes, packets), told) + told.rest
        for (socket, member) in members {
            open[socket, default: Open()].total = member.total
            open[socket]?.least = member.least
        }
    }

    private static let mostBytes = UInt64(Int64.max) / 1024
}
