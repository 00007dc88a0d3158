import Core
import Linux
import TestKit
import Testing

@testable import Destinations

/// Free space reported by servers and folders, and the meaning of a refusal for lack of space.
@Suite("Free space reported by destinations")
struct RoomTests {
    private let script = ScriptedTusServer()

    @Test(
        "lack of space concerns the whole destination, until the time that the server names, a week at most",
        arguments: [
            (507, "", "", nil), (507, "Retry-After: 120\r\n", "", 120), (507, "Retry-After: 86400\r\n", "", 86_400),
            (507, "Retry-After: 99999999\r\n", "", 604_800),
            (
                507, "Date: Wed, 25 Jun 2036 15:00:00 GMT\r\nRetry-After: Thu, 26 Jun 2036 15:00:00 GMT\r\n", "",
                86_400
            ),
            (413, "", "storage quota exceeded", nil), (413, "Retry-After: 7200\r\n", "Quota Exceeded", 7200),
            (413, "", "No space left on device", nil),
        ] as [(Int, String, String, Int?)])
    func refused(_ status: Int, _ headers: String, _ body: String, _ wait: Int?) async throws {
        for verb in ["POST", "PATCH"] {
            let server = try FakeServer { [script] exchange in
                guard exchange.method == verb else { return script.serve(exchange) }
                _ = exchange.body()
                exchange.answer(
                    Array("HTTP/1.1 \(status) X\r\n\(headers)Content-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8))
            }
            let journey = try UploadScenario(server.url + "/files")
            let error = try await journey.failedAttempt()
            #expect(error.remedy == .outOfSpace(after: wait.map { .seconds($0) }), "\(verb)")
            // The upload waits for space like any other, without a start at the server.
            #expect((journey.ledger.last?.fields.isEmpty == true) == (verb == "POST"))
            #expect(error.failure.kind == .quota)
            #expect(error.failure.retryable)
            #expect(error.failure.message.contains("answered \(status)"))
            #expect(error.failure.message.contains("there is no free space"))
        }
    }

    @Test("a file that is too large there is refused for good, also by a proxy page about quotas")
    func tooLarge() async throws {
        for (header, body) in [("", "too large"), ("Content-Type: text/html\r\n", "<h1>quota</h1>")] {
            let server = try FakeServer { [script] exchange in
                guard exchange.method == "POST" else { return script.serve(exchange) }
                exchange.answer(
                    Array("HTTP/1.1 413 X\r\n\(header)Content-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8))
            }
            #expect(try await UploadScenario(server.url + "/files").failedAttempt().remedy == .failUpload)
        }
    }

    @Test("a server that reports no space is queried once, and one that does each time")
    func asked() async throws {
        func told(_ header: [(String, String)], times: Int) async throws -> (said: [Int64?], asked: Int) {
            let server = try FakeServer { [script] exchange in
                exchange.reply(
                    204,
                    [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation")]
                        + header.map { ($0.0, "\(9 - script.time("options"))\($0.1)") })
            }
            let destination = try UploadScenario(server.url + "/files").destination
            var said: [Int64?] = []
            for _ in 0..<times { said.append(try await destination.space()?.left) }
            return (said, server.seen.count)
        }
        let silent = try await told([], times: 3)
        #expect(silent.said == [nil, nil, nil])
        #expect(silent.asked == 1)
        let open = try await told([("Sluice-Space-Free", "000")], times: 3)
        #expect(open.said == [9000, 8000, 7000])
        #expect(open.asked == 3)
        let nonsense = try await told([("Sluice-Space-Free", " GB")], times: 2)
        #expect(nonsense.said == [nil, nil])
    }

    @Test(
        "every destination reports space without remains; an unreachable one is an error",
        arguments: TestedRemote.all)
    func tells(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            guard end.destination.reportsSpace else {
                // A form has no request for it, and a bucket no limit; an intermediary does not answer either.
                #expect(["chunked-form", "s3", "oss", "apsara-vod"].contains { remote.testDescription.hasPrefix($0) })
                return try await #expect(end.destination.space() == nil)
            }
            let space = try #require(try await end.destination.space())
            #expect(space.unit == .bytes)
            let disk = try Space(at: end.folder)
            // Other programs write to that disk too.
            #expect(try #require(space.left) > 0)
            #expect(try #require(space.left) <= disk.total)
            #expect(try await end.objects.isEmpty)
            #expect(try await end.remains.isEmpty)
            try await end.goAway()
            await #expect(throws: UploadError.self) { try await end.destination.space() }
        }
    }
}
