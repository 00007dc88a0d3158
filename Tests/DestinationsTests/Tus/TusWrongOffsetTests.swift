import Core
import Destinations
import Linux
import Synchronization
import TestKit
import Testing
import Transport

/// Offsets that are out of date, wrong or unreadable: a single one resolves itself, and many cost little and are
/// reported.
@Suite("tus: wrong offset queries", .timeLimit(.minutes(Patience.minutes(3))))
struct TusWrongOffsetTests {
    let script = ScriptedTusServer()

    /// Answers to bytes that the server has already.
    static let answers: [(status: Int, isNamed: Bool, words: String)] = [
        (409, true, ""), (409, false, ""), (400, false, "offset"), (403, false, "Upload already completed"),
    ]

    /// Accepts bytes once; reports the offset `stale` to HEAD this many times, once it has all bytes, or always.
    ///
    /// - Parameter tells: Whether the first request with the last byte gets its answer.
    private func server(
        stale: Int, times: Int, _ status: Int, isNamed: Bool = false, words: String = "", tells: Bool = true
    ) throws -> FakeServer {
        try FakeServer { [script] exchange in
            let isWhole = script.state.withLock { $0.exists && $0.held.count == $0.length }
            if exchange.method == "HEAD", isWhole, script.time("HEAD") < times {
                let length = script.state.withLock { $0.length }
                return exchange.reply(200, [("Upload-Offset", "\(stale)"), ("Upload-Length", "\(length)")])
            }
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            if isWhole {
                script.state.withLock { $0.times["bytes", default: 0] += body.count }
                return exchange.reply(status, isNamed ? [("Upload-Offset", "\(script.held.count)")] : [], words)
            }
            let now = script.state.withLock { state in
                state.held += body
                return state.held.count
            }
            if !tells, Int64(now) == script.state.withLock({ $0.length }) { return exchange.cut() }
            exchange.reply(204, [("Upload-Offset", "\(now)")])
        }
    }

    private var bytesAgain: Int { script.state.withLock { $0.times["bytes"] ?? 0 } }

    // MARK: Once

    @Test(
        "one outdated offset after a success corrects itself, whatever the server answers to bytes that it has",
        arguments: answers, [1, 2])
    func staleOnce(_ answer: (status: Int, isNamed: Bool, words: String), _ times: Int) async throws {
        let server = try server(
            stale: 600, times: times, answer.status, isNamed: answer.isNamed, words: answer.words)
        let object = try await UploadScenario(server.url + "/files").arrive().object
        #expect(object.verifiedBy == "offset")
        #expect(object.warnings.count == 1 && object.warnings[0].contains("\(answer.status)"), "\(object.warnings)")
        #expect(verbs(server).filter { $0 == "POST" }.count == 1)
    }

    @Test(
        "an answer from a proxy to a query is no refusal of the file",
        arguments: answers.filter { $0.status != 400 })
    func lateDelivery(_ answer: (status: Int, isNamed: Bool, words: String)) async throws {
        let server = try server(
            stale: 600, times: 1, answer.status, isNamed: answer.isNamed, words: answer.words, tells: false)
        let object = try await UploadScenario(server.url + "/files").arrive().object
        #expect(object.warnings.contains { $0.contains("\(answer.status)") }, "\(object.warnings)")
        #expect(verbs(server).filter { $0 == "POST" }.count == 1)
    }

    @Test(
        "a refusal of the last bytes refuses the file also after an interrupted request",
        arguments: [400, 403, 413, 422, 451, 500])
    func refusedBehindCut(_ status: Int) async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            let isFirst = script.time("PATCH") == 0
            script.state.withLock { $0.held += isFirst ? body.prefix(500) : body[...] }
            if isFirst { return exchange.cut() }
            exchange.reply(status, [("Tus-Resumable", "1.0.0")], "virus found")
        }
        let journey = try UploadScenario(server.url + "/files")
        let error = try #require(await #expect(throws: UploadError.self) { try await journey.arrive() })
        #expect(error.failure.code == .refusedAtEnd && error.failure.http == status)
    }

    @Test("content refused after a success is refused", arguments: [422, 500])
    func refusedBehindSuccess(_ status: Int) async throws {
        let server = try server(stale: 600, times: 1, status, words: "virus found")
        let journey = try UploadScenario(server.url + "/files")
        let error = try #require(await #expect(throws: UploadError.self) { try await journey.arrive() })
        #expect(error.failure.code == .refusedAtEnd && error.failure.http == status)
    }

    @Test("an answer with two offsets counts as one without, and a wrong offset in a success as an answer")
    func oddOffsets() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "HEAD", script.time("HEAD") == 0 else { return script.serve(exchange) }
            exchange.raw(
                "HTTP/1.1 200 OK\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 1000\r\nUpload-Offset: 5\r\nContent-Length: 0\r\n\r\n"
            )
        }
        let (object, errors) = try await UploadScenario(server.url + "/files").arrive()
        #expect(errors.map(\.failure.code) == [.noOffset] && object.verifiedBy == "offset")
        for named in ["0", "5000", "-1"] {
            let other = ScriptedTusServer()
            let low = try FakeServer { exchange in
                guard exchange.method == "PATCH" else { return other.serve(exchange) }
                let body = exchange.body()
                other.state.withLock { $0.held += body }
                exchange.reply(204, [("Upload-Offset", named)])
            }
            let object = try await UploadScenario(low.url + "/files").arrive().object
            #expect(!object.warnings.contains { $0.contains("no answer") }, "\(named): \(object.warnings)")
            low.stop()
        }
    }

    // MARK: For ever

    /// Attempts like the daemon's, without its waits.
    private func attempts(_ journey: UploadScenario, _ count: Int) async throws -> [UploadError] {
        var errors: [UploadError] = []
        for _ in 0..<count { errors.append(try await journey.failedAttempt()) }
        return errors
    }

    private func wait(of error: UploadError) -> Duration? {
        switch error.remedy {
        case .retry(let after): after
        case .pending(let after): after
        default: nil
        }
    }

    @Test(
        "an offset that stays wrong costs few bytes, is queried less and less often, and is reported",
        arguments: [409, 400, 403])
    func staleForever(_ status: Int) async throws {
        let size = 1 << 20
        let server = try server(stale: size / 4, times: .max, status, words: "no")
        let journey = try UploadScenario(server.url + "/files", size: size)
        let errors = try await attempts(journey, 40)
        #expect(bytesAgain <= 3 * size + 40 * (64 << 10), "\(bytesAgain) bytes were sent again")
        #expect(verbs(server).filter { $0 == "POST" }.count == 1)
        let waits = errors.map { wait(of: $0) ?? .zero }
        #expect(waits == waits.sorted() && waits.last == .seconds(3600), "\(waits)")
        let last = try #require(errors.last)
        #expect(last.failure.code == .serverContradicts && last.failure.retryable)
        for words in ["\(status)", "\(size)", "\(size / 4)", "cancel"] {
            #expect(last.failure.message.contains(words), "\(last.failure.message)")
        }
        #expect(errors.prefix(5).allSatisfy { $0.failure.code != .serverContradicts })
        // The upload recovers.
        script.state.withLock { $0.times["HEAD"] = nil }
        let healed = try self.server(stale: 0, times: 0, 409)
        var checkpoint = try #require(journey.ledger.last)
        checkpoint["url"] = healed.url + "/u"
        checkpoint["server"] = healed.url
        let object = try await UploadScenario(healed.url + "/files", size: size, checkpoint: checkpoint).attempt()
        #expect(object.verifiedBy == "offset" && object.warnings.contains { $0.contains("\(status)") })
    }

    @Test("an offset that stays unreadable is queried less and less often, and is reported")
    func noOffset() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "HEAD" else { return script.serve(exchange) }
            exchange.reply(200, [("Tus-Resumable", "1.0.0")])
        }
        let errors = try await attempts(try UploadScenario(server.url + "/files"), 20)
        #expect(verbs(server).filter { $0 == "PATCH" }.count == 1)
        #expect(wait(of: errors[19]) == .seconds(3600) && errors[19].failure.code == .offsetUnknown)
        #expect(errors[19].failure.message.contains("without a usable Upload-Offset"))
        #expect(errors[0].failure.code == .noOffset)
    }

    @Test("successes without progress cost few bytes and are reported")
    func noGrowth() async throws {
        let size = 1 << 20
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            script.state.withLock { $0.times["bytes", default: 0] += body.count }
            exchange.reply(204, [("Upload-Offset", "0")])
        }
        let errors = try await attempts(try UploadScenario(server.url + "/files", size: size), 20)
        #expect(bytesAgain <= 3 * size + 60 * (64 << 10), "\(bytesAgain) bytes were sent")
        #expect(errors[19].failure.code == .serverContradicts && wait(of: errors[19]) == .seconds(3600))
    }

    @Test("a lock that never ends costs few bytes and is reported")
    func lockForever() async throws {
        let size = 1 << 20
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            script.state.withLock { $0.times["bytes", default: 0] += body.count }
            exchange.reply(423, [], "ERR_UPLOAD_LOCKED")
        }
        let errors = try await attempts(try UploadScenario(server.url + "/files", size: size, chunk: 1 << 19), 20)
        #expect(bytesAgain <= 3 * size + 20 * (64 << 10), "\(bytesAgain) bytes were sent")
        #expect(errors[0].remedy == .retry(after: .seconds(2)) && wait(of: errors[19]) == .seconds(3600))
        #expect(errors[19].failure.message.contains("423") && errors[19].failure.message.contains("20 times in a row"))
    }

    @Test("a position that a server releases after a while is resumed with all remaining bytes")
    func lockEnds() async throws {
        let size = 1 << 20
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH", script.time("PATCH") < 8 else { return script.serve(exchange) }
            _ = exchange.body()
            exchange.reply(409)
        }
        let journey = try UploadScenario(server.url + "/files", size: size)
        let object = try await journey.arrive().object
        #expect(object.warnings.isEmpty && script.held == journey.content)
        #expect(verbs(server).filter { $0 == "PATCH" }.count == 10)
    }

    // MARK: Twice

    @Test("an acknowledged upload that starts again because its offset goes back is reported")
    func lostTail() async throws {
        let server = try FakeServer { [script] exchange in
            script.serve(exchange)
            guard exchange.method == "PATCH", script.held.count == 1000, script.time("lost") < 3 else { return }
            script.state.withLock { $0.held.removeLast(500) }
        }
        let journey = try UploadScenario(server.url + "/files")
        let object = try await journey.arrive().object
        #expect(verbs(server).filter { $0 == "POST" }.count == 2)
        #expect(object.warnings.contains { $0.contains("started again") }, "\(object.warnings)")
    }

    @Test("a server that loses acknowledged bytes each time gets them a few times, and then the upload needs a person")
    func alwaysLost() async throws {
        let server = try FakeServer { [script] exchange in
            script.serve(exchange)
            if exchange.method == "PATCH" { script.state.withLock { $0.held = [] } }
        }
        let journey = try UploadScenario(server.url + "/files")
        let error = try #require(await #expect(throws: UploadError.self) { try await journey.arrive(within: 40) })
        #expect(error.failure.code == .uploadLost && error.remedy == .failUpload)
        #expect(verbs(server).filter { $0 == "PATCH" }.count < 40)
    }

    @Test("an acknowledged upload that then lacks bytes and is lost is in doubt")
    func staleThenGone() async throws {
        let server = try FakeServer { [script] exchange in
            if exchange.method == "HEAD", script.time("HEAD") == 0 {
                return exchange.reply(200, [("Upload-Offset", "600"), ("Upload-Length", "1000")])
            }
            guard exchange.method == "PATCH", script.time("PATCH") == 1 else { return script.serve(exchange) }
            _ = exchange.body()
            script.state.withLock { $0.exists = false }
            exchange.reply(404, [("Tus-Resumable", "1.0.0")])
        }
        let object = try await UploadScenario(server.url + "/files").arrive().object
        #expect(object.warnings.contains { $0.contains("sent twice") }, "\(object.warnings)")
    }

    @Test("a retry after a refused end reports that the server may have it already")
    func retried() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            script.state.withLock { $0.held += body }
            if script.time("PATCH") == 0 { return exchange.reply(422, [], "virus found") }
            exchange.reply(204, [("Upload-Offset", "\(script.held.count)")])
        }
        var journey = try UploadScenario(server.url + "/files")
        _ = await #expect(throws: UploadError.self) { try await journey.arrive() }
        journey.order.generation = 2
        let object = try await journey.arrive().object
        #expect(object.warnings.contains { $0.contains("may hold") && $0.contains("refused") }, "\(object.warnings)")
    }
}
