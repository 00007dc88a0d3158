import Core
import Glibc
import Linux
import TestKit
import Testing

/// tinyproxy of Debian, unpacked, at the other end of the free link.
private enum Tinyproxy {
    static let need =
        "two namespaces as root, and tinyproxy of Debian, unpacked under .build/tools: apt-get update, then "
        + "scripts/test-tools tinyproxy"
    static let address = "10.1.0.1:8888"

    static let program = Task { () -> FilePath? in
        guard TwoRoads.isPossible else { return nil }
        let found = try? await blocking { try Tools.debian("tinyproxy").appending("usr/bin/tinyproxy") }
        return found.flatMap { (try? FileStatus(at: $0)) == nil ? nil : $0 }
    }

    static func start(
        _ scene: NetworkEndToEndTests.Scene, _ program: FilePath, wantsUser: Bool
    ) async throws -> Child {
        let folder = scene.fixture.folder.path.appending("tinyproxy")
        try Files.makeFolders(folder)
        let config = folder.appending("conf")
        let text = """
            Port 8888
            Listen 10.1.0.1
            Timeout 60
            MaxClients 20
            LogFile "\(folder.display)/log"
            \(wantsUser ? "BasicAuth camera password" : "")

            """
        try Files.replace(config, with: Array(text.utf8))
        let child = try scene.roads.site.start(
            program, ["-d", "-c", config.display], output: folder.appending("out"), errors: folder.appending("err"))
        let site = scene.roads.site
        try await eventually("tinyproxy listens") {
            try await blocking {
                let table = try site.run { try Files.read("/proc/thread-self/net/tcp", limit: 1 << 20) }
                // 10.1.0.1:8888, state LISTEN (proc(5)).
                return String(decoding: table, as: UTF8.self).contains("0100010A:22B8 00000000:0000 0A")
            }
        }
        return child
    }
}

@Suite("Uploads through a proxy", .timeLimit(.minutes(Patience.minutes(3))))
struct ProxyEndToEndTests {
    @Test(
        "a proxy that requires a user holds the destination and is named; all files arrive when it accepts",
        .enabled("\(Tinyproxy.need)") { await Tinyproxy.program.value != nil }, arguments: ["", "camera:wrong@"])
    func refused(_ user: String) async throws {
        let program = try #require(await Tinyproxy.program.value)
        let scene = try await NetworkEndToEndTests.Scene()
        let fixture = scene.fixture
        let strict = try await Tinyproxy.start(scene, program, wantsUser: true)
        try fixture.startDaemon(environment: ["http_proxy": "http://\(user)\(Tinyproxy.address)"])
        for number in 0..<3 {
            try scene.camera.drop(Clip(number: number, size: 300_000, relative: FilePath("clip\(number).mp4")))
        }
        let hold = try await scene.waits("clip0.mp4", for: "destination")
        // It answers a wrong password with 401, as the server would.
        #expect(hold.text.contains("the proxy \(Tinyproxy.address)"), "\(hold.text)")
        #expect(hold.text.contains(user.isEmpty ? "answered 407" : "answered 401"), "\(hold.text)")
        #expect(hold.text.contains("http_proxy"), "\(hold.text)")
        // Each upload has been tried.
        try await eventually("the proxy has refused each upload") {
            try await fixture.runVerb("metrics")?.contains(#/sluice_attempts_failed_total\{.*\} [3-9]/#) == true
        }
        let list = try await fixture.runVerb("list", ["--json"]) ?? ""
        #expect(!list.contains(#""state":"failed""#) && !list.contains(#"attempts":1"#), "\(list)")
        strict.end(with: SIGKILL)
        let open = try await Tinyproxy.start(scene, program, wantsUser: false)
        defer { open.end(with: SIGKILL) }
        try await scene.arrives()
    }

    @Test(
        "a proxy that refuses to connect to an https server holds the destination as well",
        .enabled("\(Tinyproxy.need)") { await Tinyproxy.program.value != nil })
    func tunnel() async throws {
        let program = try #require(await Tinyproxy.program.value)
        let scene = try await NetworkEndToEndTests.Scene()
        let fixture = scene.fixture
        fixture.destination = "https://\(fixture.address)/files/"
        let strict = try await Tinyproxy.start(scene, program, wantsUser: true)
        defer { strict.end(with: SIGKILL) }
        try fixture.startDaemon(environment: ["https_proxy": "http://\(Tinyproxy.address)"])
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        let hold = try await scene.waits("clip.mp4", for: "destination")
        #expect(hold.text.contains("the proxy \(Tinyproxy.address) answered 407"), "\(hold.text)")
        #expect(hold.text.contains("https_proxy"), "\(hold.text)")
    }
}
