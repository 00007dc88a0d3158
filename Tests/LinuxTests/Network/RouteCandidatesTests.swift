import Core
import Glibc
import TestKit
import Testing

@testable import Linux

/// Arguments of `ip`, and the interfaces that may then carry packets to `203.0.113.9` (or `2001:db8::9`).
struct RouteScene: Sendable, CustomTestStringConvertible {
    let name: String
    var commands: [String] = []
    var address = "203.0.113.9"
    let ways: [String]
    var testDescription: String { name }

    /// Two links with a router each and a third one, with routes to everywhere.
    static let twoDefaults = [
        "route add default via 10.1.0.1 dev wan0 metric 10", "route add default via 10.2.0.1 dev lte0 metric 100",
    ]

    private static let tunnel = [
        "link add vx0 type vxlan id 5 local 10.2.0.2 remote 10.2.0.1 dstport 4789", "addr add 10.9.0.2/24 dev vx0",
        "link set vx0 up",
    ]

    private static let policy = "xfrm policy add dir out src 0.0.0.0/0 "

    static let all: [RouteScene] = [
        RouteScene(name: "two that lead everywhere", ways: ["wan0", "lte0"]),
        RouteScene(
            name: "three, by their metrics", commands: ["route add default via 10.3.0.1 dev eth0 metric 50"],
            ways: ["wan0", "eth0", "lte0"]),
        RouteScene(
            name: "a route to that host alone", commands: ["route add 203.0.113.9 via 10.2.0.1 dev lte0"],
            ways: ["lte0"]),
        RouteScene(
            name: "a route to its network", commands: ["route add 203.0.113.0/24 via 10.2.0.1 dev lte0"],
            ways: ["lte0"]),
        RouteScene(
            name: "two routes to its network",
            commands: [
                "route add 203.0.113.0/24 via 10.2.0.1 dev lte0 metric 5",
                "route add 203.0.113.0/24 via 10.3.0.1 dev eth0 metric 6",
            ], ways: ["lte0", "eth0"]),
        RouteScene(name: "the link's own network", address: "10.2.0.77", ways: ["lte0"]),
        RouteScene(
            name: "the two halves of everywhere through a tunnel",
            commands: tunnel + ["route add 0.0.0.0/1 dev vx0", "route add 128.0.0.0/1 dev vx0"], ways: ["vx0"]),
        RouteScene(
            name: "everywhere through a tunnel", commands: tunnel + ["route add default dev vx0 metric 1"],
            ways: ["vx0"]),
        RouteScene(
            name: "a tunnel that the kernel would not choose",
            commands: tunnel + ["route add default dev vx0 metric 500"], ways: ["wan0", "lte0", "vx0"]),
        RouteScene(
            name: "rules as wg-quick sets them",
            commands: tunnel + [
                "route add default dev vx0 table 51820", "rule add not fwmark 51820 table 51820",
                "rule add table main suppress_prefixlength 0",
            ], ways: ["vx0"]),
        RouteScene(
            name: "a rule for where it goes",
            commands: ["route add default via 10.2.0.1 dev lte0 table 77", "rule add to 203.0.113.0/24 table 77"],
            ways: ["lte0"]),
        RouteScene(
            name: "a rule that leads both to a table of its own",
            commands: [
                "route add default via 10.2.0.1 dev lte0 table 77 metric 1",
                "route add default via 10.1.0.1 dev wan0 table 77 metric 2", "rule add to 203.0.113.0/24 table 77",
            ], ways: ["lte0"]),
        RouteScene(
            name: "a table by source",
            commands: [
                "route add default via 10.1.0.1 dev wan0 table 101", "rule add from 10.1.0.2 table 101",
                "route add default via 10.2.0.1 dev lte0 table 102", "rule add from 10.2.0.2 table 102",
            ], ways: ["wan0"]),
        RouteScene(
            name: "a table by source for the second alone, which leads into a tunnel",
            commands: tunnel + ["route add default dev vx0 table 102", "rule add from 10.2.0.2 table 102"],
            ways: ["wan0"]),
        RouteScene(
            name: "a refusal", commands: ["rule add to 203.0.113.0/24 prohibit"], ways: []),
        RouteScene(
            name: "a rule by a mark that some firewall may set",
            commands: ["route add default via 10.2.0.1 dev lte0 table 77", "rule add fwmark 1 table 77"],
            ways: ["wan0"]),
        RouteScene(
            name: "a rule by a mark whose table leads the same way",
            commands: ["route add default via 10.1.0.1 dev wan0 table 77", "rule add fwmark 1 table 77"],
            ways: ["wan0", "lte0"]),
        RouteScene(
            name: "a rule by a mark whose table has no way there, as of a VPN that marks its own packets",
            commands: [
                "route add 100.64.0.0/10 dev lte0 table 52", "rule add fwmark 0x80000/0xff0000 table main",
                "rule add table 52",
            ], ways: ["wan0", "lte0"]),
        RouteScene(
            name: "a rule by the port that a connection comes from",
            commands: [
                "route add default via 10.2.0.1 dev lte0 table 77", "rule add ipproto tcp sport 1024-65534 table 77",
            ], ways: ["wan0"]),
        RouteScene(
            name: "rules by mark and port for others",
            commands: [
                "route add default via 10.2.0.1 dev lte0 table 77", "rule add to 198.51.100.0/24 fwmark 1 table 77",
                "rule add ipproto udp sport 1024-65534 table 77", "rule add from 10.9.9.9 fwmark 2 table 77",
                "rule add iif eth0 fwmark 3 table 77", "rule add ipproto tcp dport 80 sport 7 table 77",
            ], ways: ["wan0", "lte0"]),
        RouteScene(
            name: "a policy of IPsec for whatever goes there",
            commands: [policy + "dst 203.0.113.0/24 tmpl src 10.1.0.2 dst 10.1.0.9 proto esp mode tunnel"],
            ways: ["wan0"]),
        RouteScene(
            name: "a policy of IPsec for one interface alone",
            commands: [policy + "dst 0.0.0.0/0 dev wan0 tmpl src 10.1.0.2 dst 10.1.0.9 proto esp mode tunnel"],
            ways: ["wan0"]),
        RouteScene(
            name: "a policy of IPsec for the other interface",
            commands: [policy + "dst 0.0.0.0/0 dev lte0 tmpl src 10.2.0.2 dst 10.2.0.9 proto esp mode tunnel"],
            ways: ["wan0"]),
        RouteScene(
            name: "a policy of IPsec for another network",
            commands: [policy + "dst 198.51.100.0/24 tmpl src 10.1.0.2 dst 10.1.0.9 proto esp mode tunnel"],
            ways: ["wan0", "lte0"]),
        RouteScene(
            name: "a policy of IPsec that lets nothing through",
            commands: ["xfrm policy add dir out src 0.0.0.0/0 dst 203.0.113.0/24 action block"], ways: ["wan0"]),
        RouteScene(
            name: "a policy of IPsec in IPv6",
            commands: [
                "-6 route add default via fd03::1 dev eth0 metric 2000",
                "xfrm policy add dir out src ::/0 dst 2001:db8::/32 tmpl src fd02::2 dst fd02::9 proto esp mode tunnel",
            ], address: "2001:db8::9", ways: ["lte0"]),
        RouteScene(
            name: "routes and links with packets of their own lengths",
            commands: [
                "route change default via 10.1.0.1 dev wan0 metric 10 mtu 1300", "link set lte0 mtu 1280",
                "route add default via 10.3.0.1 dev eth0 metric 500 mtu lock 900",
            ], ways: ["wan0", "lte0", "eth0"]),
        RouteScene(
            name: "IPv6 over links with packets of their own lengths",
            commands: [
                "link set lte0 mtu 1400", "-6 route add default via fd03::1 dev eth0 metric 2000 mtu 1300",
            ], address: "2001:db8::9", ways: ["lte0", "eth0"]),
        RouteScene(name: "IPv6 by one alone", address: "2001:db8::9", ways: ["lte0"]),
        RouteScene(
            name: "IPv6 by two", commands: ["-6 route add default via fd03::1 dev eth0 metric 2000"],
            address: "2001:db8::9", ways: ["lte0", "eth0"]),
        RouteScene(
            name: "an IPv6 route to that host alone",
            commands: [
                "-6 route add default via fd03::1 dev eth0 metric 2000",
                "-6 route add 2001:db8::9 via fd03::1 dev eth0",
            ], address: "2001:db8::9", ways: ["eth0"]),
        RouteScene(
            name: "a modem without a gateway",
            commands: [
                "route del default dev lte0", "route add default dev lte0 scope link metric 5",
            ], ways: ["lte0", "wan0"]),
    ]
}

@Suite(
    "Selectable routes", .enabled(if: NetworkNamespace.isPossible, "\(NetworkNamespace.need)"),
    .timeLimit(.minutes(Patience.minutes(1))))
struct RouteCandidatesTests {
    private func network(_ commands: [String] = []) throws -> NetworkNamespace {
        let network = try NetworkNamespace()
        try network.ip("link", "set", "lo", "up")
        for (number, name) in [(1, "wan"), (2, "lte"), (3, "eth")] {
            try network.addCable("\(name)0", "\(name)1")
            try network.ip("addr", "add", "10.\(number).0.2/24", "dev", "\(name)0")
            try network.ip("-6", "addr", "add", "fd0\(number)::2/64", "dev", "\(name)0", "nodad")
        }
        for command in RouteScene.twoDefaults + ["-6 route add default via fd02::1 dev lte0"] + commands {
            try network.run(command.split(separator: " ").map(String.init))
        }
        return network
    }

    private func names(_ network: NetworkNamespace, to address: String) throws -> [(name: String, isDead: Bool)] {
        let address = try #require(IPAddress(address))
        return try network.run {
            let links = try Links.all()
            let names = Dictionary(links.map { ($0.index, $0.name) }, uniquingKeysWith: { $1 })
            let ways = try RouteCandidates.candidates(
                to: address, port: 443, over: links.filter(\.leadsOut).map(\.index))
            // A connection is possible over the interfaces that may be chosen, and over no other.
            for link in links where link.medium != .loopback {
                let may = try RouteCandidates.leads(link.name, to: address, port: 443)
                let isWay = ways.contains { $0.route.link == link.index && !$0.route.isDead }
                #expect(may == isWay, "\(link.name)")
            }
            // Each other interface has a reason.
            let others = links.filter { $0.leadsOut && $0.medium != .loopback }.map(\.index)
            let refusals = try RouteCandidates.refusals(to: address, port: 443, over: others)
            for link in others where !ways.isEmpty {
                let isWay = ways.contains { $0.route.link == link }
                #expect((refusals[link] == nil) == isWay, "\(names[link] ?? "?"): \(refusals)")
            }
            return ways.map { (names[$0.route.link] ?? "?", $0.route.isDead) }
        }
    }

    @Test("only an equal route may replace another", arguments: Tier.sample(RouteScene.all, 10))
    func scene(_ scene: RouteScene) throws {
        let network = try network(scene.commands)
        let ways = try names(network, to: scene.address).map(\.name)
        #expect(ways == scene.ways)
    }

    @Test("each rejected route has a reason")
    func refusals() throws {
        let tunnel = [
            "link add vx0 type vxlan id 5 local 10.2.0.2 remote 10.2.0.1 dstport 4789", "addr add 10.9.0.2/24 dev vx0",
            "link set vx0 up",
        ]
        for (commands, expected) in [
            (["route add 203.0.113.9 via 10.2.0.1 dev lte0"], RouteCandidates.Refusal.unequal),
            (
                ["route add default via 10.2.0.1 dev lte0 table 77", "rule add to 203.0.113.0/24 table 77"],
                .ownIsByRule
            ),
            (tunnel + ["route add default dev vx0 metric 1"], .ownIsTunnel),
            (
                [
                    "route add default via 10.2.0.1 dev lte0 metric 1",
                    "xfrm policy add dir out dst 203.0.113.9/32 tmpl src 10.2.0.2 dst 10.2.0.9 proto esp mode tunnel",
                ],
                .ownIsEncapsulated
            ),
        ] {
            let address = try #require(IPAddress("203.0.113.9"))
            let found = try network(commands).run {
                let wan = try Links.all().first { $0.name == "wan0" }?.index ?? 0
                return try RouteCandidates.refusals(to: address, over: [wan])[wan]
            }
            #expect(found == expected)
        }
    }

    @Test("a route without carrier is replaced by an equal one, and a dead one of another kind by none")
    func dead() throws {
        let network = try network()
        try network.ip("link", "set", "wan1", "down")
        let ways = try names(network, to: "203.0.113.9")
        #expect(ways.map(\.name) == ["wan0", "lte0"] && ways.map(\.isDead) == [true, false])
        try network.ip("route", "add", "203.0.113.9", "via", "10.1.0.1", "dev", "wan0")
        let alone = try names(network, to: "203.0.113.9")
        #expect(alone.map(\.name) == ["wan0"] && alone.map(\.isDead) == [true])
    }

    @Test("each hop of a multipath route is a route")
    func hops() throws {
        let network = try network([
            "route flush default",
            "route add default nexthop via 10.1.0.1 dev wan0 nexthop via 10.2.0.1 dev lte0",
        ])
        let ways = try names(network, to: "203.0.113.9")
        #expect(Set(ways.map(\.name)) == ["wan0", "lte0"])
    }

    @Test("local traffic has one route, and a missing interface none")
    func inside() throws {
        let network = try network()
        let address = try #require(IPAddress("10.1.0.2"))
        let links = try network.run { try RouteCandidates.candidates(to: address, over: []).map(\.route.link) }
        #expect(links == [1])
        #expect(throws: SystemError.self) {
            try network.run { try RouteCandidates.leads("nothing0", to: address, port: 1) }
        }
    }
}
