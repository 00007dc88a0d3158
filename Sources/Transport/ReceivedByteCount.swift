package import Core
package import Linux

/// The bytes that one connection has received, and those that were charged.
struct ReceivedByteCount {
    private var charged: Int64 = 0
    private var counts: SocketCounts?
    /// Additional header bytes of acknowledgements that reported gaps.
    private var selective: Int64 = 0

    /// Bytes of IP packets that came since the last call, and those that will come at its end, when no transfer may be
    /// left to charge.
    ///
    /// - Parameters:
    ///   - end: How the connection is about to end; `nil` when it is not.
    ///   - isBrokenOff: In the middle of an answer, while more of it is in flight.
    mutating func newBytes(
        _ now: SocketCounts, isSecure: Bool, at end: SocketCounts.End? = nil, isBrokenOff: Bool = false
    ) -> Int64 {
        if now.isGapped || counts?.isGapped == true || now.gaps != counts?.gaps ?? 0 {
            selective += max(0, now.incoming - (counts?.incoming ?? 0)) * now.selective
        }
        counts = now
        let total = now.arrived(isSecure: isSecure, at: end, isBrokenOff: isBrokenOff) + selective
        guard total > charged else { return 0 }
        defer { charged = total }
        return total - charged
    }
}

extension SocketCounts {
    /// Bytes of IP packets that this connection has received, and may still receive at its end.
    ///
    /// Headers are as long as those that are sent. For each connection these are added: 20 bytes for the options of the
    /// peer's SYN, and three segments without payload that come when it closes (acknowledgements, FIN), with TLS one
    /// more for the peer's close notification. Segments in flight at the close get at most one acknowledgement each. Of
    /// an interrupted answer as many bytes come as in one round trip before. A segment that the peer sends again
    /// although it had arrived is counted with its header alone: the kernel does not report its length.
    func arrived(isSecure: Bool, at end: End?, isBrokenOff: Bool) -> Int64 {
        // The name has an address, and no host answers there.
        guard incoming > 0 || end != nil else { return 0 }
        var segments = 3 + incoming
        if end != nil { segments += unanswered + (unsent + largest - 1) / max(1, largest) }
        let closingBytes = 20 + (isSecure ? header + 64 : 0)
        let selective = end == .reset ? self.selective * (unanswered + 3) : 0
        return received + segments * header + closingBytes + selective + (end != nil && isBrokenOff ? perTrip : 0)
    }
}

/// The bytes of one TCP connection whose payload this program does not see, and those that were charged.
///
/// It counts as for requests: packets with their headers, in both directions, retransmissions included, and in advance
/// the packets that will close the connection.
package struct ConnectionCharge: Sendable {
    /// Bytes that are added to each packet that leaves this machine; `nil` where no packet leaves it.
    private let overhead: Int64?
    private var sent: Int64 = 0
    private var arrived = ReceivedByteCount()

    /// - Parameters:
    ///   - address: The address that it leads to.
    ///   - interface: The interface to which it is bound; `nil` for none.
    package init(to address: IPAddress, port: UInt16, over interface: String?) {
        do throws(SystemError) {
            overhead = try Encapsulation.overhead(to: address, port: port, over: interface)
        } catch {
            // If the kernel cannot be queried, the largest overhead is assumed.
            overhead = Encapsulation.maxOverhead
        }
    }

    /// The bytes since the last call.
    ///
    /// - Parameters:
    ///   - counts: The kernel's counters of the socket.
    ///   - end: The way in which it is about to be closed; `nil` while it stays open.
    package mutating func charge(_ counts: SocketCounts, at end: SocketCounts.End? = nil) -> Spending {
        let counts = counts.adding(overhead ?? 0)
        let total = counts.onWire(isSecure: false, at: end)
        let more = max(0, total - sent)
        sent += more
        let received = arrived.newBytes(counts, isSecure: false, at: end, isBrokenOff: end == .reset)
        return Spending(bytes: more, received: received)
    }
}
