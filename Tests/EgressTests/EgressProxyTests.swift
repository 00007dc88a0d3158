import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Egress

/// Programs that others have made, through the proxy to a server on loopback.
@Suite(
    "The proxy for programs", .timeLimit(.minutes(Patience.minutes(2)))
)
struct EgressProxyTests {
    private func server() throws -> FakeServer {
        try FakeServer { exchange in
            let count = exchange.body().count
            let names = exchange.headerNames.filter { $0.hasPrefix("proxy") || $0 == "te" }
            exchange.reply(200, [], "\(exchange.method) \(exchange.target) \(count) \(names)")
        }
    }

    private static func withoutProxies(_ lease: EgressLease) -> (address: String, socks: String) {
        let address = String(lease.environment[0].drop { $0 != "=" }.dropFirst())
        return (address, "socks5h://" + address.dropFirst("http://".count))
    }

    @Test("curl reaches a server by name with CONNECT, with an absolute address and with SOCKS")
    func curl() async throws {
        let (server, scene) = (try server(), try ProxyScene())
        let lease = try scene.lease([server.port])
        let url = "http://server.example:\(server.port)/a?b"
        let body = TemporaryFolder()
        let path = try body.write("body", Array(repeating: 0x61, count: 300_000))
        for words in [[], ["-p"], ["-x", Self.withoutProxies(lease).socks]] {
            let (status, text) = try await scene.curl(words + ["-T", path.display, url], lease.environment)
            #expect(status == .status(0) && text == "PUT /a?b 300000 []", "\(words) \(text)")
        }
        #expect(scene.gate.seen.withLock { $0.targets } == Array(repeating: "server.example:\(server.port)", count: 3))
        try await eventually("all connections have ended") { scene.gate.ends == [.closed, .closed, .closed] }
        let spent = scene.gate.spent
        #expect(spent.bytes > 900_000 && spent.bytes < 1_000_000, "\(spent)")
    }

    @Test("Python's urllib reaches a server with the variables of the environment")
    func urllib() async throws {
        let (server, scene) = (try server(), try ProxyScene())
        let lease = try scene.lease([server.port])
        let (status, text) = try await scene.run(
            "/usr/bin/python3",
            [
                "-c",
                "import urllib.request as r; print(r.urlopen('http://server.example:\(server.port)/x', data=b'12345').read())",
            ], lease.environment)
        #expect(status == .status(0) && text == "b'POST /x 5 []'\n", "\(text)")
    }

    @Test("another program of this machine, without credentials or with wrong ones, is refused in each protocol")
    func stranger() async throws {
        let (server, scene) = (try server(), try ProxyScene())
        let lease = try scene.lease([server.port])
        let url = "http://server.example:\(server.port)/"
        for login in ["", "user:word@"] {
            let place = "\(login)127.0.0.1:\(lease.port)"
            let absolute = try await scene.curl(["-x", "http://\(place)", url], [])
            #expect(absolute.text.contains("the user or password of the proxy is missing"), "\(absolute)")
            let tunnel = try await scene.curl(["-p", "-x", "http://\(place)", url], [])
            #expect(tunnel.status != .status(0) && tunnel.text.contains("407"), "\(tunnel)")
            let socks = try await scene.curl(["-x", "socks5h://\(place)", url], [])
            #expect(socks.status == .status(97), "\(socks)")
        }
        #expect(server.connectionCount == 0 && scene.gate.seen.withLock { $0.targets }.isEmpty)
    }

    @Test("the credentials of one lease are void when it ends, while another one lasts")
    func stolen() async throws {
        let (server, scene) = (try server(), try ProxyScene())
        let (first, second) = (try scene.lease([server.port]), try scene.lease([server.port]))
        let url = "http://server.example:\(server.port)/"
        #expect(first.environment != second.environment && first.port == second.port)
        #expect(try await scene.curl([url], first.environment).text == "GET / 0 []")
        first.end()
        #expect(try await scene.curl([url], first.environment).text.contains("no longer valid"))
        #expect(try await scene.curl([url], second.environment).text == "GET / 0 []")
    }

    @Test("it listens only while a lease exists")
    func listens() async throws {
        let scene = try ProxyScene()
        #expect(!scene.proxy.isListening)
        let lease = try scene.lease([80])
        #expect(Loopback.answers(Int(lease.port)))
        lease.end()
        try await eventually("the proxy has ended") { !scene.proxy.isListening }
        #expect(!Loopback.answers(Int(lease.port)))
        let next = try scene.lease([80])
        #expect(scene.proxy.isListening && Loopback.answers(Int(next.port)))
    }

    @Test("ports and hosts that a lease does not name are refused before anything decides about them")
    func permissions() async throws {
        let (server, scene) = (try server(), try ProxyScene())
        let lease = try scene.lease([server.port], hosts: ["server.example"])
        let port = try await scene.curl(["http://server.example:\(server.port - 1)/"], lease.environment)
        #expect(port.text.contains("may not connect to port \(server.port - 1)"))
        let host = try await scene.curl(["http://other.example:\(server.port)/"], lease.environment)
        #expect(host.text.contains("may not connect to other.example"))
        let fine = try await scene.curl(["http://SERVER.example.:\(server.port)/"], lease.environment)
        #expect(fine.text == "GET / 0 []", "\(fine)")
        #expect(scene.gate.seen.withLock { $0.targets } == ["server.example:\(server.port)"])
    }

    @Test(
        "a stopped connection is reset at once, and nothing arrives after the stop", arguments: [true, false])
    func stops(byLease: Bool) async throws {
        let arrived = Counted()
        let server = try FakeServer { exchange in
            while true {
                let piece = exchange.piece(64 << 10)
                if piece.isEmpty { break }
                arrived.add(piece.count)
            }
            arrived.end(wasReset: exchange.wasReset)
        }
        let scene = try ProxyScene(throttles: [Throttle(rate: 2_000_000)])
        let lease = try scene.lease([server.port])
        let folder = TemporaryFolder()
        let path = try folder.write("body", Array(repeating: 0x61, count: 30_000_000))
        async let result = scene.curl(
            ["-T", path.display, "http://server.example:\(server.port)/"], lease.environment)
        try await eventually("bytes have arrived") { arrived.count > 500_000 }
        let before = arrived.count
        if byLease { lease.end() } else { for connection in scene.gate.running { connection.stop() } }
        try await eventually("the server sees the end") { arrived.isEnded }
        // What comes in two seconds, of the fifteen that the body takes.
        #expect(arrived.wasReset && arrived.count < before + 4_000_000)
        #expect(try await result.status != .status(0))
        #expect(scene.gate.ends == [.stopped])
    }

    @Test("the limits apply to both directions", arguments: [true, false])
    func rates(isUpload: Bool) async throws {
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.reply(200, [], isUpload ? "" : String(repeating: "a", count: 1_000_000))
        }
        let scene = try ProxyScene(throttles: [Throttle(rate: 500_000)])
        let lease = try scene.lease([server.port])
        let folder = TemporaryFolder()
        let path = try folder.write("body", Array(repeating: 0x61, count: 1_000_000))
        let begin = ContinuousClock.now
        let words = isUpload ? ["-T", path.display] : ["-o", "/dev/null"]
        let (status, text) = try await scene.curl(
            words + ["http://server.example:\(server.port)/"], lease.environment)
        #expect(status == .status(0), "\(text)")
        // The bucket begins with a part of a second's worth.
        #expect(begin.duration(to: .now) > .milliseconds(1400))
        #expect(begin.duration(to: .now) < .seconds(8 * Patience.factor))
    }

    @Test("a server that cannot be reached is reported to the program")
    func unreachable() async throws {
        let port = try Loopback.freePort()
        let scene = try ProxyScene()
        let lease = try scene.lease([port])
        let (_, text) = try await scene.curl(["http://server.example:\(port)/"], lease.environment)
        #expect(text.contains("cannot connect to server.example:\(port)") && text.contains("refused"), "\(text)")
        let tunnel = try await scene.curl(["-p", "http://server.example:\(port)/"], lease.environment)
        #expect(tunnel.text.contains("502"), "\(tunnel)")
    }

    @Test("connections that show no credentials do not keep others out")
    func crowd() async throws {
        let (server, scene) = (try server(), try ProxyScene())
        let lease = try scene.lease([server.port])
        let silent = try (0..<200).map { _ in
            try StreamSocket.connecting(
                to: try #require(IPAddress("127.0.0.1")), port: lease.port, over: nil, timeout: .seconds(5))
        }
        let (_, text) = try await scene.curl(["http://server.example:\(server.port)/"], lease.environment)
        #expect(text == "GET / 0 []", "\(text)")
        #expect(silent.count == 200)
    }

    @Test("the credentials are in the environment of the program, and in no text about it")
    func secrets() throws {
        let scene = try ProxyScene()
        let lease = try scene.lease([80])
        let (address, _) = Self.withoutProxies(lease)
        #expect(
            lease.environment.map { $0.split(separator: "=")[0] }.sorted() == [
                "ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "all_proxy", "http_proxy", "https_proxy",
            ])
        #expect(lease.covered("cannot use \(address)") == "cannot use http://***:***@127.0.0.1:\(lease.port)")
        #expect(!"\(lease)".contains(address.dropFirst(40).prefix(20)))
    }
}

/// Bytes that a server has received, and how the connection has ended.
private final class Counted: Sendable {
    private let state = Mutex((count: 0, isEnded: false, wasReset: false))
    var count: Int { state.withLock { $0.count } }
    var isEnded: Bool { state.withLock { $0.isEnded } }
    var wasReset: Bool { state.withLock { $0.wasReset } }
    func add(_ more: Int) { state.withLock { $0.count += more } }
    func end(wasReset: Bool) { state.withLock { ($0.isEnded, $0.wasReset) = (true, wasReset) } }
}
