import Core
import Destinations
import Linux
import Synchronization
import TestKit
import Testing
import Transport

/// The effect of the answer to the last bytes, at servers that keep the bytes regardless of their answer.
@Suite("tus: the last answer", .timeLimit(.minutes(Patience.minutes(2))))
struct TusLastAnswerTests {
    let script = ScriptedTusServer()

    /// Stores the bytes, and answers the last request with `status` this many times.
    private func server(_ status: Int, _ words: String = "virus found", times: Int = .max) throws -> FakeServer {
        try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            let isLast = script.state.withLock { state in
                state.held += body
                return state.held.count == state.length
            }
            if isLast, script.time("refused") < times { return exchange.reply(status, [], words) }
            let count = script.held.count
            exchange.reply(204, [("Upload-Offset", "\(count)")])
        }
    }

    @Test(
        "a refusal ends the upload, with status and message, and is on disk before any further request",
        arguments: [
            400, 401, 403, 405, 406, 409, 410, 411, 413, 415, 418, 422, 423, 431, 451, 460, 499, 500, 501, 505,
            507,
            511, 599,
        ], [nil, 400] as [Int64?])
    func refused(_ status: Int, _ chunk: Int64?) async throws {
        let ledger = CountingReporter()
        let wasDurable = Mutex<Bool?>(nil)
        let relay = try FakeServer { [script] exchange in
            if exchange.method == "HEAD", script.state.withLock({ $0.times["refused"] ?? 0 > 0 }) {
                wasDurable.withLock { $0 = $0 ?? (ledger.last?["refused_status"] == "\(status)") }
            }
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            let isLast = script.state.withLock { state in
                state.held += body
                return state.held.count == state.length
            }
            if isLast {
                _ = script.time("refused")
                // The header of tus shows that the answer is the server's own.
                return exchange.reply(status, [("Tus-Resumable", "1.0.0")], "virus found")
            }
            let count = script.held.count
            exchange.reply(204, [("Upload-Offset", "\(count)")])
        }
        let journey = try UploadScenario(relay.url + "/files", chunk: chunk, ledger: ledger)
        let error = try #require(await #expect(throws: UploadError.self) { try await journey.arrive() })
        #expect(error.remedy == .failUpload)
        #expect(error.failure.code == .refusedAtEnd && error.failure.http == status)
        #expect(error.failure.message.contains("virus found") && error.failure.message.contains("\(status)"))
        #expect(wasDurable.withLock { $0 } == true)
        // After a crash the same attempt continues, with the same result.
        let again = try await journey.failedAttempt()
        #expect(again.failure.code == .refusedAtEnd && again.failure.http == status)
        #expect(verbs(relay).filter { $0 == "POST" }.count == 1)
    }

    @Test("without the refusal the same file completes")
    func control() async throws {
        let server = try server(400, times: 0)
        let object = try await UploadScenario(server.url + "/files").attempt()
        #expect(object.verifiedBy == "offset" && object.warnings.isEmpty)
    }

    @Test("`final_error: accept` completes the file, and reports the answer", arguments: [403, 500])
    func accepted(_ status: Int) async throws {
        let server = try server(status)
        let journey = try UploadScenario(server.url + "/files", values: ["final_error": .text("accept")])
        let object = try await journey.arrive().object
        #expect(object.warnings.contains { $0.contains("\(status)") && $0.contains("virus found") })
    }

    @Test(
        "a gateway's answer does not concern the file: the offset decides, with a warning",
        arguments: [408, 425, 429, 502, 503, 504])
    func unclear(_ status: Int) async throws {
        let server = try server(status, "later")
        let (object, errors) = try await UploadScenario(server.url + "/files").arrive()
        #expect(errors.count == 1)
        #expect(object.warnings.contains { $0.contains("\(status)") && $0.contains("later") })
        #expect(verbs(server) == ["POST", "PATCH", "HEAD"])
    }

    @Test(
        "an answer that may be an intermediary's does not concern the file: the server is asked, and the file completes",
        arguments: [402, 406, 418, 426, 428, 451, 499, 505, 508, 510, 511, 520, 524, 530, 598, 599].map { ($0, "no") }
            + [500, 501, 511, 522].map { ($0, "<!DOCTYPE html><html><body>Please log in</body></html>") },
        [nil, 400] as [Int64?])
    func answerOfPath(_ answer: (Int, String), _ chunk: Int64?) async throws {
        let (status, words) = answer
        let server = try server(status, words)
        let ledger = CountingReporter()
        let (object, errors) = try await UploadScenario(server.url + "/files", chunk: chunk, ledger: ledger).arrive()
        #expect(errors.count == (status < 500 || status == 501 ? 0 : 1))
        #expect(errors.allSatisfy { $0.remedy == (status == 501 ? .misconfigured : .holdDestination(after: nil)) })
        #expect(object.warnings.count == 1 && object.warnings[0].contains("\(status)"), "\(object.warnings)")
        #expect(object.warnings[0].contains("asked again, the server has every byte"))
        #expect(verbs(server).filter { $0 == "HEAD" }.count == 1 && verbs(server).last == "HEAD")
        #expect(ledger.last?["refused_status"] == nil)
    }

    @Test("a plain 500 is the server's own, and so is a page with a header of tus", arguments: [false, true])
    func ownError(_ isPage: Bool) async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            script.state.withLock { $0.held += body }
            exchange.reply(
                500, isPage ? [("Tus-Resumable", "1.0.0")] : [], isPage ? "<html><body>virus</body></html>" : "virus")
        }
        let error = try #require(
            await #expect(throws: UploadError.self) { try await UploadScenario(server.url + "/files").arrive() })
        #expect(error.failure.code == .refusedAtEnd && error.failure.http == 500)
    }

    @Test("a conflict with another offset concerns the upload's position, and not the file")
    func conflict() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            script.state.withLock { $0.held += body }
            exchange.reply(409, [("Upload-Offset", "500")])
        }
        let object = try await UploadScenario(server.url + "/files").attempt()
        #expect(object.warnings.contains { $0.contains("409") })
    }

    @Test("a conflict that names the end of the bytes has accepted them, and refuses the file")
    func conflictAtEnd() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            script.state.withLock { $0.held += body }
            exchange.reply(409, [("Upload-Offset", "\(script.held.count)")], "duplicate")
        }
        let error = try await UploadScenario(server.url + "/files").failedAttempt()
        #expect(error.failure.code == .refusedAtEnd && error.failure.http == 409)
    }

    @Test(
        "a refusal with a truncated, endless or too long text is a refusal",
        arguments: ["cut", "stall", "long", "chunks", "length"])
    func brokenText(_ fault: String) async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            script.state.withLock { $0.held += body }
            let head = "HTTP/1.1 422 No\r\n"
            switch fault {
            case "long": exchange.reply(422, [], String(repeating: "no ", count: 700_000))
            case "chunks":
                exchange.raw(head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n")
                exchange.closeAfterwards()
            case "length":
                exchange.raw(head + "Content-Length: abc\r\n\r\nvirus found")
                exchange.closeAfterwards()
            default:
                exchange.raw(head + "Content-Length: 500\r\n\r\nvirus found")
                if fault == "stall" { exchange.hang() } else { exchange.closeAfterwards() }
            }
        }
        let journey = try UploadScenario(
            server.url + "/files", values: ["reply_timeout": .duration(.milliseconds(1500))])
        let error = try await journey.failedAttempt()
        #expect(error.failure.code == .refusedAtEnd && error.failure.http == 422)
        #expect(verbs(server) == ["POST", "PATCH", "HEAD"])
    }

    @Test(
        "a refusal stays even if a query says that bytes are missing, until bytes are accepted again",
        arguments: [1, 2])
    func staleLook(_ looks: Int) async throws {
        let isRefused = Mutex(false)
        let server = try FakeServer { [script] exchange in
            if exchange.method == "HEAD", isRefused.withLock({ $0 }), script.time("HEAD") < looks {
                return exchange.reply(200, [("Upload-Offset", "400"), ("Upload-Length", "1000")])
            }
            guard exchange.method == "PATCH",
                script.held.count + (exchange.header("content-length").flatMap { Int($0) } ?? 0) >= 1000
            else {
                return script.serve(exchange)
            }
            let isLate = script.held.count == 1000
            let body = exchange.body()
            if isLate { return exchange.reply(409, [("Upload-Offset", "1000")]) }
            script.state.withLock { $0.held += body }
            isRefused.withLock { $0 = true }
            exchange.reply(500, [], "virus found")
        }
        let journey = try UploadScenario(server.url + "/files", chunk: 400)
        let error = try #require(await #expect(throws: UploadError.self) { try await journey.arrive() })
        #expect(error.failure.code == .refusedAtEnd && error.failure.http == 500)
    }

    @Test("a key refused with the last bytes is queried first, and then the file is refused")
    func refusedKey() async throws {
        let server = try server(401)
        let journey = try UploadScenario(server.url + "/files")
        let first = try await journey.failedAttempt()
        #expect(first.remedy == .authenticate && verbs(server) == ["POST", "PATCH"])
        #expect(try await journey.failedAttempt().failure.code == .refusedAtEnd)
    }

    @Test("a refused upload whose address the next one gets too is not confused with it")
    func sameAddress() async throws {
        let server = try FakeServer { [script] exchange in
            if exchange.method == "POST", script.state.withLock({ $0.exists }) {
                return exchange.reply(201, [("Location", "/u"), ("Tus-Resumable", "1.0.0")])
            }
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            script.state.withLock { $0.held += body }
            exchange.reply(422, [], "virus found")
        }
        var journey = try UploadScenario(server.url + "/files")
        _ = await #expect(throws: UploadError.self) { try await journey.arrive() }
        journey.order.generation = 2
        #expect(try await journey.failedAttempt().failure.code == .sameUpload)
        #expect(verbs(server).filter { $0 == "PATCH" }.count == 1)
    }

    @Test("if the last answer is lost the offset decides, and `verified_by` says that there was none")
    func lost() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            let body = exchange.body()
            script.state.withLock { $0.held += body }
            exchange.cut()
        }
        let (object, errors) = try await UploadScenario(server.url + "/files").arrive()
        #expect(object.verifiedBy == "offset_unanswered")
        #expect(object.warnings.count == 1 && object.warnings[0].contains("asked again, the server has every byte"))
        #expect(errors.count == 1 && verbs(server) == ["POST", "PATCH", "HEAD"])
    }

    @Test("a refusal of bytes that the server does not keep does not concern the file")
    func keptNothing() async throws {
        let server = try FakeServer { [script] exchange in
            if exchange.method == "PATCH", script.time("PATCH") == 0 {
                _ = exchange.body()
                return exchange.reply(500, [], "oops")
            }
            script.serve(exchange)
        }
        let journey = try UploadScenario(server.url + "/files")
        let (object, errors) = try await journey.arrive()
        #expect(errors.count == 1 && errors[0].failure.http == 500)
        #expect(object.verifiedBy == "offset" && object.warnings.isEmpty)
        #expect(script.held == journey.content)
    }

    @Test("a server that refuses the file and removes it has refused it", arguments: [400, 500])
    func refusedAndGone(_ status: Int) async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH" else { return script.serve(exchange) }
            _ = exchange.body()
            script.state.withLock { $0.exists = false }
            exchange.reply(status, [], "virus found")
        }
        let journey = try UploadScenario(server.url + "/files", values: ["gone": .text("assume_complete")])
        let error = try #require(await #expect(throws: UploadError.self) { try await journey.arrive() })
        #expect(error.failure.code == .refusedAtEnd && error.failure.http == status)
        #expect(verbs(server).filter { $0 == "POST" }.count == 1)
    }

    @Test("a retry gets a new upload, and the old one is not queried")
    func retried() async throws {
        let server = try server(422, times: 1)
        var journey = try UploadScenario(server.url + "/files")
        _ = await #expect(throws: UploadError.self) { try await journey.arrive() }
        let before = verbs(server).count
        journey.order.generation = 2
        let object = try await journey.attempt()
        #expect(object.verifiedBy == "offset" && object.warnings.count == 1)
        #expect(object.warnings.first?.contains("refused it at its end (422): it may hold the file already") == true)
        // The new upload has the address of the old one here, and so the server is asked whether it is new.
        #expect(Array(verbs(server).dropFirst(before).prefix(3)) == ["POST", "HEAD", "PATCH"])
        #expect(script.held == journey.content)
    }

    @Test("a web page is no answer to the last bytes")
    func portal() async throws {
        let server = try FakeServer { [script] exchange in
            guard exchange.method == "PATCH", script.time("PATCH") == 0 else { return script.serve(exchange) }
            _ = exchange.body()
            exchange.reply(200, [("Upload-Offset", "1000")], "<html>log in</html>")
        }
        let journey = try UploadScenario(server.url + "/files")
        _ = try await journey.arrive()
        #expect(script.held == journey.content)
    }
}
