import Core
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
