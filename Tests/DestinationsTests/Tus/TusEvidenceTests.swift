import Core
import Destinations
import Linux
import Synchronization
import TestKit
import Testing
import Transport

/// The bytes that may have been sent decide about an upload that is gone, and about an offset that is too high.
@Suite("tus: bytes that may have been sent", .timeLimit(.minutes(Patience.minutes(2))))
struct TusEvidenceTests {
    let script = ScriptedTusServer()

    /// Accepts `share` of each PATCH body in per cent, then disconnects and forgets the upload.
    private func forgetful(_ share: Int, times: Int) throws -> FakeServer {
        try FakeServer { [script] exchange in
            guard exchange.method == "PATCH", script.time("PATCH") < times else { return script.serve(exchange) }
            let length = exchange.header("content-length").flatMap { Int($0) } ?? 0
            _ = exchange.body(length * share / 100)
            script.state.withLock { $0.exists = false }
            exchange.cut(reset: true)
        }
    }

    @Test(
        "an upload lost when only some bytes had been sent starts again without a warning",
        arguments: ["reupload", "assume_complete", "hold"])
    func partly(_ policy: String) async throws {
        let times = 15
        let server = try forgetful(15, times: times)
        let journey = try UploadScenario(server.url + "/files", size: 24 << 20, values: ["gone": .text(policy)])
        let (object, errors) = try await journey.arrive(within: times + 2)
        #expect(object.verifiedBy == "offset" && object.warnings.isEmpty)
        #expect(errors.allSatisfy { $0.remedy == .holdDestination(after: nil) })
        #expect(script.held == journey.content)
    }

    @Test(
        "an upload stopped half-way and lost starts again without a warning", arguments: ["hold", "reupload"])
    func stopped(_ policy: String) async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH", script.time("PATCH") == 0 else { return script.serve(exchange) }
            _ = exchange.body(1 << 20)
            script.state.withLock { $0.exists = false }
            exchange.hang()
        }
        let journey = try UploadScenario(server.url + "/files", size: 24 << 20, values: ["gone": .text(policy)])
        let task = Task { try await journey.attempt() }
        try await eventually("the body is in flight") {
            script.state.withLock { $0.exists } ? nil : server.seen.contains { $0.hasPrefix("PATCH") } ? true : nil
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(journey.ledger.last?["may_be_whole"] == nil)
        let object = try await journey.attempt()
        #expect(object.warnings.isEmpty && script.held == journey.content)
    }

    @Test("an upload counts as complete only if the peer acknowledged every byte")
    func unacknowledged() async throws {
        // The remains of a process that was killed inside the last request: the upload may be complete, and nothing
        // shows it.
        let server = try FakeServer { [script] in script.serve($0) }
        let checkpoint = Checkpoint([
            "url": server.url + "/old", "offset": "0", "reach": "1000", "may_be_whole": "1",
        ])
        let journey = try UploadScenario(
            server.url + "/files", values: ["gone": .text("assume_complete")], checkpoint: checkpoint)
        let object = try await journey.attempt()
        #expect(object.verifiedBy == "offset" && object.warnings.contains { $0.contains("twice") })
        #expect(script.held == journey.content)
    }

    @Test(
        "a process killed inside a request knows how much may have been sent", arguments: [nil, 400] as [Int64?])
    func killed(_ chunk: Int64?) async throws {
        let died = Mutex<Checkpoint?>(nil)
        let server = try FakeServer { [script] in script.serve($0) }
        let ledger = CountingReporter(onRecord: { checkpoint in
            if checkpoint["reach"] == "\(chunk ?? 1000)" { died.withLock { $0 = $0 ?? checkpoint } }
        })
        _ = try await UploadScenario(server.url + "/files", chunk: chunk, ledger: ledger).attempt()
        let checkpoint = try #require(died.withLock { $0 })
        for offset in [0, 399, 400, 401, 1000] {
            let after = ScriptedTusServer()
            let mayBe = offset <= chunk ?? 1000
            let journey = try UploadScenario("http://x/files", chunk: chunk)
            after.state.withLock { state in
                (state.exists, state.length) = (true, 1000)
                state.held = Array(journey.content.prefix(offset))
            }
            let restarted = try FakeServer { after.serve($0) }
            var stored = checkpoint
            stored["url"] = restarted.url + "/u"
            stored["server"] = restarted.url
            _ = try await UploadScenario(restarted.url + "/files", chunk: chunk, checkpoint: stored).attempt()
            #expect(verbs(restarted).contains("POST") == !mayBe, "at \(offset)")
            #expect(after.held == journey.content)
        }
    }

    @Test("an offset above the sent bytes belongs to another writer: a new upload starts", arguments: [false, true])
    func secondWriter(_ isStopped: Bool) async throws {
        let size = 60 << 20
        let isHeld = Mutex(false)
        let server = try FakeServer { [script] exchange in
            if exchange.method == "HEAD", script.state.withLock({ $0.times["POST"] ?? 0 }) == 1 {
                return exchange.reply(200, [("Upload-Offset", "\(size)"), ("Upload-Length", "\(size)")])
            }
            if exchange.method == "POST" { _ = script.time("POST") }
            guard exchange.method == "PATCH", script.time("PATCH") == 0 else { return script.serve(exchange) }
            _ = exchange.body(1 << 20)
            isHeld.withLock { $0 = true }
            if isStopped { exchange.hang() } else { exchange.cut(reset: true) }
        }
        let journey = try UploadScenario(server.url + "/files", size: size)
        let task = Task { try await journey.attempt() }
        if isStopped {
            try await eventually("the body is in flight") { isHeld.withLock { $0 ? true : nil } }
            task.cancel()
        }
        await #expect(throws: (any Error).self) { try await task.value }
        let reachability = try #require(journey.ledger.last?["reach"].flatMap { Int64($0) })
        #expect((1 << 20..<Int64(size)).contains(reachability))
        _ = try await journey.arrive()
        #expect(verbs(server).filter { $0 == "POST" }.count == 2)
        #expect(script.held == journey.content)
    }

    @Test(
        "one query about another file, after an acknowledged end, causes no second copy",
        arguments: ["beyond", "length"])
    func foreignOnce(_ lie: String) async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "HEAD", script.time("HEAD") == 0 else { return script.serve(exchange) }
            exchange.reply(
                200,
                [
                    ("Upload-Offset", lie == "beyond" ? "2000" : "1000"),
                    ("Upload-Length", lie == "beyond" ? "2000" : "999"),
                ])
        }
        let journey = try UploadScenario(server.url + "/files")
        let (object, errors) = try await journey.arrive()
        #expect(errors.map(\.remedy) == [.pending(after: .seconds(15))] && object.warnings.isEmpty)
        #expect(verbs(server).filter { $0 == "POST" }.count == 1)
    }

    @Test("a server that always answers about another file gets the file at most twice, with a report")
    func foreignAlways() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "HEAD" else { return script.serve(exchange) }
            exchange.reply(200, [("Upload-Offset", "2000"), ("Upload-Length", "2000")])
        }
        let journey = try UploadScenario(server.url + "/files")
        let error = try #require(await #expect(throws: UploadError.self) { try await journey.arrive() })
        #expect(error.failure.code == .outcomeUnknown && error.failure.message.contains("sent twice"))
        #expect(verbs(server).filter { $0 == "PATCH" }.count == 2)
    }

    @Test("an upload with more bytes than were sent is marked first, and a warning says that it is left there")
    func foreignMark() async throws {
        let server = try FakeServer { [script] exchange in
            if exchange.method == "PATCH", script.time("PATCH") == 0 {
                _ = exchange.body(300)
                return exchange.cut()
            }
            guard exchange.method == "HEAD", script.time("HEAD") == 0 else { return script.serve(exchange) }
            exchange.reply(200, [("Upload-Offset", "900"), ("Upload-Length", "1000"), ("Tus-Resumable", "1.0.0")])
        }
        let checkpoint = Checkpoint([
            "url": server.url + "/files/old", "offset": "300", "reach": "300", "server": server.url,
        ])
        let journey = try UploadScenario(server.url + "/files", checkpoint: checkpoint)
        let object = try await journey.arrive().object
        #expect(object.warnings.contains { $0.contains("another writer") }, "\(object.warnings)")
        let marks = journey.ledger.book.withLock { $0.checkpoints.map { $0[Checkpoint.isOfAnother] } }
        #expect(marks.first == "1" && marks.last == .some(nil))
        #expect(script.held == journey.content)
    }

    @Test(
        "`gone` decides about an upload that the server no longer knows after its last byte",
        arguments: ["hold", "reupload", "assume_complete"])
    func goneAtTheEnd(_ gone: String) async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH", script.time("PATCH") == 0 else { return script.serve(exchange) }
            _ = exchange.body()
            script.state.withLock { $0.exists = false }
            exchange.reply(404, [("Tus-Resumable", "1.0.0")])
        }
        let journey = try UploadScenario(server.url + "/files", values: ["gone": .text(gone)])
        if gone == "hold" {
            let error = try #require(await #expect(throws: UploadError.self) { try await journey.arrive() })
            #expect(error.failure.code == .outcomeUnknown)
            // A person retries it, and it may exist twice.
            var again = journey
            again.order.generation = 2
            #expect(try await again.arrive().object.warnings.contains { $0.contains("sent twice") })
        } else {
            let object = try await journey.arrive().object
            #expect(object.verifiedBy == "offset" && object.warnings.contains { $0.contains("sent twice") })
        }
    }

    @Test("an assumption is reported, also after a kill in between")
    func assumedAfterRestart() async throws {
        let server = try FakeServer { [script] in script.serve($0) }
        let checkpoint = Checkpoint([
            "url": server.url + "/old", "offset": "1000", "reach": "1000", "may_be_whole": "1", "delivered_whole": "1",
            "assumed": "1", "server": server.url,
        ])
        let journey = try UploadScenario(
            server.url + "/files", values: ["gone": .text("assume_complete")], checkpoint: checkpoint)
        let object = try await journey.attempt()
        #expect(object.verifiedBy == "assumption" && object.warnings.contains { $0.contains("regarded as complete") })
    }

    @Test("an empty file completes with its creation, even if the server does not know it afterwards")
    func empty() async throws {
        let server = try FakeServer { [script] exchange in
            if exchange.method == "HEAD" { return exchange.reply(404, [("Tus-Resumable", "1.0.0")]) }
            script.serve(exchange)
        }
        let object = try await UploadScenario(server.url + "/files", size: 0).attempt()
        #expect(object.verifiedBy == "acknowledgement")
    }
}
