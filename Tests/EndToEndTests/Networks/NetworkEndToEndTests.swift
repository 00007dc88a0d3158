import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// Two routes to one server, one of them metered. The kernel's packet filter counts the bytes sent over each.
@Suite(
    "Two routes, one metered, with the built program",
    .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"), .timeLimit(.minutes(Patience.minutes(4))))
struct NetworkEndToEndTests {
    struct Scene {
        let roads: TwoRoads
        let fixture: DaemonFixture
        let camera: Camera

        /// - Parameter rules: Replace the rules that `wan0` is free and `lte0` is metered.
        init(
            _ policy: [String] = ["metered: pause"],
            rules: String = "[{interface: wan0, metered: false}, {interface: lte0, metered: true}]"
        ) async throws {
            roads = try await blocking { try TwoRoads() }
            fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
            fixture.roads = roads
            fixture.policyKeys = policy + ["networks: \(rules)"]
            try await fixture.startReceiver()
            camera = Camera(fixture, dice: Dice(seed: 1))
        }

        func ip(_ words: String...) async throws {
            let (roads, words) = (roads, words)
            try await blocking { try roads.box.run(words) }
        }

        /// Sets the router at the end of `wan`, as the machine knows it.
        func router(is hardware: String) async throws {
            let roads = roads
            try await blocking {
                try roads.site.ip("link", "set", "wan1", "address", hardware)
                try roads.box.ip(
                    "neigh", "replace", "10.1.0.1", "lladdr", hardware, "dev", "wan0", "nud", "reachable")
            }
        }

        /// Open TCP connections of the machine, from the kernel's table (proc(5): state 01 is ESTABLISHED).
        func connections() async throws -> Int {
            let roads = roads
            return try await blocking {
                let table = try roads.box.run { try Files.read("/proc/thread-self/net/tcp", limit: 1 << 20) }
                return String(decoding: table, as: UTF8.self).split(separator: "\n").count { line in
                    line.split(separator: " ").dropFirst(3).first == "01"
                }
            }
        }

        func bytes(_ name: String) async throws -> Int64 {
            let roads = roads
            return try await blocking { try roads.bytes(by: name) }
        }

        private func answer(_ name: String) async throws -> Why.Answer? {
            guard
                let text = try await fixture.runVerb("why", ["--json", fixture.drop.appending(FilePath(name)).display])
            else { return nil }
            return try JSONDecoder().decode(Why.self, from: Data(text.utf8)).answers.first
        }

        /// The first hold of a file, from `sluice why`.
        func hold(_ name: String) async throws -> Hold? { try await answer(name)?.holds.first }

        func completes(_ name: String) async throws {
            try await eventually("\(name) has arrived") { try await answer(name)?.state == "completed" }
        }

        func waits(_ name: String, for kind: String) async throws -> Hold {
            try await eventually("\(name) has a hold of the kind \(kind)") {
                try await hold(name).flatMap { $0.kind == kind ? $0 : nil }
            }
        }

        func arrives() async throws {
            let outcome = Outcome(fixture: fixture, clips: camera.clips)
            try await outcome.wait(within: .seconds(60))
            try await outcome.check()
        }

        func begun(_ least: Int64 = 1_000_000) async throws {
            try await eventually("the transfer has sent bytes over the unmetered link") {
                try await bytes("wan") > least
            }
        }
    }

    struct Why: Decodable {
        struct Answer: Decodable {
            var state: String
            var holds: [Hold]
        }
        var answers: [Answer]
    }
    struct Hold: Decodable {
        var kind, text: String
        var rule, file: String?
        var line: Int?
        var facts: [String]?
    }

    private static let slow = ["metered: pause", "bandwidth: 3 MB/s"]

    @Test("a metered link carries no byte, whether or not the other one is up, and a file waits with the reason")
    func pause() async throws {
        let scene = try await Scene()
        try await scene.ip("link", "set", "wan0", "down")
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        let hold = try await scene.waits("clip.mp4", for: "rule")
        #expect(
            hold.text.hasPrefix("`metered` of policy (sluice.yaml:")
                && hold.text.contains(
                    " says pause; metered: the rule {interface: \"lte0\", metered: true} says so about lte0"),
            "\(hold.text)")
        try await scene.ip("link", "set", "lte0", "down")
        _ = try await scene.waits("clip.mp4", for: "offline")
        for name in ["wan0", "lte0"] { try await scene.ip("link", "set", name, "up") }
        let roads = scene.roads
        try await blocking { try roads.addRoute("lte", metric: 100) }
        _ = try await scene.waits("clip.mp4", for: "rule")
        #expect(try await scene.bytes("wan") == 0)
        try await blocking { try roads.addRoute("wan", metric: 10) }
        try await scene.arrives()
        #expect(try await scene.bytes("wan") > 300_000)
        #expect(try await scene.bytes("lte") == 0)
    }

    @Test("when a network becomes metered during a transfer, no byte is sent after the hold is shown")
    func flips() async throws {
        let scene = try await Scene(Self.slow)
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 30_000_000, relative: "clip.mp4"))
        try await scene.begun()
        let rules = scene.fixture.policyKeys
        scene.fixture.policyKeys = Self.slow + ["networks: [{interface: \"*\", metered: true}]"]
        try scene.fixture.writeConfiguration()
        _ = try await eventually("the daemon has reloaded") { try await scene.fixture.runVerb("reload") }
        _ = try await scene.waits("clip.mp4", for: "rule")
        let (wan, lte) = (try await scene.bytes("wan"), try await scene.bytes("lte"))
        // Meanwhile another file is found, settles and is copied.
        try scene.camera.drop(Clip(number: 1, size: 200_000, relative: "other.mp4"))
        _ = try await scene.waits("other.mp4", for: "rule")
        #expect(try await scene.bytes("wan") == wan)
        #expect(try await scene.bytes("lte") == lte)
        #expect(lte == 0)
        scene.fixture.policyKeys = rules.filter { !$0.hasPrefix("bandwidth") }
        try scene.fixture.writeConfiguration()
        _ = try await eventually("the daemon has reloaded") { try await scene.fixture.runVerb("reload") }
        try await scene.arrives()
        #expect(try await scene.bytes("lte") == 0)
        // Bytes that had already arrived were not sent again.
        #expect(try await scene.bytes("wan") < 40_000_000)
    }

    @Test(
        "another router at the gateway's address is another network, and no byte is sent after the hold is shown"
    )
    func router() async throws {
        let scene = try await Scene(
            Self.slow, rules: "[{gateway: \"\(Self.home)\", metered: false}, {interface: \"*\", metered: true}]")
        try await scene.router(is: Self.home)
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 30_000_000, relative: "clip.mp4"))
        try await scene.begun()
        try await scene.router(is: "02:00:00:00:00:22")
        let hold = try await scene.waits("clip.mp4", for: "rule")
        #expect(hold.text.contains("{interface: \"*\", metered: true}"), "\(hold.text)")
        let stopped = try await scene.bytes("wan")
        try scene.camera.drop(Clip(number: 1, size: 200_000, relative: "other.mp4"))
        _ = try await scene.waits("other.mp4", for: "rule")
        #expect(try await scene.bytes("wan") == stopped)
        #expect(try await scene.bytes("lte") == 0)
        try await scene.router(is: Self.home)
        try await scene.arrives()
        #expect(try await scene.bytes("lte") == 0)
    }

    private static let home = "02:00:00:00:00:11"

    @Test(
        "a changed route cannot move a transfer to a metered link: it stays on its link or stops")
    func routes() async throws {
        let scene = try await Scene(Self.slow)
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 30_000_000, relative: "clip.mp4"))
        try await scene.begun()
        let roads = scene.roads
        // The kernel now prefers the other link.
        try await blocking { try roads.addRoute("lte", metric: 1) }
        try await scene.begun(4_000_000)
        // Now there is no other link.
        try await blocking { try roads.removeRoute("wan", metric: 10) }
        _ = try await scene.waits("clip.mp4", for: "rule")
        let stopped = try await scene.bytes("wan")
        try scene.camera.drop(Clip(number: 1, size: 200_000, relative: "other.mp4"))
        _ = try await scene.waits("other.mp4", for: "rule")
        #expect(try await scene.bytes("wan") == stopped)
        try await blocking { try roads.addRoute("wan", metric: 10) }
        try await scene.arrives()
        #expect(try await scene.bytes("lte") == 0)
    }

    @Test("when a local address changes, a transfer continues from the new one at once and does not fail")
    func address() async throws {
        let scene = try await Scene(Self.slow)
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 30_000_000, relative: "clip.mp4"))
        try await scene.begun()
        let roads = scene.roads
        try await scene.ip("addr", "add", "10.1.0.7/24", "dev", "wan0")
        try await scene.ip("addr", "del", "10.1.0.2/24", "dev", "wan0")
        try await blocking {
            // The kernel removed the second address with the first, and the route with both.
            try roads.box.ip("addr", "replace", "10.1.0.7/24", "dev", "wan0")
            try roads.box.ip("route", "replace", "default", "via", "10.1.0.1", "dev", "wan0", "metric", "10")
        }
        let moved = try await scene.bytes("wan")
        // A peer that accepts nothing is given up after a minute.
        try await eventually("the transfer continues", within: .seconds(10)) {
            try await scene.bytes("wan") > moved + 1_000_000
        }
        try await scene.arrives()
        #expect(try await scene.bytes("lte") == 0)
        #expect(try scene.fixture.daemon?.standardError().contains("attempt failed") == false)
    }

    @Test("a kept connection is closed when its network becomes metered")
    func keptConnection() async throws {
        let scene = try await Scene()
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        try await scene.arrives()
        #expect(try await scene.connections() == 1)
        scene.fixture.policyKeys = ["metered: pause", "networks: [{interface: \"*\", metered: true}]"]
        try scene.fixture.writeConfiguration()
        _ = try await eventually("the daemon has reloaded") { try await scene.fixture.runVerb("reload") }
        try await eventually("the kept connection has been closed") { try await scene.connections() == 0 }
    }

    @Test("a link that goes down, changes its address or flaps every 200 ms loses no file and sends no metered byte")
    func flapping() async throws {
        let scene = try await Scene(Self.slow)
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 30_000_000, relative: "clip.mp4"))
        try await scene.begun()
        let roads = scene.roads
        try await scene.ip("addr", "flush", "dev", "wan0")
        try await scene.ip("addr", "add", "10.1.0.7/24", "dev", "wan0")
        try await blocking { try roads.addRoute("wan", metric: 10) }
        for _ in 0..<20 {
            // The rhythm is the subject of the test.
            try await scene.ip("link", "set", "wan0", "down")
            try await Task.sleep(for: .milliseconds(200))
            try await scene.ip("link", "set", "wan0", "up")
            try await blocking { try roads.addRoute("wan", metric: 10) }
            try await Task.sleep(for: .milliseconds(200))
        }
        try await scene.arrives()
        #expect(try await scene.bytes("lte") == 0)
        #expect(try await scene.bytes("lte-resets") < 2000)
        #expect(try scene.fixture.daemon?.standardError().contains("attempt failed") == false)
    }

    @Test("a limited metered network carries at most its limit, and the other one is not limited")
    func limits() async throws {
        let scene = try await Scene(["bandwidth: [{limit: 200 kB/s, when: {metered: true}}]"])
        let size = 20_000_000
        try await scene.ip("link", "set", "wan0", "down")
        try scene.fixture.startDaemon()
        let clock = ContinuousClock()
        try scene.camera.drop(Clip(number: 0, size: size, relative: "clip.mp4"))
        try await eventually("the transfer uses the metered link") { try await scene.bytes("lte") > 300_000 }
        #expect(
            try await scene.fixture.runVerb("why", [scene.fixture.drop.appending("clip.mp4").display])?
                .contains("; the bandwidth of policy") == true)
        let start = clock.now
        let before = try await scene.bytes("lte")
        try await eventually("more bytes have been sent over the metered link") {
            try await scene.bytes("lte") > 900_000
        }
        let rate = Double(try await scene.bytes("lte") - before) / start.duration(to: clock.now).inSeconds
        // Headers are added to bodies; a busy machine sends less.
        #expect(rate < 260_000)
        let roads = scene.roads
        try await scene.ip("link", "set", "wan0", "up")
        try await blocking { try roads.addRoute("wan", metric: 10) }
        try await scene.arrives()
        // The unmetered link takes over the running transfer; no byte is sent twice.
        let (wan, lte) = (Int(try await scene.bytes("wan")), Int(try await scene.bytes("lte")))
        #expect(wan > size / 2)
        #expect(wan + lte > size && wan + lte < size + size / 10)
    }

    @Test("a forbidden network carries no byte, metered or not")
    func forbidden() async throws {
        let scene = try await Scene([], rules: "[{interface: \"w*\", allowed: false}]")
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        try await scene.arrives()
        #expect(try await scene.bytes("wan") == 0)
        #expect(try await scene.bytes("lte") > 300_000)
        try await scene.ip("link", "set", "lte0", "down")
        try scene.camera.drop(Clip(number: 1, size: 300_000, relative: "other.mp4"))
        let hold = try await scene.waits("other.mp4", for: "metered")
        #expect(hold.text.contains("{interface: \"w*\", allowed: false}") && hold.text.contains("forbids wan0"))
        #expect(try await scene.bytes("wan") == 0)
    }
}
