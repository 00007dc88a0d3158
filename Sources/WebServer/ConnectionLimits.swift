package import Core

/// What those who connect may have of a server before anybody knows who they are, and each of them altogether.
package struct ConnectionLimits: Hashable, Sendable {
    /// How many may be open at once. At most half of them may be without a request that was let in; of those the one that
    /// has been there for longest makes room.
    package var connections: Int
    /// How many of them one address may have (of IPv6 one network of 64 bits, which is one customer). Loopback, a Unix
    /// socket and `trustedProxies` may have all.
    package var perAddress: Int
    /// The time for a whole head, counted from the connect; behind a reply, from the end of ``idle``. A connection whose
    /// requests are all refused is closed after it, too.
    package var headTime: Duration
    /// An open connection on which nothing moves is closed after this time.
    package var idle: Duration
    /// Proxies whose `X-Forwarded-For` is believed. The address in it counts instead of theirs: it may have as many
    /// requests under way as another has connections, and it is the one that is named in the log.
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

    /// How many connections of a server that opens a file for each of them fit into so many descriptors.
    package static func connections(openFiles: UInt64) -> Int { min(512, max(2, (Int(clamping: openFiles) - 64) / 2)) }

    func isTrusted(_ address: IPAddress) -> Bool { trustedProxies.contains { $0.contains(address) } }

    /// Whom a request is from: the peer, or, where that is a trusted proxy, the last address that it or another one names.
    ///
    /// Each proxy appends the address that it saw; what stands before the first that is not trusted was written by the
    /// client itself.
    func sender(peer: IPAddress?, forwardedFor: String?) -> IPAddress? {
        guard var sender = peer else { return nil }
        for entry in (forwardedFor ?? "").split(separator: ",").reversed() {
            guard isTrusted(sender), let address = Self.address(entry) else { break }
            sender = address
        }
        return sender
    }

    /// Some proxies write a port behind the address, and brackets around one with colons.
    private static func address(_ entry: Substring) -> IPAddress? {
        let text = entry.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }
        if let address = IPAddress(String(text)) { return address }
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            return IPAddress(String(text[..<end].dropFirst()))
        }
        return text.lastIndex(of: ":").flatMap { IPAddress(String(text[..<$0])) }
    }
}
