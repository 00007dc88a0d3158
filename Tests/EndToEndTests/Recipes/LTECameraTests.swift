import Core
import Glibc
import Linux
import TestKit
import Testing

/// `config/recipes/lte-camera.yaml` and its page: a camera box, and a NAS behind a web server with TLS.
@Suite(
    "Recipe of a camera box behind a modem",
    .enabled("\(Gateway.need(.caddy, .nginx))") {
        await Gateway.areHere(.caddy, .nginx)
    }, .timeLimit(.minutes(Patience.minutes(4))))
struct LTECameraTests {
    /// The NAS of the page: a receiver that only its own machine reaches, and a web server before it.
    private final class NAS {
        let fixture: DaemonFixture
        let server: Gateway
        private let page: Page
        private let folder: FilePath
        private let host: String
        /// All addresses only in a network of its own, which no other machine reaches.
        private var listens: String { fixture.roads == nil ? "127.0.0.1" : "0.0.0.0" }
        private var certificate: FilePath { folder.appending("certificate.pem") }
        private var key: FilePath { folder.appending("key.pem") }
        private(set) var port: Int?
        private var child: Child?

        init(_ server: Gateway, before fixture: DaemonFixture) async throws {
            self.server = server
            self.fixture = fixture
            page = try Page("docs/recipes/lte-camera.md")
            folder = fixture.folder.path.appending("web")
            host = fixture.roads == nil ? "127.0.0.1" : TwoRoads.server
            try Files.makeFolders(folder)
            let making = try Child(
                "/usr/bin/openssl",
                [
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=nas", "-addext", "subjectAltName=IP:\(host)", "-keyout", key.display, "-out",
                    certificate.display,
                ], output: folder.appending("openssl.out"), errors: folder.appending("openssl.err"))
            let ending = try await making.end(within: .seconds(30))
            let complaint = try making.standardError()
            try #require(ending == .status(0), "\(complaint)")
            try await startReceiver()
            try await start()
        }

        var token: FilePath { fixture.folder.path.appending("nas.token") }

        /// As the unit of the page does.
        private func startReceiver() async throws {
            try Files.replace(token, with: Array((hexadecimal(Random.bytes(32)) + "\n").utf8))
            let lines = page.blocks("").flatMap { $0.split(separator: "\n") }
            let line = try #require(lines.first { $0.hasPrefix("ExecStart=/usr/bin/sluice receive") })
            let words = try Adaptation.of(
                String(line),
                replacing: [
                    ("ExecStart=/usr/bin/sluice receive --into /srv/videos ", ""), ("%d/token", token.display),
                ])
            fixture.receiverKeys = words.split(separator: " ").map { String($0) }
            fixture.address = "127.0.0.1:0"
            try await fixture.startReceiver()
        }

        /// The block of the page, adapted to this machine.
        private func site(at port: Int) throws -> String {
            switch server {
            case .caddy:
                return try Adaptation.of(
                    #require(page.blocks("caddy").first),
                    replacing: [
                        (
                            "nas.example {",
                            "https://\(host):\(port) {\n\tbind \(listens)\n\ttls \(certificate.display) \(key.display)"
                        ),
                        ("127.0.0.1:1080", fixture.address),
                    ])
            case .nginx:
                let location = try Adaptation.of(
                    #require(page.blocks("nginx").first), replacing: [("127.0.0.1:1080", fixture.address)])
                return """
                    server {
                      listen \(listens):\(port) ssl; server_name \(host);
                      ssl_certificate \(certificate.display); ssl_certificate_key \(key.display);
                    \(location)
                    }
                    """
            case .lighttpd, .microsocks, .tinyproxy, .tls: throw Gateway.Missing(server: server)
            }
        }

        /// Starts the web server, at the same port as before.
        func start() async throws {
            (child, port) = try await server.start(
                in: folder, network: fixture.roads?.site, port: port, site: site)
        }

        /// The line of the recipe by which the box trusts this NAS, whose certificate no authority has signed.
        var trust: String { "    http: {ca_file: \(certificate.display)}" }

        /// Ends the web server, and with it each connection.
        func cut() { child?.end(with: SIGKILL) }

        /// Lets the box use the recipe.
        ///
        /// - Parameters:
        ///   - more: What a test replaces besides.
        ///   - policy: Additional keys of `policy`, each on a line.
        func configure(_ more: [(String, String)], policy: [String] = []) throws {
            let common = [
                ("/srv/camera", fixture.drop.display),
                ("https://nas.example/files/", "https://\(host):\(port ?? 0)/files/"),
                (
                    "token: {file: /etc/sluice/nas.token}",
                    "token: {file: \(token.display)}\n\(trust)"
                ),
                ("policy:\n", "policy:\n" + policy.map { "  \($0)\n" }.joined()),
            ]
            try fixture.use(recipe: "lte-camera", replacing: common + more)
        }

        /// What the web server has said since its last start.
        func complaint() throws -> String { try child?.standardError() ?? "" }

        /// Bytes of the largest file that is being received, or was.
        func received() throws -> Int64 {
            try Outcome.files(in: fixture.received, hidden: true)
                .compactMap { try FileStatus.ifPresent(at: fixture.received.appending($0))?.size }.max() ?? 0
        }
    }

    @Test(
        "behind the web server of the page, a file larger than nginx permits by itself survives a kill and a cut",
        arguments: [Gateway.caddy, .nginx])
    func arrives(_ server: Gateway) async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        // Where it is possible, the kernel counts what is sent.
        if TwoRoads.isPossible { fixture.roads = try await blocking { try TwoRoads() } }
        let nas = try await NAS(server, before: fixture)
        // Slow enough to be cut in the middle, and quick to try again.
        try nas.configure([], policy: ["bandwidth: 4 MB/s", "retry: {first: 100ms, max: 1s}"])
        let clip = Clip(number: 1, size: 30_000_000, relative: "clip.mp4")
        try fixture.startDaemon()
        try await fixture.watches()
        try record(Array("no video".utf8), at: fixture.drop.appending("notes.txt"))
        try record(clip.content, at: fixture.drop.appending(clip.relative))
        // In the middle of the second request of `chunk_size`, after which nothing is sent any more.
        if let roads = fixture.roads {
            try await eventually("a third is sent; \(fixture.lastWords())") {
                try await blocking { try roads.bytes(by: "wan") } > 11_000_000
            }
            try await #require(fixture.daemon).stop()
            let sent = try await blocking { try roads.bytes(by: "wan") }
            try #require(sent < 16_000_000, "stopped too late")
        }
        try await eventually("the web server has passed on what it got, and collects nothing; \(fixture.lastWords())") {
            try nas.received() > 9_500_000
        }
        fixture.killDaemon()
        let before = try nas.received()
        try fixture.startDaemon()
        try await eventually("the upload has continued; \(fixture.lastWords())") {
            try nas.received() > before + 6_000_000
        }
        nas.cut()
        let cut = try nas.received()
        #expect(cut < Int64(clip.size))
        try await nas.start()
        try await fixture.completes(1)
        let arrived = FilePath("gate").appending(clip.relative)
        #expect(try Outcome.files(in: fixture.received, hidden: false) == [arrived])
        #expect(try Files.read(fixture.received.appending(arrived), limit: 1 << 30) == clip.content)
        #expect(Set(try Files.names(in: fixture.drop)) == [clip.relative, "notes.txt"])
        // No request was too large for the web server.
        let complaint = try nas.complaint()
        #expect(!complaint.contains("too large"), "\(complaint)")
        // What was on the way at the moment of the kill and of the cut is sent again, and nothing that the NAS has.
        guard let roads = fixture.roads else { return }
        let sent = try await blocking { try roads.bytes(by: "wan") }
        #expect(sent < Int64(clip.size) * 106 / 100 + 2_000_000, "\(sent)")
    }

    @Test("a box that does not know the certificate of the NAS sends it no file", arguments: [Gateway.caddy, .nginx])
    func untrusted(_ server: Gateway) async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        let nas = try await NAS(server, before: fixture)
        try nas.configure([(nas.trust, "")])
        try fixture.startDaemon()
        try await fixture.watches()
        let path = fixture.drop.appending("clip.mp4")
        try record(noise(1000), at: path)
        let hold = try await fixture.holds(path, for: "destination")
        #expect(hold.text.contains("certificate"), "\(hold.text)")
        #expect(try fixture.receiver?.standardError().contains("created") == false)
        try nas.configure([])
        try fixture.writeConfiguration()
        #expect(try await fixture.runVerb("reload") != nil)
        try await fixture.completes(1)
        #expect(try Files.read(fixture.received.appending("gate/clip.mp4")) == noise(1000))
    }

    /// A box with the modem `lte0` and the Wi-Fi `wan0`, as far as the kernel, NetworkManager and ModemManager say.
    private struct Box {
        let fixture: DaemonFixture
        let roads: TwoRoads
        let nas: NAS
        let bus: PrivateBus
        let modems: MockService
        let manager: MockService

        init() async throws {
            bus = try await PrivateBus()
            try await bus.start()
            modems = try await bus.play(.modemManager)
            manager = try await bus.play(.networkManager)
            // NetworkManager guesses that the modem is metered, and that the Wi-Fi is not.
            try await manager.runLine("add_device('lte0', 3); add_device('wan0', 4)")
            roads = try await blocking { try TwoRoads() }
            fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
            fixture.roads = roads
            nas = try await NAS(.nginx, before: fixture)
        }

        func start() throws { try fixture.startDaemon(environment: ["DBUS_SYSTEM_BUS_ADDRESS": bus.address]) }
        func ip(_ words: String...) async throws {
            let (roads, words) = (roads, words)
            try await blocking { try roads.box.run(words) }
        }
        func bytes(_ name: String) async throws -> Int64 {
            let roads = roads
            return try await blocking { try roads.bytes(by: name) }
        }
        func record(_ number: Int, _ size: Int) throws -> FilePath {
            let clip = Clip(number: number, size: size, relative: FilePath("\(number).mp4"))
            let path = fixture.drop.appending(clip.relative)
            try EndToEndTests.record(clip.content, at: path)
            return path
        }
        func end() {
            modems.end()
            manager.end()
        }
    }

    @Test(
        "no byte is sent while the modem roams; at home a day's quota is sent and counted, and `allow` permits one more",
        .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"),
        .enabled("\(PrivateBus.need)") { await PrivateBus.isPossible.value })
    func plan() async throws {
        let quota: Int64 = 3_000_000
        let box = try await Box()
        defer { box.end() }
        let fixture = box.fixture
        try await box.modems.runLine("add_modem(0, 'lte0', 5)")
        try await box.ip("link", "set", "wan0", "down")
        try box.nas.configure([("\"wwan*\"", "\"lte*\""), ("bytes: 1 GB", "bytes: \(quota) B")])
        try box.start()
        try await fixture.watches()
        let first = try box.record(1, 2_000_000)
        let hold = try await fixture.holds(first, for: "metered")
        #expect(hold.text.contains("{roaming: true, allowed: false} forbids lte0"), "\(hold.text)")
        #expect(try await box.bytes("lte") == 0)
        try await box.modems.runLine("registration(0, 1)")
        try await fixture.completes(1)
        #expect(try await box.bytes("lte") > 2_000_000)
        let usage = try await fixture.runVerb("usage", ["--json", "--by", "network"]) ?? ""
        #expect(usage.contains("\"metered\""), "\(usage)")
        let second = try box.record(2, 2_000_000)
        try await fixture.holds(second, for: "quota")
        let sent = try await box.bytes("lte")
        #expect(sent <= quota, "\(sent)")
        #expect(try Outcome.files(in: fixture.received, hidden: false) == ["gate/1.mp4"])
        #expect(try await fixture.runVerb("allow", [second.display, "--quota", "--for", "2h"]) != nil)
        try await fixture.completes(2)
        for name in ["1.mp4", "2.mp4"] as [FilePath] {
            #expect(
                try Files.read(fixture.received.appending("gate").appending(name), limit: 1 << 30)
                    == Files.read(fixture.drop.appending(name), limit: 1 << 30))
        }
        #expect(try await box.bytes("wan") == 0)
    }

    @Test(
        "with `metered: pause` and without quotas, as the page says for a garage, uploads wait for the Wi-Fi",
        .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"),
        .enabled("\(PrivateBus.need)") { await PrivateBus.isPossible.value })
    func garage() async throws {
        let size = 300_000
        let box = try await Box()
        defer { box.end() }
        try await box.modems.runLine("add_modem(0, 'lte0', 1)")
        try await box.ip("link", "set", "wan0", "down")
        try box.nas.configure([
            ("\"wwan*\"", "\"lte*\""), ("metered: allow", "metered: pause"), ("  quotas:\n", ""),
            ("    - {per: day, bytes: 1 GB}", "   "),
            ("    - {per: month, starts_on: 15, bytes: 20 GB}", "   "),
        ])
        try box.start()
        try await box.fixture.watches()
        let path = try box.record(1, size)
        let hold = try await box.fixture.holds(path, for: "rule")
        #expect(hold.text.contains("lte0"), "\(hold.text)")
        #expect(try await box.bytes("lte") == 0)
        try await box.ip("link", "set", "wan0", "up")
        let roads = box.roads
        try await blocking { try roads.addRoute("wan", metric: 10) }
        try await box.fixture.completes(1)
        #expect(try await box.bytes("lte") == 0)
        #expect(try await box.bytes("wan") > Int64(size))
        #expect(try Files.read(box.fixture.received.appending("gate/1.mp4")) == Files.read(path))
    }
}
