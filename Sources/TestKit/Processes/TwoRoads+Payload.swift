internal import Core

/// Counts of the bytes that leave by a road or a tunnel: a program's own bytes, and the kernel's packets besides.
extension TwoRoads {
    /// The counters that ``counts()`` returns.
    package struct Counts: Sendable, Hashable {
        private var values: [String: Int64]
        fileprivate init(_ values: [String: Int64]) { self.values = values }

        private subscript(_ name: String) -> Int64 { values[name] ?? 0 }

        /// Bytes of TCP with IP headers, including resets, that have gone into `wan0`, `lte0` or ``tunnel``.
        package func all(_ name: String) -> Int64 { self[name] + self["\(name)-resets"] }
        /// The same on the link that carries a tunnel, with the tunnel's headers on each packet.
        package func outside(_ name: String, _ tunnel: Tunnel?) -> Int64 {
            let packets = self["\(name)-packets"] + self["\(name)-resets-packets"]
            return all(name) + packets * (tunnel?.header ?? 0)
        }
        /// Packets of TCP that carry any bytes of a program, in bytes with headers.
        ///
        /// - Parameter ofTheLiving: Without those of sockets whose process has ended: the kernel continues to send data
        ///   that a killed program has written.
        package func payload(_ name: String, ofTheLiving: Bool = false) -> Int64 {
            self[ofTheLiving ? "\(name)-owned" : "\(name)-payload"]
        }
        /// Packets of the tunnel, with the headers that it puts before those of TCP, that have left by `wan` or `lte`.
        package func carried(_ name: String) -> Int64 { self["\(name)-carried"] }
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
            var counters = ["\(name)-payload", "\(name)-owned", "\(name)-calls", "\(name)-carried"]
            if name == Self.tunnel { counters += [name, "\(name)-resets"] }
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
            if name == Self.tunnel {
                add("rule", "\(ours) tcp flags & (rst | syn | fin) == rst counter name \(name)-resets")
                add("rule", "\(ours) tcp flags & (rst | syn | fin) != rst counter name \(name)")
            } else {
                add("rule", "out oifname \(link) udp dport 4789 counter name \(name)-carried")
                add("rule", "out oifname \(link) ip protocol { 4, 47 } counter name \(name)-carried")
            }
        }
        try nft(lines.joined(separator: "\n"))
    }

    /// All counters at one moment, after ``countPayload()``.
    package func counts() throws -> Counts {
        let text = try nft("list", "counters", "table", "inet", "witness")
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
