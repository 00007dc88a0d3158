import Core
import Glibc
import Linux
import TestKit
import Testing

/// Queries to DNS servers count as sent bytes too. With the built program.
@Suite(
    "Name resolution over two routes, one metered",
    .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"), .timeLimit(.minutes(Patience.minutes(3))))
struct NameServerTests {
    private struct Scene {
        let roads: TwoRoads
        let fixture: DaemonFixture
        let server: Child
        /// For the daemon's script.
        let folder: TemporaryFolder
    }

    /// - Parameter servers: The lines of the daemon's resolv.conf(5).
    private func scene(_ policy: [String], servers: [String]) async throws -> Scene {
        let roads = try await blocking { try TwoRoads() }
        let folder = TemporaryFolder()
        let file = try folder.write(
            "resolv.conf", Array(servers.map { "nameserver \($0)\n" }.joined().utf8))
        let script = try folder.writeProgram(
            "sluice",
            """
            exec unshare -m /bin/sh -ec 'mount --bind \(file.display) /etc/resolv.conf; exec "$0" "$@"' \
            \(try Setting.binary().display) "$@"
            """)
        let fixture = try DaemonFixture(source: .delete, binary: script)
        fixture.roads = roads
        fixture.policyKeys = policy
        try await fixture.startReceiver()
        let port = try #require(fixture.address.split(separator: ":").last)
        fixture.destination = "http://nas.example.test:\(port)/files/"
        let server = try roads.site.start(
            "/usr/bin/python3",
            [
                "-B", Repository.root.appending("Tests/Fixtures/name_server.py").display, TwoRoads.server,
                TwoRoads.server, "10.1.0.1", "10.2.0.1",
            ],
            output: fixture.folder.path.appending("names.out"), errors: fixture.folder.path.appending("names.err"))
        _ = try await server.line(after: "ready")
        return Scene(roads: roads, fixture: fixture, server: server, folder: folder)
    }

    private static let lteIsMetered = "networks: [{interface: lte0, metered: true}, {interface: wan0, metered: false}]"

    @Test("if the kernel's route is metered, DNS queries use the unmetered one, like the upload, and are counted")
    func free() async throws {
        let scene = try await scene(["metered: pause", Self.lteIsMetered], servers: [TwoRoads.server])
        defer { scene.server.end(with: SIGKILL) }
        let roads = scene.roads
        // From now on the kernel prefers the metered route.
        try await blocking { try roads.addRoute("lte", metric: 1) }
        try scene.fixture.startDaemon()
        try Files.replace(scene.fixture.drop.appending("a.mp4"), with: noise(300_000))
        try await eventually("the upload is complete; \(scene.fixture.lastWords())", within: .seconds(40)) {
            try await scene.fixture.status()?.counts.completed == 1
        }
        let (wan, lte) = try await blocking {
            (try roads.bytes(by: "wan-names"), try roads.bytes(by: "lte-names"))
        }
        #expect(wan > 0 && lte == 0)
        #expect(try await blocking { try roads.bytes(by: "lte") } == 0)
        let check = try Child(
            scene.fixture.binary, ["check", "--config", scene.fixture.config.display],
            output: scene.fixture.folder.path.appending("check.out"),
            errors: scene.fixture.folder.path.appending("check.err"))
        _ = try await check.end(within: .seconds(30))
        // Tables contain line breaks.
        let said = try check.standardOutput().split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(said.contains("\(TwoRoads.server): queried over allowed networks only"), "\(said)")
        let carried = try await blocking { try roads.bytes(by: "wan") } + wan
        var told: Int64 = 0
        do {
            try await eventually("all sent bytes are charged") {
                let text = try await scene.fixture.runVerb("status", ["--json"]) ?? ""
                told = text.firstMatch(of: /"sent_today"\s*:\s*(\d+)/).flatMap { Int64($0.1) } ?? 0
                return told >= carried
            }
        } catch {
            Issue.record("charged \(told), carried \(carried), \(wan) of it for names; check said: \(said)")
        }
        #expect(try await scene.fixture.stopDaemon() == .status(0))
    }

    @Test("without a default route, a destination with a name is reached by the route to it, and no other one is used")
    func noDefaultRoute() async throws {
        let scene = try await scene(["metered: pause", Self.lteIsMetered], servers: ["10.1.0.1"])
        defer { scene.server.end(with: SIGKILL) }
        let (roads, fixture) = (scene.roads, scene.fixture)
        try await blocking {
            try roads.removeRoute("wan", metric: 10)
            try roads.removeRoute("lte", metric: 100)
            try roads.box.ip("route", "add", "\(TwoRoads.server)/32", "via", "10.1.0.1", "dev", "wan0")
        }
        try fixture.startDaemon()
        try Files.replace(fixture.drop.appending("a.mp4"), with: noise(300_000))
        try await eventually("the upload is complete; \(fixture.lastWords())", within: .seconds(40)) {
            try await fixture.status()?.counts.completed == 1
        }
        let lte = try await blocking { try roads.bytes(by: "lte") + roads.bytes(by: "lte-names") }
        #expect(lte == 0)
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test("a rule that excepts small files permits the look-ups that these need, and holds the others")
    func excepted() async throws {
        let scene = try await scene(
            [
                "pause: [{name: only-small, when: {network: lte, not: {folder: camera, smaller_than: 1 MB}}}]",
                "networks: [{name: lte, interface: lte0, metered: true}, {interface: wan0, metered: false}]",
            ], servers: [TwoRoads.server])
        defer { scene.server.end(with: SIGKILL) }
        let (roads, fixture) = (scene.roads, scene.fixture)
        try await blocking { try roads.box.run(["link", "set", "wan0", "down"]) }
        try fixture.startDaemon()
        try Files.replace(fixture.drop.appending("large.mp4"), with: noise(2_000_000))
        try await eventually("the large file is held") {
            try await fixture.runVerb("why", [fixture.drop.appending("large.mp4").display])?.contains("`only-small`")
        }
        try Files.replace(fixture.drop.appending("small.mp4"), with: noise(300_000))
        try await eventually("the small file has arrived; \(fixture.lastWords())", within: .seconds(40)) {
            try await fixture.status()?.counts.completed == 1
        }
        let lte = try await blocking { try roads.bytes(by: "lte") }
        #expect((300_000..<800_000).contains(lte), "\(lte)")
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test(
        "a name server behind the metered route is not queried and reported; with another one uploads continue"
    )
    func forbidden() async throws {
        let scene = try await scene(["metered: pause", Self.lteIsMetered], servers: ["10.2.0.1"])
        defer { scene.server.end(with: SIGKILL) }
        let roads = scene.roads
        try scene.fixture.startDaemon()
        try Files.replace(scene.fixture.drop.appending("a.mp4"), with: noise(300_000))
        try await eventually(
            "the upload names the unreachable DNS server; \(scene.fixture.lastWords())", within: .seconds(40)
        ) {
            try await scene.fixture.runVerb("list", ["--json"])?.contains(
                "nas.example.test cannot be looked up: no allowed network leads to the DNS server 10.2.0.1") == true
        }
        let (wan, lte) = try await blocking {
            (
                try roads.bytes(by: "wan-names") + roads.bytes(by: "wan"),
                try roads.bytes(by: "lte-names") + roads.bytes(by: "lte")
            )
        }
        #expect(wan == 0 && lte == 0)
        // The subnet of the server is also routed over the unmetered link.
        try await blocking { try roads.box.ip("addr", "del", "10.2.0.2/24", "dev", "lte0") }
        try await eventually("the upload is complete; \(scene.fixture.lastWords())", within: .seconds(60)) {
            try await scene.fixture.status()?.counts.completed == 1
        }
        #expect(try await blocking { try roads.bytes(by: "lte-names") } == 0)
        #expect(try await scene.fixture.stopDaemon() == .status(0))
    }

    @Test(
        "another name server in the file is used even if no link changes; until then check names what waits"
    )
    func rewritten() async throws {
        let scene = try await scene(["metered: pause", Self.lteIsMetered], servers: ["10.2.0.1"])
        defer { scene.server.end(with: SIGKILL) }
        let roads = scene.roads
        try scene.fixture.startDaemon()
        try Files.replace(scene.fixture.drop.appending("a.mp4"), with: noise(300_000))
        try await eventually("the upload waits for the DNS server; \(scene.fixture.lastWords())", within: .seconds(40))
        {
            try await scene.fixture.runVerb("list", ["--json"])?.contains("DNS server 10.2.0.1") == true
        }
        let check = try roads.box.start(
            scene.fixture.binary, ["check", "--config", scene.fixture.config.display],
            output: scene.fixture.folder.path.appending("check.out"),
            errors: scene.fixture.folder.path.appending("check.err"))
        _ = try await check.end(within: .seconds(30))
        let said = try check.standardOutput().split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(said.contains("no allowed network leads to 10.2.0.1 now"), "\(said)")
        // Questions by hand may use it.
        let before = try await blocking { try roads.bytes(by: "lte-names") + roads.bytes(by: "lte") }
        // In place, as required for the file of the daemon's own mount.
        let file = scene.folder.path.appending("resolv.conf")
        let handle = try #require(file.withCString { fopen($0, "w") })
        fputs("nameserver 10.1.0.1\n", handle)
        fclose(handle)
        try await eventually("the upload is complete; \(scene.fixture.lastWords())", within: .seconds(60)) {
            try await scene.fixture.status()?.counts.completed == 1
        }
        #expect(try await blocking { try roads.bytes(by: "lte-names") + roads.bytes(by: "lte") } == before)
        #expect(try await scene.fixture.stopDaemon() == .status(0))
    }

    @Test(
        "without a network rule the system resolves names, also right after a reload removes the last rule"
    )
    func reloaded() async throws {
        let scene = try await scene(["metered: pause", Self.lteIsMetered], servers: ["10.2.0.1"])
        defer { scene.server.end(with: SIGKILL) }
        try scene.fixture.startDaemon()
        try Files.replace(scene.fixture.drop.appending("a.mp4"), with: noise(300_000))
        try await eventually("the upload waits for the DNS server; \(scene.fixture.lastWords())", within: .seconds(40))
        {
            try await scene.fixture.runVerb("list", ["--json"])?.contains("DNS server 10.2.0.1") == true
        }
        scene.fixture.policyKeys = []
        try scene.fixture.writeConfiguration()
        #expect(try await scene.fixture.runVerb("reload") != nil)
        try await eventually("the upload is complete; \(scene.fixture.lastWords())", within: .seconds(60)) {
            try await scene.fixture.status()?.counts.completed == 1
        }
        #expect(try await scene.fixture.stopDaemon() == .status(0))
    }
}
