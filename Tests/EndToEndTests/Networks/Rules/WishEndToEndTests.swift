import Core
import FoundationEssentials
import Glibc
import Linux
import TestKit
import Testing

/// The configuration of docs/policy-examples.md, with the networks of a test in place of a Wi-Fi and a modem, and times
/// around the present one. The kernel's packet filter counts the bytes sent over each of two routes.
@Suite(
    "The wish of the examples of rules, with the built program",
    .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"), .timeLimit(.minutes(Patience.minutes(6))))
struct WishEndToEndTests {
    private typealias Scene = NetworkEndToEndTests.Scene

    /// The text under `policy:` on the page.
    private static func page() throws -> [String] {
        let text = String(decoding: try Files.read(Repository.root.appending("docs/policy-examples.md")), as: UTF8.self)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        return Array(lines.drop { $0 != "policy:" }.dropFirst().prefix { $0.hasPrefix("  ") })
    }

    /// A window around now, or one that is closed for hours; on the hour, so that both stay so during a test.
    private static func window(isOpen: Bool) -> String {
        var now = time(nil)
        var local = tm()
        localtime_r(&now, &local)
        let hour = Int(local.tm_hour)
        func text(_ hour: Int) -> String { "\(hour % 24 < 10 ? "0" : "")\(hour % 24):00" }
        return isOpen ? "\(text(hour + 22))-\(text(hour + 3))" : "\(text(hour + 8))-\(text(hour + 12))"
    }

    /// - Parameter isNight: Otherwise it is day.
    private func policy(isNight: Bool) throws -> [String] {
        let changes = [
            (#"ssid: "Home""#, "interface: wan0"), (#""wwan*""#, "lte0"),
            (#""22:00-06:00""#, "\"\(Self.window(isOpen: isNight))\""),
            (#""07:00-22:00""#, "\"\(Self.window(isOpen: !isNight))\""),
        ]
        return try Self.page().filter { !$0.hasPrefix("  concurrency:") }.map { line in
            changes.reduce(String(line.dropFirst(2))) { $0.replacing($1.0, with: $1.1) }
        }
    }

    private func scene(isNight: Bool) async throws -> (Scene, FilePath) {
        let scene = try await Scene([], rules: "[]")
        let fixture = scene.fixture
        fixture.policyKeys = try policy(isNight: isNight)
        let door = fixture.folder.path.appending("front")
        try Files.makeFolders(door)
        fixture.moreFolders = [
            "{name: front-door, path: \(door.display), upload_to: [nas], priority: 10, settle: {quiet_for: 300ms}}"
        ]
        // Tests have slots of their own under `policy`, so those of the page are the destination's.
        fixture.destinationKeys =
            try ", " + Self.page().map { $0.dropFirst(2) }.filter { $0.hasPrefix("concurrency:") }[0]
        return (scene, door)
    }

    private func reload(_ scene: Scene, isNight: Bool) async throws {
        scene.fixture.policyKeys = try policy(isNight: isNight)
        try scene.fixture.writeConfiguration()
        _ = try await eventually("the daemon has reloaded") { try await scene.fixture.runVerb("reload") }
    }

    private func why(_ path: FilePath, _ scene: Scene) async throws -> String {
        try await scene.fixture.runVerb("why", [path.display]) ?? ""
    }

    @Test("over the modem by day only small clips of the front door go, at 2 Mbit/s; by night all others but the large")
    func modem() async throws {
        let (scene, door) = try await scene(isNight: false)
        let drop = scene.fixture.drop
        try await scene.ip("link", "set", "wan0", "down")
        try scene.fixture.startDaemon()
        try Files.replace(drop.appending("garden.mp4"), with: noise(300_000))
        try Files.replace(door.appending("big.mp4"), with: noise(21_000_000))
        for file in [drop.appending("garden.mp4"), door.appending("big.mp4")] {
            try await eventually("\(file.display) is held; \(scene.fixture.lastWords())") {
                try await why(file, scene).contains("`lte-by-night`")
            }
        }
        #expect(try await scene.bytes("lte") == 0)
        let clock = ContinuousClock()
        let start = clock.now
        try Files.replace(door.appending("small.mp4"), with: noise(1_500_000))
        try await eventually("the small clip of the front door has arrived", within: .seconds(40)) {
            try await scene.fixture.status()?.counts.completed == 1
        }
        // 250 kB/s, with a burst of a second.
        #expect(start.duration(to: clock.now) > .seconds(4))
        let byDay = try await scene.bytes("lte")
        #expect((1_500_000..<2_200_000).contains(byDay), "\(byDay)")
        try Files.replace(drop.appending("large.mp4"), with: noise(101_000_000))
        try await reload(scene, isNight: true)
        try await eventually("what was held by day has arrived", within: .seconds(40)) {
            try await scene.fixture.status()?.counts.completed == 3
        }
        try await eventually("the large file is held") {
            try await why(drop.appending("large.mp4"), scene).contains("`big-on-wifi`")
        }
        #expect(try await scene.bytes("lte") < byDay + 24_000_000)
        let before = try await scene.bytes("lte")
        let roads = scene.roads
        try await scene.ip("link", "set", "wan0", "up")
        try await blocking { try roads.addRoute("wan", metric: 10) }
        try await eventually("the large file has arrived over the network at home", within: .seconds(60)) {
            try await scene.fixture.status()?.counts.completed == 4
        }
        #expect(try await scene.bytes("lte") == before)
        #expect(try await scene.bytes("wan") > 101_000_000)
    }

    @Test("the quota of the modem ends there, and at home two uploads at once send the rest")
    func limits() async throws {
        let (scene, door) = try await scene(isNight: true)
        let (fixture, roads) = (scene.fixture, scene.roads)
        try await scene.ip("link", "set", "wan0", "down")
        try fixture.startDaemon()
        _ = try await eventually("the daemon answers; \(fixture.lastWords())") {
            try await fixture.runVerb("usage", ["set", "lte-plan", "4997MB"])
        }
        for number in 0..<3 {
            try Files.replace(
                fixture.drop.appending(FilePath("\(number).mp4")), with: noise(2_500_000, seed: UInt64(number)))
        }
        try await eventually("the quota holds what is left", within: .seconds(60)) {
            try await why(fixture.drop.appending("0.mp4"), scene).contains("the quota `lte-plan`")
        }
        func uploading() async throws -> Int {
            let text = try await fixture.runVerb("list", ["--state", "uploading", "--json"]) ?? ""
            return text.split(separator: "\"state\":\"uploading\"", omittingEmptySubsequences: false).count - 1
        }
        // It is day now: these files may not use the modem any more, and at home nothing is slow. Before that, what an
        // upload has reserved and not used may let another one continue.
        try await reload(scene, isNight: false)
        try await eventually("nothing is sent any more") { try await uploading() == 0 }
        let sent = try await scene.bytes("lte")
        #expect(sent > 1_000_000 && sent <= 3_000_000, "\(sent)")
        try await scene.ip("link", "set", "wan0", "up")
        try await blocking { try roads.addRoute("wan", metric: 10) }
        // Slow enough to be seen.
        _ = try await eventually("the daemon has another limit") {
            try await fixture.runVerb("limit", ["400kB/s", "--for", "1h"])
        }
        for number in 3..<6 {
            try Files.replace(door.appending(FilePath("\(number).mp4")), with: noise(1_000_000, seed: UInt64(number)))
        }
        try await eventually("two uploads run") {
            let count = try await uploading()
            #expect(count <= 2)
            return count == 2
        }
        _ = try await fixture.runVerb("limit", ["off"])
        try await eventually("everything has arrived", within: .seconds(60)) {
            try await fixture.status()?.counts.completed == 6
        }
        let later = try await scene.bytes("lte")
        // A server may close a connection that was kept, which is answered with one packet.
        #expect(later - sent <= 60, "\(later) \(sent)")
        #expect(try await scene.bytes("wan") > 4_000_000)
    }
}
