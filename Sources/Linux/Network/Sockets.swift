internal import CLinux
package import Core
internal import Glibc

/// Options and counters of sockets that another library opened (libcurl). Failures are ignored: a socket without an
/// option still carries bytes.
package enum Sockets {
    /// Prepares a socket for sending files: few bytes wait in it unsent, so that a stop takes effect, and a vanished
    /// peer is noticed.
    ///
    /// A full socket was seen to deliver 4.3 MB after it was closed; with at most 128 KiB unsent it is 0.13 MB. There
    /// is no fixed `SO_SNDBUF`, which would limit the speed on long paths.
    ///
    /// - Parameter timeout: How long sent bytes may stay unacknowledged (`TCP_USER_TIMEOUT`, tcp(7)).
    package static func prepareForUpload(_ socket: CInt, timeout: Duration) {
        let milliseconds = UInt32(clamping: timeout.components.seconds * 1000)
        sluice_prepare_upload_socket(socket, milliseconds)
    }

    /// Makes the next close discard the unsent bytes and reset the connection (`SO_LINGER` 0, socket(7)). Until then
    /// the socket receives nothing any more, so no acknowledgement can make it send more: the figures of ``counts(_:)``
    /// stay true.
    package static func resetOnClose(_ socket: CInt) { sluice_reset_on_close(socket) }

    /// Whether the kernel checks from time to time that the peer still exists, and ends the connection when it does
    /// not.
    package static func keepAlive(_ socket: CInt, _ isOn: Bool) { sluice_keep_alive(socket, isOn ? 1 : 0) }

    /// Marks the packets of the socket for routers (`IP_TOS`, ip(7); `IPV6_TCLASS`, ipv6(7)): the code point is in the upper
    /// six bits. `nil` removes the mark.
    package static func mark(_ socket: CInt, _ trafficClass: TrafficClass?) {
        sluice_mark_packets(socket, CInt(trafficClass?.codePoint ?? 0) << 2)
    }

    /// Whether the peer has closed its end, or the connection is broken.
    package static func isHungUp(_ socket: CInt) -> Bool {
        // POLLRDHUP of poll(2), which Swift's Glibc module does not show.
        var status = pollfd(fd: socket, events: 0x2000, revents: 0)
        return poll(&status, 1, 0) > 0 && status.revents != 0
    }

    /// Binds the socket to `interface`: nothing leaves it by any other (`SO_BINDTODEVICE`, socket(7); needs no
    /// privilege since Linux 5.7).
    ///
    /// - Throws: `ENODEV` when there is no such interface.
    package static func bind(_ socket: CInt, to interface: String) throws(SystemError) {
        try systemCall("setsockopt", on: "SO_BINDTODEVICE \(interface)") { sluice_bind_to_interface(socket, interface) }
    }

    /// `nil` for a socket that is not TCP, and where the kernel does not count bytes (before 4.19).
    package static func counts(_ socket: CInt) -> SocketCounts? {
        var counts = sluice_tcp_counts()
        guard sluice_tcp_counts(socket, &counts) == 0 else { return nil }
        return SocketCounts(
            sent: counts.sent, received: counts.received, segments: counts.segments, unsent: counts.unsent,
            queued: counts.queued, unanswered: counts.unanswered, largest: counts.largest, header: counts.header,
            isOver: counts.over != 0, incoming: counts.incoming, gaps: counts.gaps, isGapped: counts.gapped != 0,
            selective: counts.selective, perTrip: counts.per_trip,
            acknowledged: counts.acknowledged)
    }

    /// `nil` for a socket that is not TCP, or not connected.
    package static func ends(_ socket: CInt) -> SocketEnds? {
        var ends = sluice_tcp_ends()
        guard sluice_tcp_ends(socket, &ends) == 0 else { return nil }
        return SocketEnds(
            local: text(ends.local), localPort: Int(ends.local_port), peer: text(ends.peer),
            peerPort: Int(ends.peer_port))
    }

    /// The address of this end, known as soon as it is being connected; `nil` if there is none.
    package static func local(_ socket: CInt) -> IPAddress? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { into in
            guard let start = into.baseAddress, sluice_tcp_local(socket, start) == 0 else { return nil }
            return IPAddress(String(cString: start))
        }
    }

    /// Identifies a socket among all that this machine has had since it started (`SO_COOKIE`, socket(7)); `nil` if it
    /// is no socket, and before Linux 4.12.
    package static func cookie(_ socket: CInt) -> UInt64? {
        var cookie: UInt64 = 0
        return sluice_socket_cookie(socket, &cookie) == 0 ? cookie : nil
    }

    /// Shuts the socket down, so that its user finds it broken.
    package static func shutDown(_ socket: CInt) { _ = sluice_shut_down(socket) }

    /// The text in a C array, which Swift represents as a tuple.
    private static func text<Characters>(_ characters: Characters) -> String {
        withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

/// The kernel's counters of a TCP connection (`TCP_INFO`, tcp(7)).
package struct SocketCounts: Hashable, Sendable {
    /// Sent bytes of payload, including retransmissions.
    package var sent: Int64
    /// Received bytes of payload, each counted once.
    package var received: Int64
    /// Sent segments, with any content.
    package var segments: Int64
    /// Bytes in the buffer that have not left.
    package var unsent: Int64
    /// Bytes in the buffer that the peer's kernel has not acknowledged: ``unsent``, and those in flight.
    package var queued: Int64
    /// Sent segments that are not acknowledged.
    package var unanswered: Int64
    /// Payload of a full segment.
    package var largest: Int64
    /// Size of a segment's IP and TCP header.
    package var header: Int64
    /// The connection is over, for example by a reset: nothing leaves the buffer any more.
    package var isOver: Bool
    /// Received segments, with any content.
    package var incoming: Int64
    /// Grows whenever the peer may have reported gaps in the received bytes: its acknowledgements are longer then.
    package var gaps: Int64
    /// The peer reports gaps now.
    package var isGapped: Bool
    /// The most bytes that an acknowledgement with gaps has in addition to ``header``.
    package var selective: Int64
    /// Payload bytes that were lately received within one round trip.
    package var perTrip: Int64
    /// Bytes of payload that the peer has acknowledged.
    package var acknowledged: Int64
    /// Whether TCP has passed some bytes down more than once: after a loss, or because a queue of this machine was
    /// full, which the kernel does not count as a retransmission.
    package var hasRepeated: Bool { sent > acknowledged + queued - unsent }

    package init(
        sent: Int64, received: Int64, segments: Int64, unsent: Int64, queued: Int64, unanswered: Int64, largest: Int64,
        header: Int64, isOver: Bool = false, incoming: Int64 = 0, gaps: Int64 = 0, isGapped: Bool = false,
        selective: Int64 = 28, perTrip: Int64 = 0, acknowledged: Int64 = 0
    ) {
        self.sent = sent
        self.received = received
        self.segments = segments
        self.unsent = unsent
        self.queued = queued
        self.isOver = isOver
        self.unanswered = unanswered
        self.largest = largest
        self.header = header
        self.incoming = incoming
        self.gaps = gaps
        self.isGapped = isGapped
        self.selective = selective
        self.perTrip = perTrip
        self.acknowledged = acknowledged
    }
}

/// The two ends of a TCP connection, which identify it on this machine.
package struct SocketEnds: Hashable, Sendable {
    package var local: String
    package var localPort: Int
    package var peer: String
    package var peerPort: Int

    package init(local: String, localPort: Int, peer: String, peerPort: Int) {
        self.local = local
        self.localPort = localPort
        self.peer = peer
        self.peerPort = peerPort
    }
}
