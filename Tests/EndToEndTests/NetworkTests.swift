import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// Two ways to one server, one of which costs something, and the kernel's packet filter as the witness of what left by which.
@Suite(
    "two ways, one of them metered, from the built program",
    .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"), .timeLimit(.minutes(Patience.minutes(4))))
struct NetworkEndToEndTests {
    struct Scene {
        let roads: TwoRoads
        let fixture: DaemonFixture
        let camera: Camera

        /// - Parameter rules: In place of those that say that `wan0` costs nothing and `lte0` something.
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

        /// The one at the end of `wan`, and what the box knows of it.
        func router(is hardware: String) async throws {
            let roads = roads
            try await blocking {
                try roads.site.ip("link", "set", "wan1", "address", hardware)
                try roads.box.ip(
                    "neigh", "replace", "10.1.0.1", "lladdr", hardware, "dev", "wan0", "nud", "reachable")
            }
        }

        func bytes(_ name: String) async throws -> Int64 {
            let roads = roads
            return try await blocking { try roads.bytes(by: name) }
        }

        /// The first hold of a file, as `sluice why` has it.
        func hold(_ name: String) async throws -> Hold? {
            guard let text = try await fixture.ask("why", ["--json", fixture.drop.appending(FilePath(name)).display])
            else { return nil }
            return try JSONDecoder().decode(Why.self, from: Data(text.utf8)).answers.first?.holds.first
        }

        func waits(_ name: String, for kind: String) async throws -> Hold {
            try await eventually("\(name) has a hold \(kind)") {
                try await hold(name).flatMap { $0.kind == kind ? $0 : nil }
            }
        }

        func arrives() async throws {
            let outcome = Outcome(fixture: fixture, clips: camera.clips)
            try await outcome.wait(within: .seconds(60))
            try await outcome.check()
        }

        func begun(_ least: Int64 = 1_000_000) async throws {
            try await eventually("the transfer is under way") { try await bytes("wan") > least }
        }
    }

    private struct Why: Decodable {
        struct Answer: Decodable { var holds: [Hold] }
        var answers: [Answer]
    }
    struct Hold: Decodable { var kind, text: String }

    private static let slow = ["metered: pause", "bandwidth: 3 MB/s"]

    @Test("what is metered carries nothing, whether the other way is there or not, and a file waits and says why")
    func pause() async throws {
        let scene = try await Scene()
        try await scene.ip("link", "set", "wan0", "down")
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        let hold = try await scene.waits("clip.mp4", for: "metered")
        #expect(
            hold.text.hasPrefix(
                "`metered` of policy says pause; metered: the rule {interface: \"lte0\", metered: true} says so of lte0"
            ),
            "\(hold.text)")
        try await scene.ip("link", "set", "lte0", "down")
        _ = try await scene.waits("clip.mp4", for: "offline")
        for name in ["wan0", "lte0"] { try await scene.ip("link", "set", name, "up") }
        let roads = scene.roads
        try await blocking { try roads.addRoute("lte", metric: 100) }
        _ = try await scene.waits("clip.mp4", for: "metered")
        #expect(try await scene.bytes("wan") == 0)
        try await blocking { try roads.addRoute("wan", metric: 10) }
        try await scene.arrives()
        #expect(try await scene.bytes("wan") > 300_000)
        #expect(try await scene.bytes("lte") == 0)
    }

    @Test("when a network begins to cost something under a transfer, nothing leaves once the hold is told")
    func flips() async throws {
        let scene = try await Scene(Self.slow)
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 20_000_000, relative: "clip.mp4"))
        try await scene.begun()
        let rules = scene.fixture.policyKeys
        scene.fixture.policyKeys = Self.slow + ["networks: [{interface: \"*\", metered: true}]"]
        try scene.fixture.writeConfiguration()
        _ = try await eventually("it is reloaded") { try await scene.fixture.ask("reload") }
        _ = try await scene.waits("clip.mp4", for: "metered")
        let (wan, lte) = (try await scene.bytes("wan"), try await scene.bytes("lte"))
        // Meanwhile another file is found, settles and is copied.
        try scene.camera.drop(Clip(number: 1, size: 200_000, relative: "other.mp4"))
        _ = try await scene.waits("other.mp4", for: "metered")
        #expect(try await scene.bytes("wan") == wan)
        #expect(try await scene.bytes("lte") == lte)
        #expect(lte == 0)
        scene.fixture.policyKeys = rules.filter { !$0.hasPrefix("bandwidth") }
        try scene.fixture.writeConfiguration()
        _ = try await eventually("it is reloaded") { try await scene.fixture.ask("reload") }
        try await scene.arrives()
        #expect(try await scene.bytes("lte") == 0)
        // What was there already was not sent again.
        #expect(try await scene.bytes("wan") < 25_000_000)
    }

    @Test(
        "when another router answers at the gateway's address, it is another network, and nothing leaves once the hold is told"
    )
    func router() async throws {
        let scene = try await Scene(
            Self.slow, rules: "[{gateway: \"\(Self.home)\", metered: false}, {interface: \"*\", metered: true}]")
        try await scene.router(is: Self.home)
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 12_000_000, relative: "clip.mp4"))
        try await scene.begun()
        try await scene.router(is: "02:00:00:00:00:22")
        let hold = try await scene.waits("clip.mp4", for: "metered")
        #expect(hold.text.contains("{interface: \"*\", metered: true}"), "\(hold.text)")
        let stopped = try await scene.bytes("wan")
        try scene.camera.drop(Clip(number: 1, size: 200_000, relative: "other.mp4"))
        _ = try await scene.waits("other.mp4", for: "metered")
        #expect(try await scene.bytes("wan") == stopped)
        #expect(try await scene.bytes("lte") == 0)
        try await scene.router(is: Self.home)
        try await scene.arrives()
        #expect(try await scene.bytes("lte") == 0)
    }

    private static let home = "02:00:00:00:00:11"

    @Test(
        "a route that changes cannot move a transfer to where it costs: it goes on where it was, or stops until it may")
    func routes() async throws {
        let scene = try await Scene(Self.slow)
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 12_000_000, relative: "clip.mp4"))
        try await scene.begun()
        let roads = scene.roads
        // The kernel now prefers the other.
        try await blocking { try roads.addRoute("lte", metric: 1) }
        try await scene.begun(4_000_000)
        // And now there is no other.
        try await blocking { try roads.removeRoute("wan", metric: 10) }
        _ = try await scene.waits("clip.mp4", for: "metered")
        let stopped = try await scene.bytes("wan")
        try scene.camera.drop(Clip(number: 1, size: 200_000, relative: "other.mp4"))
        _ = try await scene.waits("other.mp4", for: "metered")
        #expect(try await scene.bytes("wan") == stopped)
        try await blocking { try roads.addRoute("wan", metric: 10) }
        try await scene.arrives()
        #expect(try await scene.bytes("lte") == 0)
    }

    @Test("when an address of this machine changes, a transfer goes on from the new one at once and has not failed")
    func address() async throws {
        let scene = try await Scene(Self.slow)
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 12_000_000, relative: "clip.mp4"))
        try await scene.begun()
        let roads = scene.roads
        try await scene.ip("addr", "add", "10.1.0.7/24", "dev", "wan0")
        try await scene.ip("addr", "del", "10.1.0.2/24", "dev", "wan0")
        try await blocking {
            // The kernel took the second address with the first, and the way with both.
            try roads.box.ip("addr", "replace", "10.1.0.7/24", "dev", "wan0")
            try roads.box.ip("route", "replace", "default", "via", "10.1.0.1", "dev", "wan0", "metric", "10")
        }
        let moved = try await scene.bytes("wan")
        // A peer that takes nothing is given up after a minute.
        try await eventually("it goes on", within: .seconds(10)) { try await scene.bytes("wan") > moved + 1_000_000 }
        try await scene.arrives()
        #expect(try await scene.bytes("lte") == 0)
        #expect(try scene.fixture.daemon?.complained().contains("attempt failed") == false)
    }

    @Test("a link that goes, comes, changes its address, and flaps every 200 ms loses nothing and costs nothing")
    func flapping() async throws {
        let scene = try await Scene(Self.slow)
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 12_000_000, relative: "clip.mp4"))
        try await scene.begun()
        let roads = scene.roads
        try await scene.ip("addr", "flush", "dev", "wan0")
        try await scene.ip("addr", "add", "10.1.0.7/24", "dev", "wan0")
        try await blocking { try roads.addRoute("wan", metric: 10) }
        for _ in 0..<20 {
            // The rhythm is what is tested.
            try await scene.ip("link", "set", "wan0", "down")
            try await Task.sleep(for: .milliseconds(200))
            try await scene.ip("link", "set", "wan0", "up")
            try await blocking { try roads.addRoute("wan", metric: 10) }
            try await Task.sleep(for: .milliseconds(200))
        }
        try await scene.arrives()
        #expect(try await scene.bytes("lte") == 0)
        #expect(try await scene.bytes("lte-resets") < 2000)
        #expect(try scene.fixture.daemon?.complained().contains("attempt failed") == false)
    }

    @Test("over a metered network that is limited goes no more than the limit, and over the other as much as it likes")
    func limits() async throws {
        let scene = try await Scene(["metered: {limit: 200 kB/s}"])
        let size = 20_000_000
        try await scene.ip("link", "set", "wan0", "down")
        try scene.fixture.startDaemon()
        let clock = ContinuousClock()
        try scene.camera.drop(Clip(number: 0, size: size, relative: "clip.mp4"))
        try await eventually("it goes by the metered one") { try await scene.bytes("lte") > 300_000 }
        let start = clock.now
        let before = try await scene.bytes("lte")
        try await eventually("more goes") { try await scene.bytes("lte") > 900_000 }
        let rate = Double(try await scene.bytes("lte") - before) / start.duration(to: clock.now).inSeconds
        // Headers come on top of bodies; a machine that is busy makes it less.
        #expect(rate < 260_000)
        let roads = scene.roads
        try await scene.ip("link", "set", "wan0", "up")
        try await blocking { try roads.addRoute("wan", metric: 10) }
        try await scene.arrives()
        // What costs nothing takes over what is under way; nothing goes twice.
        let (wan, lte) = (Int(try await scene.bytes("wan")), Int(try await scene.bytes("lte")))
        #expect(wan > size / 2)
        #expect(wan + lte > size && wan + lte < size + size / 10)
    }

    @Test("a network that is not allowed carries nothing, whatever it costs")
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

/// A person's exceptions, with the same witness.
@Suite(
    "what a person allows, from the built program", .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"),
    .timeLimit(.minutes(Patience.minutes(4))))
struct ExceptionEndToEndTests {
    @Test(
        "one upload may cost something, the others wait; it is counted, shown with who said so, and survives a restart")
    func upload() async throws {
        let scene = try await NetworkEndToEndTests.Scene()
        try await scene.ip("link", "set", "wan0", "down")
        try scene.fixture.startDaemon()
        for (number, name) in ["one.mp4", "two.mp4"].enumerated() {
            try scene.camera.drop(Clip(number: number, size: 300_000, relative: FilePath(name)))
            _ = try await scene.waits(name, for: "metered")
        }
        scene.fixture.killDaemon()
        try scene.fixture.startDaemon()
        _ = try await scene.waits("one.mp4", for: "metered")
        let one = scene.fixture.drop.appending("one.mp4").display
        let said = try await eventually("it is allowed") {
            try await scene.fixture.ask("allow", [one, "--metered", "--for", "1h"])
        }
        #expect(said.contains(": metered until ") && said.contains(", by "), "\(said)")
        try await eventually("it has arrived") {
            try Outcome.files(in: scene.fixture.received, hidden: false).count == 1
        }
        #expect(try await scene.bytes("lte") > 300_000)
        #expect(try await scene.fixture.ask("status")?.contains("allowed") == true)
        try await eventually("it is counted as what it was") {
            try await scene.fixture.ask("usage", ["--json", "--by", "network"])?.contains("\"metered\"")
        }
        let sent = try await scene.bytes("lte")
        _ = try await scene.waits("two.mp4", for: "metered")
        #expect(try await scene.bytes("lte") < sent + 2000)
    }

    @Test("a folder goes beyond its window and its quota while that is allowed, and stops when it is taken back")
    func folder() async throws {
        let scene = try await NetworkEndToEndTests.Scene(
            ["bandwidth: 3 MB/s", "quotas: [{per: day, bytes: 0}]"], rules: "[]")
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 20_000_000, relative: "clip.mp4"))
        let hold = try await scene.waits("clip.mp4", for: "quota")
        #expect(hold.text.contains("allows nothing"))
        let words = ["--folder", "camera", "--quota"]
        _ = try await eventually("it is allowed") { try await scene.fixture.ask("allow", words + ["--for", "1h"]) }
        try await scene.begun()
        _ = try await eventually("it is taken back") { try await scene.fixture.ask("allow", words + ["--end"]) }
        _ = try await scene.waits("clip.mp4", for: "quota")
        let stopped = try await scene.bytes("wan")
        try scene.camera.drop(Clip(number: 1, size: 200_000, relative: "other.mp4"))
        _ = try await scene.waits("other.mp4", for: "quota")
        #expect(try await scene.bytes("wan") < stopped + 2000)
        _ = try await eventually("it is allowed again") {
            try await scene.fixture.ask("allow", words + ["--for", "1h"])
        }
        _ = try await scene.fixture.ask("limit", ["1MB/s", "--for", "1h"])
        #expect(try await scene.fixture.ask("status")?.contains("at most 1.0 MB/s") == true)
        _ = try await scene.fixture.ask("limit", ["0", "--for", "1h"])
        let nothing = try await scene.waits("other.mp4", for: "global")
        #expect(nothing.text == "`sluice limit 0` lets nothing go; `sluice limit off` ends that")
        let sent = try await scene.bytes("wan")
        _ = try await scene.waits("clip.mp4", for: "global")
        #expect(try await scene.bytes("wan") < sent + 2000)
        _ = try await scene.fixture.ask("limit", ["off"])
        try await scene.arrives()
    }
}

/// What the ledger says against what the kernel's packet filter has counted.
@Suite(
    "the ledger and the wire, from the built program", .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"),
    .timeLimit(.minutes(Patience.minutes(4))))
struct LedgerEndToEndTests {
    private struct Status: Decodable {
        struct Destination: Decodable { var sent_today: Int64 }
        var destinations: [Destination]
    }

    private func sent(_ fixture: DaemonFixture) async throws -> Int64 {
        try await eventually("the daemon says what was sent") {
            guard let text = try await fixture.ask("status", ["--json"]) else { return nil }
            return try JSONDecoder().decode(Status.self, from: Data(text.utf8)).destinations.first?.sent_today
        }
    }

    private func bytes(_ roads: TwoRoads) async throws -> Int64 {
        try await blocking { try roads.bytes(by: "wan") + roads.bytes(by: "lte") }
    }

    private func scene(_ policy: [String] = []) async throws -> (TwoRoads, DaemonFixture, Camera) {
        let roads = try await blocking { try TwoRoads() }
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.roads = roads
        fixture.policyKeys = policy
        try await fixture.startReceiver()
        return (roads, fixture, Camera(fixture, dice: Dice(seed: 1)))
    }

    @Test("what was sent is never told to be less than it was, and hardly more, headers and handshakes included")
    func counts() async throws {
        let (roads, fixture, camera) = try await scene()
        try fixture.startDaemon()
        for number in 0..<30 {
            try camera.drop(Clip(number: number, size: 1 + number * 10_000, relative: FilePath("\(number).mp4")))
        }
        try camera.drop(Clip(number: 99, size: 40_000_000, relative: "large.mp4"))
        try await Outcome(fixture: fixture, clips: camera.clips).wait()
        let (told, left) = (try await sent(fixture), try await bytes(roads))
        #expect(told >= left, "\(told) \(left)")
        // A file's few requests, large or small, have a farewell each that their connection pays once.
        #expect(told <= left + left / 50 + 31 * 1000, "\(told) \(left)")
    }

    @Test(
        "a transfer stops at its quota, keeps what it sent, says until when it waits, and goes on when more is allowed")
    func stops() async throws {
        let (roads, fixture, camera) = try await scene(["quotas: [{per: month, bytes: 12 MB}]"])
        try fixture.startDaemon()
        try camera.drop(Clip(number: 0, size: 30_000_000, relative: "clip.mp4"))
        let clip = fixture.drop.appending("clip.mp4").display
        let text = try await eventually("it has a hold") {
            try await fixture.ask("why", [clip]).flatMap { $0.contains("the quota of policy is used up") ? $0 : nil }
        }
        #expect(text.contains("12 MB a month"), "\(text)")
        #expect(try await bytes(roads) <= 12_000_000)
        #expect(try await bytes(roads) > 11_000_000)
        #expect(try await sent(fixture) <= 12_000_000)
        // A restart does not grant it again.
        fixture.killDaemon()
        let before = try await bytes(roads)
        try fixture.startDaemon()
        try camera.drop(Clip(number: 1, size: 100_000, relative: "other.mp4"))
        try await eventually("the other waits as well") {
            try await fixture.ask("why", [fixture.drop.appending("other.mp4").display])?.contains("is used up")
        }
        // Farewells of the connections that the killed one had kept.
        let after = try await bytes(roads)
        #expect(after <= before + 500, "\(before) \(after)")
        fixture.policyKeys = ["quotas: [{per: month, bytes: 50 MB}]"]
        try fixture.writeConfiguration()
        _ = try await eventually("it is reloaded") { try await fixture.ask("reload") }
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(60))
        try await outcome.check()
        // Nothing was sent again.
        #expect(try await bytes(roads) < 32_000_000)
    }

    @Test("through kills at any moment the ledger is never below the wire, and above it by no more than a step each")
    func kills() async throws {
        let (roads, fixture, camera) = try await scene(["bandwidth: 20 MB/s"])
        var dice = Dice(seed: Setting.seed)
        var kills: Int64 = 0
        var total = 0
        for number in 0..<(Setting.isThorough ? 100 : 12) {
            try fixture.startDaemon()
            let size = Int.random(in: 100_000...12_000_000, using: &dice)
            total += size
            try camera.drop(Clip(number: number, size: size, relative: FilePath("\(number).mp4")))
            let least = try await bytes(roads) + Int64.random(in: 1...6_000_000, using: &dice)
            // Or all of it is there.
            try await eventually("more has left", every: .milliseconds(5)) {
                let arrived = try Outcome.files(in: fixture.received, hidden: false).count > number
                return try await bytes(roads) > least || arrived
            }
            fixture.killDaemon()
            kills += 1
        }
        try fixture.startDaemon()
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(60))
        try await outcome.check()
        let (told, left) = (try await sent(fixture), try await bytes(roads))
        #expect(told >= left, "\(told) \(left)")
        #expect(told <= left + left / 50 + kills * 4 * (8 << 20), "\(told) \(left)")
    }
}
