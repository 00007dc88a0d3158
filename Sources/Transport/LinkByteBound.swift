internal import Core
internal import Linux

/// The most that connections can have sent together, computed from the bytes that links have sent since the first of
/// them was opened.
///
/// TCP counts a segment whenever it passes one down, also one that a full queue of this machine drops at once, and
/// counts it again when it is sent again. A link counts the packets that its queue gave it. Other traffic on the link
/// counts as well, so this is an upper bound and not a count. It applies to all connections over a link together, since
/// the link does not distinguish them: their charges add up to at least the bytes that they have sent, or to TCP's full
/// count.
struct LinkByteBound {
    /// Returns the bytes that the links have sent; `nil` where that is unknown.
    typealias LinkBytesReader = @Sendable (_ interface: String?) -> [String: LinkBytes.Sent]?

    /// TCP's counters of a connection.
    struct Member {
        var counts: SocketCounts
        /// Bytes of packets that it has passed down, with all headers, and those that it sends at its end.
        var total: Int64
        /// The part of its header that is added to each packet after the link.
        var overhead: Int64

        /// Acknowledged bytes have certainly left.
        var least: Int64 {
            let segments = (counts.acknowledged + counts.largest - 1) / max(1, counts.largest)
            return min(total, counts.acknowledged + segments * counts.header)
        }
    }

    /// The sum of TCP's counters of connections.
    private struct Sum {
        var sent: Int64 = 0
        /// Headers of all segments, and the part of them that is added after the link.
        var headers: Int64 = 0
        var overheads: Int64 = 0
        var acknowledged: Int64 = 0
        /// Bytes that are not sent yet.
        var rest: Int64 = 0

        mutating func add(_ member: Member) {
            let counts = member.counts
            sent += counts.sent
            headers += counts.segments * counts.header
            overheads += counts.segments * member.overhead
            acknowledged += counts.acknowledged
            // Bytes in queues are sent later.
            rest += counts.unanswered * (counts.largest + counts.header) + counts.closingBytes
        }
    }

    private let interface: String?
    private let linkBytes: LinkBytesReader
    private let joins: @Sendable (_ link: String) -> Bool
    private var joinsSegments: Bool
    private var before: [String: LinkBytes.Sent]
    private var refreshedAt: ContinuousClock.Instant
    /// Since the first connection was opened; `nil` once that is unknown.
    private var carried: LinkBytes.Sent? = LinkBytes.Sent(bytes: 0, packets: 0)
    /// The most that they may have sent together.
    private var most: Int64 = 0
    /// The bytes that they were charged with, including closed ones.
    private var charged: Int64 = 0
    /// An open connection: TCP's last counters, and the bytes charged.
    private struct Open {
        var total: Int64 = 0
        var least: Int64 = 0
        var paid: Int64 = 0
    }
    private var open: [CInt: Open] = [:]
    private var closed = Sum()
    /// The longest segment of all, and the shortest header.
    private var largest: Int64 = 1
    private var shortest: (header: Int64, overhead: Int64) = (.max, .max)
    private var hasRepeated = false

    /// The minimum time between two readings of the links: when segments are sent again, charges that were assumed in
    /// between cannot be taken back.
    private static let pause: Duration = .milliseconds(250)
    private static let shortPause: Duration = .milliseconds(25)
    /// After a longer time a counter of 32 bits may have wrapped.
    private static let longest: Duration = .seconds(30)
    /// Hardly any packet is shorter: its headers of IPv4 and TCP.
    private static let minPacket: Int64 = 40

    /// - Parameters:
    ///   - interface: The interface to which the connections are bound; `nil` counts all links.
    ///   - joins: Whether the kernel may pass many segments to a link as one, with one header.
    /// - Returns: `nil` where the links' counters are unknown.
    init?(
        interface: String?, now: ContinuousClock.Instant, joins: @escaping @Sendable (_ link: String) -> Bool,
        linkBytes: @escaping LinkBytesReader
    ) {
        guard let before = linkBytes(interface) else { return nil }
        (self.interface, self.linkBytes, self.joins) = (interface, linkBytes, joins)
        (self.before, refreshedAt) = (before, now)
        joinsSegments = before.keys.contains(where: joins)
    }

    /// The total that a connection has to be charged with.
    ///
    /// - Parameters:
    ///   - socket: The connection's socket.
    ///   - own: TCP's present counters for it.
    ///   - before: The bytes already charged to it.
    ///   - end: Additional bytes that it sends at its end, when it is about to be closed.
    ///   - others: TCP's counters for the other open connections.
    mutating func charge(
        _ socket: CInt, _ own: Member, before paid: Int64, end: Int64?, now: ContinuousClock.Instant,
        others: () -> [CInt: Member]
    ) -> Int64 {
        let wanted = own.total + (end ?? 0)
        if own.counts.hasRepeated { hasRepeated = true }
        let time = refreshedAt.duration(to: now)
        if carried != nil, end != nil || time >= (hasRepeated ? Self.shortPause : Self.pause) {
            var members = others()
            members[socket] = own
            refresh(members, time: time, now: now)
        } else {
            // All bytes that TCP counted since the last reading are assumed to have left.
            let known = open[socket]?.total ?? 0
            most += max(0, own.total - known)
            open[socket, default: Open()].total = max(own.total, known)
        }
        var total = wanted
        if carried != nil, hasRepeated {
            // The other connections are charged with the bytes that have certainly left.
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

    /// Records a connection that no transfer pays for any more.
    mutating func close(_ socket: CInt, _ own: Member) {
        closed.add(own)
        open[socket] = nil
    }

    /// Headers that the links' own counters do not include.
    ///
    /// A segment that a queue dropped has sent no header. The minimum number of such segments follows from the payload
    /// that TCP passed down and no link sent.
    private func uncounted(_ carried: (bytes: Int64, packets: Int64), _ sum: Sum) -> Int64 {
        let counted = carried.packets * Self.minPacket
        // Some drivers count each segment as a packet, with only one header.
        let isWhole = carried.bytes - counted >= sum.acknowledged
        let payload = carried.bytes - (isWhole ? counted : 0)
        let thrownAway = max(0, sum.sent - payload) / largest
        if joinsSegments {
            return max(0, sum.headers - thrownAway * shortest.header - (isWhole ? counted : 0))
        }
        // The sum over all links includes the bytes that tunnels add.
        return interface == nil ? 0 : max(0, sum.overheads - thrownAway * shortest.overhead)
    }

    private mutating func refresh(
        _ members: [CInt: Member], time: Duration, now: ContinuousClock.Instant
    ) {
        guard let known = carried else { return }
        carried = nil
        guard time <= Self.longest, let after = linkBytes(interface) else { return }
        var sum = known
        for (link, now) in after {
            // A link that was added since.
            let earlier = before[link] ?? LinkBytes.Sent(bytes: 0, packets: 0)
            guard now.bytes >= earlier.bytes, now.packets >= earlier.packets else { return }
            sum.bytes += min(now.bytes - earlier.bytes, Self.maxBytes)
            sum.packets += min(now.packets - earlier.packets, Self.maxBytes)
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
            // Some drivers learn only every second or two what they have sent. Acknowledged bytes have certainly been
            // sent.
            bytes >= told.acknowledged
        else { return }
        if after.count != before.count { joinsSegments = after.keys.contains(where: joins) }
        (carried, before, refreshedAt) = (sum, after, now)
        most = bytes + uncounted((bytes, packets), told) + told.rest
        for (socket, member) in members {
            open[socket, default: Open()].total = member.total
            open[socket]?.least = member.least
        }
    }

    private static let maxBytes = UInt64(Int64.max) / 1024
}
