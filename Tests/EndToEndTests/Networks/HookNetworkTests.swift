import Core
import Linux
import TestKit
import Testing

/// Requests of hooks use only interfaces that policy allows. The kernel's packet filter counts the bytes of each.
@Suite(
    "Hooks over two routes, one metered, with the built program",
    .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"), .timeLimit(.minutes(Patience.minutes(3))))
struct HookNetworkTests {
    @Test(
        "a notice waits while only the metered route is up; `network: any` delivers and counts it"
    )
    func metered() async throws {
        let scene = try await NetworkEndToEndTests.Scene()
        let fixture = scene.fixture
        // The receiver refuses such a request; any answer will do.
        fixture.topKeys = ["hooks:", "  - {name: held, on: [added], url: \"http://\(fixture.address)/held\"}"]
        try await scene.ip("link", "set", "wan0", "down")
        try fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 1000, relative: "clip.mp4"))
        try await eventually("the notice waits for an allowed network") {
            let status = try await fixture.runVerb("status") ?? ""
            return status.contains("held  http://\(fixture.address), 1 waiting")
                && status.contains("rule: `metered` of policy (sluice.yaml:")
        }
        #expect(try await scene.bytes("lte") == 0)
        fixture.topKeys += [
            "  - {name: any, on: [paused], url: \"http://\(fixture.address)/any\", network: any}"
        ]
        try fixture.writeConfiguration()
        #expect(try await fixture.runVerb("reload") != nil)
        #expect(try await fixture.runVerb("pause", ["--folder", "camera"]) != nil)
        try await eventually("the other notice has been given up") {
            try await fixture.runVerb("metrics")?.contains("notices_total{hook=\"any\",result=\"given_up\"} 1") == true
        }
        let sent = try await scene.bytes("lte")
        #expect(sent > 0)
        #expect(try await fixture.runVerb("metrics")?.contains("hook any\",network=\"metered\"") == true)
        #expect(try await fixture.runVerb("status")?.contains("held  http://\(fixture.address), 1 waiting") == true)
        try await scene.ip("link", "set", "wan0", "up")
        let roads = scene.roads
        try await blocking { try roads.addRoute("wan", metric: 50) }
        try await eventually("the notice has been tried over the unmetered route") {
            try await fixture.runVerb("metrics")?.contains("notices_total{hook=\"held\",result=\"given_up\"} 1") == true
        }
        #expect(try await fixture.runVerb("metrics")?.contains("hook held\",network=\"unmetered\"") == true)
        #expect(try await scene.bytes("wan") > 0)
        #expect(try await fixture.runVerb("resume", ["--folder", "camera"]) != nil)
        try await scene.arrives()
    }

    @Test("commands send no byte over a forbidden network, with or without a running daemon")
    func forbidden() async throws {
        let scene = try await NetworkEndToEndTests.Scene([], rules: "[{interface: lte0, allowed: false}]")
        let fixture = scene.fixture
        fixture.topKeys = [
            "hooks:", "  - {name: held, url: \"http://\(fixture.address)/held\"}",
            "  - {name: any, url: \"http://\(fixture.address)/any\", network: any}",
        ]
        try await scene.ip("link", "set", "wan0", "down")
        try fixture.writeConfiguration()
        func run(_ words: [String]) async throws -> (Child.Ending, String) {
            let output = fixture.folder.path.appending(FilePath("said-\(hexadecimal(Random.bytes(6)))"))
            let child = try scene.roads.box.start(
                fixture.binary, words + ["--config", fixture.config.display], output: output,
                errors: FilePath(bytes: output.bytes + Array(".err".utf8)))
            return (try await child.end(within: .seconds(30)), try child.standardOutput() + child.standardError())
        }
        for isRunning in [false, true] {
            if isRunning {
                try fixture.startDaemon()
                try await eventually("the daemon has started") {
                    try await fixture.runVerb("status", ["--json"])?.contains("\"starting\":false") == true
                }
            }
            for name in ["held", "any"] {
                let (status, said) = try await run(["hook", name])
                #expect(status == .status(75), "\(said)")
                #expect(said.contains("forbids lte0") && said.contains("nothing was sent"), "\(said)")
            }
            let (_, said) = try await run(["check"])
            #expect(said.contains("no request was sent: metered"), "\(said)")
        }
        let (_, said) = try await run(["check", "--running"])
        #expect(said.contains("no request was sent: metered"), "\(said)")
        try await scene.ip("link", "set", "wan0", "up")
        let roads = scene.roads
        try await blocking { try roads.addRoute("wan", metric: 50) }
        try await eventually("the check has used the unmetered route") {
            let (status, said) = try await run(["check", "--running"])
            let words = said.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            return status == .status(0) && words.contains("used for nas") && words.contains("the request sent")
        }
        #expect(try await run(["hook", "any"]).1.contains("counted as `hook any`"))
        #expect(try await scene.bytes("wan") > 0)
        #expect(try await scene.bytes("lte") == 0)
    }
}
