import API
import Core
import Glibc
import Linux
import TestKit
import Testing
import Transport
import WebServer

@testable import Control

/// Signing in to the web page, and what a signed-in browser may do.
@Suite("Sessions of browsers", .timeLimit(.minutes(Patience.minutes(2))))
struct WebSessionTests {
    static let key = [UInt8](repeating: 7, count: 32)
    static let operators = ControlClientIdentity(name: "me", role: .operate)
    static let viewers = ControlClientIdentity(name: "wall", role: .view)

    private func sessions(_ clocks: any Clocks = ManualClocks(), key: [UInt8] = key, isSecure: Bool = false)
        -> WebSessions
    {
        WebSessions(key: key, isSecure: isSecure, clocks: clocks)
    }

    // MARK: Texts

    @Test("a session is good for one purpose, at this daemon, unchanged, and until its time is over")
    func texts() throws {
        let clocks = ManualClocks()
        let sessions = sessions(clocks)
        let session = sessions.begin(Self.operators, secret: Array("token of a good length".utf8))
        let text = sessions.text(.page, of: session)
        #expect(sessions.session(.page, text) == session)
        #expect(sessions.session(.cookie, text) == nil)
        #expect(self.sessions(clocks, key: [UInt8](repeating: 8, count: 32)).session(.page, text) == nil)
        #expect(sessions.matches(session, secret: Array("token of a good length".utf8)))
        #expect(!sessions.matches(session, secret: Array("another".utf8)))
        for index in text.indices {
            var changed = text
            changed.replaceSubrange(index...index, with: text[index] == "0" ? "1" : "0")
            #expect(sessions.session(.page, changed) == nil, "\(changed)")
        }
        for strange in ["", ".", "a.b", String(repeating: "a.", count: 2_000)] {
            #expect(sessions.session(.page, strange) == nil)
        }
        clocks.advance(by: WebSessions.lifetime)
        #expect(sessions.session(.page, text) == nil)
    }

    @Test("a code is good once and for a minute; many codes forget the oldest")
    func codes() throws {
        let clocks = ManualClocks()
        let sessions = sessions(clocks)
        let first = sessions.makeCode(for: Self.viewers)
        #expect(sessions.redeem(first) == Self.viewers)
        #expect(sessions.redeem(first) == nil)
        let second = sessions.makeCode(for: Self.operators)
        clocks.advance(by: WebSessions.codeLifetime)
        #expect(sessions.redeem(second) == nil)
        let many = (0..<20).map { _ in sessions.makeCode(for: Self.operators) }
        #expect(Set(many).count == 20)
        #expect(sessions.redeem(many[0]) == nil)
        #expect(sessions.redeem(many[19]) == Self.operators)
        #expect(sessions.redeem("") == nil)
    }

    @Test("the key of the sessions is kept in the state folder, for its owner alone, and replaced when it was cut")
    func keys() throws {
        let folder = TemporaryFolder()
        let key = try WebSessions.key(in: folder.path)
        #expect(key.count == 32)
        #expect(try WebSessions.key(in: folder.path) == key)
        let file = folder.path.appending("web.key")
        #expect(try FileStatus(at: file).mode & 0o777 == 0o600)
        try Files.replace(file, with: Array(key.prefix(5)))
        #expect(try WebSessions.key(in: folder.path).count == 32)
    }

    @Test("a key that cannot be read or written is an error that names it, and waits for nothing")
    func unusableKeys() throws {
        let folder = TemporaryFolder()
        let file = folder.path.appending("web.key")
        func error(_ state: FilePath) -> SystemError? {
            #expect(throws: SystemError.self) {
                try WebSessions(in: state, isSecure: false, clocks: ManualClocks())
            }
        }
        try Files.makeFolders(file)
        #expect(error(folder.path)?.subject == file.display)
        try Files.removeFolder(file)
        // Nothing ever writes into this pipe.
        #expect(file.withCString { mkfifo($0, 0o600) } == 0)
        #expect(error(folder.path)?.subject == file.display)
        try Files.remove(file)
        // A list of ended sign-ins that cannot be read takes all of them back.
        try Files.makeFolders(folder.path.appending("web.ended"))
        #expect(error(folder.path) != nil)
        #expect(error(folder.path.appending("missing"))?.isMissing == true)
        // A key of its own needs no folder.
        let sessions = WebSessions(isSecure: false, clocks: ManualClocks())
        let text = sessions.text(.cookie, of: sessions.begin(Self.viewers, secret: nil))
        #expect(sessions.session(.cookie, text) != nil)
    }

    @Test("on a full disk there is no key, and nothing of one is left", .enabled(if: SmallDisk.isPossible))
    func fullDisk() throws {
        let disk = try SmallDisk()
        try Filler(in: disk.path).fill()
        let error = #expect(throws: SystemError.self) {
            try WebSessions(in: disk.path, isSecure: false, clocks: ManualClocks())
        }
        #expect(error?.isFull == true)
        #expect(try Files.names(in: disk.path) == ["filler"])
    }

    @Test("a sign-in that has ended is not good again, also after a restart, and is forgotten when its time is over")
    func ended() throws {
        let (folder, clocks) = (TemporaryFolder(), ManualClocks())
        func open() throws -> WebSessions { try WebSessions(in: folder.path, isSecure: false, clocks: clocks) }
        let sessions = try open()
        let (one, two) = (
            sessions.begin(Self.operators, secret: nil), sessions.begin(Self.operators, secret: nil)
        )
        let texts = [WebSessions.Purpose.cookie, .page].map { ($0, sessions.text($0, of: one)) }
        try sessions.end(one)
        for sessions in [sessions, try open()] {
            for (purpose, text) in texts { #expect(sessions.session(purpose, text) == nil) }
            #expect(sessions.session(.cookie, sessions.text(.cookie, of: two)) == two)
        }
        let file = folder.path.appending("web.ended")
        #expect(try FileStatus(at: file).mode & 0o777 == 0o600)
        clocks.advance(by: WebSessions.lifetime)
        let late = sessions.begin(Self.operators, secret: nil)
        try sessions.end(late)
        let ids = try String(decoding: Files.read(file), as: UTF8.self).split(separator: "\n")
            .filter { !$0.hasPrefix("before ") }
        #expect(ids.count == 1)
    }

    @Test("a sign-in that has ended is not good again after a clock that was ahead for a while, also after a restart")
    func endedAhead() throws {
        let (folder, clocks) = (TemporaryFolder(), ManualClocks())
        func open() throws -> WebSessions { try WebSessions(in: folder.path, isSecure: false, clocks: clocks) }
        let sessions = try open()
        let ended = sessions.begin(Self.operators, secret: nil)
        try sessions.end(ended)
        let years = Duration.seconds(10 * 365 * 86_400)
        clocks.step(by: years)
        // One that is made and ended then, and one that only is made.
        let far = sessions.begin(Self.operators, secret: nil)
        try sessions.end(far)
        let (farther, last) = (sessions.begin(Self.operators, secret: nil), sessions.begin(Self.operators, secret: nil))
        clocks.step(by: years)
        try sessions.end(last)
        clocks.step(by: .zero - years - years)
        clocks.advance(by: .seconds(1))
        let fresh = sessions.begin(Self.operators, secret: nil)
        for sessions in [sessions, try open()] {
            for session in [ended, far, farther] {
                #expect(sessions.session(.cookie, sessions.text(.cookie, of: session)) == nil)
            }
            #expect(sessions.session(.cookie, sessions.text(.cookie, of: fresh)) == fresh)
        }
        // A small correction ends none.
        clocks.step(by: .zero - WebSessions.clockTolerance)
        #expect(sessions.session(.cookie, sessions.text(.cookie, of: fresh)) == fresh)
        clocks.step(by: .seconds(-1))
        #expect(sessions.session(.cookie, sessions.text(.cookie, of: fresh)) == nil)
    }

    @Test("however many sign-ins of a client have ended, none is good again, newer ones are, and other clients stay")
    func manyEnded() throws {
        let (folder, clocks) = (TemporaryFolder(), ManualClocks())
        let secret = Array("another one, only to look".utf8)
        for (sessions, count) in [
            (WebSessions(key: Self.key, isSecure: false, clocks: clocks), 4_200),
            (try WebSessions(in: folder.path, isSecure: false, clocks: clocks), EndedSessions.most + 20),
        ] {
            // Of another client, of a link of the same name, and of a link to look that this name has given away.
            let others = [
                sessions.begin(Self.operators, secret: secret), sessions.begin(Self.viewers, secret: nil),
                sessions.begin(ControlClientIdentity(name: Self.viewers.name, role: .operate), secret: secret),
            ]
            let own = sessions.begin(Self.viewers, secret: secret)
            clocks.advance(by: .seconds(1))
            var all: [WebSessions.Session] = []
            for _ in 0..<count {
                all.append(sessions.begin(Self.viewers, secret: secret))
                try sessions.end(all[all.count - 1])
                clocks.advance(by: .seconds(1))
            }
            let fresh = sessions.begin(Self.viewers, secret: secret)
            func isGood(_ session: WebSessions.Session, _ sessions: WebSessions) -> Bool {
                sessions.session(.cookie, sessions.text(.cookie, of: session)) == session
            }
            func expectEnds(_ sessions: WebSessions) {
                #expect(!all.contains { isGood($0, sessions) } && isGood(fresh, sessions))
                #expect(others.allSatisfy { isGood($0, sessions) })
                // The price of so many: the client that has ended them signs in again.
                #expect(!isGood(own, sessions))
            }
            expectEnds(sessions)
            if count < 4_200 { expectEnds(try WebSessions(in: folder.path, isSecure: false, clocks: clocks)) }
        }
        #expect(try FileStatus(at: folder.path.appending("web.ended")).size < 20_000)
    }

    @Test("sign-ins that end at the same time are all in the file")
    func endedTogether() async throws {
        let (folder, clocks) = (TemporaryFolder(), ManualClocks())
        func open() throws -> WebSessions { try WebSessions(in: folder.path, isSecure: false, clocks: clocks) }
        let sessions = try open()
        let all = (0..<40).map { _ in sessions.begin(Self.operators, secret: nil) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for session in all { group.addTask { try await blocking { try sessions.end(session) } } }
            try await group.waitForAll()
        }
        let again = try open()
        #expect(all.allSatisfy { again.session(.cookie, again.text(.cookie, of: $0)) == nil })
    }

    // MARK: At the server

    @Test("the cookie reads and changes nothing; the page's token changes, from our own page alone")
    func browser() async throws {
        let scene = try await BrowserScene()
        let (cookie, token) = try await scene.signIn([("Authorization", "Bearer a token of a good length")])
        let read = [("Cookie", "other=1; " + cookie)]
        #expect(try await scene.ask("GET", "/v1/status", read).status == 200)
        #expect(try await scene.ask("GET", "/v1/session", read).status == 200)
        for verb in ["pause", "cancel", "flush", "allow", "limit", "reload", "check", "rescan", "web-link"] {
            #expect(try await scene.ask("POST", "/v1/" + verb, read, body: "{}").status == 401, "\(verb)")
        }
        #expect(try await scene.ask("DELETE", "/v1/uploads/x", read).status == 401)
        #expect(scene.daemon.asked == ["status"])
        let page = ("X-Sluice-Token", token)
        let same = ("Sec-Fetch-Site", "same-origin")
        #expect(try await scene.ask("POST", "/v1/pause", [page, same], body: "{}").status == 202)
        #expect(try await scene.ask("POST", "/v1/pause", [page, ("Origin", scene.origin)], body: "{}").status == 202)
        // A page of another port of this machine, of another site, and no page at all.
        for headers in [
            [page], [page, ("Sec-Fetch-Site", "same-site")], [page, ("Sec-Fetch-Site", "cross-site")],
            [page, same, ("Origin", "http://127.0.0.1:1")], [page, ("Origin", "null")],
            [("X-Sluice-Token", String(cookie.split(separator: "=")[1])), same],
        ] {
            let status = try await scene.ask("POST", "/v1/pause", headers + read, body: "{}").status
            #expect([401, 403].contains(status), "\(headers): \(status)")
        }
        #expect(try await scene.ask("GET", "/v1/status", read + [("Sec-Fetch-Site", "same-site")]).status == 403)
        #expect(try await scene.ask("GET", "/v1/status", read + [("Host", "evil.example")]).status == 421)
        #expect(scene.daemon.asked.filter { $0 != "status" } == ["pause ||||", "pause ||||"])
        await scene.end()
    }

    @Test("signed in to look, a browser may try each change, and none is made")
    func viewer() async throws {
        let scene = try await BrowserScene()
        let (_, token) = try await scene.signIn([("Authorization", "Bearer another one, only to look")])
        let page = [("X-Sluice-Token", token), ("Sec-Fetch-Site", "same-origin")]
        for verb in [
            "pause", "resume", "cancel", "retry", "remove", "priority", "flush", "allow", "limit", "usage", "reload",
            "check", "rescan", "uploads", "remote/nas", "orphans/nas", "trace/nas", "hooks/a/test", "folders/a/accept",
            "uploads/x/cancel", "web-link",
        ] {
            let response = try await scene.ask("POST", "/v1/" + verb, page, body: "{}")
            #expect(response.status == 403, "\(verb)")
        }
        #expect(try await scene.ask("POST", "/v1/bytes?name=a", page, body: "x").status == 403)
        #expect(try await scene.ask("DELETE", "/v1/uploads/x", page).status == 403)
        #expect(scene.daemon.asked.isEmpty)
        await scene.end()
    }

    @Test("a link of `sluice web` signs in once, and its code is nowhere in the answer")
    func link() async throws {
        let scene = try await BrowserScene()
        let link = try await ControlClient(
            socket: scene.folder.path.appending("control.sock"), transport: scene.transport
        ).webLink(WebLinkRequest(role: .view))
        let url = try #require(link.urls.first { $0.hasPrefix(scene.origin) })
        let code = try #require(url.split(separator: "#code=").last.map(String.init))
        let session = try await scene.signIn([("Origin", scene.origin)], body: #"{"code":"\#(code)"}"#)
        #expect(!session.token.contains(code) && !session.cookie.contains(code))
        #expect(try await scene.ask("GET", "/v1/status", [("Cookie", session.cookie)]).status == 200)
        let page = [("X-Sluice-Token", session.token), ("Sec-Fetch-Site", "same-origin")]
        #expect(try await scene.ask("POST", "/v1/pause", page, body: "{}").status == 403)
        #expect(try await scene.ask("POST", "/v1/session", body: #"{"code":"\#(code)"}"#).status == 401)
        await scene.end()
    }

    @Test("the page and its files come with a strict policy, compressed, and again only when they have changed")
    func assets() async throws {
        let scene = try await BrowserScene()
        let index = try await scene.ask("GET", "/", [("Accept-Encoding", "gzip")])
        let head = try await scene.ask("HEAD", "/", [("Accept-Encoding", "gzip")])
        #expect(index.status == 200)
        let policy = try #require(index.headers["Content-Security-Policy"])
        for part in ["default-src 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"] {
            #expect(policy.contains(part))
        }
        #expect(!policy.contains("unsafe") && !policy.contains("*"))
        #expect(index.headers["X-Content-Type-Options"] == "nosniff" && index.headers["X-Frame-Options"] == "DENY")
        let tag = try #require(head.headers["ETag"])
        let again = try await scene.ask("GET", "/", [("Accept-Encoding", "gzip"), ("If-None-Match", tag)])
        #expect(again.status == 304 && again.body.isEmpty)
        #expect(try await scene.ask("GET", "/", [("If-None-Match", "*")]).status == 304)
        #expect(try await scene.ask("GET", "/assets/../web.key", [("Accept-Encoding", "gzip")]).status == 404)
        #expect(try await scene.ask("GET", "/assets/nothing.js", [("Accept-Encoding", "gzip")]).status == 404)
        #expect(scene.daemon.asked.isEmpty)
        await scene.end()
    }

    @Test("a client that takes no gzip gets each file of the page as it is, with a tag of its own")
    func plainAssets() async throws {
        let scene = try await BrowserScene()
        let index = try await scene.ask("GET", "/")
        let text = String(decoding: index.body, as: UTF8.self)
        #expect(index.status == 200 && index.headers["Content-Encoding"] == nil)
        #expect(text.hasPrefix("<!doctype html>") && text.hasSuffix("</html>\n"))
        #expect(index.headers["Content-Security-Policy"]?.contains("default-src 'none'") == true)
        let packed = try await scene.ask("GET", "/", [("Accept-Encoding", "br, gzip")])
        let tag = try #require(index.headers["ETag"])
        #expect(packed.headers["ETag"] != tag)
        #expect(try await scene.ask("GET", "/", [("If-None-Match", tag)]).status == 304)
        for refusing in ["identity", "gzip;q=0", "br, gzip; q=0.0", "", "*"] {
            let plain = try await scene.ask("GET", "/", [("Accept-Encoding", refusing)])
            #expect(plain.body == index.body && plain.headers["Vary"] == "Accept-Encoding", "\(refusing)")
        }
        for file in EmbeddedPage.files {
            let plain = try await scene.ask("GET", "/assets/" + file.name)
            #expect(plain.status == 200 && !plain.body.isEmpty, "\(file.name)")
        }
        await scene.end()
    }

    @Test("without a page there is neither a file of it nor a way to sign in")
    func none() async throws {
        let scene = try await BrowserScene(servesPage: false)
        #expect(try await scene.ask("GET", "/").status == 401)
        #expect(try await scene.ask("POST", "/v1/session", body: #"{"code":"a"}"#).status == 401)
        let bearer = [("Authorization", "Bearer a token of a good length")]
        #expect(try await scene.ask("POST", "/v1/session", bearer, body: "{}").status == 404)
        let client = ControlClient(socket: scene.folder.path.appending("control.sock"), transport: scene.transport)
        await #expect(throws: Refusal.self) { _ = try await client.webLink(WebLinkRequest()) }
        await scene.end()
    }
}
