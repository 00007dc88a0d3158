internal import Core
package import Linux

/// The open sockets of libcurl, including those of kept connections: the interface of each, the transfer that uses it,
/// and the sent and received bytes that were not charged to a transfer yet.
///
/// Every byte sent or received by a socket is charged once, to the transfer that uses it then, or to the next one.
struct SocketRegistry {
    private struct Connection {
        let interface: String?
        let isSecure: Bool
        /// Bytes that are added to each packet that leaves this machine.
        let overhead: Int64
        var user: CurlTransfer?
        /// Known after the first request over it.
        var ends: SocketEnds?
        var charged: Int64 = 0
        var arrived = ReceivedByteCount()
        /// The traffic of links limits its charge.
        var isBounded = false
        /// Waiting bytes are discarded when it closes.
        var isReset = false
        /// Distinguishes the socket from a later one with the same number; `nil` where the kernel has no cookies.
        let cookie: UInt64?
        let openedAt = ContinuousClock.now
    }

    private var open: [CInt: Connection] = [:]
    /// By the interface of the connections, each for as long as one of them is open.
    private var bounds: [String?: LinkByteBound] = [:]
    /// The kernel's counters of a socket.
    private let counts: @Sendable (CInt) -> SocketCounts?

    init(counts: @escaping @Sendable (CInt) -> SocketCounts?) { self.counts = counts }

    /// Records a socket for a connection that `transfer` makes.
    mutating func opened(_ socket: CInt, by transfer: CurlTransfer) {
        forgetAbandoned()
        open[socket] = Connection(
            interface: transfer.request.interface, isSecure: transfer.request.isEncrypted,
            overhead: transfer.way.overhead, user: transfer, cookie: Sockets.cookie(socket))
        guard transfer.request.onWire != nil, transfer.request.unixSocket == nil, transfer.way.leavesMachine,
            !transfer.way.usesLocalProxy
        else { return }
        let interface = transfer.request.interface
        if bounds[interface] == nil {
            bounds[interface] = LinkByteBound(
                interface: interface, now: .now, joins: LinkBytes.joinsSegments, linkBytes: LinkBytes.sent(by:))
        }
        open[socket]?.isBounded = bounds[interface] != nil
    }

    /// Records that a request is sent over a new or a kept connection.
    mutating func recordUse(by transfer: CurlTransfer, _ ends: SocketEnds) {
        forgetAbandoned()
        let interface = transfer.request.interface
        var found = open.first { $0.value.ends == ends && $0.value.interface == interface }?.key
        if found == nil {
            found = open.first { $0.value.ends == nil && Sockets.ends($0.key) == ends }?.key
            if let found { open[found]?.ends = ends }
        }
        guard let socket = found, let before = open[socket]?.user, before !== transfer else {
            if let found { use(found, transfer) }
            return
        }
        // The earlier transfer ended in the same round in which this one took over.
        charge(before)
        use(socket, transfer)
    }

    private mutating func use(_ socket: CInt, _ transfer: CurlTransfer) {
        if open[socket]?.user == nil {
            Sockets.keepAlive(socket, true)
            Sockets.mark(socket, transfer.request.trafficClass)
        }
        open[socket]?.user = transfer
    }

    /// Charges it with the bytes that have left since the last call.
    mutating func charge(_ transfer: CurlTransfer) {
        forgetAbandoned()
        for (socket, connection) in open where connection.user === transfer { charge(socket, connection, transfer) }
    }

    /// The same for those of its connection attempts that may end unnoticed.
    mutating func chargeAttempts(of transfer: CurlTransfer) {
        forgetAbandoned()
        for (socket, connection) in open where connection.user === transfer && connection.ends == nil {
            charge(socket, connection, transfer)
        }
    }

    private mutating func charge(
        _ socket: CInt, _ connection: Connection, _ transfer: CurlTransfer, atEnd: Bool = false
    ) {
        guard transfer.request.unixSocket == nil else { return }
        guard let counts = counts(socket)?.adding(connection.overhead) else { return transfer.chargeEstimate() }
        let end: SocketCounts.End? = atEnd ? connection.isReset ? .reset : .orderly : nil
        transfer.observe(counts, isSecure: connection.isSecure, at: end)
        var total = counts.onWire(isSecure: connection.isSecure, at: end)
        if connection.isBounded, var bound = bounds[connection.interface] {
            // The bytes at the end have not been sent yet.
            let now = counts.onWire(isSecure: connection.isSecure)
            total = bound.charge(
                socket, LinkByteBound.Member(counts: counts, total: now, overhead: connection.overhead),
                before: connection.charged, end: atEnd ? max(0, total - now) : nil, now: .now,
                others: { members(of: connection.interface, besides: socket) })
            bounds[connection.interface] = bound
        }
        if total > connection.charged {
            open[socket]?.charged = total
            transfer.charge(total - connection.charged)
        }
        var arrived = connection.arrived
        let more = arrived.newBytes(counts, isSecure: connection.isSecure, at: end, isBrokenOff: transfer.isBrokenOff)
        open[socket]?.arrived = arrived
        if more > 0 { transfer.chargeArrived(more) }
    }

    private func members(of interface: String?, besides own: CInt) -> [CInt: LinkByteBound.Member] {
        var members: [CInt: LinkByteBound.Member] = [:]
        for (socket, connection) in open
        where socket != own && connection.isBounded && connection.interface == interface {
            guard let counts = counts(socket)?.adding(connection.overhead) else { continue }
            members[socket] = LinkByteBound.Member(
                counts: counts, total: counts.onWire(isSecure: connection.isSecure), overhead: connection.overhead)
        }
        return members
    }

    /// The transfer is over; its connection is closed by now, or kept.
    mutating func release(_ transfer: CurlTransfer) {
        forgetAbandoned()
        for (socket, connection) in open where connection.user === transfer {
            charge(socket, connection, transfer)
            open[socket]?.user = nil
            // Packets that keep an idle connection alive would be charged to no transfer, so there are none. libcurl
            // does not reuse old connections.
            Sockets.keepAlive(socket, false)
        }
    }

    mutating func closing(_ socket: CInt) {
        guard let connection = open[socket] else { return }
        if let user = connection.user {
            charge(socket, connection, user, atEnd: true)
        } else if connection.isBounded, let counts = counts(socket)?.adding(connection.overhead) {
            bounds[connection.interface]?.close(
                socket,
                LinkByteBound.Member(
                    counts: counts, total: counts.onWire(isSecure: connection.isSecure), overhead: connection.overhead))
        }
        forget(socket, connection)
    }

    private mutating func forget(_ socket: CInt, _ connection: Connection) {
        open[socket] = nil
        if connection.isBounded,
            !open.values.contains(where: { $0.isBounded && $0.interface == connection.interface })
        {
            bounds[connection.interface] = nil
        }
    }

    /// Forgets sockets that were closed without a report: libcurl 7.88 does not call its close function for a socket
    /// that is given up while it connects (`cf_socket_close`), when its transfer ends or another address was quicker.
    /// The number of such a socket may belong to another file by now, so nothing here may touch it.
    private mutating func forgetAbandoned() {
        for (socket, connection) in open where connection.ends == nil && connection.cookie != Sockets.cookie(socket) {
            let counts = SocketCounts(attemptOf: connection.openedAt.duration(to: .now)).adding(connection.overhead)
            let total = counts.onWire(isSecure: false)
            let isCounted = connection.user?.request.unixSocket == nil
            if isCounted, let user = connection.user, total > connection.charged {
                user.charge(total - connection.charged)
            }
            if connection.isBounded {
                bounds[connection.interface]?.close(
                    socket, LinkByteBound.Member(counts: counts, total: total, overhead: connection.overhead))
            }
            forget(socket, connection)
        }
    }

    /// Whether TCP has connected a socket that `transfer` has opened.
    func hasPeer(_ transfer: CurlTransfer) -> Bool {
        // The number of a socket that was closed without a report may belong to another file by now.
        open.contains { socket, connection in
            connection.user === transfer && connection.cookie == Sockets.cookie(socket) && Sockets.ends(socket) != nil
        }
    }

    /// Records how much of its body the peer has acknowledged.
    func observe(_ transfer: CurlTransfer) {
        for (socket, connection) in open where connection.user === transfer && connection.ends != nil {
            guard let counts = counts(socket) else { continue }
            transfer.observe(counts, isSecure: connection.isSecure, at: connection.isReset ? .reset : nil)
        }
    }

    /// Discards the waiting bytes in the sockets of `transfer`, as soon as they close.
    mutating func reset(_ transfer: CurlTransfer) { reset { $0.user === transfer } }

    /// The same for all that are bound to `interface`.
    mutating func reset(interface: String) { reset { $0.interface == interface } }

    /// Closes unused connections from one of these addresses.
    ///
    /// - Returns: The transfers that use the others.
    mutating func lose(_ addresses: Set<IPAddress>) -> [CurlTransfer] {
        forgetAbandoned()
        var users: [CurlTransfer] = []
        for (socket, connection) in open {
            guard let local = Sockets.local(socket), addresses.contains(local) else { continue }
            if let user = connection.user { users.append(user) } else { Sockets.shutDown(socket) }
        }
        return users
    }

    private mutating func reset(_ isMeant: (Connection) -> Bool) {
        forgetAbandoned()
        for (socket, connection) in open where isMeant(connection) {
            Sockets.resetOnClose(socket)
            open[socket]?.isReset = true
            // Before TLS adds its close notification to the waiting bytes.
            if let user = connection.user { observe(user) }
        }
    }
}

extension SocketCounts {
    /// Assumed counters of a connection attempt that ended unnoticed: the SYNs that Linux sends in this time, after 0,
    /// 1, 3, 7 … seconds (`tcp_syn_retries`, tcp(7)), with the longer header of IPv6.
    init(attemptOf time: Duration) {
        let seconds = UInt64(clamping: max(0, time.components.seconds)) + 1
        let count = Int64(UInt64.bitWidth - seconds.leadingZeroBitCount)
        self.init(
            sent: 0, received: 0, segments: count, unsent: 0, queued: 0, unanswered: 0, largest: 1, header: 60)
    }

    /// The way in which a connection will end.
    package enum End: Sendable { case orderly, reset }

    /// The same with longer headers, by the bytes that are added to each packet.
    func adding(_ overhead: Int64) -> SocketCounts {
        var counts = self
        counts.header += overhead
        return counts
    }

    /// The bytes that it sends when it closes, with TLS, and the longer headers of its first segment.
    var closingBytes: Int64 { 20 + 4 * header + 64 + Self.lastAckOptions }

    /// The last acknowledgements contain 12 bytes for segments that came twice (RFC 2883, section 4).
    private static let lastAckOptions: Int64 = 3 * 12

    /// Bytes of IP packets that this connection has sent, and those that it will send at its end. The latter are
    /// charged up front, because no transfer may be left to charge then.
    ///
    /// A segment has the kernel's header: 20 bytes of IPv4 or 40 of IPv6, 20 of TCP, 12 of time stamps where both ends
    /// agreed. For each connection these are added: 20 bytes for the options of its SYN, and three segments without
    /// payload that may still be sent (the last acknowledgement, FIN, the acknowledgement of the peer's FIN), with TLS
    /// one more for its own close notification. Selective acknowledgements, which a sender of files seldom sends, are
    /// not counted: the three segments may be such.
    ///
    /// - Parameter end: Orderly: the waiting bytes are still sent. By a reset they are discarded; but the kernel
    ///   answers every segment that still arrives for a closed connection with another reset, without options (RFC
    ///   9293, 3.5.2): at most one acknowledgement for each sent segment, and two more where the peer's window moves.
    ///   Between the count and the close, timers of the kernel may send some waiting segments, or repeat one: at most
    ///   three at the slowest pace.
    func onWire(isSecure: Bool, at end: End? = nil) -> Int64 {
        let total = sent + segments * header + 20 + 3 * header + Self.lastAckOptions + (isSecure ? header + 64 : 0)
        switch end {
        case .orderly where unsent > 0:
            return total + unsent + (unsent + largest - 1) / max(1, largest) * header
        case .reset:
            let late = unsent + unanswered > 0 ? 3 * (largest + header) : 0
            return total + (unanswered + 2) * header + late
        default: return total
        }
    }
}
