import Core
import Credentials
import Destinations
import Dispatch
import Linux
import Synchronization
import TestKit
import TestTraits
import Testing
import Transport

/// The end or the stop of an upload, at servers that forget, lose, hang or redirect.
@Suite("tus: ends and detours", .needsPackages, .timeLimit(.minutes(Patience.minutes(2))))
struct TusEndingsTests {
    let script = ScriptedTusServer()

    @Test("finished uploads that the server forgets complete by their acknowledgement")
    func forgets() async throws {
        let server = try await TusProcess.tussi()
        let journey = try UploadScenario(server.url, size: 2500, chunk: 1000)
        let object = try await journey.attempt()
        #expect(object.verifiedBy == "acknowledgement")
        let done = server.folder.path.appending("done")
        let names = try Files.names(in: done)
        #expect(try names.contains { try FileStatus(at: done.appending($0)).size == 2500 })
        // The attempt after a crash right after the last acknowledgement finds no upload, and knows why.
        let again = try await journey.attempt()
        #expect(again.verifiedBy == "acknowledgement")
    }

    @Test("an upload lost after its last byte is sent once more with a report, or as configured")
    func unknownOutcome() async throws {
        func server(_ script: ScriptedTusServer) throws -> FakeServer {
            try FakeServer { exchange in
                guard exchange.method == "PATCH", script.time("PATCH") == 0 else { return script.serve(exchange) }
                _ = exchange.body()
                script.state.withLock { $0.exists = false }
                exchange.cut()
            }
        }
        let again = try server(script)
        let (object, errors) = try await UploadScenario(again.url + "/files").arrive()
        #expect(errors.count == 1)
        #expect(object.warnings.contains { $0.contains("twice") })

        let assumed = ScriptedTusServer()
        let assuming = try server(assumed)
        let journey = try UploadScenario(assuming.url + "/files", values: ["gone": .text("assume_complete")])
        #expect(try await journey.arrive().object.verifiedBy == "assumption")

        let held = ScriptedTusServer()
        let holding = try server(held)
        let waiting = try UploadScenario(holding.url + "/files", values: ["gone": .text("hold")])
        _ = try await waiting.failedAttempt()
        let error = try await waiting.failedAttempt()
        #expect(error.failure.code == .outcomeUnknown)
        #expect(error.remedy == .failUpload)
    }

    @Test("a path that keeps no interrupted requests gets shorter ones")
    func keepsNothing() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH", (exchange.header("content-length").flatMap { Int($0) } ?? 0) > 16 << 20
            else { return script.serve(exchange) }
            _ = exchange.body(8 << 20)
            exchange.cut()
        }
        let journey = try UploadScenario(server.url + "/files", size: 20 << 20)
        let (_, errors) = try await journey.arrive()
        #expect(errors.count == 2)
        #expect(script.held == journey.content)
    }

    @Test("a peer that stops reading, and one that never answers, are detected", arguments: [true, false])
    func stalls(_ reads: Bool) async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            _ = exchange.body(reads ? .max : 1000)
            exchange.hang()
        }
        let short = SettingValue.duration(.milliseconds(1500))
        let journey = try UploadScenario(
            server.url + "/files", size: reads ? 1000 : 32 << 20,
            values: reads ? ["reply_timeout": short] : ["stall_timeout": short])
        let error = try await journey.failedAttempt()
        #expect(error.remedy == .holdDestination(after: nil))
        #expect(error.failure.code == .noReply)
        #expect(journey.ledger.last?["url"] == server.url + "/u")
    }

    @Test(
        "a server slow to create an upload, or to report an offset, is awaited as `reply_timeout` says")
    func slowAnswers() async throws {
        let server = try FakeServer { exchange in exchange.hang() }
        let journey = try UploadScenario(
            server.url + "/files", values: ["reply_timeout": .duration(.milliseconds(200))])
        #expect(try await journey.failedAttempt().failure.code == .noReply)
        try await journey.ledger.record(Checkpoint(["url": server.url + "/u", "offset": "0"]))
        #expect(try await journey.failedAttempt().failure.code == .noReply)
    }

    @Test("a server that does not return the address of uploads gets few creations")
    func namelessUploads() async throws {
        let created = Mutex(0)
        let server = try FakeServer { exchange in
            if exchange.method == "POST" { created.withLock { $0 += 1 } }
            exchange.reply(exchange.method == "POST" ? 201 : 204)
        }
        let clocks = ManualClocks()
        let journeys = try (0..<4).map { _ in try UploadScenario(server.url + "/files") }
        let destination = try UploadScenario(server.url + "/files", clocks: clocks).destination
        // A day in which each of four files is tried every five minutes.
        for _ in 0..<288 {
            for journey in journeys {
                var order = journey.order
                order.checkpoint = journey.ledger.last
                let error = await #expect(throws: UploadError.self) {
                    try await destination.upload(order, reporter: journey.ledger)
                }
                #expect([.noLocation, .creationsUnknown].contains(error?.failure.code))
            }
            clocks.advance(by: .seconds(300))
        }
        #expect((4...16).contains(created.withLock { $0 }), "\(created.withLock { $0 }) uploads in a day")
    }

    @Test("cancellation stops at once, and the record is valid for the next attempt")
    func cancels() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH", script.time("PATCH") == 0 else { return script.serve(exchange) }
            let body = exchange.body(1 << 20)
            script.state.withLock { $0.held += body }
            exchange.hang()
        }
        let journey = try UploadScenario(server.url + "/files", size: 32 << 20)
        let task = Task { try await journey.attempt() }
        try await eventually("the body is in flight") { script.held.count >= 1 << 20 ? true : nil }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(verbs(server) == ["POST", "PATCH", "HEAD", "PATCH", "HEAD"])
    }

    @Test("a changed staged copy is staged again, and never mixed", arguments: [999, 1001, 0])
    func changed(_ size: Int) async throws {
        let server = try FakeServer { [script] in script.serve($0) }
        let journey = try UploadScenario(server.url + "/files")
        try journey.folder.write("staged", noise(size))
        let error = try await journey.failedAttempt()
        #expect(error.remedy == .restage(.changed))
        #expect(error.failure.code == .stagedChanged)
        #expect(server.seen.isEmpty)
    }

    @Test("the server never gets the last bytes of a corrupted staged copy", arguments: [2500, 400_000])
    func rotten(_ size: Int) async throws {
        let server = try FakeServer { [script] in script.serve($0) }
        let journey = try UploadScenario(server.url + "/files", size: size, chunk: size == 2500 ? 1000 : nil)
        var rotten = journey.content
        rotten[500] ^= 1
        try journey.folder.write("staged", rotten)
        let error = try await journey.failedAttempt()
        #expect(error.remedy == .restage(.changed))
        #expect(error.failure.code == .stagedChanged, "\(error)")
        try await eventually("the server has read what was sent") { server.isIdle }
        let held = script.held.count
        #expect(held < size)
        // A daemon that dies before it records the damage finds it again, and sends no byte for that.
        #expect(try await journey.failedAttempt().failure.code == .stagedChanged)
        try await eventually("the server has read what was sent") { server.isIdle }
        #expect(script.held.count == held && verbs(server).filter { $0 == "POST" }.count == 1)
        // Staged once more, the file starts again: the server's bytes are of no use, and are removed.
        try journey.folder.write("staged", journey.content)
        journey.ledger.giveUp(by: journey.destination)
        let left = journey.ledger.book.withLock { $0.left }
        #expect(left.count == 1 && left[0]["url"] != nil)
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(verbs(server).filter { $0 == "POST" }.count == 2)
    }

    @Test("a staged copy corrupted between two attempts is detected by the second one", arguments: [300, 1700, 2400])
    func rottenBetween(_ place: Int) async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH", script.time("PATCH") == 1 else { return script.serve(exchange) }
            _ = exchange.body()
            exchange.reply(503)
        }
        let journey = try UploadScenario(server.url + "/files", size: 2500, chunk: 1000)
        _ = try await journey.failedAttempt()
        var rotten = journey.content
        rotten[place] ^= 1
        try journey.folder.write("staged", rotten)
        let error = try await journey.failedAttempt()
        #expect(error.failure.code == .stagedChanged, "\(error)")
        // The server has neither the last byte nor any byte of another upload of the file.
        #expect(script.held.count < 2500)
        try journey.folder.write("staged", journey.content)
        journey.ledger.giveUp(by: journey.destination)
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
    }

    @Test("a staged copy truncated while sending ends the attempt")
    func truncated() async throws {
        let folder = TemporaryFolder()
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            _ = exchange.body()
        }
        let path = try folder.write("staged", noise(100_000))
        let ledger = CountingReporter(onRecord: { checkpoint in
            // After the check of the copy, and before its bytes are read.
            if checkpoint["url"] != nil { try folder.write("staged", noise(50_000)) }
        })
        var order = try UploadScenario(server.url + "/files", size: 100_000, ledger: ledger)
        let staged = StagedFile(path: path, size: 100_000, sha256: [1])
        let moved = UploadOrder(
            id: "x", generation: 1, file: staged, name: "a", mediaType: "a/b", modified: 0, metadata: [:],
            checkpoint: nil)
        let error = await #expect(throws: UploadError.self) {
            try await order.destination.upload(moved, reporter: ledger)
        }
        order = try UploadScenario(server.url + "/files")
        #expect(error?.remedy.restages == true)
        #expect(ledger.last?["may_be_whole"] == nil)
    }

    @Test("a permanent redirect of the upload is followed on its own host, and stored")
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
        let journey = try UploadScenario(
            server.url + "/files", checkpoint: Checkpoint(["url": server.url + "/old", "offset": "0"]))
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(journey.ledger.last?["url"] == server.url + "/u")
    }

    @Test(
        "header floods, endless answers and garbage end as server errors",
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
        let error = try await UploadScenario(server.url + "/files").failedAttempt()
        #expect(error.remedy == .holdDestination(after: nil) || error.remedy == .misconfigured)
        #expect(error.failure.retryable)
    }

    @Test("the error document of an object store is named as one")
    func objectStore() async throws {
        let store = try FakeServer { exchange in
            exchange.reply(
                403, [("Content-Type", "application/xml")],
                "<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
        }
        let result = await (try UploadScenario(store.url + "/bucket")).destination.check()
        #expect(result.verdict == .failed)
        #expect(result.detail.contains("as an object store does: set `type: s3`"), "\(result.detail)")
    }

    @Test("the check describes problems in words")
    func checks() async throws {
        let slash = try FakeServer { exchange in
            exchange.reply(
                exchange.target == "/files/" ? 204 : 404, exchange.target == "/files/" ? [("Tus-Version", "1.0.0")] : []
            )
        }
        let hint = await (try UploadScenario(slash.url + "/files")).destination.check()
        #expect(hint.verdict == .failed)
        #expect(hint.detail.contains("/files/"))
        let old = try FakeServer { $0.reply(204, [("Tus-Version", "0.2.2")]) }
        #expect(await (try UploadScenario(old.url)).destination.check().detail.contains("0.2.2"))
        let silent = try FakeServer { $0.reply(200) }
        #expect(await (try UploadScenario(silent.url)).destination.check().verdict == .warning)
        let secretless = try UploadScenario(silent.url, values: ["token": .secret(.environment("SLUICE_NO_SUCH"))])
        let result = await secretless.destination.check()
        #expect(result.verdict == .failed)
        #expect(result.detail.contains("SLUICE_NO_SUCH"))
    }

    @Test("an upload on another server is not queried: a new one starts at the present address")
    func otherServer() async throws {
        let (old, new) = (ScriptedTusServer(), ScriptedTusServer())
        let first = try FakeServer { exchange in
            guard exchange.method == "PATCH" else { return old.serve(exchange) }
            _ = exchange.body(100)
            exchange.cut()
        }
        let second = try FakeServer { new.serve($0) }
        let before = try UploadScenario(first.url + "/files")
        _ = try await before.failedAttempt()
        let asked = first.seen.count
        let journey = try UploadScenario(
            second.url + "/files", values: ["token": .secret(.literal("for-the-new-one"))],
            checkpoint: before.ledger.last)
        _ = try await journey.attempt()
        #expect(new.held == journey.content)
        #expect(verbs(second) == ["POST", "PATCH", "HEAD"])
        // The remains there cannot be removed: the token is not for that server.
        let left = try #require(before.ledger.last)
        #expect(try await journey.destination.discard(left) == false)
        #expect(first.seen.count == asked)
        // Another path of the same server is the same server.
        let moved = try UploadScenario(first.url + "/uploads/", checkpoint: before.ledger.last)
        _ = try await moved.failedAttempt()
        #expect(verbs(first).filter { $0 == "POST" }.count == 1)
    }
}
