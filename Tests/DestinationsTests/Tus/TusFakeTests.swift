import Core
import Credentials
import Destinations
import Dispatch
import Linux
import Synchronization
import TestKit
import Testing
import Transport

/// Faults that no available server has: each test is one server with its own fault.
@Suite("tus with incorrect servers", .timeLimit(.minutes(Patience.minutes(2))))
struct TusFakeTests {
    let script = ScriptedTusServer()

    @Test("a success without the new offset is queried, never assumed")
    func unnamedOffset() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            // Keeps half of each body, and does not report it.
            script.state.withLock { $0.held += body.prefix(body.count / 2 + 1) }
            exchange.reply(204)
        }
        let journey = try UploadScenario(server.url + "/files", size: 1000, chunk: 400)
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        let verbs = verbs(server)
        for (first, second) in zip(verbs, verbs.dropFirst()) where first == "PATCH" {
            #expect(second == "HEAD", "\(server.seen)")
        }
    }

    @Test(
        "no progress, or an impossible offset, three times in a row ends the attempt",
        arguments: ["0", "5000", "-1", "x"])
    func noProgress(_ named: String) async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            _ = exchange.body()
            exchange.reply(204, [("Upload-Offset", named)])
        }
        let error = try await UploadScenario(server.url + "/files").failedAttempt()
        #expect(error.remedy == .retry(after: nil))
        #expect(error.failure.code == .noProgress)
        #expect(verbs(server).filter { $0 == "PATCH" }.count == 3)
    }

    /// An accent and a joiner make another `Character` of the token's last letter.
    @Test(
        "an answer that repeats the token, or a truncated half of it, is shown without it",
        arguments: ["", "\u{301}", "\u{200D}x"])
    func echoedToken(_ after: String) async throws {
        let token = "Zq7canaryX9k2"
        let server = try FakeServer { exchange in
            let filling = String(repeating: "x", count: 192)
            exchange.reply(
                exchange.method == "OPTIONS" ? 404 : 403, [],
                "Bearer \(token) \(filling)\(token)".suffix(205) + token + after)
        }
        let journey = try UploadScenario(server.url + "/files", values: ["token": .secret(.literal(token))])
        let error = try await journey.failedAttempt()
        #expect(error.failure.message.contains("***"))
        #expect(!error.failure.message.contains("Zq7"))
    }

    @Test("partially stored bytes are resumed, without a query")
    func partial() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            let now = script.state.withLock { state in
                state.held += body.prefix(300)
                return state.held.count
            }
            exchange.reply(200, [("Upload-Offset", "\(now)")])
        }
        let journey = try UploadScenario(server.url + "/files")
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(verbs(server) == ["POST", "PATCH", "PATCH", "PATCH", "PATCH", "HEAD"])
    }

    @Test("409 at another offset continues there at once; at ours it is a lock, and waits")
    func conflicts() async throws {
        let other = ScriptedTusServer()
        let elsewhere = try FakeServer { exchange in
            guard exchange.method == "PATCH", other.time("PATCH") == 0 else { return other.serve(exchange) }
            let body = exchange.body()
            other.state.withLock { $0.held += body.prefix(100) }
            exchange.reply(409)
        }
        let first = try UploadScenario(elsewhere.url + "/files")
        _ = try await first.attempt()
        #expect(other.held == first.content)

        let locked = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            _ = exchange.body()
            exchange.reply(409)
        }
        let error = try await UploadScenario(locked.url + "/files").failedAttempt()
        #expect(error.remedy == .retry(after: .seconds(2)))
        #expect(verbs(locked) == ["POST", "PATCH", "HEAD"])
    }

    @Test("an early 409 whose answer is lost by a reset does not cause blind sending")
    func earlyConflict() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH", script.time("PATCH") == 0 else { return script.serve(exchange) }
            _ = exchange.body(10_000)
            exchange.reply(409, [("Connection", "close")])
            exchange.cut(reset: true)
        }
        let journey = try UploadScenario(server.url + "/files", size: 4 << 20)
        _ = try await journey.arrive()
        #expect(script.held == journey.content)
        let verbs = verbs(server)
        #expect(verbs.filter { $0 == "POST" }.count == 1)
        for (first, second) in zip(verbs, verbs.dropFirst()) where first == "PATCH" {
            #expect(second == "HEAD", "\(server.seen)")
        }
    }

    @Test(
        "400 for bytes is queried twice, then this file is refused; a text about a temporary state is waited for")
    func badRequests() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            _ = exchange.body()
            exchange.reply(400)
        }
        let error = try await UploadScenario(server.url + "/files").failedAttempt()
        #expect(error.remedy == .failUpload)
        #expect(verbs(server) == ["POST", "PATCH", "HEAD", "PATCH", "HEAD", "PATCH", "HEAD"])
        let interrupted = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            _ = exchange.body()
            exchange.reply(400, [], "ERR_UPLOAD_INTERRUPTED: upload has been interrupted by another request")
        }
        #expect(
            try await UploadScenario(interrupted.url + "/files").failedAttempt().remedy == .retry(after: .seconds(1)))
    }

    @Test("a server's own message is shown without the line end, and a page only as a page")
    func words() async throws {
        let server = try FakeServer { exchange in
            exchange.target.hasPrefix("/page")
                ? exchange.reply(413, [("Content-Type", "text/html")], "<html>too large</html>")
                : exchange.reply(413, [], "too large: 5 MB at most\r\n")
        }
        let plain = try await UploadScenario(server.url + "/files").failedAttempt().failure.message
        #expect(plain.hasSuffix("answered 413 to creation: too large: 5 MB at most"), "\(plain)")
        let page = try await UploadScenario(server.url + "/page").failedAttempt().failure.message
        #expect(page.hasSuffix("answered 413 to creation with a web page"), "\(page)")
    }

    @Test("401 in the middle: the secret is read again, and the upload continues at its offset")
    func newToken() async throws {
        let folder = TemporaryFolder()
        let path = try folder.write("token", Array("old\n".utf8))
        let valid = Mutex("old")
        let server = try FakeServer { [script] exchange in
            guard exchange.header("authorization") == "Bearer " + valid.withLock({ $0 }) else {
                _ = exchange.body()
                return exchange.reply(401)
            }
            script.serve(exchange)
            if exchange.method == "PATCH" { valid.withLock { $0 = "new" } }
        }
        let journey = try UploadScenario(server.url + "/files", chunk: 400, values: ["token": .secret(.file(path))])
        let error = try await journey.failedAttempt()
        #expect(error.remedy == .authenticate)
        #expect(error.failure.kind == .auth)
        #expect(!error.failure.message.contains("old"))
        #expect(journey.ledger.last?["url"] != nil)
        try folder.write("token", Array("new\n".utf8))
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(verbs(server).filter { $0 == "POST" }.count == 1)
    }

    @Test("metadata that the server refuses is omitted once; then the file is refused", arguments: [400, 431])
    func lessMetadata(_ status: Int) async throws {
        let server = try FakeServer { [script] exchange in
            let pairs = exchange.header("upload-metadata")?.split(separator: ",").count ?? 0
            if exchange.method == "POST", pairs > 2 { return exchange.reply(status) }
            script.serve(exchange)
        }
        let journey = try UploadScenario(server.url + "/files")
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        let strict = try FakeServer { $0.reply($0.method == "OPTIONS" ? 204 : status) }
        let second = try UploadScenario(strict.url + "/files")
        #expect(try await second.failedAttempt().remedy == .failUpload)
        #expect(verbs(strict) == ["POST", "POST"])
        #expect(second.ledger.last?["creating"] == nil)
    }

    @Test(
        "a portal or a wrong address holds the destination and names the reason",
        arguments: [
            (302, "Location: http://portal.test/login\r\n", "redirects"), (404, "", "404"), (405, "", "405"),
            (301, "Location: /files/\r\n", "redirects"), (308, "Location: http://portal.test/\r\n", "redirects"),
            (200, "Content-Type: text/html\r\n", "web page"), (412, "", "412"), (201, "", "without saying where"),
        ])
    func misconfigured(_ status: Int, _ header: String, _ words: String) async throws {
        let server = try FakeServer { exchange in
            if exchange.method == "OPTIONS" { return exchange.reply(500) }
            exchange.raw("HTTP/1.1 \(status) X\r\n\(header)Content-Length: 6\r\n\r\n<html>")
            exchange.closeAfterwards()
        }
        let error = try await UploadScenario(server.url + "/files").failedAttempt()
        #expect(error.remedy == .misconfigured)
        #expect(error.failure.message.contains(words))
        #expect(error.failure.retryable)
    }

    @Test("a 200 to the offset query from something other than a tus server is not trusted")
    func portalAtHead() async throws {
        let server = try FakeServer { [script] exchange in
            if exchange.method == "HEAD" { return exchange.reply(200, [("Content-Type", "text/html")]) }
            script.serve(exchange)
        }
        let journey = try UploadScenario(
            server.url + "/files", checkpoint: Checkpoint(["url": server.url + "/u", "offset": "10"]))
        let error = try await journey.failedAttempt()
        #expect(error.remedy == .misconfigured)
    }

    @Test("a 404 from a proxy that lost its server does not discard the upload")
    func proxy() async throws {
        let server = try FakeServer { exchange in exchange.reply(404, [("Content-Type", "text/html")]) }
        let checkpoint = Checkpoint(["url": server.url + "/u", "offset": "500"])
        let error = try await UploadScenario(server.url + "/files", checkpoint: checkpoint).failedAttempt()
        #expect(error.remedy == .holdDestination(after: nil))
        #expect(verbs(server) == ["HEAD"])
    }

    @Test("an upload with much progress is queried three times before it counts as lost")
    func muchProgress() async throws {
        let server = try FakeServer { [script] in script.serve($0) }
        let checkpoint = Checkpoint(["url": server.url + "/old", "offset": "\(64 << 20)"])
        let journey = try UploadScenario(server.url + "/files", checkpoint: checkpoint)
        for _ in 0..<2 { #expect(try await journey.failedAttempt().remedy == .pending(after: .seconds(15))) }
        #expect(verbs(server) == ["HEAD", "HEAD"])
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
    }

    @Test(
        "an upload that is no longer ours is not touched, and a new one created",
        arguments: [("5", "999"), ("1001", "1000"), ("9", "x")])
    func foreign(_ offset: String, _ length: String) async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.target == "/other" else { return script.serve(exchange) }
            var lines = [("Upload-Offset", offset), ("Upload-Length", length), ("Tus-Resumable", "1.0.0")]
            // Another content's digest, returned.
            if length == "x" { lines[1] = ("Upload-Metadata", "filename eA==, sha256 MDkwOTA5") }
            exchange.reply(200, lines)
        }
        let journey = try UploadScenario(
            server.url + "/files", checkpoint: Checkpoint(["url": server.url + "/other", "offset": "5"]))
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(verbs(server) == ["HEAD", "POST", "PATCH", "HEAD"])
    }

    @Test("a server that lost the end of an upload gets it again; one that always does gets a new upload")
    func regressions() async throws {
        let server = try FakeServer { [script] in script.serve($0) }
        let journey = try UploadScenario(
            server.url + "/files",
            checkpoint: Checkpoint(["url": server.url + "/u", "offset": "800"]))
        script.state.withLock { state in
            state.exists = true
            state.length = 1000
            state.held = Array(journey.content.prefix(300))
        }
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(verbs(server) == ["HEAD", "PATCH", "HEAD"])
        #expect(journey.ledger.book.withLock { $0.accepted }.first == 300)
    }

    @Test("a HEAD with a wrong end does not cause an endless loop")
    func lyingEnd() async throws {
        // Acknowledges everything, and always reports 0 to a query.
        let server = try FakeServer { [script] exchange in
            if exchange.method == "HEAD" {
                return exchange.reply(200, [("Upload-Offset", "0"), ("Upload-Length", "1000")])
            }
            if exchange.method == "PATCH" { script.state.withLock { $0.held = [] } }
            script.serve(exchange)
        }
        let error = try await UploadScenario(server.url + "/files").failedAttempt()
        #expect(error.remedy == .pending(after: .seconds(60)))
        #expect(server.seen.count < 40)
    }
}
