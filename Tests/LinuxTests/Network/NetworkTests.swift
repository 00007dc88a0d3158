import Core
import Glibc
import Synchronization
import TestKit
import Testing

@testable import Linux

/// A network with two routes out, each a cable to a router that does not exist: `left0` and `right0`.
private struct TwoRouteNamespace {
    let network: NetworkNamespace

    init() throws {
        network = try NetworkNamespace()
        try network.ip("link", "set", "lo", "up")
        for (name, net) in [("left", "10.1.0"), ("right", "10.2.0")] {
            try network.addCable("\(name)0", "\(name)1")
            try network.ip("addr", "add", "\(net).2/24", "dev", "\(name)0")
            try network.ip("-6", "addr", "add", "fd0\(net.dropFirst(3).prefix(1))::2/64", "dev", "\(name)0", "nodad")
        }
        try network.ip("route", "add", "default", "via", "10.1.0.1", "dev", "left0", "metric", "10")
    }

    func links() throws -> [String: NetworkLink] {
        let links = try network.run { try Links.all() }
        return Dictionary(links.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    }

    func route(to address: String, port: UInt16? = nil, over: Int32? = nil) throws -> NetworkRoute? {
        let address = try #require(IPAddress(address))
        return try network.run { try Routes.route(to: address, port: port, over: over) }
    }

    func index(_ name: String) throws -> Int32 { try #require(try links()[name]).index }
}

private let far = "203.0.113.9"

@Suite(
    "The network of a namespace", .enabled(if: NetworkNamespace.isPossible, "\(NetworkNamespace.need)"),
    .timeLimit(.minutes(Patience.minutes(1))))
struct NetworkTests {
    @Test("interfaces are listed with type, lower interfaces and addresses")
    func links() throws {
        let ways = try TwoRouteNamespace()
        try ways.network.ip("link", "add", "link", "left0", "name", "mac0", "type", "macvlan")
        try ways.network.ip("link", "add", "br0", "type", "bridge")
        try ways.network.ip("link", "set", "right1", "master", "br0")
        let links = try ways.links()
        #expect(Set(links.keys) == ["lo", "left0", "left1", "right0", "right1", "mac0", "br0"])
        let left = try #require(links["left0"])
        #expect(left.isUsable)
        #expect(left.kind == "veth")
        #expect(left.medium == .ethernet)
        #expect(left.lower == [], "the other end of a cable is no lower interface")
        #expect(left.leadsOut)
        #expect(left.hardwareAddress?.bytes.count == 6)
        #expect(left.addresses.contains { $0.description == "10.1.0.2/24" })
        #expect(left.addresses.contains { $0.description == "fd01::2/64" })
        #expect(!left.hasDevice && !left.isWireless && !left.isOnUSB && left.ssid == nil)
        #expect(links["lo"]?.medium == .loopback)
        #expect(links["lo"]?.isUsable == true, "an unknown state counts as usable")
        #expect(links["right0"]?.leadsOut == false)
        #expect(links["mac0"]?.kind == "macvlan")
        #expect(links["mac0"]?.lower == [left.index])
        #expect(links["mac0"]?.isUsable == false)
        #expect(links["br0"]?.lower == [try #require(links["right1"]).index])
        #expect(try ways.network.run { try Links.all() } == links.values.sorted { $0.index < $1.index })
    }

    @Test("the route to an address is the kernel's, with gateway and source address")
    func routes() throws {
        let ways = try TwoRouteNamespace()
        let (left, right) = (try ways.index("left0"), try ways.index("right0"))
        let route = try #require(try ways.route(to: far))
        #expect(route.link == left)
        #expect(route.gateway == IPAddress("10.1.0.1"))
        #expect(route.gatewayHardware == nil, "no query was sent")
        #expect(route.source == IPAddress("10.1.0.2"))
        #expect(!route.isDead)
        try ways.network.ip("neigh", "add", "10.1.0.1", "lladdr", "02:00:00:00:00:07", "dev", "left0", "nud", "stale")
        #expect(try ways.route(to: far)?.path == NetworkPath(link: left, gateway: HardwareAddress("02:00:00:00:00:07")))

        let near = try #require(try ways.route(to: "10.2.0.77"))
        #expect(near.link == right)
        #expect(near.gateway == nil)
        #expect(try ways.route(to: "10.2.0.2")?.link == 1, "a packet to its own address does not leave the machine")
        #expect(try ways.route(to: "127.0.0.1")?.link == 1)
        #expect(try ways.route(to: "::1")?.link == 1)
        #expect(try ways.route(to: "::ffff:10.2.0.77")?.link == right)
        #expect(try ways.route(to: "fd02::77")?.link == right)
        #expect(try ways.route(to: "2001:db8::9") == nil)
        try ways.network.ip("-6", "route", "add", "default", "via", "fd02::1", "dev", "right0")
        let long = try #require(try ways.route(to: "2001:db8::9"))
        #expect(long.link == right, "IPv4 and IPv6 have different routes")
        #expect(long.gateway == IPAddress("fd02::1"))
        #expect(long.source == IPAddress("fd02::2"))
    }

    @Test("rules, multipath routes and refusals are the kernel's too")
    func policy() throws {
        let ways = try TwoRouteNamespace()
        let (left, right) = (try ways.index("left0"), try ways.index("right0"))
        try ways.network.ip("route", "add", "default", "via", "10.2.0.1", "dev", "right0", "table", "77")
        try ways.network.ip("rule", "add", "dport", "443", "ipproto", "tcp", "lookup", "77")
        #expect(try ways.route(to: far)?.link == left)
        #expect(try ways.route(to: far, port: 443)?.link == right)
        #expect(try ways.route(to: far, port: 80)?.link == left)
        #expect(try ways.links()["right0"]?.leadsOut == true, "the table of a rule counts as well")

        try ways.network.ip("route", "add", "default", "via", "10.2.0.1", "dev", "right0", "metric", "20")
        #expect(
            try ways.route(to: far, over: right)?.gateway == IPAddress("10.2.0.1"),
            "a socket bound to the interface has this route")
        #expect(try ways.route(to: far, over: 4711) == nil)
        for refusal in ["unreachable", "blackhole", "prohibit"] {
            try ways.network.ip("route", "add", refusal, far)
            #expect(try ways.route(to: far) == nil, "\(refusal)")
            try ways.network.ip("route", "del", refusal, far)
            try ways.network.ip("-6", "route", "add", refusal, "2001:db8::9")
            #expect(try ways.route(to: "2001:db8::9") == nil, "\(refusal)")
            try ways.network.ip("-6", "route", "del", refusal, "2001:db8::9")
        }
        try ways.network.ip("route", "flush", "default")
        #expect(try ways.route(to: far) == nil)
        #expect(try ways.links()["left0"]?.leadsOut == false)
        try ways.network.ip(
            "route", "add", "default", "nexthop", "via", "10.1.0.1", "dev", "left0", "nexthop", "via", "10.2.0.1",
            "dev",
            "right0")
        #expect([left, right].contains(try #require(try ways.route(to: far)).link))
        #expect(try ways.links().values.filter(\.leadsOut).count == 2)
    }

    @Test("an interface without a route is not used, even if the kernel treats every address as on-link")
    func supposed() throws {
        let ways = try TwoRouteNamespace()
        let (left, right) = (try ways.index("left0"), try ways.index("right0"))
        #expect(try ways.route(to: far, over: right) == nil)
        #expect(try ways.route(to: "10.2.0.77", over: right)?.link == right)
        #expect(try ways.route(to: far, over: left)?.link == left)
        // Like an interface without a gateway, for example a modem.
        try ways.network.ip("route", "add", "default", "dev", "right0", "metric", "20")
        #expect(try ways.route(to: far, over: right)?.link == right)
        try ways.network.ip("addr", "flush", "dev", "left0")
        #expect(try ways.route(to: far, over: left) == nil)
    }

    @Test("a route without carrier, or over an interface that is down, is dead")
    func dead() throws {
        let ways = try TwoRouteNamespace()
        let left = try ways.index("left0")
        try ways.network.ip("link", "set", "left1", "down")
        let route = try #require(try ways.route(to: far), "the kernel still chooses the route")
        #expect(route.link == left)
        #expect(route.isDead)
        #expect(try ways.links()["left0"]?.isUsable == false)
        try ways.network.ip("link", "set", "left1", "up")
        #expect(try ways.route(to: far)?.isDead == false)
        try ways.network.ip("link", "set", "left0", "down")
        #expect(try ways.route(to: far) == nil)
        try ways.network.ip("link", "del", "left0")
        #expect(try ways.links()["left0"] == nil)
    }

    @Test("a gateway with an unknown hardware address reports it after a probe")
    func gateway() async throws {
        let (near, router) = (try NetworkNamespace(), try NetworkNamespace())
        try near.addCable("up0", to: router, "down0")
        for net in ["10.1.0", "fd01:"] {
            let length = net.hasPrefix("f") ? 64 : 24
            let end = net.hasPrefix("f") ? ":" : "."
            try near.ip("addr", "add", "\(net)\(end)2/\(length)", "dev", "up0", "nodad")
            try router.ip("addr", "add", "\(net)\(end)1/\(length)", "dev", "down0", "nodad")
            try near.ip("route", "add", "default", "via", "\(net)\(end)1")
        }
        let wanted = try #require(try router.run { try Links.all() }.first { $0.name == "down0" }?.hardwareAddress)
        for text in [far, "2001:db8::9"] {
            let address = try #require(IPAddress(text))
            let route = try #require(try near.run { try Routes.route(to: address) })
            #expect(route.gatewayHardware == nil)
            try near.run { try Routes.probeGateway(of: route) }
            try await eventually("the gateway of \(text) has answered") {
                try near.run { try Routes.route(to: address) }?.gatewayHardware == wanted
            }
        }
    }

    @Test("a route is judged by the kernel's answer")
    func judged() throws {
        let ways = try TwoRouteNamespace()
        try ways.network.ip(
            "neigh", "add", "10.1.0.1", "lladdr", "02:00:00:00:00:07", "dev", "left0", "nud", "permanent")
        let links = try ways.network.run { try Links.all() }
        let path = try #require(try ways.route(to: far)).path
        #expect(Metering(links: links).judgement(of: path).metered == .unknown)
        let rules = [
            NetworkRule(gateway: HardwareAddress("02:00:00:00:00:07"), isMetered: true),
            NetworkRule(subnet: IPSubnet("10.2.0.0/16"), isMetered: false),
        ]
        let world = Metering(links: links, rules: rules)
        #expect(world.judgement(of: path).metered == .metered)
        #expect(world.judgement(of: try #require(try ways.route(to: "10.2.0.9")).path).metered == .unmetered)
        #expect(world.judgement(of: try #require(try ways.route(to: "127.0.0.1")).path).metered == .unmetered)
    }

    @Test("generic netlink families are found by name, and a machine without Wi-Fi has none")
    func generic() throws {
        let socket = try NetlinkSocket(Netlink.generic)
        #expect(Wireless.family("nlctrl", by: socket) == 0x10)
        #expect(Wireless.family("no-such-family", by: socket) == nil)
        let network = try NetworkNamespace()
        #expect(try network.run { Wireless.names() }.isEmpty)
    }

    @Test("a refused request is an error that names the request")
    func refused() throws {
        let error = #expect(throws: SystemError.self) {
            let socket = try NetlinkSocket()
            // Too short for its type.
            _ = try socket.query(NetlinkRequest(Netlink.Kind.getAddress, dump: false, header: [0]), about: "nonsense")
        }
        #expect(error?.call == "netlink")
        #expect(error?.subject == "nonsense")
    }
}
