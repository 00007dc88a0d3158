import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// Limits, quotas and flips while programs are connected. The kernel's packet filter counts the bytes of each route.
@Suite(
    "Policy over connections of programs, with the built program",
    .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"), .timeLimit(.minutes(Patience.minutes(4))))
struct EgressPolicyEndToEndTests {
    private static let upload = "echo begin; curl -sS -T $(dirname $0)/body $url/up && echo end"
    private static let router = "0c:5b:8f:27:9a:64"

    private struct Usage: Decodable {
        struct Quota: Decodable {
            let name: String?
            let used: Int64
            let reserved: Int64
        }
        let quotas: [Quota]
    }

    private func used(_ name: String, in scene: EgressScene) async throws -> Int64 {
        try await eventually("the usage of \(name) is known, and nothing is reserved") {
            guard let text = try await scene.fixture.runVerb("usage", ["--json"]) else { return nil }
            let quotas = try JSONDecoder().decode(Usage.self, from: Data(text.utf8)).quotas
            return quotas.first { $0.name == name && $0.reserved == 0 }?.used
        }
    }

    @Test("a connection ends with the quota of its route, which it is charged to, and not a byte later")
    func quota() async throws {
        let scene = try await EgressScene(
            ["quotas: [{name: plan, per: month, bytes: 3 MB, when: {interface: \"wan*\"}}]"], script: Self.upload,
            size: 20_000_000, rules: "[{interface: lte0, allowed: false}]")
        try await scene.start()
        let result = try await scene.tell()
        #expect(!result.ok && result.detail.contains("too little for a connection"), "\(result)")
        let said = try scene.said()
        #expect(said.contains("begin") && !said.contains("end"), "\(said)")
        let (left, charged) = (try await scene.network.bytes("wan"), try await used("plan", in: scene))
        #expect(left > 2_000_000 && left <= 3_000_000, "\(left)")
        #expect(charged >= left && charged <= 3_000_000, "\(charged) \(left)")
        // The next run does not begin.
        let next = try await scene.tell()
        #expect(!next.ok && next.hold?.kind == "quota", "\(next)")
        #expect(next.hold?.text.contains("too little for a connection of a program") == true, "\(next)")
        #expect(try await scene.network.bytes("wan") == left)
        #expect(try await scene.network.bytes("lte") == 0)
    }

    @Test("a limit joins a running connection when its condition begins to hold, and leaves it when it ends")
    func limit() async throws {
        let scene = try await EgressScene(
            ["bandwidth: [4 MB/s, {name: guest, limit: 100 kB/s, when: {gateway: \"\(Self.router)\"}}]"],
            script: Self.upload, size: 20_000_000, rules: "[{interface: lte0, allowed: false}]")
        try await scene.network.router(is: "02:00:00:00:00:77")
        try await scene.start()
        let result = try scene.begin()
        try await eventually("bytes have left") { try await scene.network.bytes("wan") > 2_000_000 }
        try await scene.network.router(is: Self.router)
        let clock = ContinuousClock()
        // What was in flight before leaves at once; from then on the limit is kept.
        try await eventually("the limit holds") {
            let (before, start) = (try await scene.network.bytes("wan"), clock.now)
            try await eventually("bytes leave") { try await scene.network.bytes("wan") > before + 50_000 }
            let rate = Double(try await scene.network.bytes("wan") - before) / start.duration(to: clock.now).inSeconds
            return rate < 200_000
        }
        let (before, start) = (try await scene.network.bytes("wan"), clock.now)
        try await eventually("more bytes have left") { try await scene.network.bytes("wan") > before + 300_000 }
        let rate = Double(try await scene.network.bytes("wan") - before) / start.duration(to: clock.now).inSeconds
        #expect(rate < 140_000, "\(rate) B/s")
        try await scene.network.router(is: "02:00:00:00:00:77")
        #expect(try await result.result().ok)
        #expect(try await scene.network.bytes("wan") < 21_500_000)
    }

    @Test("while a network comes and goes, no byte leaves by the metered one, and the notice is delivered in the end")
    func flaps() async throws {
        let scene = try await EgressScene(
            ["metered: pause", "bandwidth: 2 MB/s"], script: Self.upload, size: 6_000_000)
        let roads = scene.network.roads
        try await scene.start()
        #expect(try await scene.fixture.runVerb("pause", ["--folder", "camera"]) != nil)
        for round in 1...3 {
            try await eventually("the program has begun again") {
                try scene.said().split(separator: "\n").count { $0 == "begin" } >= round
            }
            let before = try await scene.network.bytes("wan")
            try await eventually("bytes leave") { try await scene.network.bytes("wan") > before + 300_000 }
            try await scene.network.ip("link", "set", "wan0", "down")
            try await eventually("the notice waits for a network that costs nothing") {
                let status = try await scene.fixture.runVerb("status") ?? ""
                return status.contains("waiting") && status.contains("rule: `metered` of policy (")
            }
            try await scene.network.ip("link", "set", "wan0", "up")
            try await blocking { try roads.addRoute("wan", metric: 10) }
        }
        try await eventually("the program has ended well", within: .seconds(60)) { try scene.said().contains("end") }
        #expect(try await scene.network.bytes("lte") == 0)
    }

    @Test(
        "the command of an export waits for an allowed network, and is counted; a pause stops it, and its file does not fail"
    )
    func export() async throws {
        let scene = try await EgressScene(["metered: pause", "bandwidth: 2 MB/s"], script: "")
        try scene.export("echo begin; curl -sS -T \"$1\" $url/up || exit 1; echo end; cp -L \"$1\" \"$2\"")
        let roads = scene.network.roads
        try await scene.network.ip("link", "set", "wan0", "down")
        try await scene.start()
        try scene.network.camera.drop(Clip(number: 0, size: 6_000_000, relative: "clip.mp4"))
        let hold = try await scene.network.waits("clip.mp4", for: "rule")
        #expect(hold.text.contains("`metered` of policy ("), "\(hold)")
        #expect(try scene.said() == "")
        try await scene.network.ip("link", "set", "wan0", "up")
        try await blocking { try roads.addRoute("wan", metric: 10) }
        try await eventually("bytes have left") { try await scene.network.bytes("wan") > 1_000_000 }
        #expect(try await scene.fixture.runVerb("pause", ["--folder", "camera"]) != nil)
        let sent = try await scene.network.bytes("wan")
        try await eventually("the command has lost its connection") { try scene.said().contains("curl: ") }
        #expect(try await scene.network.bytes("wan") == sent)
        #expect(try !scene.said().contains("end"))
        #expect(try await scene.fixture.runVerb("resume", ["--folder", "camera"]) != nil)
        try await scene.network.arrives()
        #expect(try scene.said().hasSuffix("got 6000000\nend\n"))
        let metrics = try #require(try await scene.fixture.runVerb("metrics"))
        #expect(metrics.contains("export camera\",network=\"unmetered\""), "\(metrics)")
        #expect(try await scene.network.bytes("lte") == 0)
    }
}
