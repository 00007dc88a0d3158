internal import Core

/// Counts of the bytes that leave by a road or a tunnel: a program's own bytes, and the kernel's packets besides.
extension TwoRoads {
    /// The counters that ``counts()`` returns.
    package struct Counts: Sendable, Hashable {
        private var values: [String: Int64]
        fileprivate init(_ values: [String: Int64]) { self.values = values }

        private subscript(_ name: String) -> Int64 { values[name] ?? 0 }

        /// Bytes of TCP with IP headers, including resets, that have left by `wan` or `lte`. Packets in a tunnel count
        /// with the tunnel's headers.
        ///
        /// The other end of the cable counts them. The packet filter on this side sees a packet before the kernel
        /// compares its length with the path: it also counts a packet that the kernel then rejects, because it is too
        /// long for a tunnel.
        package func left(by name: String) -> Int64 {
            self["\(name)-left"] + self["\(name)-tunneled"] + self["\(name)-tails"]
        }
        /// The headers that the tunnel has put before the packets of TCP among them.
        package func headers(by name: String, of tunnel: Tunnel) -> Int64 {
            self["\(name)-tunneled-packets"] * tunnel.header
        }
        /// Bytes of TCP with IP headers, without resets, that were handed down to ``tunnel``, which may reject some.
        package var handedToTunnel: Int64 { self[TwoRoads.tunnel] }
        /// Bytes of TCP that were handed down to ``tunnel`` over `wan` or `lte` and did not reach its other end, with the
        /// tunnel's headers: TCP counts them as sent, also those that the tunnel dropped because its own link was down.
        package func lostInTunnel(over name: String, of tunnel: Tunnel) -> Int64 {
            let handed = handedToTunnel + self["\(TwoRoads.tunnel)-packets"] * tunnel.header
            return max(0, handed - self["\(name)-tunneled"] - self["\(name)-tails"])
        }
        /// Packets of TCP that carry any bytes of a program, in bytes with headers.
        ///
        /// - Parameter ofTheLiving: Without those of sockets whose process has ended: the kernel continues to send data
        ///   that a killed program has written.
        package func payload(_ name: String, ofTheLiving: Bool = false) -> Int64 {
            self[ofTheLiving ? "\(name)-owned" : "\(name)-payload"]
        }
        /// Connections that were begun, and repeated SYN packets.
        package func calls(_ name: String) -> Int64 { self["\(name)-calls"] }
    }

    /// The name of the tunnel's interface in both networks.
    package static let tunnel = "tun9"

    /// Kinds of tunnels; the kernels of some machines support few of them. WireGuard is not among them: it needs a
    /// program to give it keys.
    package enum Tunnel: String, Sendable, CaseIterable {
        case vxlan, gre, ipip

        /// Bytes around a packet: IP, and UDP, VXLAN and Ethernet (RFC 7348), or GRE (RFC 2784).
        package var header: Int64 {
            switch self {
            case .vxlan: 20 + 8 + 8 + 14
            case .gre: 20 + 4
            case .ipip: 20
            }
        }
    }

    /// The kinds that this kernel supports.
    package static let tunnels: [Tunnel] = {
        guard isPossible, let network = try? NetworkNamespace() else { return [] }
        return Tunnel.allCases.filter { kind in
            let words = words(for: kind, from: "127.0.0.1", to: "127.0.0.2")
            return (try? network.run(words)) != nil && (try? network.ip("link", "del", tunnel)) != nil
        }
    }()

    private static func words(for kind: Tunnel, from local: String, to remote: String) -> [String] {
        ["link", "add", tunnel, "type", kind.rawValue] + (kind == .vxlan ? ["id", "5", "dstport", "4789"] : []) + [
            "local", local, "remote", remote,
        ]
    }

    /// Adds a tunnel to the server over `wan` or `lte`, at 10.9.0.2 to 10.9.0.1; no route leads into it yet.
    package func addTunnel(_ kind: Tunnel, over name: String) throws {
        let net = name == "wan" ? "10.1.0" : "10.2.0"
        for (network, here, there) in [(box, 2, 1), (site, 1, 2)] {
            try network.run(Self.words(for: kind, from: "\(net).\(here)", to: "\(net).\(there)"))
            try network.ip("link", "set", Self.tunnel, "gso_max_segs", "1")
            try network.ip("addr", "add", "10.9.0.\(here)/24", "dev", Self.tunnel)
            try network.ip("link", "set", Self.tunnel, "up")
        }
    }

    /// Also counts the values of ``Counts``. A packet has payload when it is longer than its headers: five words of IP,
    /// and five to fifteen words of TCP.
    package func countPayload() throws {
        var lines: [String] = []
        func add(_ what: String, _ words: String) { lines.append("add \(what) inet witness \(words)") }
        for (name, link) in [("wan", "wan0"), ("lte", "lte0"), (Self.tunnel, Self.tunnel)] {
            var counters = ["\(name)-payload", "\(name)-owned", "\(name)-calls"]
            if name == Self.tunnel { counters.append(name) }
            for counter in counters { add("counter", counter) }
            add("chain", "\(name)-long")
            for words in 5...15 {
                add("rule", "\(name)-long tcp doff \(words) ip length <= \(20 + 4 * words) return")
            }
            add("rule", "\(name)-long counter name \(name)-payload")
            // A socket without a process has no owner, and so none of these.
            add("rule", "\(name)-long meta skuid 0-4294967294 counter name \(name)-owned")
            let ours = "out oifname \(link) ip protocol tcp"
            add("rule", "\(ours) tcp flags & (syn | ack) == syn counter name \(name)-calls")
            add("rule", "\(ours) jump \(name)-long")
            if name == Self.tunnel { add("rule", "\(ours) tcp flags & (rst | syn | fin) != rst counter name \(name)") }
        }
        try nft(lines.joined(separator: "\n"))
        try countAtOtherEnd()
    }

    /// Counts the packets that the server's end of each cable receives, before anything drops them or joins their
    /// fragments.
    private func countAtOtherEnd() throws {
        var lines = ["add table inet witness"]
        func add(_ what: String, _ words: String) { lines.append("add \(what) inet witness \(words)") }
        add("chain", "arrived { type filter hook prerouting priority -450 ; }")
        // The packet in the tunnel is IPv4 and TCP; its place follows from the lengths of the headers before it, in
        // bits after the outer IP header.
        let inside = [
            "udp dport 4789 @th,224,16 0x0800 @th,312,8 6", "ip protocol 47 @th,16,16 0x0800 @th,104,8 6",
            "ip protocol 4 @th,72,8 6",
        ]
        for name in ["wan", "lte"] {
            for counter in ["left", "tunneled", "tails"] { add("counter", "\(name)-\(counter)") }
            add("rule", "arrived iifname \(name)1 ip protocol tcp counter name \(name)-left")
            // Only packets of a tunnel may be divided: TCP forbids it for its own.
            add("rule", "arrived iifname \(name)1 ip frag-off & 0x1fff != 0 counter name \(name)-tails")
            for packet in inside { add("rule", "arrived iifname \(name)1 \(packet) counter name \(name)-tunneled") }
        }
        try nft(in: site, lines.joined(separator: "\n"))
    }

    /// All counters at one moment, after ``countPayload()``.
    package func counts() throws -> Counts {
        let text = try [box, site].map { try nft(in: $0, "list", "counters", "table", "inet", "witness") }.joined()
        // counter wan { packets 3 bytes 180 }
        let words = text.split { " \n\t{}".contains($0) }
        var values: [String: Int64] = [:]
        for (index, word) in words.enumerated() where word == "counter" && index + 5 < words.count {
            guard words[index + 4] == "bytes", let count = Int64(words[index + 5]) else { throw Unread(text: text) }
            let name = String(words[index + 1])
            // Calls are counted in packets, the others in bytes.
            values[name] = name.hasSuffix("-calls") ? Int64(words[index + 3]) : count
            values["\(name)-packets"] = Int64(words[index + 3])
        }
        guard values.count > 6 else { throw Unread(text: text) }
        return Counts(values)
    }
}
