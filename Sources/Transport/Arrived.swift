internal import Linux

/// What has come in by one connection, and was charged.
struct Arrived {
    private var charged: Int64 = 0
    private var counts: SocketCounts?
    /// By which headers were longer, since acknowledgements told of gaps.
    private var selective: Int64 = 0

    /// Bytes of IP packets that came since the last time, and those that will come at its end, when nobody is there to pay.
    ///
    /// - Parameters:
    ///   - end: How the connection is about to end; `nil` when it is not.
    ///   - isBrokenOff: In the middle of an answer, of which more is on its way.
    mutating func more(
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
    /// Bytes of IP packets that have come in by this connection, and that may still come at its end.
    ///
    /// Headers are as long as those that leave. Added for each connection: 20 for the options of the peer's SYN, and three
    /// segments without payload that come when it closes (acknowledgements, FIN), with TLS one more for the peer's own farewell.
    /// What is on its way when it closes is acknowledged segment by segment at the most; and of an answer that is broken off as much
    /// comes as in one round trip before. What the peer sends again though it had come is counted with its header alone: the kernel
    /// does not tell how long it was.
    func arrived(isSecure: Bool, at end: End?, isBrokenOff: Bool) -> Int64 {
        // The name has an address, and nobody is there.
        guard incoming > 0 || end != nil else { return 0 }
        var segments = 3 + incoming
        if end != nil { segments += unanswered + (unsent + largest - 1) / max(1, largest) }
        let farewell = 20 + (isSecure ? header + 64 : 0)
        let selective = end == .reset ? self.selective * (unanswered + 3) : 0
        return received + segments * header + farewell + selective + (end != nil && isBrokenOff ? perTrip : 0)
    }
}
