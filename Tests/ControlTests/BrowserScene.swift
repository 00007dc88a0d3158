import API
import Core
import Linux
import Synchronization
import TestKit
import Testing
import Transport
import WebServer

@testable import Control

/// A daemon with a page, and what a browser keeps of it.
final class BrowserScene: Sendable {
    let folder = TemporaryFolder()
    let daemon = FakeDaemon([.sample()])
    let server: ControlServer
    let port: Int
    let transport = Transport()
    /// The lines of the daemon's log.
    let lines: Lines
    let sessions = WebSessions(key: WebSessionTests.key, isSecure: false, clocks: SystemClocks())

    final class Lines: Sendable {
        private let written = Mutex("")
        var text: String { written.withLock { $0 } }
        func add(_ bytes: [UInt8]) { written.withLock { $0 += String(decoding: bytes, as: UTF8.self) } }
    }

    init(servesPage: Bool = true, hosts: [String] = [], heartbeat: Duration = .seconds(15)) async throws {
        let tokens = [
            ControlServer.Token(WebSessionTests.operators) { "a token of a good length" },
            ControlServer.Token(WebSessionTests.viewers) { "another one, only to look" },
        ]
        let lines = Lines()
        self.lines = lines
        server = try await ControlServer.start(
            socket: folder.path.appending("control.sock"),
            remote: .init(
                listen: try ListenAddress("127.0.0.1:0"), hosts: hosts, tokens: tokens,
                sessions: servesPage ? sessions : nil),
            operations: daemon, heartbeat: heartbeat, log: Log(format: .plain) { lines.add($0) })
        port = try #require(server.port)
    }

    var origin: String { "http://127.0.0.1:\(port)" }

    func ask(
        _ method: String, _ path: String, _ headers: [(String, String)] = [], body: String = ""
    ) async throws -> Response {
        var request = Request(
            method, origin + path, headers: headers, body: body.isEmpty ? .none : .bytes(Array(body.utf8)))
        request.mayUseProxy = false
        return try await transport.send(request)
    }

    /// Signs in, and returns the cookie and the page's token.
    func signIn(_ headers: [(String, String)], body: String = "{}") async throws -> (cookie: String, token: String) {
        let response = try await ask("POST", "/v1/session", headers, body: body)
        #expect(response.status == 200)
        let set = try #require(response.headers["Set-Cookie"])
        #expect(set.contains("; HttpOnly") && set.contains("; SameSite=Strict") && set.contains("; Path=/"))
        let view = try JSON.value(SessionView.self, from: response.body)
        return (String(set.prefix { $0 != ";" }), try #require(view.token))
    }

    func end() async {
        await transport.stop()
        await server.stop()
    }
}
