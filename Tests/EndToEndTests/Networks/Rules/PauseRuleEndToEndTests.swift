import Core
import Glibc
import Linux
import TestKit
import Testing

/// Rules with conditions. The kernel's packet filter counts the bytes sent over each of two routes.
@Suite(
    "Rules with conditions, with the built program",
    .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"), .timeLimit(.minutes(Patience.minutes(4))))
struct PauseRuleEndToEndTests {
    private typealias Scene = NetworkEndToEndTests.Scene

    private static let networks =
        "[{name: cable, interface: wan0, metered: false}, {name: lte, interface: \"lte*\", metered: true}]"

    private func scene(_ rules: String..., more: [String] = []) async throws -> Scene {
        try await Scene(["pause: [\(rules.joined(separator: ", "))]"] + more, rules: Self.networks)
    }

    @Test("a rule about one network sends nothing over it, and everything over the other one")
    func network() async throws {
        let scene = try await scene("{name: no-lte, when: {network: lte, folder: camera}}")
        try await scene.ip("link", "set", "wan0", "down")
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        let hold = try await scene.waits("clip.mp4", for: "rule")
        #expect(
            hold.text.contains("the rule `no-lte` of policy (sluice.yaml:")
                && hold.text.contains("while the network is lte, and the folder is camera"), "\(hold.text)")
        let roads = scene.roads
        try await scene.ip("link", "set", "wan0", "up")
        try await blocking { try roads.addRoute("wan", metric: 10) }
        try await scene.arrives()
        #expect(try await scene.bytes("wan") > 300_000)
        #expect(try await scene.bytes("lte") == 0)
    }

    @Test("a rule about one folder holds nothing of another one, on the same network")
    func folder() async throws {
        let scene = try await scene("{name: no-lte, when: {network: lte, not: {folder: camera}}}")
        try await scene.ip("link", "set", "wan0", "down")
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        try await scene.arrives()
        #expect(try await scene.bytes("lte") > 300_000)
    }

    @Test("when a rule begins to apply during a transfer, no byte is sent after its hold is shown")
    func begins() async throws {
        let scene = try await scene("{name: never, when: {roaming: true}}", more: ["bandwidth: 3 MB/s"])
        let fixture = scene.fixture
        try fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 30_000_000, relative: "clip.mp4"))
        try await scene.begun()
        let keys = fixture.policyKeys
        fixture.policyKeys = keys.map {
            $0.replacing(
                "{roaming: true}",
                with: "{interface: [wan0, \"lte*\"], not: {between: [\"00:00-00:01\"], except: [2020-01-01]}}")
        }.map { $0.hasPrefix("networks") ? "networks: \(Self.networks)" : $0 }
        try fixture.writeConfiguration()
        _ = try await eventually("the daemon has reloaded") { try await fixture.runVerb("reload") }
        _ = try await scene.waits("clip.mp4", for: "rule")
        let why = try await fixture.runVerb("why", [fixture.drop.appending("clip.mp4").display]) ?? ""
        #expect(["wan0", "lte0"].allSatisfy { why.contains("not by \($0): the rule `never`") }, "\(why)")
        let sent = try await scene.bytes("wan")
        // Meanwhile another file is found, settles and is copied.
        try scene.camera.drop(Clip(number: 1, size: 200_000, relative: "other.mp4"))
        _ = try await scene.waits("other.mp4", for: "rule")
        #expect(try await scene.bytes("wan") == sent)
        #expect(try await scene.bytes("lte") == 0)
        fixture.policyKeys = keys.filter { !$0.hasPrefix("bandwidth") }
        try fixture.writeConfiguration()
        _ = try await eventually("the daemon has reloaded") { try await fixture.runVerb("reload") }
        try await scene.arrives()
        // Bytes that had already arrived were not sent again.
        #expect(try await scene.bytes("wan") < 40_000_000)
    }

    @Test("`allow --rule` lifts the rule of a name, and none with `override: never`")
    func allowed() async throws {
        let scene = try await scene(
            "{name: soft, when: {network: lte}}", "{name: hard, when: {interface: lte0}, override: never}")
        let fixture = scene.fixture
        try await scene.ip("link", "set", "wan0", "down")
        try fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        #expect(try await scene.waits("clip.mp4", for: "rule").text.contains("`soft`"))
        #expect(try await fixture.runVerb("allow", ["clip.mp4", "--rule", "sfot", "--for", "1h"]) == nil)
        #expect(try await fixture.runVerb("allow", ["clip.mp4", "--rule", "hard", "--for", "1h"]) == nil)
        #expect(try await fixture.runVerb("allow", ["clip.mp4", "--rule", "soft", "--for", "1h"]) != nil)
        try await eventually("only the other rule holds it") {
            try await scene.hold("clip.mp4")?.text.contains("`hard`")
        }
        let reply = try await fixture.runVerb("allow", ["clip.mp4", "--rules", "--for", "1h"]) ?? ""
        #expect(reply.contains("still held, since this rule permits no exception: rule: the rule `hard`"), "\(reply)")
        let hold = try #require(try await scene.hold("clip.mp4"))
        #expect(hold.rule == "hard" && hold.file == fixture.config.name.display && hold.facts == ["interface"])
        let metrics = try await fixture.runVerb("metrics") ?? ""
        let labels = "rule=\"hard\",file=\"\(hold.file ?? "")\",line=\"\(hold.line ?? 0)\",facts=\"interface\""
        #expect(metrics.contains("sluice_rule_held_uploads{"), "\(metrics)")
        #expect(metrics.contains(",\(labels)} 1"), "\(metrics)")
        #expect(try await scene.bytes("lte") == 0)
        fixture.policyKeys = fixture.policyKeys.map { $0.replacing(", override: never", with: "") }
        try fixture.writeConfiguration()
        // The exception from all rules is in force from now on for this one too.
        _ = try await eventually("the daemon has reloaded") { try await fixture.runVerb("reload") }
        try await scene.arrives()
        #expect(try await scene.bytes("lte") > 300_000)
    }

    @Test("a rule about large files over a metered network holds them alone, and the other network takes them")
    func file() async throws {
        let scene = try await scene("{name: big-on-wifi, when: {metered: true, larger_than: 1 MB}}")
        let fixture = scene.fixture
        try await scene.ip("link", "set", "wan0", "down")
        try fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 3_000_000, relative: "big.mp4"))
        let hold = try await scene.waits("big.mp4", for: "rule")
        #expect(
            hold.text.contains("while the network is metered, and the file is larger than 1 MB"), "\(hold.text)")
        try scene.camera.drop(Clip(number: 1, size: 400_000, relative: "small.mp4"))
        try await scene.completes("small.mp4")
        let sent = try await scene.bytes("lte")
        #expect((400_000..<900_000).contains(sent), "\(sent)")
        let roads = scene.roads
        try await scene.ip("link", "set", "wan0", "up")
        try await blocking { try roads.addRoute("wan", metric: 10) }
        try await scene.arrives()
        #expect(try await scene.bytes("wan") > 3_000_000)
        #expect(try await scene.bytes("lte") < sent + 100_000)
    }

    @Test("a reload with a new question about files stops no transfer that the rule does not concern")
    func asked() async throws {
        let scene = try await scene("{name: never, when: {roaming: true}}", more: ["bandwidth: 3 MB/s"])
        let fixture = scene.fixture
        try fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 12_000_000, relative: "clip.mp4"))
        try await scene.begun()
        fixture.policyKeys = fixture.policyKeys.map {
            $0.replacing("{roaming: true}", with: "{larger_than: 20 MB, interface: [wan0, \"lte*\"]}")
        }
        try fixture.writeConfiguration()
        _ = try await eventually("the daemon has reloaded") { try await fixture.runVerb("reload") }
        try scene.camera.drop(Clip(number: 1, size: 21_000_000, relative: "other.mp4"))
        #expect(try await scene.waits("other.mp4", for: "rule").text.contains("`never`"))
        try await scene.completes("clip.mp4")
        let log = try #require(try fixture.daemon?.standardError())
        #expect(!log.contains("transfer stopped"), "\(log.suffix(3000))")
        #expect(try await scene.bytes("wan") < 13_500_000)
    }

    @Test("the length of a recording that cannot be read is unknown, and the hold says so")
    func length() async throws {
        let scene = try await scene("{name: short-only, when: {longer_than: 10s, kind: video}}")
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        let hold = try await scene.waits("clip.mp4", for: "rule")
        #expect(hold.text.contains("it is unknown how long the recording is"), "\(hold.text)")
        try scene.camera.drop(Clip(number: 1, size: 300_000, relative: "still.jpg"))
        try await scene.completes("still.jpg")
    }

    @Test("a rule about destinations outside the local network holds those behind a router, and no others")
    func lan() async throws {
        let scene = try await scene("{name: stay, when: {lan: false}}")
        let fixture = scene.fixture
        // The same receiver, by its address on the link, and by one behind that.
        fixture.killReceiver()
        fixture.address = "0.0.0.0:0"
        try await fixture.startReceiver()
        let port = try #require(fixture.address.split(separator: ":").last)
        fixture.destination = "http://\(TwoRoads.server):\(port)/files/"
        let near = fixture.folder.path.appending("near")
        try Files.makeFolders(near)
        fixture.moreDestinations = ["near: {type: tus, url: \"http://10.1.0.1:\(port)/files/\"}"]
        fixture.moreFolders = [
            "{name: near, path: \(near.display), settle: {quiet_for: 200ms}, remote_name: \"{relative}\", upload_to: [near]}"
        ]
        try fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        let hold = try await scene.waits("clip.mp4", for: "rule")
        #expect(
            hold.text.contains("`stay` of policy")
                && hold.text.contains("while the destination is not in the local network"), "\(hold.text)")
        #expect(try await scene.bytes("wan") == 0)
        try Files.replace(near.appending("near.mp4"), with: [UInt8](repeating: 7, count: 300_000))
        try await eventually("the near file has arrived") {
            try Outcome.files(in: fixture.received, hidden: false).contains { $0.display.hasSuffix("near.mp4") }
        }
        let sent = try await scene.bytes("wan")
        #expect((300_000..<600_000).contains(sent), "\(sent)")
        #expect(try await scene.bytes("lte") == 0)
        #expect(try await scene.hold("clip.mp4")?.kind == "rule")
    }

    @Test("a rule about a gateway applies as soon as that router is at the other end")
    func gateway() async throws {
        let scene = try await scene("{name: guest, when: {gateway: \"0c:5b:8f:27:9a:64\"}}")
        try await scene.ip("link", "set", "lte0", "down")
        try await scene.router(is: "02:00:00:00:00:77")
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        try await scene.arrives()
        try await scene.router(is: "0c:5b:8f:27:9a:64")
        try scene.camera.drop(Clip(number: 1, size: 300_000, relative: "other.mp4"))
        let hold = try await scene.waits("other.mp4", for: "rule")
        #expect(hold.text.contains("`guest`"), "\(hold.text)")
    }
}
