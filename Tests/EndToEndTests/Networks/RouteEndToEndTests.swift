import Core
import Glibc
import Linux
import TestKit
import Testing

/// The choice between two routes. The kernel's packet filter counts the bytes sent over each.
@Suite(
    "Choice between two routes, with the built program",
    .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"), .timeLimit(.minutes(Patience.minutes(4))))
struct RouteEndToEndTests {
    typealias Scene = NetworkEndToEndTests.Scene

    /// A configuration that forces the metered route, and the commands that remove it.
    struct Setting: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let commands: [[String]]
        let undo: [[String]]

        init(_ name: String, _ commands: [String], undo: [String]) {
            testDescription = name
            self.commands = commands.map { $0.split(separator: " ").map(String.init) }
            self.undo = undo.map { $0.split(separator: " ").map(String.init) }
        }
    }

    static let settings = [
        Setting(
            "a route to the host", ["route add \(TwoRoads.server) via 10.2.0.1 dev lte0"],
            undo: ["route del \(TwoRoads.server)"]),
        Setting(
            "the two halves of everywhere",
            ["route add 0.0.0.0/1 via 10.2.0.1 dev lte0", "route add 128.0.0.0/1 via 10.2.0.1 dev lte0"],
            undo: ["route del 0.0.0.0/1", "route del 128.0.0.0/1"]),
        Setting(
            "rules as wg-quick sets them",
            [
                "route add default via 10.2.0.1 dev lte0 table 51820", "rule add not fwmark 51820 table 51820",
                "rule add table main suppress_prefixlength 0",
            ],
            undo: ["rule del not fwmark 51820 table 51820", "rule del table main suppress_prefixlength 0"]),
        Setting(
            "everywhere through a tunnel in the metered link's own network",
            [
                "link add vx0 type vxlan id 5 local 10.2.0.2 remote 10.2.0.1 dstport 4789",
                "addr add 10.9.0.2/24 dev vx0", "link set vx0 up", "route add default dev vx0 metric 1",
            ], undo: ["link del vx0"]),
        Setting(
            "everywhere through a tunnel whose own packets a rule for their source sends over the metered link",
            [
                "route add default via 10.2.0.1 dev lte0 table 102", "rule add from 10.2.0.2 table 102",
                "link add vx0 type vxlan id 5 local 10.2.0.2 remote 10.1.0.1 dstport 4789",
                "addr add 10.9.0.2/24 dev vx0", "link set vx0 up", "route add default dev vx0 metric 1",
            ], undo: ["link del vx0", "rule del from 10.2.0.2 table 102"]),
        Setting(
            "everywhere through a tunnel whose type of service a rule sends over the metered link",
            [
                "route add default via 10.2.0.1 dev lte0 table 102", "rule add dsfield 0x10 table 102",
                "link add vx0 type vxlan id 5 local 10.1.0.2 remote 10.1.0.1 dstport 4789 tos 0x10",
                "addr add 10.9.0.2/24 dev vx0", "link set vx0 up", "route add default dev vx0 metric 1",
            ], undo: ["link del vx0", "rule del dsfield 0x10 table 102"]),
        Setting(
            "a rule by a mark that a firewall may set",
            ["route add default via 10.2.0.1 dev lte0 table 77", "rule add fwmark 1 table 77"],
            undo: ["rule del fwmark 1 table 77"]),
        Setting(
            "a policy of IPsec, which may send its packets over either link",
            ["xfrm policy add dir out dst \(TwoRoads.server)/32 tmpl src 10.2.0.2 dst 10.2.0.1 proto esp mode tunnel"],
            // Its end is reported only to root; a change of an address causes an inspection of the networks.
            undo: ["xfrm policy deleteall", "addr add 10.77.0.1/32 dev lo"]),
    ]

    @Test(
        "an upload bound to the metered link waits: no byte uses either link",
        arguments: settings)
    func waits(_ setting: Setting) async throws {
        let scene = try await Scene()
        let roads = scene.roads
        try await blocking { for command in setting.commands { try roads.box.run(command) } }
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        _ = try await scene.waits("clip.mp4", for: "rule")
        #expect(try await scene.bytes("wan") == 0)
        #expect(try await scene.bytes("lte") == 0)
        try await blocking { for command in setting.undo { try roads.box.run(command) } }
        try await scene.arrives()
        #expect(try await scene.bytes("wan") > 300_000)
        #expect(try await scene.bytes("lte") == 0)
    }

    /// If the kernel's route leads through a tunnel, the link below it decides.
    @Test(
        "a tunnel costs what its carrier costs, also to a neighbour on a local-only link",
        arguments: [("10.2.0.1", true), ("10.1.0.1", false)])
    func tunnel(_ peer: String, isMetered: Bool) async throws {
        let scene = try await Scene()
        let roads = scene.roads
        let (net, link) = isMetered ? ("10.2.0", "lte") : ("10.1.0", "wan")
        try await blocking {
            try roads.removeRoute("lte", metric: 100)
            try roads.box.ip(
                "link", "add", "vx0", "type", "vxlan", "id", "5", "local", "\(net).2", "remote", peer, "dstport", "4789"
            )
            try roads.site.ip(
                "link", "add", "vx0", "type", "vxlan", "id", "5", "local", "\(net).1", "remote", "\(net).2", "dstport",
                "4789")
            try roads.box.ip("addr", "add", "10.9.0.2/24", "dev", "vx0")
            try roads.site.ip("addr", "add", "10.9.0.1/24", "dev", "vx0")
            for network in [roads.box, roads.site] { try network.ip("link", "set", "vx0", "up") }
            try roads.box.ip("route", "add", "default", "via", "10.9.0.1", "dev", "vx0", "metric", "1")
        }
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        if isMetered {
            let hold = try await scene.waits("clip.mp4", for: "rule")
            #expect(hold.text.contains("vx0 runs over \(link)0") || hold.text.contains("lte0"), "\(hold.text)")
            #expect(try await scene.bytes("wan") == 0)
            #expect(try await scene.bytes("lte") == 0)
            try await blocking { try roads.box.ip("link", "del", "vx0") }
        }
        try await scene.arrives()
        #expect(try await scene.bytes("lte") == 0)
    }

    @Test("packets of a tunnel follow root's routing rules, whatever user runs the daemon")
    func root() async throws {
        let scene = try await Scene()
        let (roads, fixture) = (scene.roads, scene.fixture)
        try await blocking {
            for command in [
                "route add default via 10.2.0.1 dev lte0 table 102", "rule add uidrange 65534-65534 table 102",
                "link add vx0 type vxlan id 5 local 10.1.0.2 remote 10.1.0.1 dstport 4789",
                "addr add 10.9.0.2/24 dev vx0", "link set vx0 up",
            ] { try roads.box.run(command.split(separator: " ").map(String.init)) }
        }
        try fixture.writeConfiguration()
        let check = try roads.box.start(
            "/usr/bin/setpriv",
            ["--ruid", "65534", "--", fixture.binary.display, "check", "--config", fixture.config.display],
            output: fixture.folder.path.appending("check.out"), errors: fixture.folder.path.appending("check.err"))
        _ = try await check.end(within: .seconds(30))
        let said = try check.standardOutput().split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(said.contains("vx0 runs over wan0"), "\(said)")
    }

    @Test("why and check show the route, its source address, its reason, and why others were rejected")
    func told() async throws {
        let scene = try await Scene(["metered: pause", "windows: [\"00:00-00:01\", \"12:00-12:01\"]"])
        let roads = scene.roads
        try await blocking {
            try roads.box.addCable("eth0", to: roads.site, "eth1")
            try roads.box.ip("addr", "add", "10.3.0.2/24", "dev", "eth0")
            try roads.box.ip("route", "add", "198.51.100.0/24", "via", "10.3.0.1", "dev", "eth0")
        }
        // Half an hour after the second window.
        let noon = try #require(
            Zone.local.moments(Zone.local.localTime(at: SystemClocks().wall()).day, 45_000_000).first)
        let shift = (noon.milliseconds - SystemClocks().wall().milliseconds) / 1000
        try scene.fixture.startDaemon(environment: ["SLUICE_TEST_CLOCK": "\(shift)"])
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        _ = try await scene.waits("clip.mp4", for: "rule")
        func said(_ verb: String, _ arguments: [String]) async throws -> String {
            try #require(try await scene.fixture.runVerb(verb, arguments)).split { $0 == " " || $0 == "\n" }
                .joined(separator: " ")
        }
        let own =
            "the kernel's own route to \(TwoRoads.server), allowed and free (unmetered: the rule {interface: \"wan0\", metered: false} "
            + "says so about wan0)"
        let why = try await said("why", ["clip.mp4"])
        #expect(why.contains("route: by wan0, from 10.1.0.2, \(own)"), "\(why)")
        let check = try await said("check", ["--running"])
        #expect(check.contains("over wan0 from 10.1.0.2: \(own)"), "\(check)")
        #expect(check.contains("not over lte0: `metered` of policy (sluice.yaml:"), "\(check)")
        #expect(check.contains("not over eth0: no route over it leads to \(TwoRoads.server)"), "\(check)")
        try await blocking {
            try roads.removeRoute("lte", metric: 100)
            try roads.addRoute("lte", metric: 1)
        }
        let equal = try await eventually("the kernel's own route uses the other link") { () -> String? in
            let text = try await said("why", ["clip.mp4"])
            return text.contains("equal to the kernel's own route through lte0, with metric 10, allowed and free")
                ? text : nil
        }
        #expect(equal.contains("route: by wan0, from 10.1.0.2"), "\(equal)")
        #expect(try await scene.bytes("lte") == 0)
        #expect(try await scene.bytes("wan") == 0)
    }

    /// The unmetered link has only IPv4, and the metered one only IPv6.
    @Test(
        "with IPv4 and IPv6 on different links, a dual-stack host uses the unmetered one, and an IPv6-only host waits")
    func families() async throws {
        let scene = try await Scene()
        let (roads, fixture) = (scene.roads, scene.fixture)
        try await blocking {
            try roads.removeRoute("lte", metric: 100)
            for (network, name, address) in [(roads.box, "lte0", "fd02::2/64"), (roads.site, "lte1", "fd02::1/64")] {
                try network.ip("-6", "addr", "add", address, "dev", name, "nodad")
            }
            try roads.site.ip("-6", "addr", "add", "2001:db8::9/128", "dev", "lo", "nodad")
            try roads.box.ip("-6", "route", "add", "default", "via", "fd02::1", "dev", "lte0")
        }
        // The same port at both addresses of the host.
        let port = try #require(fixture.address.split(separator: ":").last)
        let other = fixture.folder.path.appending("received6")
        try Files.makeFolders(other)
        let second = try roads.site.start(
            fixture.binary, ["receive", "--listen", "[2001:db8::9]:\(port)", "--into", other.display],
            output: fixture.folder.path.appending("six.out"), errors: fixture.folder.path.appending("six.err"))
        defer { second.end(with: SIGKILL) }
        _ = try await second.line(after: "listening on http://")
        let hosts = try fixture.folder.write(
            "hosts", Array("127.0.0.1 localhost\n\(TwoRoads.server) both.test\n2001:db8::9 both.test\n".utf8))
        fixture.destination = "http://both.test:\(port)/files/"
        fixture.moreDestinations = ["six: {type: tus, url: \"http://[2001:db8::9]:\(port)/files/\"}"]
        fixture.uploadTo = ["nas", "six"]
        try fixture.startDaemon(inMounts: "mount --bind \(hosts.display) /etc/hosts")
        try scene.camera.drop(Clip(number: 0, size: 3_000_000, relative: "clip.mp4"))
        try await eventually("one upload is complete", within: .seconds(60)) {
            try await fixture.status()?.counts.completed == 1
        }
        let why = try #require(try await fixture.runVerb("why", ["clip.mp4"]))
        #expect(why.contains("rule: `metered` of policy (sluice.yaml:"), "\(why)")
        #expect(try await scene.bytes("wan") > 3_000_000)
        #expect(try await scene.bytes("lte") == 0)
        #expect(try Outcome.files(in: other, hidden: false).isEmpty)
        #expect(try await fixture.status()?.counts.ongoing == 1)
    }

    @Test("a metered route set during a transfer stops it at once")
    func midway() async throws {
        let scene = try await Scene(["metered: pause", "bandwidth: 3 MB/s"])
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 12_000_000, relative: "clip.mp4"))
        try await scene.begun()
        try await scene.ip("route", "add", TwoRoads.server, "via", "10.2.0.1", "dev", "lte0")
        _ = try await scene.waits("clip.mp4", for: "rule")
        let sent = try await scene.bytes("wan")
        #expect(sent < 12_000_000)
        try await scene.ip("route", "del", TwoRoads.server)
        try await scene.arrives()
        #expect(try await scene.bytes("lte") == 0)
    }

    @Test("an upload allowed on the metered link uses the unmetered one while it is up, and returns to it")
    func allowed() async throws {
        let scene = try await Scene(["metered: pause", "bandwidth: 2 MB/s"])
        let (roads, fixture) = (scene.roads, scene.fixture)
        try await blocking {
            try roads.removeRoute("lte", metric: 100)
            try roads.addRoute("lte", metric: 1)
        }
        try fixture.startDaemon()
        _ = try await eventually("the daemon has paused the folder") {
            try await fixture.runVerb("pause", ["--folder", "camera"])
        }
        try scene.camera.drop(Clip(number: 0, size: 16_000_000, relative: "clip.mp4"))
        _ = try await scene.waits("clip.mp4", for: "global")
        #expect(try await fixture.runVerb("allow", ["clip.mp4", "--metered", "--for", "1h"]) != nil)
        #expect(try await fixture.runVerb("resume", ["--folder", "camera"]) != nil)
        try await scene.begun()
        // The same command again in the middle of it changes nothing either.
        #expect(try await fixture.runVerb("allow", ["clip.mp4", "--metered", "--for", "2h"]) != nil)
        try await scene.begun(3_000_000)
        #expect(try await scene.bytes("lte") == 0)
        try await scene.ip("link", "set", "wan0", "down")
        try await eventually("the transfer uses the metered link") { try await scene.bytes("lte") > 1_000_000 }
        let before = try await scene.bytes("wan")
        try await scene.ip("link", "set", "wan0", "up")
        try await blocking { try roads.addRoute("wan", metric: 10) }
        try await scene.begun(before + 500_000)
        let paid = try await scene.bytes("lte")
        try await scene.arrives()
        #expect(try await scene.bytes("lte") == paid)
    }

    @Test("an upload that waits for an exhausted metered quota uses an unmetered link as soon as one is up")
    func usedUp() async throws {
        let scene = try await Scene([
            "metered: allow", "quotas: [{name: lte, per: month, bytes: 1 MB, when: {metered: true}}]",
        ])
        let roads = scene.roads
        try await scene.ip("link", "set", "wan0", "down")
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 3_000_000, relative: "clip.mp4"))
        _ = try await scene.waits("clip.mp4", for: "quota")
        try await eventually("no quota has reserved bytes") {
            try await scene.fixture.runVerb("usage", ["--json"])?.contains("\"reserved\":0") ?? false
        }
        let paid = try await scene.bytes("lte")
        #expect(paid > 500_000 && paid <= 1_000_000)
        try await scene.ip("link", "set", "wan0", "up")
        try await blocking { try roads.addRoute("wan", metric: 200) }
        try await scene.arrives()
        #expect(try await scene.bytes("lte") == paid)
        #expect(try await scene.bytes("wan") > 2_000_000)
    }

    /// Each with a metered link that the kernel prefers, and an unmetered one.
    @Test(
        "beside an unmetered route, limit and quota of a metered one do not count, even if it is allowed",
        arguments: [
            ["bandwidth: [{limit: 20 kB/s, when: {metered: true}}]"],
            ["metered: allow", "quotas: [{name: lte, per: day, bytes: 500 kB, when: {metered: true}}]"],
            ["metered: allow"],
        ])
    func free(_ policy: [String]) async throws {
        let scene = try await Scene(policy)
        let roads = scene.roads
        try await blocking {
            try roads.removeRoute("lte", metric: 100)
            try roads.addRoute("lte", metric: 1)
        }
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 3_000_000, relative: "clip.mp4"))
        try await scene.arrives()
        #expect(try await scene.bytes("wan") > 3_000_000)
        #expect(try await scene.bytes("lte") == 0)
    }
}
