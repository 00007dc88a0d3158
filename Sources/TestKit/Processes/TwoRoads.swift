internal import Core
internal import Linux

/// A machine with two routes to one server: `wan0`, which the kernel prefers, and `lte0`. The kernel's packet filter
/// counts the packets of both, independently of both sides of a test.
package final class TwoRoads: Sendable {
    /// The network of the machine, and that of the server.
    package let box: NetworkNamespace
    package let site: NetworkNamespace
    /// The server's address, which both routes lead to.
    package static let server = "203.0.113.9"

    /// Whether this process may have networks of its own, and the program that counts in them is installed.
    package static let isPossible: Bool = {
        guard NetworkNamespace.isPossible else { return false }
        do {
            _ = try Tools.debian("nftables")
            return true
        } catch { return false }
    }()

    /// The reason that a test which needs them gives when it is skipped.
    package static let need =
        "networks of its own, counted, need root, ip (package iproute2) and apt-get: sudo make test"

    private let tools: FilePath
    private let folder = TemporaryFolder()

    package init() throws {
        (box, site) = (try NetworkNamespace(), try NetworkNamespace())
        tools = try Tools.debian("nftables")
        for network in [box, site] { try network.ip("link", "set", "lo", "up") }
        for (name, net) in [("wan", "10.1.0"), ("lte", "10.2.0")] {
            try box.addCable("\(name)0", to: site, "\(name)1")
            // Packets as they would be on a wire, each with its headers, and not bundles of them.
            try box.ip("link", "set", "\(name)0", "gso_max_segs", "1")
            try site.ip("link", "set", "\(name)1", "gso_max_segs", "1")
            try box.ip("addr", "add", "\(net).2/24", "dev", "\(name)0")
            try site.ip("addr", "add", "\(net).1/24", "dev", "\(name)1")
        }
        try site.ip("addr", "add", "\(Self.server)/32", "dev", "lo")
        try addRoute("wan", metric: 10)
        try addRoute("lte", metric: 100)
        try nft("add", "table", "inet", "witness")
        try nft("add", "chain", "inet", "witness", "out", "{ type filter hook output priority 0 ; }")
        try nft("add", "chain", "inet", "witness", "in", "{ type filter hook input priority 0 ; }")
        for name in ["wan", "lte"] {
            try nft("add", "counter", "inet", "witness", "\(name)-in")
            try nft(
                "add", "rule", "inet", "witness", "in", "iifname", "\(name)0", "meta", "l4proto", "tcp", "counter",
                "name", "\(name)-in")
            for counter in [name, "\(name)-resets"] { try nft("add", "counter", "inet", "witness", counter) }
            try nft("add", "counter", "inet", "witness", "\(name)-names")
            try nft(
                "add", "rule", "inet", "witness", "out", "oifname", "\(name)0", "udp", "dport", "53", "counter", "name",
                "\(name)-names")
            for (test, counter) in [("==", "\(name)-resets"), ("!=", name)] {
                try nft(
                    "add", "rule", "inet", "witness", "out", "oifname", "\(name)0", "meta", "l4proto", "tcp", "tcp",
                    "flags", "&", "(rst|syn|fin)", test, "rst", "counter", "name", counter)
            }
        }
    }

    /// Adds the default route over `wan0` or `lte0`.
    package func addRoute(_ name: String, metric: Int) throws {
        try box.ip(
            "route", "add", "default", "via", "10.\(name == "wan" ? 1 : 2).0.1", "dev", "\(name)0", "metric",
            "\(metric)")
    }

    package func removeRoute(_ name: String, metric: Int) throws {
        try box.ip("route", "del", "default", "dev", "\(name)0", "metric", "\(metric)")
    }

    /// Bytes of TCP, IP headers included, that have left the machine by `wan` or `lte`.
    ///
    /// Queries to DNS servers, over UDP, are `wan-names` and `lte-names`.
    ///
    /// Resets are not included; they are `wan-resets` and `lte-resets`. The kernel itself sends them in answer to
    /// packets for a socket that is gone, by whichever route is valid then, and no program is involved.
    package func bytes(by name: String) throws -> Int64 {
        let text = try nft("list", "counter", "inet", "witness", name)
        let words = text.split { $0 == " " || $0 == "\n" }
        guard let index = words.firstIndex(of: "bytes"), index + 1 < words.count, let count = Int64(words[index + 1])
        else {
            throw Unread(text: text)
        }
        return count
    }

    /// From now on, those of the bytes of `wan` in packets with this code point are `wan-marked` (`dscp` in nft(8)).
    package func countMarked(_ codePoint: String) throws {
        try nft("add", "counter", "inet", "witness", "wan-marked")
        try nft(
            "add", "rule", "inet", "witness", "out", "oifname", "wan0", "meta", "l4proto", "tcp", "tcp", "flags", "&",
            "(rst|syn|fin)", "!=", "rst", "ip", "dscp", codePoint, "counter", "name", "wan-marked")
    }

    /// Bytes of TCP, IP headers included, that have reached the machine by `wan` or `lte`.
    package func received(by name: String) throws -> Int64 { try bytes(by: "\(name)-in") }

    /// The most bytes, headers included, that have reached the machine again although they had arrived, as happens where
    /// an acknowledgement is late: 0 where the machine has noticed none (`TCPDSACKOldSent` in /proc/net/netstat), else all
    /// that the server has repeated (`RetransSegs` in /proc/net/snmp).
    package func repeatedBytes() throws -> Int64 {
        func counter(_ name: String, of group: String, in file: FilePath, _ place: NetworkNamespace) throws -> Int64 {
            let text = String(decoding: try place.run { try Files.read(file, limit: 1 << 20) }, as: UTF8.self)
            let lines = text.split(separator: "\n").filter { $0.hasPrefix(group) }
            guard lines.count == 2 else { throw Unread(text: text) }
            let (names, values) = (lines[0].split(separator: " "), lines[1].split(separator: " "))
            guard let index = names.firstIndex(where: { $0 == name }), index < values.count,
                let count = Int64(values[index])
            else { throw Unread(text: text) }
            return count
        }
        let noticed = try counter("TCPDSACKOldSent", of: "TcpExt:", in: "/proc/thread-self/net/netstat", box)
        if noticed == 0 { return 0 }
        // A segment of Ethernet with its headers.
        return try 1_500 * counter("RetransSegs", of: "Tcp:", in: "/proc/thread-self/net/snmp", site)
    }

    /// Makes the server repeat a segment only after three seconds without an acknowledgement. On a busy machine it would
    /// repeat many that had arrived.
    package func repeatLate() throws {
        let child = try site.start(
            "/bin/sh", ["-c", "echo 0 > /proc/sys/net/ipv4/tcp_early_retrans"], output: folder.path.appending("early"),
            errors: folder.path.appending("early.err"))
        let ending = child.wait()
        guard ending == .status(0) else { throw Child.Ended(how: ending, errors: try child.standardError()) }
        for (name, net) in [("wan", "10.1.0"), ("lte", "10.2.0")] {
            try site.ip(
                "route", "change", "\(net).0/24", "dev", "\(name)1", "proto", "kernel", "scope", "link", "src",
                "\(net).1", "rto_min", "3s")
        }
    }

    /// Makes acknowledgements on `wan` as slow as on a slow line: many are under way at any moment.
    package func slowReturn() throws {
        let child = try site.start(
            "/usr/sbin/tc",
            ["qdisc", "add", "dev", "wan1", "root", "tbf", "rate", "1mbit", "burst", "2k", "latency", "400ms"],
            output: folder.path.appending("tc"), errors: folder.path.appending("tc.err"))
        let ending = child.wait()
        guard ending == .status(0) else { throw Child.Ended(how: ending, errors: try child.standardError()) }
    }

    /// Makes `wan` as slow as a modem, with a queue that holds a few packets and drops the rest.
    package func shortQueue() throws {
        let child = try box.start(
            "/usr/sbin/tc",
            ["qdisc", "add", "dev", "wan0", "root", "tbf", "rate", "4mbit", "burst", "2k", "limit", "2k"],
            output: folder.path.appending("tc"), errors: folder.path.appending("tc.err"))
        let ending = child.wait()
        guard ending == .status(0) else { throw Child.Ended(how: ending, errors: try child.standardError()) }
    }

    /// Bytes of all packets that `wan` got from its queue, IP headers included, of any protocol.
    package func carriedByWan() throws -> Int64 {
        let fields = try counters(of: "wan0")
        // Each packet has 14 bytes of Ethernet.
        return fields[8] - 14 * fields[9]
    }

    /// Bytes that an interface has sent and received, with all headers.
    package func carried(by name: String) throws -> Int64 {
        let fields = try counters(of: name)
        return fields[0] + fields[8]
    }

    /// The counters of an interface (proc_net(5)).
    private func counters(of name: String) throws -> [Int64] {
        let output = folder.path.appending(FilePath("dev-\(hexadecimal(Random.bytes(6)))"))
        let child = try box.start(
            "/bin/cat", ["/proc/net/dev"], output: output, errors: FilePath(bytes: output.bytes + Array(".err".utf8)))
        let ending = child.wait()
        let text = try child.standardOutput()
        let line = text.split(separator: "\n").first { $0.contains("\(name):") } ?? ""
        let fields = line.split(separator: " ").dropFirst().compactMap { Int64($0) }
        guard ending == .status(0), fields.count > 9 else { throw Unread(text: text) }
        return fields
    }

    /// Makes a percentage of the packets that leave by `wan` get lost, at random: 1 to 100.
    package func lose(_ percent: Int) throws {
        try nft(in: site, "add", "table", "inet", "loss")
        try nft(in: site, "add", "chain", "inet", "loss", "in", "{ type filter hook prerouting priority -300 ; }")
        try nft(
            in: site, "add", "rule", "inet", "loss", "in", "iifname", "wan1", "numgen", "random", "mod", "100", "<=",
            "\(percent - 1)", "drop")
    }

    package struct Unread: Error, Sendable { package let text: String }

    @discardableResult
    func nft(in network: NetworkNamespace? = nil, _ words: String...) throws -> String {
        let output = folder.path.appending(FilePath("nft-\(hexadecimal(Random.bytes(6)))"))
        let errors = FilePath(bytes: output.bytes + Array(".err".utf8))
        let child = try (network ?? box).start(
            tools.appending("usr/sbin/nft"), words,
            environment: ["LD_LIBRARY_PATH": Tools.libraries(of: tools).map(\.display).joined(separator: ":")],
            output: output, errors: errors)
        let ending = child.wait()
        guard ending == .status(0) else { throw Child.Ended(how: ending, errors: try child.standardError()) }
        return try child.standardOutput()
    }
}
