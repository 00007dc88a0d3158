import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing
import Transport
import WebServer

@testable import Control
@testable import Daemon

/// The API on an address that other machines reach.
@Suite("Authorization on an address", .timeLimit(.minutes(Patience.minutes(2))))
struct AuthorizerTests {
    /// A token that tests change, with the number of times it was read.
    private final class Kept: Sendable {
        let state = Mutex((token: "s3cret", reads: 0))
        struct Gone: Error {}

        func read() throws -> String {
            try state.withLock { state in
                state.reads += 1
                if state.token.isEmpty { throw Gone() }
                return state.token
            }
        }
    }

    private static func token(_ read: @escaping @Sendable () async throws -> String) -> ControlServer.Token {
        ControlServer.Token(ControlClientIdentity(name: "me", role: .operate), read: read)
    }

    private func request(
        _ headers: [String: String], _ method: String = "GET", _ path: String = "/v1/status"
    ) -> WebRequest {
        WebRequest(
            method: method, path: path, rawTarget: path, query: [:], headers: headers,
            peer: WebPeer(address: "192.0.2.7"))
    }

    /// An authorizer of an address on all interfaces.
    private func authorizer(
        names: [String] = [], listen: String = "0.0.0.0:8484", clocks: any Clocks = ManualClocks(),
        sessions: WebSessions? = nil, viewer: String? = nil,
        say: @escaping @Sendable (String) -> Void = { _ in }, read: @escaping @Sendable () async throws -> String
    ) async throws -> TokenAuthorizer {
        var tokens = [ControlServer.Token(ControlClientIdentity(name: "me", role: .operate), read: read)]
        if let viewer {
            tokens.append(ControlServer.Token(ControlClientIdentity(name: "wall", role: .view)) { viewer })
        }
        return TokenAuthorizer(
            listen: try ListenAddress(listen), names: names,
            tokens: try await ControlTokens(tokens, clocks: clocks, say: say), sessions: sessions)
    }

    @Test(
        "access needs the token, a name of this machine as host, and no foreign origin",
        arguments: [
            (["host": "127.0.0.1:8484", "authorization": "Bearer s3cret"], nil),
            (["host": "localhost:8484", "authorization": "bearer s3cret"], nil),
            (["host": "localhost", "authorization": "bearer s3cret"], 421),
            (["host": "[::1]:8484", "authorization": "Bearer s3cret"], nil),
            (["host": "192.0.2.1", "authorization": "Bearer s3cret"], nil),
            (["host": "NAS.local:8484", "authorization": "Bearer s3cret"], nil),
            (["host": "nas.local.:8484", "authorization": "Bearer s3cret"], nil),
            (["host": "nas.local:84", "origin": "http://nas.local:84", "authorization": "Bearer s3cret"], nil),
            (["host": "nas.local", "origin": "https://NAS.local", "authorization": "Bearer s3cret"], nil),
            (["host": "evil.example", "authorization": "Bearer s3cret"], 421),
            (["host": "nas.local.evil.example", "authorization": "Bearer s3cret"], 421),
            (["host": "[::1", "authorization": "Bearer s3cret"], 421), (["authorization": "Bearer s3cret"], 421),
            (["host": ":8484", "authorization": "Bearer s3cret"], 421),
            (["host": "nas.local", "origin": "http://evil.example", "authorization": "Bearer s3cret"], 403),
            (["host": "nas.local", "origin": "null", "authorization": "Bearer s3cret"], 403),
            (["host": "nas.local:84", "origin": "http://nas.local:85", "authorization": "Bearer s3cret"], 403),
            (["host": "nas.local"], 401), (["host": "nas.local", "authorization": "Bearer "], 401),
            (["host": "nas.local", "authorization": "Bearer s3cre"], 401),
            (["host": "nas.local", "authorization": "Bearer s3cret "], 401),
            (["host": "nas.local", "authorization": "Basic s3cret"], 401),
        ] as [([String: String], Int?)])
    func table(_ headers: [String: String], _ status: Int?) async throws {
        let kept = Kept()
        let door = try await authorizer(names: ["nas.local", "192.0.2.1"]) { try kept.read() }
        let denial = door.denial(of: request(headers))
        let refusal = denial?.reply
        // Only a client that guesses a token has to wait.
        let hasGuessed = status == 401 && headers["authorization"]?.hasPrefix("Bearer ") == true
        #expect(denial.map { ($0.delay > .zero) == hasGuessed } ?? true)
        #expect(refusal?.status == status)
        if status == 401 { #expect(refusal?.headers.contains { $0.0 == "WWW-Authenticate" } == true) }
        if case .bytes(let body)? = refusal?.body {
            #expect(!String(decoding: body, as: UTF8.self).contains("s3cre"))
        }
        if status == nil { #expect(await door.changeDenial(of: request(headers, "POST", "/v1/pause")) == nil) }
    }

    @Test("an address in `Host` is one that is listened on, or one that is configured")
    func addresses() async throws {
        func status(_ listen: String, _ host: String) async throws -> Int? {
            let door = try await authorizer(names: ["198.51.100.1"], listen: listen) { "s3cret" }
            return door.denial(of: request(["host": host, "authorization": "Bearer s3cret"]))?.reply.status
        }
        for (listen, host, expected) in [
            ("0.0.0.0:1", "127.0.0.1:1", nil), ("0.0.0.0:1", "203.0.113.77:1", 421), ("0.0.0.0:1", "127.0.0.1", 421),
            ("192.0.2.5:1", "192.0.2.5:1", nil), ("192.0.2.5:1", "192.0.2.6:1", 421),
            ("[::]:1", "[2001:db8::1]:1", 421),
            ("127.0.0.1:8080", "127.0.0.1:8080", nil), ("127.0.0.1:8080", "localhost:8080", nil),
            ("127.0.0.1:8080", "LocalHost.:8080", nil), ("localhost:8080", "localhost:8080", nil),
            ("127.0.0.1:8080", "127.0.0.2:8080", 421), ("127.0.0.1:8080", "[::1]:8080", 421),
            ("127.0.0.1:8080", "127.0.0.1:8081", 421), ("127.0.0.1:8080", "localhost:8081", 421),
            ("127.0.0.1:8080", "localhost", 421), ("127.0.0.1:8080", "localhost:", 421),
            ("127.0.0.1:8080", "localhost:8080x", 421), ("127.0.0.1:8080", "127.0.0.1:-8080", 421),
            ("192.0.2.5:1", "localhost:1", 421), ("nas.example:8080", "nas.example:8080", nil),
            ("nas.example:8080", "nas.example", 421), ("[2001:db8::1]:8080", "[2001:DB8:0::1]:8080", nil),
            // A port that the scheme has by itself.
            ("127.0.0.1:80", "localhost", nil), ("127.0.0.1:80", "localhost:80", nil),
            // A proxy has another port.
            ("192.0.2.5:1", "198.51.100.1:443", nil), ("192.0.2.5:1", "198.51.100.1", nil),
            // The page's links have the name that is listened on.
            ("NAS.local:8484", "nas.local:8484", nil), ("nas.local:8484", "nas.local.:8484", nil),
            ("nas.local:8484", "nas:8484", 421), ("0.0.0.0:1", "0.0.0.0:1", 421),
        ] as [(String, String, Int?)] { #expect(try await status(listen, host) == expected, "\(listen) \(host)") }
        let tls = TokenAuthorizer(
            listen: try ListenAddress("127.0.0.1:443"), isTLS: true, names: [],
            tokens: try await ControlTokens([Self.token { "s3cret" }], clocks: ManualClocks()) { _ in }, sessions: nil)
        for (host, expected) in [("localhost", nil), ("localhost:443", nil), ("localhost:80", 421)] as [(String, Int?)]
        {
            let request = request(["host": host, "authorization": "Bearer s3cret"])
            #expect(tls.denial(of: request)?.reply.status == expected, "\(host)")
        }
    }

    @Test("a request for another server, or without what its token needs, gets the reason, and nothing about the token")
    func reasons() async throws {
        let sessions = WebSessions(isSecure: false, clocks: ManualClocks())
        let door = try await authorizer(listen: "127.0.0.1:8484", sessions: sessions) { "s3cret" }
        let own = sessions.text(.page, of: sessions.begin(WebSessionTests.operators, secret: nil))
        func reason(_ headers: [String: String]) throws -> String {
            let headers = ["host": "127.0.0.1:8484"].merging(headers) { $1 }
            let denial = try #require(door.denial(of: request(headers, "POST", "/v1/pause")))
            guard case .bytes(let body) = denial.reply.body else { return "" }
            return String(decoding: body, as: UTF8.self)
        }
        for token in [own, "s3cret", "guessed"] {
            let text = try reason(["x-sluice-token": token])
            #expect(text.contains("needs `Sec-Fetch-Site: same-origin`, or an `Origin` equal to `Host`"), "\(text)")
            #expect(text.contains("`Authorization: Bearer …`") && !text.contains("wrong"), "\(text)")
        }
        for token in ["s3cret", "guessed"] {
            let text = try reason(["x-sluice-token": token, "sec-fetch-site": "same-origin"])
            #expect(text.contains("a token of `control.tokens` belongs in `Authorization: Bearer …`"), "\(text)")
        }
        #expect(try reason(["authorization": "Bearer guessed"]).contains("the token is wrong"))
        #expect(try reason(["host": "evil.example"]).contains("`evil.example` is not a name of this daemon"))
        #expect(
            try reason(["host": "localhost:80"]).contains("listens on port 8484, and not on port 80, of `localhost`"))
        #expect(try reason(["host": "localhost:80"]).contains("`control.hosts`"))
    }

    /// The requests in the description of the API, and whether the cookie is enough for each.
    private static func described() throws -> [(method: String, path: String, takesCookie: Bool)] {
        let bytes = try Files.read(Repository.root.appending("docs/api/openapi.yaml"), limit: 1 << 20)
        var found: [(method: String, path: String, takesCookie: Bool)] = []
        var path = ""
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            if let match = line.wholeMatch(of: /\ \ - cookie: .*/) {
                Issue.record("the cookie is enough for all requests: \(match.0)")
            } else if let match = line.wholeMatch(of: /\ \ (\/\S+):/) {
                path = String(match.1).replacing(/\{\w+\}/, with: "a")
            } else if let match = line.wholeMatch(of: /\ {4}(get|post|put|patch|delete):/) {
                found.append((match.1.uppercased(), path, false))
            } else if line.hasPrefix("      security:"), let last = found.indices.last {
                // `{}`: none is needed.
                found[last].takesCookie = line.contains("{cookie: []}") || line.contains("{}")
            }
        }
        return found
    }

    @Test("the description of the API says for which requests the cookie of a browser is enough")
    func describedCookies() async throws {
        let sessions = WebSessions(isSecure: false, clocks: ManualClocks())
        let door = try await authorizer(listen: "127.0.0.1:8484", sessions: sessions) { "s3cret" }
        let cookie = sessions.text(.cookie, of: sessions.begin(WebSessionTests.operators, secret: nil))
        let headers = [
            "host": "127.0.0.1:8484", "cookie": "\(sessions.cookieName)=\(cookie)", "sec-fetch-site": "same-origin",
        ]
        let described = try Self.described()
        #expect(described.count > 40 && described.contains { $0.takesCookie } && described.contains { !$0.takesCookie })
        for (method, path, takesCookie) in described {
            let isAccepted = door.denial(of: request(headers, method, path)) == nil
            #expect(isAccepted == takesCookie, "\(method) \(path)")
        }
    }

    @Test("a client with the role `view` may read, and may change nothing")
    func roles() async throws {
        let door = try await authorizer(names: ["nas.local"], viewer: "only to look") { "s3cret" }
        let headers = ["host": "nas.local", "authorization": "Bearer only to look"]
        #expect(door.denial(of: request(headers)) == nil)
        #expect(door.denial(of: request(headers, "POST", "/v1/pause")) == nil)
        #expect(await door.changeDenial(of: request(headers, "POST", "/v1/pause"))?.contains("role: view") == true)
        #expect(door.name(of: request(headers)) == "wall (192.0.2.7)")
    }

    @Test("a changed token applies in time, and an unreadable one keeps the old one, logged once")
    func renewal() async throws {
        let (kept, clocks) = (Kept(), ManualClocks())
        let (old, new) = ("a secret of a good length", "another secret of a better length")
        kept.state.withLock { $0.token = old }
        let said = Mutex<[String]>([])
        let door = try await authorizer(clocks: clocks, say: { line in said.withLock { $0.append(line) } }) {
            try kept.read()
        }
        func status(_ token: String) -> Int? {
            door.denial(of: request(["host": "127.0.0.1:8484", "authorization": "Bearer \(token)"]))?.reply.status
        }
        kept.state.withLock { $0.token = new }
        #expect(status(old) == nil)
        #expect(kept.state.withLock(\.reads) == 1)
        clocks.advance(by: ControlTokens.freshness)
        try await eventually("the new token is accepted") { status(new) == nil }
        #expect(status(old) == 401)
        for _ in 0..<2 {
            kept.state.withLock { $0.token = "" }
            let before = kept.state.withLock(\.reads)
            clocks.advance(by: ControlTokens.freshness)
            try await eventually("the token has been read") {
                _ = status(new)
                return kept.state.withLock(\.reads) > before
            }
        }
        #expect(status(new) == nil)
        try await eventually("the unreadable token has been logged") { said.withLock(\.count) == 1 }
        #expect(said.withLock { $0[0].contains("stays as it was") })
    }

    @Test("a short token causes a warning, at start and when it changes", arguments: [true, false])
    func short(_ isFirst: Bool) async throws {
        let (kept, clocks) = (Kept(), ManualClocks())
        kept.state.withLock { $0.token = isFirst ? "fifteen letters" : "sixteen letters." }
        let said = Mutex<[String]>([])
        let door = try await authorizer(clocks: clocks, say: { line in said.withLock { $0.append(line) } }) {
            try kept.read()
        }
        #expect(said.withLock(\.count) == (isFirst ? 1 : 0))
        kept.state.withLock { $0.token = "shorter" }
        clocks.advance(by: ControlTokens.freshness)
        try await eventually("the new token is accepted") {
            door.denial(of: request(["host": "127.0.0.1:8484", "authorization": "Bearer shorter"])) == nil
        }
        try await eventually("the short token has been logged") { said.withLock(\.count) == (isFirst ? 2 : 1) }
        #expect(said.withLock { $0.allSatisfy { $0.contains("fewer than 16") && !$0.contains("letters") } })
    }

    @Test("without the token no request reaches the daemon, with it every request does")
    func address() async throws {
        let (folder, daemon, kept) = (TemporaryFolder(), FakeDaemon([.sample()]), Kept())
        let socket = folder.path.appending("control.sock")
        let server = try await ControlServer.start(
            socket: socket,
            remote: .init(listen: try ListenAddress("127.0.0.1:0"), tokens: [Self.token { try kept.read() }]),
            operations: daemon)
        let port = try #require(server.port)
        let transport = Transport()
        func ask(_ method: String, _ path: String, _ token: String?, body: String = "{}") async throws -> Int {
            try await transport.send(
                Request(
                    method, "http://127.0.0.1:\(port)\(path)",
                    headers: token.map { [("Authorization", "Bearer \($0)")] } ?? [],
                    body: method == "GET" ? .none : .bytes(Array(body.utf8)))
            ).status
        }
        for token in [nil, "wrong"] {
            #expect(try await ask("GET", "/v1/status", token) == 401)
            #expect(try await ask("POST", "/v1/pause", token) == 401)
            #expect(try await ask("GET", "/v1/events", token) == 401)
            #expect(try await ask("GET", "/nothing", token) == 401)
            // The server does not wait for the body of the request either.
            #expect(try await ask("POST", "/v1/uploads", token, body: String(repeating: "x", count: 1 << 20)) == 401)
        }
        #expect(daemon.asked.isEmpty)
        #expect(try await ask("GET", "/v1/status", "s3cret") == 200)
        #expect(try await ask("POST", "/v1/pause", "s3cret") == 202)
        #expect(daemon.asked == ["status", "pause ||||"])
        await transport.stop()
        await server.stop()
        #expect(try FileStatus.ifPresent(at: socket) == nil)
    }

    @Test("a taken address or an unreadable token leaves no listener")
    func failures() async throws {
        let folder = TemporaryFolder()
        let socket = folder.path.appending("control.sock")
        let first = try await ControlServer.start(
            socket: socket, remote: .init(listen: try ListenAddress("127.0.0.1:0"), tokens: [Self.token { "t" }]),
            operations: FakeDaemon([]))
        let port = try #require(first.port)
        let other = folder.path.appending("other.sock")
        await #expect(throws: WebServerError.self) {
            _ = try await ControlServer.start(
                socket: other,
                remote: .init(listen: try ListenAddress("127.0.0.1:\(port)"), tokens: [Self.token { "t" }]),
                operations: FakeDaemon([]))
        }
        #expect(try FileStatus.ifPresent(at: other) == nil)
        await #expect(throws: Kept.Gone.self) {
            _ = try await ControlServer.start(
                socket: other,
                remote: .init(listen: try ListenAddress("127.0.0.1:0"), tokens: [Self.token { throw Kept.Gone() }]),
                operations: FakeDaemon([]))
        }
        // Another server has the socket, so the address is released.
        await #expect(throws: WebServerError.self) {
            _ = try await ControlServer.start(
                socket: socket, remote: .init(listen: try ListenAddress("127.0.0.1:0"), tokens: [Self.token { "t" }]),
                operations: FakeDaemon([]))
        }
        await first.stop()
    }

    @Test("with a certificate it accepts only TLS, and a certificate that does not match its key is refused")
    func tls() async throws {
        let folder = TemporaryFolder()
        func pem(_ name: String) async throws -> (certificate: FilePath, identity: TLSIdentity) {
            let (chain, key) = (
                folder.path.appending(FilePath(name + ".pem")), folder.path.appending(FilePath(name + ".key"))
            )
            let child = try Child(
                "/usr/bin/openssl",
                [
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=\(name)", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key.display, "-out",
                    chain.display,
                ], output: folder.path.appending("output"), errors: folder.path.appending("errors"))
            #expect(try await child.end(within: .seconds(60)) == .status(0))
            return (
                chain,
                TLSIdentity(
                    certificate: String(decoding: try Files.read(chain, limit: 1 << 16), as: UTF8.self),
                    key: String(decoding: try Files.read(key, limit: 1 << 16), as: UTF8.self))
            )
        }
        let (one, two) = (try await pem("one"), try await pem("two"))
        let listen = try ListenAddress("127.0.0.1:0")
        let socket = folder.path.appending("control.sock")
        let server = try await ControlServer.start(
            socket: socket, remote: .init(listen: listen, identity: one.identity, tokens: [Self.token { "t" }]),
            operations: FakeDaemon([]))
        let port = try #require(server.port)
        let transport = Transport()
        let headers = [("Authorization", "Bearer t")]
        let url = "https://127.0.0.1:\(port)/v1/status"
        #expect(
            try await transport.send(Request("GET", url, headers: headers, limits: .init(), caFile: one.certificate))
                .status == 200)
        await #expect(throws: TransportError.self) {
            _ = try await transport.send(Request("GET", url, headers: headers, caFile: two.certificate))
        }
        await #expect(throws: TransportError.self) {
            _ = try await transport.send(Request("GET", "http://127.0.0.1:\(port)/v1/status", headers: headers))
        }
        // The client may use any cipher, so that only the server's choice counts.
        for (version, isAccepted) in [("-tls1", false), ("-tls1_1", false), ("-tls1_2", true), ("-tls1_3", true)] {
            let client = try Child(
                "/usr/bin/openssl",
                ["s_client", "-connect", "127.0.0.1:\(port)", version, "-cipher", "ALL:@SECLEVEL=0", "-brief"],
                output: folder.path.appending(FilePath("client\(version)")),
                errors: folder.path.appending(FilePath("client\(version).err")))
            #expect(try await (client.end(within: .seconds(30)) == .status(0)) == isAccepted, "\(version)")
        }
        await transport.stop()
        await server.stop()
        let mixed = TLSIdentity(certificate: one.identity.certificate, key: two.identity.key)
        await #expect(throws: WebServerError.self) {
            _ = try await ControlServer.start(
                socket: socket, remote: .init(listen: listen, identity: mixed, tokens: [Self.token { "t" }]),
                operations: FakeDaemon([]))
        }
    }
}
