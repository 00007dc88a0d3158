import API
import Core
import Linux
import TestKit
import Testing
import Transport

@testable import Control

@Suite("Pictures over the API", .timeLimit(.minutes(Patience.minutes(1))))
struct ThumbnailRouteTests {
    private final class Scene: Sendable {
        let folder = TemporaryFolder()
        let daemon = FakeDaemon()
        let server: ControlServer
        let port: Int
        let transport = Transport()
        let sessions = WebSessions(key: [UInt8](repeating: 7, count: 32), isSecure: false, clocks: SystemClocks())

        init() async throws {
            let viewers = ControlClientIdentity(name: "screen", role: .view)
            server = try await ControlServer.start(
                socket: folder.path.appending("control.sock"),
                remote: .init(
                    listen: try ListenAddress("127.0.0.1:0"),
                    tokens: [ControlServer.Token(viewers) { "only to look, and long" }], sessions: sessions),
                operations: daemon)
            port = try #require(server.port)
        }

        func ask(_ method: String = "GET", _ headers: [(String, String)] = []) async throws -> Response {
            var request = Request(method, "http://127.0.0.1:\(port)/v1/thumbnails/01J", headers: headers)
            request.mayUseProxy = false
            return try await transport.send(request)
        }

        /// A cookie of the role that may only look.
        func cookie() -> (String, String) {
            let session = sessions.begin(ControlClientIdentity(name: "screen", role: .view), secret: nil)
            return ("Cookie", "\(sessions.cookieName)=\(sessions.text(.cookie, of: session))")
        }

        func end() async {
            await transport.stop()
            await server.stop()
        }
    }

    @Test("a cookie that may look gets the picture, typed as such, for its browser alone; no other page may use it")
    func picture() async throws {
        let scene = try await Scene()
        let cookie = scene.cookie()
        let response = try await scene.ask("GET", [cookie, ("Sec-Fetch-Site", "same-origin")])
        #expect(response.status == 200 && response.body == [0xFF, 0xD8, 0xFF, 0xD9])
        let expected = [
            "Content-Type": "image/jpeg", "ETag": "\"one\"", "Cache-Control": "private, no-cache",
            "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
            "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
            "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
        ]
        for (name, value) in expected { #expect(response.headers[name] == value, "\(name)") }
        for tag in ["\"one\"", "\"zero\", \"one\"", "*"] {
            let again = try await scene.ask("GET", [cookie, ("If-None-Match", tag)])
            #expect(again.status == 304 && again.body.isEmpty && again.headers["ETag"] == "\"one\"")
        }
        #expect(try await scene.ask("GET", [cookie, ("If-None-Match", "\"two\"")]).status == 200)
        #expect(try await scene.ask("HEAD", [cookie]).status == 200)
        #expect(try await scene.ask("POST", [cookie]).status == 401)
        #expect(try await scene.ask().status == 401)
        for site in ["cross-site", "same-site"] {
            #expect(try await scene.ask("GET", [cookie, ("Sec-Fetch-Site", site)]).status == 403)
        }
        await scene.end()
    }

    @Test("where there is none, the answer says why; a daemon with too many requests says when to ask again")
    func refusals() async throws {
        let scene = try await Scene()
        let cookie = scene.cookie()
        scene.daemon.refuse(Refusal(.notFound, "no picture: ffmpeg is not installed", id: "01J"))
        let none = try await scene.ask("GET", [cookie])
        #expect(none.status == 404 && none.headers["Cache-Control"] == "no-store")
        #expect(none.headers["Content-Type"] == "application/json")
        let error = try JSON.value(ErrorReply.self, from: none.body).error
        #expect(
            error.code == "not_found" && error.message == "no picture: ffmpeg is not installed" && error.id == "01J")
        scene.daemon.refuse(Refusal(.unavailable, "too many"))
        let later = try await scene.ask("GET", [cookie])
        #expect(later.status == 503 && later.headers["Retry-After"] == "30")
        await scene.end()
    }
}
