import Core
import TestKit
import Testing

@testable import Linux

@Suite(
    "Overhead of tunnels", .enabled(if: NetworkNamespace.isPossible, "\(NetworkNamespace.need)"),
    .timeLimit(.minutes(Patience.minutes(1))))
struct EncapsulationTests {
    /// - Returns: Bytes added to a packet to 203.0.113.9.
    private func overhead(_ commands: [String], over interface: String? = nil) throws -> Int64? {
        let network = try NetworkNamespace()
        try network.ip("link", "set", "lo", "up")
        try network.addCable("wan0", "wan1")
        for command in ["addr add 10.1.0.2/24 dev wan0", "-6 addr add fd01::2/64 dev wan0 nodad"] + commands {
            try network.run(command.split(separator: " ").map(String.init))
        }
        let address = try #require(IPAddress("203.0.113.9"))
        return try network.run { try Encapsulation.overhead(to: address, port: 443, over: interface) }
    }

    private static let up = ["addr add 10.9.0.2/24 dev t0", "link set t0 up", "route add default dev t0"]

    @Test("a plain link adds nothing, and neither does an address without a route")
    func none() throws {
        #expect(try overhead(["route add default via 10.1.0.1 dev wan0"]) == 0)
        #expect(try overhead(["route add default via 10.1.0.1 dev wan0 mtu 1300"]) == 0)
        #expect(try overhead([]) == 0)
        #expect(try overhead(["route add default via 10.1.0.1 dev wan0"], over: "wan0") == 0)
    }

    /// Arguments of `ip` for a tunnel, and the bytes that it adds; not every kernel has each kind.
    private static let kinds: [(kind: TwoRoads.Tunnel?, words: String, bytes: Int64)] = [
        (nil, "vxlan id 5 dstport 4789 local 10.1.0.2 remote 10.1.0.1", 50),
        (nil, "vxlan id 5 dstport 4789 local fd01::2 remote fd01::1", 70),
        (.gre, "gre local 10.1.0.2 remote 10.1.0.1", 24),
        (.gre, "gre key 7 csum seq local 10.1.0.2 remote 10.1.0.1", 36),
        (.gre, "gretap local 10.1.0.2 remote 10.1.0.1", 38),
        (.ipip, "ipip local 10.1.0.2 remote 10.1.0.1", 20),
    ]

    @Test("VXLAN adds a frame and UDP, GRE its fields, IP in IP a header")
    func kinds() throws {
        let known = TwoRoads.tunnels
        for (kind, words, bytes) in Self.kinds where kind.map({ known.contains($0) }) ?? true {
            #expect(try overhead(["link add t0 type \(words)"] + Self.up) == bytes, "\(words)")
        }
    }

    @Test("nested tunnels add both, and a tunnel below a bridge its own")
    func nested() throws {
        let outer = "link add v0 type vxlan id 5 dstport 4789 local 10.1.0.2 remote 10.1.0.1"
        #expect(
            try overhead(
                [
                    outer, "addr add 10.8.0.2/24 dev v0", "link set v0 up",
                    "link add t0 type vxlan id 6 dstport 4790 local 10.8.0.2 remote 10.8.0.1",
                ] + Self.up) == 100)
        #expect(
            try overhead([outer, "link set v0 up", "link add t0 type bridge", "link set v0 master t0"] + Self.up) == 50)
    }

    @Test("an IPsec policy without a key yet adds the maximum", arguments: [nil, "wan0"])
    func ipsec(_ interface: String?) throws {
        let added = try overhead(
            [
                "route add default via 10.1.0.1 dev wan0",
                "xfrm policy add dir out dst 203.0.113.0/24 tmpl src 10.1.0.2 dst 10.1.0.9 proto esp mode tunnel",
            ], over: interface)
        #expect(added == 20 + IPsec.maxOverhead)
    }

    @Test("WireGuard adds 32 bytes and padding, and an unknown tunnel the maximum")
    func table() {
        #expect(TunnelHeader.length(kind: "wireguard", nil) == 55)
        #expect(TunnelHeader.length(kind: "gre", nil) == 16)
        #expect(TunnelHeader.length(kind: "vlan", nil) == nil)
        // Each kind that metering treats as a tunnel.
        for kind in [
            "tun", "ovpn", "amneziawg", "erspan", "vti", "xfrm", "geneve", "bareudp", "gtp", "l2tp", "fou", "amt",
        ] {
            var link = NetworkLink(index: 3, name: "t0")
            link.kind = kind
            #expect(link.isTunnel && TunnelHeader.length(kind: kind, nil) != nil, "\(kind)")
        }
    }
}
