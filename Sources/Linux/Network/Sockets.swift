internal import CLinux
package import Core
internal import Glibc

/// What is asked of sockets that somebody else opened (libcurl). Nothing here fails loudly: each is a wish, and a
/// socket that cannot take it still carries bytes.
package enum Sockets {
    /// For a socket that will send files: little waits in it unsent, so that a stop stops, and a vanished peer is noticed.
    ///
    /// A full socket was seen to deliver 4.3 MB after it was closed; with 128 KiB not yet sent it is 0.13 MB. No fixed
    /// `SO_SNDBUF`: it would cap long paths.
    ///
    /// - Parameter patience: For how long sent bytes may stay without acknowledgement (`TCP_USER_TIMEOUT`, tcp(7)).
    package static func prepareForUpload(_ socket: CInt, patience: Duration) {
        let milliseconds = UInt32(clamping: patience.components.seconds * 1000)
        sluice_prepare_upload_socket(socket, milliseconds)
    }

    /// The next close throws away what was not sent and resets the connection (`SO_LINGER` 0, socket(7)). Until then nothing
    /// comes in any more, and so nothing leaves that what comes in would have made room for: what ``counts(_:)`` says
    /// stays true.
    package static func resetOnClose(_ socket: CInt) { sluice_reset_on_close(socket) }

    /// Whether the kernel looks now and then if the peer is still there, and ends the connection when it is not.
    package static func keepAlive(_ socket: CInt, _ isOn: Bool) { sluice_keep_alive(socket, isOn ? 1 : 0) }

    /// Nothing leaves this socket but by `interface` (`SO_BINDTODEVICE`, socket(7); needs no privilege since Linux 5.7).
    ///
    /// - Throws: `ENODEV` when there is no such interface.
    package static func bind(_ socket: CInt, to interface: String) throws(SystemError) {
        try systemCall("setsockopt", on: "SO_BINDTODEVICE \(interface)") { sluice_bind_to_interface(socket, interface) }
    }

    /// `nil` for what is no TCP, and where the kernel does not count bytes (before 4.19).
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

    /// `nil` for what is no TCP, or not connected.
    package static func ends(_ socket: CInt) -> SocketEnds? {
        var ends = sluice_tcp_ends()
        guard sluice_tcp_ends(socket, &ends) == 0 else { return nil }
        return SocketEnds(
            local: text(ends.local), localPort: Int(ends.local_port), peer: text(ends.peer),
            peerPort: Int(ends.peer_port))
    }

    /// The address of this end, known as soon as it is being connected; `nil` for what has none.
    package static func local(_ socket: CInt) -> IPAddress? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { into in
            guard let start = into.baseAddress, sluice_tcp_local(socket, start) == 0 else { return nil }
            return IPAddress(String(cString: start))
        }
    }

    /// Tells a socket from every other that this machine has had since it started (`SO_COOKIE`, socket(7)); `nil` for what is no
    /// socket, and before Linux 4.12.
    package static func cookie(_ socket: CInt) -> UInt64? {
        var cookie: UInt64 = 0
        return sluice_socket_cookie(socket, &cookie) == 0 ? cookie : nil
    }

    /// Whoever uses it finds it broken.
    package static func shutDown(_ socket: CInt) { _ = sluice_shut_down(socket) }

    /// The text in one of C's arrays, which Swift sees as a tuple.
    private static func text<Characters>(_ characters: Characters) -> String {
        withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

/// What the kernel has counted for a TCP connection so far (`TCP_INFO`, tcp(7)).
package struct SocketCounts: Hashable, Sendable {
    /// Bytes of payload that left, what was sent again included.
    package var sent: Int64
    /// Bytes of payload that came, each of them once.
    package var received: Int64
    /// Segments that left, whatever was in them.
    package var segments: Int64
    /// Bytes in the buffer that have not left.
    package var unsent: Int64
    /// Bytes in the buffer that the peer's kernel has not acknowledged: ``unsent``, and what is on its way.
    package var queued: Int64
    /// Segments that left and are not acknowledged.
    package var unanswered: Int64
    /// Payload of a full segment.
    package var largest: Int64
    /// IP and TCP header of a segment.
    package var header: Int64
    /// The connection is over, by a reset for instance: nothing leaves the buffer any more.
    package var isOver: Bool
    /// Segments that came, whatever was in them.
    package var incoming: Int64
    /// Grows whenever the peer may have told of gaps in what it got: its acknowledgements are longer then.
    package var gaps: Int64
    /// It tells of some now.
    package var isGapped: Bool
    /// What an acknowledgement that tells of gaps has beyond ``header``, at the most.
    package var selective: Int64
    /// Bytes of payload that came within one round trip of late.
    package var perTrip: Int64
    /// Bytes of payload that the peer has acknowledged.
    package var acknowledged: Int64
    /// TCP has handed down some bytes more than once: after a loss, or because a queue of this machine was full, which the kernel counts
    /// as no retransmission.
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

/// The two ends of a TCP connection: what tells it from every other one of this machine.
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
