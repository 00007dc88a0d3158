import Core
import Credentials
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// Servers that accept everything, and impossible numbers.
@Suite("Chunked forms: meaningless answers", .timeLimit(.minutes(Patience.minutes(2))))
struct FormImpossibleAnswerTests {
    private func destination(
        _ server: FakeServer, _ preset: String, _ more: [String: SettingValue] = [:]
    ) throws -> any Destination {
        let values: [String: SettingValue] = [
            "url": .text(server.url), "preset": .text(preset), "block.size": .bytes(1000),
        ]
        return try ChunkedForm.kind.make(
            values.merging(more) { $1 },
            DestinationTools(
                transport: Transport(), secrets: SecretReader(), clocks: SystemClocks(), name: "archive", log: { _ in })
        )
    }

    static let pages = [
        "<?xml version=\"1.0\"?>\n<!DOCTYPE html><html>", "<head><title>Login</title>", "<script>go()</script>",
        "<!-- portal --><html>login", "\u{FEFF}<!DOCTYPE html><html>", " \n<html>", "<div>",
    ]

    @Test("a page acknowledges nothing, whatever its start", arguments: ["dropzone", "resumable"], pages)
    func portal(_ preset: String, _ page: String) async throws {
        let server = try FakeServer { $0.reply(200, [("Content-Type", "text/html")], page) }
        let staged = try StagedUpload(2500)
        let destination = try destination(server, preset)
        let error = await #expect(throws: UploadError.self) {
            try await destination.upload(staged.order, reporter: RecordingReporter())
        }
        #expect(
            error.map { if case .failUpload = $0.remedy { false } else { true } } == true,
            "the upload waits: \(String(describing: error))")
    }

    @Test(
        "a server that claims to have every block, even of unknown uploads, is sent all blocks",
        arguments: ["resumable", "flow", "simple-uploader"])
    func yesman(_ preset: String) async throws {
        let posts = Mutex(0)
        let server = try FakeServer { exchange in
            _ = exchange.body()
            if exchange.method == "POST" { posts.withLock { $0 += 1 } }
            exchange.reply(200, [], "{\"success\":true}")
        }
        let staged = try StagedUpload(3000)
        _ = try await destination(server, preset).upload(staged.order, reporter: RecordingReporter())
        #expect(posts.withLock { $0 } == 3)
    }

    @Test("a server that identifies an upload by its own token is trusted about its blocks")
    func byToken() async throws {
        let posts = Mutex(0)
        let server = try FakeServer { exchange in
            _ = exchange.body()
            if exchange.method == "GET" {
                // The opening is not a block.
                let stored = posts.withLock { $0 - 1 }
                let hasIt =
                    exchange.target.contains("t=t-1") && (0..<stored).contains { exchange.target.contains("n=\($0)") }
                exchange.reply(hasIt ? 200 : 404, [], "{}")
            } else {
                let number = posts.withLock { posts in
                    posts += 1
                    return posts
                }
                let end = number >= 5 ? ",\"fileUrl\":\"http://h/x\"" : ""
                exchange.reply(200, [], "{\"data\":{\"upToken\":\"t-1\"\(end)}}")
            }
        }
        let staged = try StagedUpload(4000)
        let asked = try destination(
            server, "breakpoint",
            ["probe.query": .map(["t": .literal("{token}"), "n": .literal("{index0}")])])
        let recorder = RecordingReporter()
        recorder.stop { $0.accepted >= 2000 }
        let order = staged.order
        await #expect(throws: CancellationError.self) {
            try await Task { try await asked.upload(order, reporter: recorder) }.value
        }
        recorder.stop { _ in false }
        var again = order
        again.checkpoint = recorder.last
        _ = try await asked.upload(again, reporter: recorder)
        // The opening, and each block once.
        #expect(posts.withLock { $0 } == 5)
    }

    @Test("a position or block number at the end of the range is rejected")
    func numbers() async throws {
        let position = try FakeServer { exchange in
            _ = exchange.body()
            exchange.reply(200, [("Range", "0-9223372036854775807")])
        }
        let staged = try StagedUpload(2500)
        _ = try? await destination(position, "blueimp").upload(staged.order, reporter: RecordingReporter())
        for number in ["-9223372036854775808", "\"-9223372036854775808\"", "9223372036854775807"] {
            let list = try FakeServer { exchange in
                _ = exchange.body()
                exchange.reply(
                    200, [], "{\"l\": [\(number)], \"data\": {\"upToken\": \"t\", \"fileUrl\": \"http://h/x\"}}")
            }
            let asked = try destination(
                list, "breakpoint",
                ["probe.list": .text("/l"), "probe.query": .map(["i": .literal("{token}")]), "probe.base": .whole(1)])
            let recorder = RecordingReporter()
            recorder.stop { $0.accepted >= 1000 }
            let order = staged.order
            _ = try? await Task { try await asked.upload(order, reporter: recorder) }.value
            recorder.stop { _ in false }
            var again = order
            again.checkpoint = recorder.last
            _ = try? await asked.upload(again, reporter: recorder)
        }
    }

    @Test(
        "a secret is removed in every spelling, with any number of server tokens",
        arguments: [
            "Ab/cd+ef/ghIJ==", "Ab%2Fcd%2Bef%2FghIJ%3D%3D", "Ab\\/cd+ef\\/ghIJ==",
        ])
    func spellings(_ told: String) async throws {
        let server = try FakeServer { $0.reply(400, [], "bad key \(told) here") }
        let client = AuthorizedClient(
            transport: Transport(),
            credentials: CredentialProvider([.init("X-Key", .literal("Ab/cd+ef/ghIJ=="))], reader: SecretReader()),
            origin: server.url, clocks: SystemClocks(), name: "archive")
        let answer = try await client.ask(Request("GET", server.url + "/"))
        for number in 0..<100 { client.rememberForNow(String(repeating: "t", count: 60) + "\(number)") }
        let error = client.refused("a question", answer.response, .failUpload)
        #expect(error.failure.message.contains("bad key *** here"), "\(error.failure.message)")
    }

    @Test(
        "a secret is removed as JSON, HTML, URLs, forms and Base64 encode it",
        arguments: [
            #"Zq7/k+W"9<x&Tr é%44LongSecret"#, #"Zq7\/k+W\"9<x&Tr \u00e9%44LongSecret"#,
            #"Zq7\/k+W\u00229\u003Cx\u0026Tr é%44LongSecret"#, #"\u005aq7/k\u002bW\"9\u003cx&Tr é%44LongSecret"#,
            "Zq7/k+W&quot;9&lt;x&amp;Tr é%44LongSecret", "Zq7&#x2F;k+W&#34;9&#60;x&#38;Tr &#233;%44LongSecret",
            "Zq7%2fk%2bW%229%3cx%26Tr%20%c3%a9%2544LongSecret", "Zq7/k%2BW%229%3Cx%26Tr+%C3%A9%2544LongSecret",
            "WnE3L2srVyI5PHgmVHIgw6klNDRMb25nU2VjcmV0", "WnE3L2srVyI5PHgmVHIgw6klNDRMb25nU2VjcmV0".lowercased(),
        ])
    func otherSpellings(_ told: String) async throws {
        let secret = #"Zq7/k+W"9<x&Tr é%44LongSecret"#
        let server = try FakeServer { $0.reply(400, [], "{\"sent\": \"\(told)\"} &amp; 5%") }
        let client = AuthorizedClient(
            transport: Transport(), credentials: CredentialProvider([], reader: SecretReader()), origin: server.url,
            clocks: SystemClocks(), name: "archive")
        client.remember([secret])
        let answer = try await client.ask(Request("GET", server.url + "/"))
        let message = client.refused("a question", answer.response, .failUpload).failure.message
        // Base64 in lower case is not the secret: a redaction of everything would hide this too.
        let expected = told == told.lowercased() ? told : "***"
        #expect(message.contains("{\"sent\": \"\(expected)\"} &amp; 5%"), "\(message)")
    }

    @Test("a secret that overlaps another leaves nothing of either, also with surrogate pairs")
    func overlapping() {
        let text = Array(#"a 12345678abcdefgh, \ud83c\udfa5secret, 5% &x; \u12"#.utf8)
        let covered = SecretEncoding.cover(["12345678abcd", "5678abcdefgh", "🎥secret"], in: text)
        #expect(String(decoding: covered, as: UTF8.self) == #"a ***, ***, 5% &x; \u12"#)
    }

    @Test(
        "more than half of a long secret is hidden; less of it, and a part of a short one, are not",
        arguments: [
            ("key abcdefghijkl... is unknown", "key ***... is unknown"),
            ("key ...jklmnopqrst is unknown", "key ...*** is unknown"),
            ("key %61bcdefghij is unknown", "key %61bcdefghij is unknown"),
            ("key %61bcdefghijklm is unknown", "key *** is unknown"),
            ("key abcdefghij is unknown", "key abcdefghij is unknown"),
            ("abcdefghijabcdefghijk", "abcdefghij***"),
            ("12345678901234", "12345678901234"), ("", ""),
        ])
    func halves(_ told: String, _ expected: String) {
        let secrets = ["abcdefghijklmnopqrst", "123456789012345"]
        let covered = SecretEncoding.cover(secrets, cut: secrets, in: Array(told.utf8))
        #expect(String(decoding: covered, as: UTF8.self) == expected)
    }

    @Test("no block waits for `100 Continue`, however large")
    func expects() async throws {
        let headers = Mutex<[String]>([])
        let server = try FakeServer { exchange in
            headers.withLock { $0 += exchange.headerNames }
            _ = exchange.body()
            exchange.reply(200, [], "{}")
        }
        let staged = try StagedUpload(3 << 20)
        _ = try await destination(server, "dropzone", ["block.size": .bytes(2 << 20)])
            .upload(staged.order, reporter: RecordingReporter())
        #expect(!headers.withLock { $0 }.isEmpty)
        #expect(!headers.withLock { $0 }.contains("expect"))
    }
}
