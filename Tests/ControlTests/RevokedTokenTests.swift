import API
import Core
import Linux
import Synchronization
import TestKit
import Testing
import WebServer

@testable import Control

/// A token that is changed or revoked while nothing asks the daemon.
@Suite("Revoked tokens", .timeLimit(.minutes(Patience.minutes(1))))
struct RevokedTokenTests {
    private static let old = "a token of a good length"
    private static let new = "another token, of a better length"

    /// The service of an address. Its clocks stand still until a test moves them.
    private final class Scene: Sendable {
        let clocks = ManualClocks()
        let daemon = FakeDaemon()
        let token = Mutex(RevokedTokenTests.old)
        let lines = Mutex<[String]>([])
        /// While it is set, reading the token lasts until it ends.
        let gate = Mutex<AsyncStream<Void>?>(nil)

        func service(patience: Duration = .seconds(600)) async throws -> ControlService {
            let say: @Sendable (String) -> Void = { line in self.lines.withLock { $0.append(line) } }
            let source = ControlServer.Token(WebSessionTests.operators) {
                if let gate = self.gate.withLock({ $0 }) { for await _ in gate {} }
                return self.token.withLock { $0 }
            }
            let sessions = WebSessions(isSecure: false, clocks: clocks)
            let authorizer = TokenAuthorizer(
                listen: try ListenAddress("127.0.0.1:8484"), names: [],
                tokens: try await ControlTokens([source], clocks: clocks, patience: patience, say: say),
                sessions: sessions)
            return ControlService(
                daemon, authorizer: authorizer, page: PageService(sessions, authorizer, log: .silent, say: say))
        }
    }

    private func request(
        _ method: String, _ path: String, _ headers: [String: String]
    ) -> WebRequest {
        WebRequest(
            method: method, path: path, rawTarget: path, query: [:],
            headers: headers.merging(["host": "127.0.0.1:8484"]) { given, _ in given },
            peer: WebPeer(address: "192.0.2.7"))
    }

    private func bearer(_ token: String) -> [String: String] { ["authorization": "Bearer " + token] }

    @Test("after any idle time a revoked token is refused at its first use, and so is what began with it")
    func firstUse() async throws {
        for credential in ["token", "cookie", "page"] {
            let scene = Scene()
            let service = try await scene.service()
            let signIn = await service.reply(
                to: request("POST", "/v1/session", bearer(Self.old)), body: .collected([]))
            guard case .bytes(let bytes) = signIn.body else { throw Refusal(.badRequest, "\(signIn)") }
            let page = try #require(try JSON.value(SessionView.self, from: bytes).token)
            let cookie = try #require(signIn.headers.first { $0.0 == "Set-Cookie" }?.1.prefix { $0 != ";" })
            let headers =
                switch credential {
                case "token": bearer(Self.old)
                case "cookie": ["cookie": String(cookie), "sec-fetch-site": "same-origin"]
                default: ["x-sluice-token": page, "sec-fetch-site": "same-origin"]
                }
            let ask = request("GET", "/v1/status", headers)
            #expect(await service.reply(to: ask, body: .collected([])).status == 200)
            scene.token.withLock { $0 = Self.new }
            scene.clocks.advance(by: .seconds(3_600))
            let late = await service.reply(to: ask, body: .collected([]))
            #expect(late.status == 401, "\(credential)")
            #expect(late.delay == WebDenial.wrongToken || credential == "cookie")
            #expect(scene.daemon.asked == ["status"], "\(credential)")
            #expect(service.denial(of: request("GET", "/v1/status", bearer(Self.new))) == nil)
        }
    }

    @Test("a source that does not answer holds up one request for a while, is logged once, and applies when it answers")
    func silentSource() async throws {
        let scene = Scene()
        let service = try await scene.service(patience: .milliseconds(50))
        let (gate, opening) = AsyncStream<Void>.makeStream()
        scene.gate.withLock { $0 = gate }
        scene.token.withLock { $0 = Self.new }
        scene.clocks.advance(by: .seconds(3_600))
        let old = request("GET", "/v1/status", bearer(Self.old))
        for _ in 0..<3 { #expect(await service.reply(to: old, body: .collected([])).status == 200) }
        #expect(scene.lines.withLock { $0.count == 1 && $0[0].contains("has not answered") })
        scene.gate.withLock { $0 = nil }
        opening.finish()
        try await eventually("the new token applies") {
            service.denial(of: request("GET", "/v1/status", bearer(Self.new))) == nil
        }
        #expect(await service.reply(to: old, body: .collected([])).status == 401)
    }
}
