import Core
import Credentials
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// Damaged header fields and answers: no trap, no offset beyond the file, no file complete without the server's word.
@Suite("Fuzz: answers of resumable uploads", .timeLimit(.minutes(Fuzz.minutes)))
struct ResumableFuzzTests {
    private static let words = [
        "?0", "?1", "?", "max-size", "max-age=", "min-append-size=1", "max-append-size=0", ",", ";", "=", "(", ")",
        "\"",
        "\\", ":", "@", "%", "*", " ", "\t", "\0", "é", "1.5", "-1", "a=1", "tok/en", "999999999999999",
    ]

    @Test("structured fields: a value that is read is within its type")
    func fields() throws {
        let seeds = [
            "5", "?1", "max-size=5, min-size=0", "max-append-size=3;x=1, max-age=3600, other=(1 \"a\")", ":YWJj:", "@1",
            "%\"a%c3%bc\"", "a;b=1.5",
        ]
        let mutator = Mutator(seeds.map { Array($0.utf8) }, words: Self.words, limit: 2000)
        try Fuzz("structured fields", rounds: 3000).each(mutator) { round in
            let text = String(decoding: round.input, as: UTF8.self)
            let headers = Headers([
                ("Upload-Offset", text), ("Upload-Complete", text), ("Upload-Length", text), ("Upload-Limit", text),
            ])
            let fields = UploadFields(headers)
            for number in [fields.offset, fields.length].compactMap({ $0 }) {
                try round.expect((0...999_999_999_999_999).contains(number), "\(number)")
                try round.expect(fields.isComplete == nil, "a number and a flag")
            }
            if let limits = fields.limits {
                try round.expect(limits.minRequest >= 0, "\(limits)")
                _ = limits.objection(toSize: 5)
                _ = limits.words
            }
            _ = UploadProblem(
                Response(status: 409, headers: ["Content-Type": "application/problem+json"], body: round.input))
            let name = ContentDisposition.header(FilePath(bytes: round.input.filter { $0 != 0 && $0 != 0x2F }))
            try round.expect(name.utf8.allSatisfy { (0x20..<0x7F).contains($0) }, name)
        }
    }

    @Test("an answer to the question for the offset never leads beyond the file")
    func positions() async throws {
        let seeds = [
            "HTTP/1.1 204 No Content\r\nUpload-Offset: 400\r\nUpload-Complete: ?0\r\nUpload-Length: 1000\r\n\r\n",
            "HTTP/1.1 204 No Content\r\nUpload-Offset: 1000\r\nUpload-Complete: ?1\r\nUpload-Length: 1000\r\n"
                + "Upload-Limit: max-age=5, max-append-size=7\r\n\r\n",
            "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Offset: 3\r\n\r\nHTTP/1.1 200 OK\r\nUpload-Offset: 5\r\n"
                + "Content-Length: 0\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        ]
        let lines = [
            "Upload-Offset: 1001\r\n", "Upload-Offset: 1000\r\n", "Upload-Offset: 999999999999999\r\n",
            "Upload-Complete: ?1\r\n", "Upload-Complete: ?0\r\n", "Upload-Incomplete: ?0\r\n",
            "Upload-Length: 1001\r\n",
            "Upload-Limit: max-size=1\r\n", "HTTP/1.1 104 X\r\n", "HTTP/1.1 200 OK\r\n", "\r\n",
            "Upload-Draft-Interop-Version: 9\r\n",
        ]
        let mutator = Mutator(seeds.map { Array($0.utf8) }, words: lines, limit: 4000)
        let next = Mutex<[UInt8]>([])
        let server = try FakeServer { exchange in
            exchange.answer(next.withLock { $0 })
            exchange.cut()
        }
        let transport = Transport()
        let tools = DestinationTools(
            transport: transport, secrets: SecretReader(), clocks: SystemClocks(), name: "archive", log: { _ in })
        let destination = try ResumableHTTP(["url": .text(server.url)], tools)
        let order = try StagedUpload(1000).order
        try await Fuzz("resumable positions", rounds: 150, share: 10).each(mutator) { round in
            next.withLock { $0 = round.input }
            var checkpoint = OffsetCheckpoint(Checkpoint(["url": server.url + "/u"]))
            do {
                let position = try await destination.dialect(.open).locate(order, &checkpoint)
                if case .at(let offset) = position {
                    try round.expect((0...1000).contains(offset), "the offset \(offset)")
                    try round.expect(!checkpoint.draft.isComplete || offset == 1000, "complete at \(offset)")
                }
            } catch let error as UploadError {
                let message = error.failure.message
                try round.expect(printable(message) == message && message.utf8.count < 1500, printable(message))
            }
        }
        await transport.stop()
    }

    @Test("an upload to a server with damaged answers ends, and completes only when the server has it")
    func uploads() async throws {
        let replies = [
            "HTTP/1.1 201 Created\r\nLocation: /u/1\r\nUpload-Limit: max-size=5000\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 204 No Content\r\nUpload-Complete: ?0\r\n\r\n",
            "HTTP/1.1 204 No Content\r\nUpload-Offset: 400\r\nUpload-Complete: ?0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nUpload-Complete: ?1\r\nLocation: /album/1\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 409 Conflict\r\nUpload-Offset: 600\r\nContent-Type: application/problem+json\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 422 No\r\nUpload-Complete: ?1\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 308 Moved\r\nLocation: /u/1\r\nContent-Length: 0\r\n\r\n",
        ]
        let words = [
            "Upload-Offset: 1000\r\n", "Upload-Complete: ?1\r\n", "Upload-Complete: ?0\r\n", "?1", "?0", "200", "204",
            "400",
            "409", "412", "413", "500", "Location: //elsewhere.test/u\r\n", "HTTP/1.1 104 X\r\n\r\n", "\r\n",
            "\r\n\r\n",
        ]
        let mutator = Mutator(replies.map { Array($0.utf8) }, words: words, limit: 4000)
        var (completed, failed) = (0, 0)
        try await Fuzz("resumable uploads", rounds: 60, share: 40).each(mutator) { round in
            let scene = try ResumableScene(
                chunk: 400,
                values: [
                    "stall_timeout": .duration(.seconds(5)), "reply_timeout": .duration(.seconds(5)),
                ])
            scene.server.damage(mutator, Dice(seed: round.seed))
            for _ in 0..<3 {
                do {
                    _ = try await scene.journey.attempt()
                    completed += 1
                    try round.expect(
                        scene.server.saidComplete(1000) || scene.server.finished == [scene.journey.content],
                        "the upload completed after \(scene.server.requests)")
                    break
                } catch let error as UploadError {
                    failed += 1
                    let message = error.failure.message
                    try round.expect(printable(message) == message && message.utf8.count < 1500, printable(message))
                    if error.remedy == .failUpload { break }
                }
            }
            try round.expect(scene.server.all.count < 200, "\(scene.server.all.count) requests")
            for file in scene.server.finished {
                try round.expect(file == scene.journey.content, "the server has other content")
            }
        }
        if Fuzz("resumable uploads", rounds: 60, share: 40).rounds >= 60 { #expect(completed > 0 && failed > 0) }
    }
}
