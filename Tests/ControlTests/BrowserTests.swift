import API
import Core
import Linux
import TestKit
import Testing
import Transport
import WebServer

@testable import Control

/// What a browser gets from the address of the web page, and what strangers do.
@Suite("Browsers at the address", .timeLimit(.minutes(Patience.minutes(2))))
struct BrowserTests {
    @Test("signing out needs our own page, with the cookie alone or the page's token, and ends what both are good for")
    func signOut() async throws {
        let scene = try await BrowserScene()
        let bearer = [("Authorization", "Bearer a token of a good length")]
        let same = ("Sec-Fetch-Site", "same-origin")
        let (cookie, token) = try await scene.signIn(bearer)
        let read = ("Cookie", cookie)
        // Another port of this machine is the same site, so browsers add the cookie.
        for headers in [
            [read], [read, ("Sec-Fetch-Site", "same-site")], [read, ("Sec-Fetch-Site", "cross-site")],
            [read, ("Sec-Fetch-Site", "none")], [read, ("Origin", "null")],
            [read, same, ("Origin", "http://127.0.0.1:1")],
        ] {
            let status = try await scene.ask("DELETE", "/v1/session", headers).status
            #expect([401, 403].contains(status), "\(headers)")
        }
        // Where browsers send no metadata there is no other method and no other path.
        for (method, path) in [("POST", "/v1/pause"), ("DELETE", "/v1/uploads/x"), ("DELETE", "/v1/session/x")] {
            #expect(try await scene.ask(method, path, [read, ("Origin", scene.origin)], body: "{}").status == 401)
        }
        #expect(try await scene.ask("GET", "/v1/status", [read]).status == 200)
        let response = try await scene.ask("DELETE", "/v1/session", [read, same])
        #expect(response.status == 204)
        #expect(response.headers["Set-Cookie"]?.contains("; Max-Age=0") == true)
        #expect(try await scene.ask("GET", "/v1/status", [read]).status == 401)
        #expect(try await scene.ask("POST", "/v1/pause", [("X-Sluice-Token", token), same], body: "{}").status == 401)
        // The page's token is of an earlier sign-in: both end.
        let (first, second) = (try await scene.signIn(bearer), try await scene.signIn(bearer))
        let both = [("Cookie", second.cookie), ("X-Sluice-Token", first.token), ("Origin", scene.origin)]
        #expect(try await scene.ask("DELETE", "/v1/session", both).status == 204)
        for given in [first, second] {
            #expect(try await scene.ask("GET", "/v1/status", [("Cookie", given.cookie)]).status == 401)
        }
        #expect(try await scene.ask("DELETE", "/v1/session", both).status == 401)
        #expect(scene.daemon.asked == ["status"])
        await scene.end()
    }

    @Test("an answer of the API is for no cache, no other type and no other origin, and none permits another origin")
    func headers() async throws {
        let scene = try await BrowserScene()
        let bearer = ("Authorization", "Bearer a token of a good length")
        for (method, path, headers) in [
            ("GET", "/v1/status", [bearer]), ("GET", "/v1/status", []), ("GET", "/nothing", [bearer]),
            ("HEAD", "/v1/uploads", [bearer]), ("OPTIONS", "/v1/uploads", [bearer]), ("GET", "/metrics", [bearer]),
            ("GET", "/v1/status", [("Host", "evil.example")]), ("DELETE", "/v1/uploads/x", [bearer]),
            ("OPTIONS", "/v1/pause", [("Origin", "http://127.0.0.1:1"), ("Access-Control-Request-Method", "POST")]),
            ("HEAD", "/v1/events", [bearer]),
        ] {
            let response = try await scene.ask(method, path, headers)
            #expect(response.headers["Cache-Control"] == "no-store", "\(method) \(path)")
            #expect(response.headers["X-Content-Type-Options"] == "nosniff", "\(method) \(path)")
            #expect(response.headers["Cross-Origin-Resource-Policy"] == "same-origin", "\(method) \(path)")
            #expect(response.headers["Access-Control-Allow-Origin"] == nil, "\(method) \(path)")
            // nginx would buffer the events.
            let isStream = path == "/v1/events"
            #expect(response.headers["X-Accel-Buffering"] == (isStream ? "no" : nil), "\(method) \(path)")
        }
        await scene.end()
    }

    @Test("with a port that the kernel chose, only that one is a port of this server")
    func ports() async throws {
        let scene = try await BrowserScene()
        let bearer = ("Authorization", "Bearer a token of a good length")
        for (host, status) in [
            ("127.0.0.1:\(scene.port)", 200), ("localhost:\(scene.port)", 200), ("localhost", 421),
            ("localhost:\(scene.port ^ 1)", 421), ("127.0.0.2:\(scene.port)", 421),
        ] { #expect(try await scene.ask("GET", "/v1/status", [bearer, ("Host", host)]).status == status, "\(host)") }
        await scene.end()
    }

    @Test("a link to sign in is for users of the machine alone: over TCP it is refused with the reason")
    func links() async throws {
        let scene = try await BrowserScene()
        let bearer = ("Authorization", "Bearer a token of a good length")
        let response = try await scene.ask("POST", "/v1/web-link", [bearer], body: "{}")
        #expect(response.status == 403)
        #expect(String(decoding: response.body, as: UTF8.self).contains("only over the daemon's socket"))
        await scene.end()
    }

    @Test("a silent event stream of a browser has a sign of life within the time that the page waits for one")
    func heartbeats() async throws {
        let page = try Files.read(Repository.root.appending("Sources/Control/Web/api.js"))
        let line = try #require(
            String(decoding: page, as: UTF8.self).split(separator: "\n").first { $0.contains("SILENCE = ") })
        let patience = try #require(Int(line.filter(\.isNumber)))
        #expect(ControlServer.remoteHeartbeat * 2 < .milliseconds(patience), "\(line)")
        // Local clients get theirs after an hour.
        let scene = try await BrowserScene(heartbeat: .seconds(3600))
        let wire = try Wire(port: scene.port)
        try await wire.send(
            "GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:\(scene.port)\r\n"
                + "Authorization: Bearer a token of a good length\r\n\r\n")
        _ = try await wire.read(through: "retry: 3000")
        _ = try await wire.read(through: ": \n\n")
        await scene.end()
    }

    @Test("behind a proxy with TLS, as the browser says by its origin, the cookie is for TLS alone")
    func proxied() async throws {
        let scene = try await BrowserScene(hosts: ["localhost"])
        let headers = [("Authorization", "Bearer a token of a good length"), ("Host", "localhost")]
        for (origin, isSecure) in [("https://localhost", true), ("http://localhost", false)] {
            let response = try await scene.ask("POST", "/v1/session", headers + [("Origin", origin)], body: "{}")
            #expect(response.headers["Set-Cookie"]?.contains("; Secure") == isSecure)
        }
        await scene.end()
    }

    @Test("a stranger's body is short, and a wrong code gets one answer a second on a connection")
    func strangers() async throws {
        let scene = try await BrowserScene()
        let long = #"{"code":"\#(String(repeating: "x", count: ControlService.unknownBodyLimit))"}"#
        #expect(try await scene.ask("POST", "/v1/session", body: long).status == 413)
        let began = ContinuousClock.now
        #expect(try await scene.ask("POST", "/v1/session", body: #"{"code":"0123456789abcdef"}"#).status == 401)
        #expect(began.duration(to: .now) >= WebDenial.wrongToken)
        await scene.end()
    }

    @Test("of several cookies of the name the one that is good counts, and signing out ends each of them")
    func severalCookies() async throws {
        let scene = try await BrowserScene()
        let bearer = [("Authorization", "Bearer a token of a good length")]
        let (first, second) = (try await scene.signIn(bearer), try await scene.signIn(bearer))
        let name = scene.sessions.cookieName
        let both = ("Cookie", "\(name)=planted; \(first.cookie); \(name)=; \(second.cookie)")
        #expect(try await scene.ask("GET", "/v1/status", [both]).status == 200)
        let same = ("Sec-Fetch-Site", "same-origin")
        #expect(try await scene.ask("DELETE", "/v1/session", [both, same]).status == 204)
        for cookie in [first.cookie, second.cookie] {
            #expect(try await scene.ask("GET", "/v1/status", [("Cookie", cookie)]).status == 401)
        }
        let many = (0..<200).map { "\(name)=\($0)" }.joined(separator: "; ")
        let third = try await scene.signIn(bearer)
        #expect(try await scene.ask("GET", "/v1/status", [("Cookie", "\(many); \(third.cookie)")]).status == 401)
        await scene.end()
    }

    @Test("the log names who had the configuration or the folders read again")
    func readAgain() async throws {
        let scene = try await BrowserScene()
        let bearer = ("Authorization", "Bearer a token of a good length")
        for (verb, body) in [("reload", ""), ("rescan", ""), ("rescan", #"{"folder": "cam1"}"#)] {
            #expect(try await scene.ask("POST", "/v1/\(verb)", [bearer], body: body).status < 300, "\(verb)")
        }
        let lines = scene.lines.text.split(separator: "\n").map(String.init)
        let what = lines.compactMap { line in line.firstRange(of: "verb=").map { String(line[$0.lowerBound...]) } }
        let by = "by=\"\(WebSessionTests.operators.name) (127.0.0.1)\""
        #expect(
            what == [
                "verb=reload what=configuration \(by)", "verb=rescan what=\"all folders\" \(by)",
                "verb=rescan what=\"folder cam1\" \(by)",
            ])
        await scene.end()
    }

    @Test("the log names who signs in and out, with role and address, and no wrong code")
    func log() async throws {
        let scene = try await BrowserScene()
        let same = ("Sec-Fetch-Site", "same-origin")
        for (name, role) in [("anna", ControlRole.operate), ("bert", .view)] {
            let code = scene.sessions.makeCode(for: ControlClientIdentity(name: name, role: role))
            let (cookie, _) = try await scene.signIn([], body: #"{"code":"\#(code)"}"#)
            #expect(try await scene.ask("DELETE", "/v1/session", [("Cookie", cookie), same]).status == 204)
        }
        #expect(try await scene.ask("POST", "/v1/session", body: #"{"code":"guessed"}"#).status == 401)
        let lines = scene.lines.text.split(separator: "\n").map { String($0.drop { $0 != " " }) }
        #expect(
            lines
                == ["anna", "bert"].flatMap { name in
                    ["sign in", "sign out"].map { verb in
                        " notice a person gave a command verb=\"\(verb)\" what=\"web page\" "
                            + "role=\(name == "anna" ? "operate" : "view") by=\"\(name) (127.0.0.1)\""
                    }
                })
        await scene.end()
    }

    @Test("names of `hosts` are for a proxy on a loopback address without TLS, except `localhost`, which a tunnel has")
    func links() throws {
        func link(_ listen: String, isTLS: Bool = false, _ hosts: [String]) throws -> (
            here: [String], proxied: [String]?
        ) {
            let links = PageLinks(
                sessions: WebSessions(isSecure: isTLS, clocks: ManualClocks()), listen: try ListenAddress(listen),
                port: 8484, hosts: hosts, isTLS: isTLS)
            let view = links.make(WebLinkRequest(), by: "root")
            func places(_ urls: [String]) -> [String] { urls.map { String($0.prefix { $0 != "#" }) } }
            return (places(view.urls), view.proxied.map(places))
        }
        let proxied = try link("127.0.0.1:8484", ["nas.example", "2001:db8::1"])
        #expect(proxied.here == ["http://127.0.0.1:8484/"])
        #expect(proxied.proxied == ["https://nas.example/", "https://[2001:db8::1]/"])
        // A tunnel's end is on another machine, with another port perhaps, and has no certificate.
        let tunnel = try link("127.0.0.1:8484", ["localhost", "nas.localhost", "127.0.0.1", "::1"])
        #expect(tunnel.here == ["127.0.0.1", "localhost", "nas.localhost", "[::1]"].map { "http://\($0):8484/" })
        #expect(tunnel.proxied == nil)
        let both = try link("[::1]:8484", ["nas.example", "localhost"])
        #expect(both.here == ["http://[::1]:8484/", "http://localhost:8484/"])
        #expect(both.proxied == ["https://nas.example/"])
        #expect(try link("localhost:8484", ["localhost"]).here == ["http://localhost:8484/"])
        let everywhere = try link("0.0.0.0:8484", ["localhost"])
        #expect(everywhere.here.filter { $0 == "http://localhost:8484/" }.count == 1)
        #expect(try link("localhost:8484", []).here == ["http://localhost:8484/"])
        #expect(try link("localhost:8484", []).proxied == nil)
        let own = try link("127.0.0.1:8484", isTLS: true, ["nas.example"])
        #expect(own.here == ["https://nas.example:8484/", "https://127.0.0.1:8484/"] && own.proxied == nil)
        let named = try link("nas.local:8484", ["nas.example"])
        #expect(named.here == ["http://nas.example:8484/", "http://nas.local:8484/"] && named.proxied == nil)
    }

    @Test("one client has a limit of event streams of its own; signing out ends an open one")
    func streams() async throws {
        let scene = try await BrowserScene(heartbeat: .milliseconds(50))
        let (cookie, _) = try await scene.signIn([("Authorization", "Bearer another one, only to look")])
        let wire = try Wire(port: scene.port)
        let head = "Host: 127.0.0.1:\(scene.port)\r\nCookie: \(cookie)\r\nSec-Fetch-Site: same-origin\r\n\r\n"
        try await wire.send("GET /v1/events HTTP/1.1\r\n" + head)
        _ = try await wire.read(through: "retry: 3000")
        _ = try await wire.read(through: ": \n\n")
        #expect(
            try await scene.ask(
                "DELETE", "/v1/session", [("Cookie", cookie), ("Sec-Fetch-Site", "same-origin")]
            ).status == 204)
        // The end of a chunked answer.
        _ = try await wire.read(through: "\r\n0\r\n\r\n")
        let subscribers = Subscribers(limit: 4)
        func feed() throws -> EventSubscriber {
            EventSubscriber(AsyncStream { _ in }, filter: try .init([:]), heartbeat: .seconds(600))
        }
        var feeds = [try feed(), try feed(), try feed(), try feed(), try feed()]
        #expect(subscribers.enter(feeds[0], of: "wall", most: 2) == nil)
        #expect(subscribers.enter(feeds[1], of: "wall", most: 2) == nil)
        #expect(subscribers.enter(feeds[2], of: "wall", most: 2) == 2)
        #expect(subscribers.enter(feeds[2], of: "me", most: 2) == nil)
        #expect(subscribers.enter(feeds[3], of: "root", most: .max) == nil)
        #expect(subscribers.enter(feeds[4], of: "root", most: .max) == 4)
        feeds.removeFirst()
        #expect(subscribers.enter(feeds[3], of: "wall", most: 2) == nil)
        await scene.end()
    }
}
