import Core
import Credentials
import Destinations
import Dispatch
import Linux
import Synchronization
import TestKit
import Testing
import Transport

/// What no package shows: servers that are wrong in their own ways. Each test is one way.
@Suite("tus, to servers that are wrong", .timeLimit(.minutes(2)))
struct TusFakeTests {
    /// A tus server with one upload at `/u`, whose answers a test replaces.
    final class Script: Sendable {
        struct State {
            var held: [UInt8] = []
            var length: Int64 = 0
            var exists = false
            var times: [String: Int] = [:]
        }

        let state = Mutex(State())

        /// How often this was asked for before, from 0.
        func time(_ what: String) -> Int {
            state.withLock { state in
                defer { state.times[what, default: 0] += 1 }
                return state.times[what, default: 0]
            }
        }

        func serve(_ exchange: Exchange) {
            switch exchange.method {
            case "OPTIONS":
                exchange.reply(204, [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation,termination")])
            case "POST":
                state.withLock { state in
                    state.held = []
                    state.length = exchange.header("upload-length").flatMap { Int64($0) } ?? -1
                    state.exists = true
                }
                exchange.reply(201, [("Location", "/u"), ("Tus-Resumable", "1.0.0")])
            case "HEAD":
                let (held, length, exists) = state.withLock { ($0.held.count, $0.length, $0.exists) }
                if !exists { return exchange.reply(404, [("Tus-Resumable", "1.0.0")]) }
                exchange.reply(200, [("Upload-Offset", "\(held)"), ("Upload-Length", "\(length)")])
            case "PATCH":
                let body = exchange.body()
                let offset = exchange.header("upload-offset").flatMap { Int($0) } ?? -1
                let now: Int? = state.withLock { state in
                    guard state.held.count == offset else { return nil }
                    state.held += body
                    return state.held.count
                }
                guard let now else { return exchange.reply(409) }
                exchange.reply(204, [("Upload-Offset", "\(now)")])
            default: exchange.reply(405)
            }
        }

        var held: [UInt8] { state.withLock { $0.held } }
    }

    let script = Script()

    private func verbs(_ server: FakeServer) -> [String] {
        server.seen.map { String($0.prefix { $0 != " " }) }.filter { $0 != "OPTIONS" }
    }

    @Test("a success that does not name the new offset is asked about, never assumed")
    func unnamedOffset() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            // Keeps half of each body, and does not say so.
            script.state.withLock { $0.held += body.prefix(body.count / 2 + 1) }
            exchange.reply(204)
        }
        let journey = try Journey(server.url + "/files", size: 1000, chunk: 400)
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        let verbs = verbs(server)
        for (first, second) in zip(verbs, verbs.dropFirst()) where first == "PATCH" { #expect(second == "HEAD") }
    }

    @Test(
        "no growth, or an offset that cannot be, three times in a row ends the attempt",
        arguments: ["0", "5000", "-1", "x"])
    func noProgress(_ named: String) async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            _ = exchange.body()
            exchange.reply(204, [("Upload-Offset", named)])
        }
        let error = try await Journey(server.url + "/files").failedAttempt()
        #expect(error.remedy == .again(after: nil))
        #expect(error.failure.code == "no_progress")
        #expect(verbs(server).filter { $0 == "PATCH" }.count == 3)
    }

    @Test("a partial store is gone on from, without a question")
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
        let journey = try Journey(server.url + "/files")
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(verbs(server) == ["POST", "PATCH", "PATCH", "PATCH", "PATCH", "HEAD"])
    }

    @Test("409 at another offset: on from there at once; at ours: a lock, and a wait")
    func conflicts() async throws {
        let other = Script()
        let elsewhere = try FakeServer { exchange in
            guard exchange.method == "PATCH", other.time("PATCH") == 0 else { return other.serve(exchange) }
            let body = exchange.body()
            other.state.withLock { $0.held += body.prefix(100) }
            exchange.reply(409)
        }
        let first = try Journey(elsewhere.url + "/files")
        _ = try await first.attempt()
        #expect(other.held == first.content)

        let locked = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            _ = exchange.body()
            exchange.reply(409)
        }
        let error = try await Journey(locked.url + "/files").failedAttempt()
        #expect(error.remedy == .again(after: .seconds(2)))
        #expect(verbs(locked) == ["POST", "PATCH", "HEAD"])
    }

    @Test("an early 409 whose answer is lost behind a reset is no reason to send blindly")
    func earlyConflict() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH", script.time("PATCH") == 0 else { return script.serve(exchange) }
            _ = exchange.body(10_000)
            exchange.reply(409, [("Connection", "close")])
            exchange.cut(reset: true)
        }
        let journey = try Journey(server.url + "/files", size: 4 << 20)
        _ = try await journey.arrive()
        #expect(script.held == journey.content)
        let verbs = verbs(server)
        #expect(verbs.filter { $0 == "POST" }.count == 1)
        for (first, second) in zip(verbs, verbs.dropFirst()) where first == "PATCH" { #expect(second == "HEAD") }
    }

    @Test(
        "400 for bytes is asked about twice, then this file is refused; a text that says it is temporary is waited for")
    func badRequests() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            _ = exchange.body()
            exchange.reply(400)
        }
        let error = try await Journey(server.url + "/files").failedAttempt()
        #expect(error.remedy == .giveUp)
        #expect(verbs(server) == ["POST", "PATCH", "HEAD", "PATCH", "HEAD", "PATCH", "HEAD"])
        let interrupted = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            _ = exchange.body()
            exchange.reply(400, [], "ERR_UPLOAD_INTERRUPTED: upload has been interrupted by another request")
        }
        #expect(try await Journey(interrupted.url + "/files").failedAttempt().remedy == .again(after: .seconds(1)))
    }

    @Test("401 in the middle: the secret is read again, and the upload goes on at its offset")
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
        let journey = try Journey(server.url + "/files", chunk: 400, values: ["token": .secret(.file(path))])
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

    @Test("403 for bytes of a finished upload is success")
    func forbiddenButFinished() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            script.state.withLock { $0.held += body }
            exchange.reply(403)
        }
        let object = try await Journey(server.url + "/files").attempt()
        #expect(object.verifiedBy == "offset")
    }

    @Test("metadata that the server does not take is left out once; then the file is refused", arguments: [400, 431])
    func lessMetadata(_ status: Int) async throws {
        let server = try FakeServer { [script] exchange in
            let pairs = exchange.header("upload-metadata")?.split(separator: ",").count ?? 0
            if exchange.method == "POST", pairs > 2 { return exchange.reply(status) }
            script.serve(exchange)
        }
        let journey = try Journey(server.url + "/files")
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        let strict = try FakeServer { $0.reply($0.method == "OPTIONS" ? 204 : status) }
        let second = try Journey(strict.url + "/files")
        #expect(try await second.failedAttempt().remedy == .giveUp)
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
        let error = try await Journey(server.url + "/files").failedAttempt()
        #expect(error.remedy == .misconfigured)
        #expect(error.failure.message.contains(words))
        #expect(error.failure.retryable)
    }

    @Test("a 200 to the question for the offset that is no tus server's is not believed")
    func portalAtHead() async throws {
        let server = try FakeServer { [script] exchange in
            if exchange.method == "HEAD" { return exchange.reply(200, [("Content-Type", "text/html")]) }
            script.serve(exchange)
        }
        let journey = try Journey(
            server.url + "/files", checkpoint: Checkpoint(["url": server.url + "/u", "offset": "10"]))
        let error = try await journey.failedAttempt()
        #expect(error.remedy == .misconfigured)
    }

    @Test("a 404 from a proxy that lost its server does not cost the upload")
    func proxy() async throws {
        let server = try FakeServer { exchange in exchange.reply(404, [("Content-Type", "text/html")]) }
        let checkpoint = Checkpoint(["url": server.url + "/u", "offset": "500"])
        let error = try await Journey(server.url + "/files", checkpoint: checkpoint).failedAttempt()
        #expect(error.remedy == .holdDestination(after: nil))
        #expect(verbs(server) == ["HEAD"])
    }

    @Test("an upload with much behind it is asked for three times before it counts as gone")
    func muchProgress() async throws {
        let server = try FakeServer { [script] in script.serve($0) }
        let checkpoint = Checkpoint(["url": server.url + "/old", "offset": "\(65 << 20)"])
        let journey = try Journey(server.url + "/files", checkpoint: checkpoint)
        for _ in 0..<2 { #expect(try await journey.failedAttempt().remedy == .again(after: .seconds(15))) }
        #expect(verbs(server) == ["HEAD", "HEAD"])
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
    }

    @Test(
        "an upload that is not ours any more is left alone, and a new one made",
        arguments: [("5", "999"), ("1001", "1000"), ("9", "x")])
    func foreign(_ offset: String, _ length: String) async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.target == "/other" else { return script.serve(exchange) }
            var lines = [("Upload-Offset", offset), ("Upload-Length", length), ("Tus-Resumable", "1.0.0")]
            // Another content's digest, echoed.
            if length == "x" { lines[1] = ("Upload-Metadata", "filename eA==, sha256 MDkwOTA5") }
            exchange.reply(200, lines)
        }
        let journey = try Journey(
            server.url + "/files", checkpoint: Checkpoint(["url": server.url + "/other", "offset": "5"]))
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(verbs(server) == ["HEAD", "POST", "PATCH", "HEAD"])
    }

    @Test("a server that lost a tail is given it again; one that always does gets a new upload")
    func regressions() async throws {
        let server = try FakeServer { [script] in script.serve($0) }
        let journey = try Journey(
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

    @Test("a HEAD that lies about the end does not make an endless loop")
    func lyingEnd() async throws {
        // Acknowledges everything, and at the question always stands at 0.
        let server = try FakeServer { [script] exchange in
            if exchange.method == "HEAD" {
                return exchange.reply(200, [("Upload-Offset", "0"), ("Upload-Length", "1000")])
            }
            if exchange.method == "PATCH" { script.state.withLock { $0.held = [] } }
            script.serve(exchange)
        }
        let error = try await Journey(server.url + "/files").failedAttempt()
        #expect(error.remedy == .again(after: .seconds(60)))
        #expect(server.seen.count < 40)
    }

    @Test("finished uploads that the server forgets are completed by their acknowledgement")
    func forgets() async throws {
        let server = try await TusProcess.tussi()
        let journey = try Journey(server.url, size: 2500, chunk: 1000)
        let object = try await journey.attempt()
        #expect(object.verifiedBy == "acknowledgement")
        let done = server.folder.path.appending("done")
        let names = try Files.names(in: done)
        #expect(try names.contains { try FileLook(at: done.appending($0)).size == 2500 })
        // The attempt that follows a crash right after the last acknowledgement finds nothing, and knows.
        let again = try await journey.attempt()
        #expect(again.verifiedBy == "acknowledgement")
    }

    @Test("gone after the last byte left: sent once more and said so, or as configured")
    func unknownOutcome() async throws {
        func server(_ script: Script) throws -> FakeServer {
            try FakeServer { exchange in
                guard exchange.method == "PATCH", script.time("PATCH") == 0 else { return script.serve(exchange) }
                _ = exchange.body()
                script.state.withLock { $0.exists = false }
                exchange.cut()
            }
        }
        let again = try server(script)
        let (object, errors) = try await Journey(again.url + "/files").arrive()
        #expect(errors.count == 1)
        #expect(object.warnings.contains { $0.contains("twice") })

        let assumed = Script()
        let assuming = try server(assumed)
        let journey = try Journey(assuming.url + "/files", values: ["gone": .text("assume_complete")])
        #expect(try await journey.arrive().object.verifiedBy == "assumption")

        let held = Script()
        let holding = try server(held)
        let waiting = try Journey(holding.url + "/files", values: ["gone": .text("hold")])
        _ = try await waiting.failedAttempt()
        let error = try await waiting.failedAttempt()
        #expect(error.failure.code == "outcome_unknown")
        #expect(error.remedy == .giveUp)
    }

    @Test("a path that keeps nothing of cut requests gets shorter ones")
    func keepsNothing() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH", (exchange.header("content-length").flatMap { Int($0) } ?? 0) > 16 << 20
            else { return script.serve(exchange) }
            _ = exchange.body(8 << 20)
            exchange.cut()
        }
        let journey = try Journey(server.url + "/files", size: 20 << 20)
        let (_, errors) = try await journey.arrive()
        #expect(errors.count == 2)
        #expect(script.held == journey.content)
    }

    @Test("a peer that stops reading, and one that never answers, are noticed", arguments: [true, false])
    func stalls(_ reads: Bool) async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            _ = exchange.body(reads ? .max : 1000)
            exchange.hang()
        }
        let short = SettingValue.duration(.milliseconds(200))
        let journey = try Journey(
            server.url + "/files", size: reads ? 1000 : 32 << 20,
            values: reads ? ["reply_timeout": short] : ["stall_timeout": short])
        let error = try await journey.failedAttempt()
        #expect(error.remedy == .holdDestination(after: nil))
        #expect(error.failure.code == "no_reply")
        #expect(journey.ledger.last?["url"] == server.url + "/u")
    }

    @Test("cancelling stops at once, and what was recorded is good for the next time")
    func cancels() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH", script.time("PATCH") == 0 else { return script.serve(exchange) }
            let body = exchange.body(1 << 20)
            script.state.withLock { $0.held += body }
            exchange.hang()
        }
        let journey = try Journey(server.url + "/files", size: 32 << 20)
        let task = Task { try await journey.attempt() }
        try await eventually("bytes are under way") { script.held.count >= 1 << 20 ? true : nil }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(verbs(server) == ["POST", "PATCH", "HEAD", "PATCH", "HEAD"])
    }

    @Test("a staged copy that changed is staged again, and never mixed", arguments: [999, 1001, 0])
    func changed(_ size: Int) async throws {
        let server = try FakeServer { [script] in script.serve($0) }
        let journey = try Journey(server.url + "/files")
        try journey.folder.write("staged", noise(size))
        let error = try await journey.failedAttempt()
        #expect(error.remedy == .restage)
        #expect(error.failure.code == "staged_changed")
        #expect(server.seen.isEmpty)
    }

    @Test("a staged copy that is cut while it is sent ends the attempt")
    func truncated() async throws {
        let folder = TemporaryFolder()
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            _ = exchange.body()
        }
        let path = try folder.write("staged", noise(100_000))
        let ledger = Ledger(onRecord: { checkpoint in
            if checkpoint["final_bytes_sent"] != nil { try folder.write("staged", noise(50_000)) }
        })
        var order = try Journey(server.url + "/files", size: 100_000, ledger: ledger)
        let staged = StagedFile(path: path, size: 100_000, sha256: [1])
        let moved = UploadOrder(
            id: "x", generation: 1, file: staged, name: "a", mediaType: "a/b", modified: 0, metadata: [:],
            checkpoint: nil)
        let error = await #expect(throws: UploadError.self) {
            try await order.destination.upload(moved, notes: ledger)
        }
        order = try Journey(server.url + "/files")
        #expect(error?.remedy == .restage)
        #expect(ledger.last?["final_bytes_sent"] == nil)
    }

    @Test("an upload on another host gets its bytes there, and never the credentials")
    func otherOrigin() async throws {
        let seen = Mutex<[[String]]>([])
        let store = Script()
        let storage = try FakeServer { exchange in
            seen.withLock { $0.append(exchange.headerNames) }
            store.serve(exchange)
        }
        store.state.withLock { state in
            state.exists = true
            state.length = 1000
        }
        let front = try FakeServer { exchange in
            exchange.reply(201, [("Location", storage.url + "/u?signature=secret")])
        }
        let journey = try Journey(
            front.url + "/files",
            values: ["token": .secret(.literal("hunter2")), "headers": .map(["X-Key": .literal("hunter3")])])
        _ = try await journey.attempt()
        #expect(store.held == journey.content)
        #expect(storage.seen.first == "PATCH /u?signature=secret")
        for names in seen.withLock({ $0 }) {
            #expect(!names.contains("authorization"))
            #expect(!names.contains("x-key"))
        }
    }

    @Test("a lasting redirect of the upload is followed on its own host, and remembered")
    func moved() async throws {
        let server = try FakeServer { [script] exchange in
            if exchange.target == "/old", exchange.method == "PATCH" || exchange.method == "HEAD" {
                if exchange.method == "PATCH" { _ = exchange.body() }
                return exchange.reply(308, [("Location", "/u")])
            }
            script.serve(exchange)
        }
        script.state.withLock { state in
            state.exists = true
            state.length = 1000
        }
        let journey = try Journey(
            server.url + "/files", checkpoint: Checkpoint(["url": server.url + "/old", "offset": "0"]))
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(journey.ledger.last?["url"] == server.url + "/u")
    }

    @Test(
        "header floods, endless answers and garbage end as faults of the server",
        arguments: ["flood", "garbage", "endless"])
    func garbage(_ kind: String) async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            _ = exchange.body()
            switch kind {
            case "flood":
                exchange.raw(
                    "HTTP/1.1 204 OK\r\n"
                        + String(repeating: "X-A: \(String(repeating: "a", count: 900))\r\n", count: 100))
            case "garbage": exchange.raw("\u{1}\u{2}\u{3} nonsense\r\n\r\n")
            default: exchange.raw("HTTP/1.1 200 OK\r\n\r\n" + String(repeating: "a", count: 2 << 20))
            }
            exchange.cut()
        }
        let error = try await Journey(server.url + "/files").failedAttempt()
        #expect(error.remedy == .holdDestination(after: nil) || error.remedy == .misconfigured)
        #expect(error.failure.retryable)
    }

    @Test("the check says what is wrong in words")
    func checks() async throws {
        let slash = try FakeServer { exchange in
            exchange.reply(
                exchange.target == "/files/" ? 204 : 404, exchange.target == "/files/" ? [("Tus-Version", "1.0.0")] : []
            )
        }
        let hint = await (try Journey(slash.url + "/files")).destination.check()
        #expect(hint.verdict == .failed)
        #expect(hint.detail.contains("/files/"))
        let old = try FakeServer { $0.reply(204, [("Tus-Version", "0.2.2")]) }
        #expect(await (try Journey(old.url)).destination.check().detail.contains("0.2.2"))
        let silent = try FakeServer { $0.reply(200) }
        #expect(await (try Journey(silent.url)).destination.check().verdict == .warning)
        let secretless = try Journey(silent.url, values: ["token": .secret(.environment("SLUICE_NO_SUCH"))])
        let result = await secretless.destination.check()
        #expect(result.verdict == .failed)
        #expect(result.detail.contains("SLUICE_NO_SUCH"))
    }
}
