package import Core

/// Limits on the connections of a server, for clients that are not known and for each address.
package struct ConnectionLimits: Hashable, Sendable {
    /// Maximum number of open connections. At most half of them may have no request of a known client; of those, the
    /// oldest is closed for a new one.
    package var connections: Int
    /// Maximum number of connections of one address (for IPv6 of a /64 network, which belongs to one customer).
    /// Loopback, a Unix socket and `trustedProxies` may use all.
    package var perAddress: Int
    /// Time limit for a whole head, counted from the connect; after a reply, from the end of ``idle``. A connection
    /// whose requests are all refused is closed after it, too, and each request of a client that is not known has it.
    package var headTime: Duration
    /// An open connection without traffic is closed after this time.
    package var idle: Duration
    /// Proxies whose `X-Forwarded-For` is trusted. The address in it counts instead of theirs: it may have as many
    /// running requests as another has connections, and it is named in the log.
    package var trustedProxies: [IPSubnet]

    package init(
        connections: Int = 512, perAddress: Int? = nil, headTime: Duration = .seconds(20),
        idle: Duration = .seconds(60),
        trustedProxies: [IPSubnet] = []
    ) {
        self.connections = max(2, connections)
        self.perAddress = max(1, perAddress ?? self.connections / 4)
        self.headTime = headTime
        self.idle = idle
        self.trustedProxies = trustedProxies
    }

    /// The number of connections that fit into this many descriptors, for a server that opens a file for each of them.
    package static func connections(openFiles: UInt64) -> Int { min(512, max(2, (Int(clamping: openFiles) - 64) / 2)) }

    func isTrusted(_ address: IPAddress) -> Bool { trustedProxies.contains { $0.contains(address) } }

    /// The sender of a request: the peer, or, where that is a trusted proxy, the last address that it or another
    /// trusted one names.
    ///
    /// Each proxy appends the address that it saw; entries before the first untrusted address were written by the
    /// client itself.
    func sender(peer: IPAddress?, forwardedFor: String?) -> IPAddress? {
        guard var sender = peer else { return nil }
        for entry in (forwardedFor ?? "").split(separator: ",").reversed() {
            guard isTrusted(sender), let address = Self.address(entry) else { break }
            sender = address
        }
        return sender
    }

    /// Some proxies append a port to the address, and put brackets around one with colons.
    private static func address(_ entry: Substring) -> IPAddress? {
        let text = entry.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }
        if let address = IPAddress(String(text)) { return address }
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            return IPAddress(String(text[..<end].dropFirst()))
        }
        return text.lastIndex(of: ":").flatMap { IPAddress(String(text[..<$0])) }
    }
}
