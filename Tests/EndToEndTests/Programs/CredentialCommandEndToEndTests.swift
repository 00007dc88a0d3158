import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// A command that gives a destination's token over the network, and the way to a destination behind a proxy.
@Suite(
    "Policy over the way to credentials and through proxies, with the built program",
    .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"), .timeLimit(.minutes(Patience.minutes(3))))
struct CredentialCommandEndToEndTests {
    @Test("a command for a token with `network: policy` connects over permitted networks alone, through its proxy")
    func command() async throws {
        let scene = try await EgressScene(script: "true")
        let fixture = scene.fixture
        let program = try fixture.folder.writeProgram(
            "token-of-nas", "echo proxy $http_proxy >> \(scene.output.display)\nexec curl -sS \(scene.url)/40")
        fixture.destinationKeys = ", token: {command: [\(program.display)], network: policy, ports: [\(scene.port)]}"
        try await scene.network.ip("link", "set", "wan0", "down")
        try await scene.start()
        try scene.network.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        _ = try await scene.network.waits("clip.mp4", for: "rule")
        #expect(try await scene.network.bytes("lte") == 0)
        try await scene.network.ip("link", "set", "wan0", "up")
        let roads = scene.network.roads
        try await blocking { try roads.addRoute("wan", metric: 10) }
        try await scene.network.arrives()
        let said = String(decoding: try Files.read(scene.output, limit: 1 << 16), as: UTF8.self)
        #expect(said.hasPrefix("proxy http://sluice") || said.contains("@127.0.0.1:"), "\(said)")
        #expect(try await scene.network.bytes("lte") == 0)
    }

    /// Where a destination takes a command beside its secrets.
    enum Place: String, CaseIterable, CustomTestStringConvertible {
        case presign, sts, authorisation
        var testDescription: String { rawValue }

        func destination(_ command: String, _ url: String, _ port: Int) -> String {
            let own =
                switch self {
                case .presign: "type: s3, preset: minio, bucket: clips, endpoint: \"\(url)\""
                case .sts: "type: oss, bucket: clips, region: cn-hangzhou, addressing: path, endpoint: \"\(url)\""
                case .authorisation: "type: apsara-vod, upload_endpoint: \"\(url)\""
                }
            return "{\(own), \(rawValue): {command: [\(command)], network: policy, ports: [\(port)]}}"
        }
    }

    @Test("a command of `sts`, `presign` or `authorisation` obeys the policy likewise", arguments: Place.allCases)
    func other(_ place: Place) async throws {
        let scene = try await EgressScene(script: "true")
        let fixture = scene.fixture
        let output = scene.output.display
        let program = try fixture.folder.writeProgram(
            "signer",
            """
            cat > /dev/null
            echo proxy $http_proxy >> \(output)
            curl -sS \(scene.url)/40 >> \(output) 2>&1
            exit 1
            """)
        fixture.uploadTo = ["cloud"]
        fixture.moreDestinations = ["cloud: " + place.destination(program.display, scene.url, scene.port)]
        try await scene.network.ip("link", "set", "wan0", "down")
        try await scene.start()
        try scene.network.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        _ = try await scene.network.waits("clip.mp4", for: "rule")
        #expect(try await scene.network.bytes("lte") == 0)
        #expect(try FileStatus.ifPresent(at: scene.output) == nil, "it did not start")
        try await scene.network.ip("link", "set", "wan0", "up")
        let roads = scene.network.roads
        try await blocking { try roads.addRoute("wan", metric: 10) }
        let said = try await eventually("the program has its answer", within: .seconds(60)) {
            guard try FileStatus.ifPresent(at: scene.output) != nil else { return String?.none }
            let said = String(decoding: try Files.read(scene.output, limit: 1 << 16), as: UTF8.self)
            return said.contains(String(repeating: "a", count: 40)) ? said : nil
        }
        #expect(said.hasPrefix("proxy http://sluice") || said.contains("@127.0.0.1:"), "\(said)")
        #expect(try await scene.network.bytes("lte") == 0)
    }

    @Test("the way to the proxy is judged, and the way to the server where `no_proxy` says so")
    func proxy() async throws {
        let scene = try await NetworkEndToEndTests.Scene(
            rules: "[{interface: wan0, metered: true}, {interface: lte0, metered: false}]")
        let fixture = scene.fixture
        // It is at the other end of the metered link.
        fixture.destinationKeys = ", http: {proxy: \"http://10.1.0.1:8888\"}"
        try fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        let hold = try await scene.waits("clip.mp4", for: "rule")
        #expect(hold.text.contains("wan0"), "\(hold.text)")
        for link in ["wan", "lte"] { #expect(try await scene.bytes(link) == 0) }
        fixture.destinationKeys = ", http: {proxy: \"http://10.1.0.1:8888\", no_proxy: [\(TwoRoads.server)]}"
        try fixture.writeConfiguration()
        #expect(try await fixture.runVerb("reload") != nil)
        try await scene.arrives()
        #expect(try await scene.bytes("wan") == 0)
        #expect(try await scene.bytes("lte") > 300_000)
    }

    private struct Usage: Decodable {
        struct Quota: Decodable {
            let name: String?
            let used: Int64
            let reserved: Int64
        }
        let quotas: [Quota]
    }

    @Test(
        "through a proxy on this machine the way to the server is judged, and the bytes are charged to it",
        .enabled("\(Gateway.need(.microsocks))") { await Gateway.areHere(.microsocks) })
    func local() async throws {
        let scene = try await NetworkEndToEndTests.Scene(
            ["metered: pause", "quotas: [{name: plan, per: month, bytes: 1 GB, when: {interface: \"wan*\"}}]"])
        let fixture = scene.fixture
        let (proxy, port) = try await Gateway.microsocks.start(
            in: fixture.folder.path.appending("proxy"), network: scene.roads.box
        ) { _ in "" }
        defer { proxy.end(with: 9) }
        fixture.destinationKeys = ", http: {proxy: \"socks5://127.0.0.1:\(port)\"}"
        // The proxy would use the metered link.
        try await scene.ip("link", "set", "wan0", "down")
        try fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 3_000_000, relative: "clip.mp4"))
        _ = try await scene.waits("clip.mp4", for: "rule")
        #expect(try await scene.bytes("lte") == 0)
        try await scene.ip("link", "set", "wan0", "up")
        let roads = scene.roads
        try await blocking { try roads.addRoute("wan", metric: 10) }
        try await scene.arrives()
        let left = try await scene.bytes("wan")
        #expect(left > 3_000_000)
        #expect(try await scene.bytes("lte") == 0)
        let used = try await eventually("the usage is known, and nothing is reserved") {
            guard let text = try await fixture.runVerb("usage", ["--json"]) else { return Int64?.none }
            let quotas = try JSONDecoder().decode(Usage.self, from: Data(text.utf8)).quotas
            return quotas.first { $0.name == "plan" && $0.reserved == 0 }?.used
        }
        // The proxy has packets of its own on the link: the content is charged, and its headers nearly.
        #expect(used > 3_000_000 && used > left * 95 / 100, "\(used) of \(left)")
    }

    @Test(
        "a proxy is on this machine as soon as its address is, also if that comes after the start",
        .enabled("\(Gateway.need(.microsocks))") { await Gateway.areHere(.microsocks) })
    func late() async throws {
        let scene = try await NetworkEndToEndTests.Scene(["metered: pause"])
        let fixture = scene.fixture
        func start(_ port: Int?) async throws -> (child: Child, port: Int) {
            try await Gateway.microsocks.start(
                in: fixture.folder.path.appending("proxy"), network: scene.roads.box, port: port
            ) { _ in "-i 0.0.0.0" }
        }
        let (proxy, port) = try await start(nil)
        defer { proxy.end(with: 9) }
        fixture.destinationKeys = ", http: {proxy: \"socks5://10.9.9.9:\(port)\"}"
        try fixture.startDaemon()
        try await scene.ip("addr", "add", "10.9.9.9/32", "dev", "lo")
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "first.mp4"))
        try await scene.arrives()
        // Its connections for the first file end while the free link is up. From then on it would use the metered one.
        proxy.end(with: 9)
        let again = try await start(port).child
        defer { again.end(with: 9) }
        try await scene.ip("link", "set", "wan0", "down")
        try scene.camera.drop(Clip(number: 1, size: 300_000, relative: "second.mp4"))
        _ = try await scene.waits("second.mp4", for: "rule")
        #expect(try await scene.bytes("lte") == 0)
    }
}
