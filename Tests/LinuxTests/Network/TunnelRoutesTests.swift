import Core
import Synchronization
import TestKit
import Testing

@testable import Linux

@Suite(
    "Routes of a tunnel's packets", .enabled(if: NetworkNamespace.isPossible, "\(NetworkNamespace.need)"),
    .timeLimit(.minutes(Patience.minutes(1))))
struct TunnelRoutesTests {
    struct Scene: Sendable, CustomTestStringConvertible {
        let name: String
        var words = "local 10.2.0.2 remote 10.1.0.1"
        var commands: [String] = []
        /// `nil`: unknown.
        let ways: [String]?
        var testDescription: String { name }
    }

    static let scenes: [Scene] = [
        Scene(name: "by the route to the other end", ways: ["wan0"]),
        Scene(
            name: "by a rule for the address that they come from",
            commands: ["route add default via 10.2.0.1 dev lte0 table 102", "rule add from 10.2.0.2 table 102"],
            ways: ["lte0"]),
        Scene(
            name: "by a rule for their port",
            commands: [
                "route add default via 10.2.0.1 dev lte0 table 102", "rule add ipproto udp dport 4789 table 102",
            ], ways: ["lte0"]),
        Scene(
            name: "by a rule for the port of another",
            commands: [
                "route add default via 10.2.0.1 dev lte0 table 102", "rule add ipproto udp dport 4790 table 102",
            ], ways: ["wan0"]),
        Scene(
            name: "by a rule for their type of service", words: "local 10.2.0.2 remote 10.1.0.1 tos 0x10",
            commands: ["route add default via 10.2.0.1 dev lte0 table 102", "rule add dsfield 0x10 table 102"],
            ways: ["lte0"]),
        Scene(
            name: "not by a rule for a service that they take of what they carry",
            words: "local 10.2.0.2 remote 10.1.0.1 tos inherit",
            commands: ["route add default via 10.2.0.1 dev lte0 table 102", "rule add dsfield 0x10 table 102"],
            ways: ["wan0"]),
        Scene(
            name: "by a rule for root, as which the kernel sends them",
            commands: ["route add default via 10.2.0.1 dev lte0 table 102", "rule add uidrange 0-0 table 102"],
            ways: ["lte0"]),
        Scene(
            name: "not by a rule for other users",
            commands: ["route add default via 10.2.0.1 dev lte0 table 102", "rule add uidrange 1-65534 table 102"],
            ways: ["wan0"]),
        Scene(
            name: "perhaps by a rule for a mark",
            commands: ["route add default via 10.2.0.1 dev lte0 table 102", "rule add fwmark 9 table 102"],
            ways: ["wan0", "lte0"]),
        Scene(
            name: "perhaps by a rule for the port that they come from",
            commands: [
                "route add default via 10.2.0.1 dev lte0 table 102",
                "rule add ipproto udp sport 1024-65534 table 102",
            ], ways: ["wan0", "lte0"]),
        Scene(name: "to an end without a way", words: "local 10.2.0.2 remote 192.0.2.7", ways: nil),
        Scene(name: "to no end", words: "local 10.2.0.2", ways: nil),
    ]

    private func network() throws -> NetworkNamespace {
        let network = try NetworkNamespace()
        try network.ip("link", "set", "lo", "up")
        for (number, name) in [(1, "wan"), (2, "lte")] {
            try network.addCable("\(name)0", "\(name)1")
            try network.ip("addr", "add", "10.\(number).0.2/24", "dev", "\(name)0")
        }
        return network
    }

    private func ways(_ network: NetworkNamespace) throws -> [String]? {
        try network.run {
            let names = Dictionary(try Links.all().map { ($0.index, $0.name) }, uniquingKeysWith: { $1 })
            let tunnel = names.first { $0.value == "vx0" }?.key ?? 0
            return try TunnelRoutes.carriers(of: tunnel)?.map { names[$0.link] ?? "?" }
        }
    }

    @Test("a tunnel's routes are those of the kernel's tables and rules, each possible one", arguments: scenes)
    func ways(_ scene: Scene) throws {
        let network = try network()
        try network.run(
            ["link", "add", "vx0", "type", "vxlan", "id", "5", "dstport", "4789"]
                + scene.words.split(separator: " ").map(String.init))
        try network.ip("link", "set", "vx0", "up")
        for command in scene.commands { try network.run(command.split(separator: " ").map(String.init)) }
        #expect(try ways(network) == scene.ways)
    }

    @Test("a vxlan has a route to each known end, and a new one is reported")
    func forwarding() async throws {
        let network = try network()
        try network.run(
            ["link", "add", "vx0", "type", "vxlan", "id", "5", "dstport", "4789", "local", "10.1.0.2", "remote"]
                + ["10.1.0.1"])
        try network.ip("link", "set", "vx0", "up")
        let told = Atomic(0)
        let events = try network.run {
            let events = try NetworkEvents { if $0 == .mayForbid { told.add(1, ordering: .relaxed) } }
            try events.follow([:], hasOverlay: true)
            return events
        }
        defer { events.stop() }
        let folder = TemporaryFolder()
        let child = try network.start(
            "/usr/sbin/bridge", ["fdb", "append", "00:00:00:00:00:00", "dst", "10.2.0.1", "dev", "vx0"],
            output: folder.path.appending("output"), errors: folder.path.appending("errors"))
        #expect(child.wait() == .status(0))
        try await eventually("the new end has been reported") { told.load(ordering: .relaxed) > 0 }
        #expect(Set(try ways(network) ?? []) == ["wan0", "lte0"])
    }

    @Test(
        "a vxlan with its own link routes each entry by the entry's link, or else by the route",
        arguments: [
            ("dst 192.0.2.7 via lte0", "lte0"), ("dst 10.2.0.1", "lte0"), ("dst 192.0.2.7", "wan0"),
        ])
    func namedLink(_ entry: String, _ expected: String) throws {
        let network = try network()
        try network.ip("route", "add", "default", "via", "10.2.0.1", "metric", "20")
        try network.ip("route", "add", "default", "via", "10.1.0.1", "metric", "10")
        try network.run(["link", "add", "vx0", "type", "vxlan", "id", "5", "dstport", "4789", "dev", "wan0"])
        try network.ip("link", "set", "vx0", "up")
        let folder = TemporaryFolder()
        let child = try network.start(
            "/usr/sbin/bridge",
            ["fdb", "append", "00:00:00:00:00:00", "dev", "vx0"] + entry.split(separator: " ").map(String.init),
            output: folder.path.appending("output"), errors: folder.path.appending("errors"))
        #expect(child.wait() == .status(0))
        let found = try ways(network)
        #expect(found == [expected])
    }
}
