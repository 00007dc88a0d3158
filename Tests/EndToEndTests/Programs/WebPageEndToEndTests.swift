import Core
import Glibc
import Linux
import TestKit
import Testing

/// The web page of the built program.
@Suite("Web page of a daemon", .timeLimit(.minutes(Patience.minutes(2))))
struct WebPageEndToEndTests {
    private static let token = "a token of a good length"

    private func fixture() async throws -> DaemonFixture {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.controlKeys = ", listen: \"127.0.0.1:0\", tokens: [{name: me, secret: {literal: \"\(Self.token)\"}}]"
        try await fixture.startReceiver()
        return fixture
    }

    /// - Returns: The cookie.
    private func signIn(_ port: Int) async throws -> String {
        let wire = try Wire(port: port)
        try await wire.send(
            "POST /v1/session HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nAuthorization: Bearer \(Self.token)\r\n"
                + "Content-Length: 2\r\n\r\n{}")
        let reply = try await wire.reply()
        #expect(reply.status == 200)
        return String(try #require(reply.headers["set-cookie"]).prefix { $0 != ";" })
    }

    private func status(_ port: Int, cookie: String) async throws -> Int {
        let wire = try Wire(port: port)
        try await wire.send("GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nCookie: \(cookie)\r\n\r\n")
        return try await wire.reply().status
    }

    /// Starts the daemon, and returns the port of its address.
    private func start(_ fixture: DaemonFixture) async throws -> Int {
        try fixture.startDaemon()
        let link = try await eventually("the daemon makes a link") { try await fixture.runVerb("web") }
        return try #require(link.firstMatch(of: /:([0-9]+)\/#/).flatMap { Int($0.1) })
    }

    @Test("a sign-in survives a restart; without a place for its key the daemon starts, and says what to do")
    func key() async throws {
        let fixture = try await fixture()
        var port = try await start(fixture)
        let cookie = try await signIn(port)
        _ = try await fixture.stopDaemon()
        port = try await start(fixture)
        #expect(try await status(port, cookie: cookie) == 200)
        #expect(try fixture.daemon?.standardError().contains("browsers must sign in again") == false)
        _ = try await fixture.stopDaemon()
        let key = fixture.state.appending("web.key")
        try Files.remove(key)
        try Files.makeFolders(key)
        port = try await start(fixture)
        #expect(try await status(port, cookie: cookie) == 401)
        // The page works for this run.
        #expect(try await status(port, cookie: try await signIn(port)) == 200)
        let log = try #require(try fixture.daemon?.standardError())
        let line = try #require(log.split(separator: "\n").first { $0.contains("browsers must sign in again") })
        #expect(line.contains("warning") && line.contains("path=\(key.display)"))
        #expect(line.contains("it is not a file") && line.contains("Remove \(key.display)"))
    }

    /// The lines of the manual for nginx.
    private func manual(_ address: String) throws -> String {
        let text = String(
            decoding: try Files.read(Repository.root.appending("docs/web.md"), limit: 1 << 20), as: UTF8.self)
        let block = try #require(text.firstMatch(of: /```nginx\n([^`]*)```/)).1
        #expect(block.contains("127.0.0.1:8484"))
        return block.split(separator: "\n").map { line in
            line.contains("127.0.0.1:8484") ? "proxy_pass http://\(address);" : String(line)
        }.joined(separator: "\n")
    }

    @Test(
        "through nginx, as the manual says, a browser signs in by a link, adds a file and follows events",
        .enabled("\(Gateway.need(.nginx))") { await Gateway.areHere(.nginx) }, arguments: [true, false])
    func nginx(_ saysNotToBuffer: Bool) async throws {
        let fixture = try await fixture()
        fixture.controlKeys += ", hosts: [nas.example], trusted_proxies: [127.0.0.1]"
        let own = try await start(fixture)
        var lines = try manual("127.0.0.1:\(own)")
        // The stream itself says the same.
        if !saysNotToBuffer { lines.replace(/proxy_buffering off;/, with: "") }
        let (nginx, port) = try await Gateway.nginx.start(in: fixture.folder.path.appending("nginx")) { port in
            "server { listen 127.0.0.1:\(port); server_name nas.example; \(lines) }"
        }
        defer { nginx.end(with: SIGKILL) }
        let printed = try #require(try await fixture.runVerb("web")).split(separator: "\n").map(String.init)
        #expect(printed.first?.hasPrefix("http://127.0.0.1:\(own)/#code=") == true, "\(printed)")
        let link = try #require(printed.first { $0.hasPrefix("https://nas.example/#code=") })
        let code = try #require(link.firstMatch(of: /code=([0-9a-f]+)/)).1

        // As a browser behind a proxy that has the certificate.
        let head = "Host: nas.example\r\nOrigin: https://nas.example\r\nSec-Fetch-Site: same-origin\r\n"
        func ask(_ line: String, _ headers: String, _ body: String = "") async throws -> Wire {
            let wire = try Wire(port: port)
            try await wire.send(
                "\(line) HTTP/1.1\r\n\(head)\(headers)"
                    + (body.isEmpty ? "" : "Content-Length: \(body.utf8.count)\r\n") + "\r\n" + body)
            return wire
        }
        let signIn = try await ask("POST /v1/session", "", "{\"code\":\"\(code)\"}").reply()
        #expect(signIn.status == 200, "\(signIn.text)")
        let set = try #require(signIn.headers["set-cookie"])
        #expect(set.contains("; Secure"))
        let token = try #require(signIn.text.firstMatch(of: /"token":"([^"]+)"/)).1
        let events = try await ask("GET /v1/events", "Cookie: \(set.prefix { $0 != ";" })\r\n")
        _ = try await events.read(through: "retry: 3000")
        let added = try await ask("POST /v1/bytes?name=a.mp4", "X-Sluice-Token: \(token)\r\n", "the bytes of a file")
            .reply()
        #expect(added.status == 202, "\(added.text)")
        _ = try await events.read(through: "event: added")
        _ = try await events.read(through: "a.mp4")
        let log = try #require(try fixture.daemon?.standardError())
        #expect(log.contains("\"sign in\"") && log.contains("role=operate"), "\(log)")
    }

    @Test("a state folder that cannot be written when the key is made does not keep the daemon from starting")
    func full() async throws {
        let fixture = try await fixture()
        let first = try await start(fixture)
        _ = try await signIn(first)
        _ = try await fixture.stopDaemon()
        try Files.remove(fixture.state.appending("web.key"))
        // In place of a full disk at the moment when the key is written: its temporary name is taken by a folder.
        try Files.makeFolders(fixture.state.appending("web.key.part"))
        let port = try await start(fixture)
        #expect(try await status(port, cookie: try await signIn(port)) == 200)
        #expect(try fixture.daemon?.standardError().contains("browsers must sign in again") == true)
    }
}
