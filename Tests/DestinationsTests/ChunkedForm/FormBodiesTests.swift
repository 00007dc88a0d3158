import Core
import Credentials
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// The body of an answer with a success status.
@Suite("Chunked forms: bodies of a 200", .timeLimit(.minutes(Patience.minutes(2))))
struct FormBodiesTests {
    private func destination(
        _ server: FakeServer, _ preset: String, _ more: [String: SettingValue] = [:]
    ) throws -> any Destination {
        var values: [String: SettingValue] = [
            "url": .text(server.url), "preset": .text(preset), "block.size": .bytes(1000),
        ]
        if preset == "webuploader" { values["finish"] = .text("none") }
        return try ChunkedForm.kind.make(
            values.merging(more) { $1 },
            DestinationTools(
                transport: Transport(), secrets: SecretReader(), clocks: SystemClocks(), name: "archive", log: { _ in })
        )
    }

    static let refusals = [
        #"{"files":[{"name":"a.mp4","error":"File is too big"}]}"#, #"{"files":[{"name":"a"},{"error":"no"}]}"#,
        #"[{"name":"a.mp4","error":"abort"}]"#, #"{"code":500}"#, #"{"code":"500","msg":"disk"}"#, #"{"code":-1}"#,
        #"{"code":50008,"message":"token"}"#, #"{"success":false}"#, #"{"success":"false"}"#, #"{"success":0}"#,
        #"{"Success":false,"Message":"no"}"#, #"{"error":"no room"}"#, #"{"error":{"code":101,"message":"x"}}"#,
        #"{"error":true}"#, #"{"status":"error"}"#, #"{"status":"FAIL"}"#, #"{"status":500}"#, #"{"status":false}"#,
        #"{"result":"failed"}"#, #"{"OK":0,"info":"Failed to open output stream."}"#, #"{"ok":false}"#,
        #"{"errno":2}"#, #"{"errors":["too large"]}"#, #"{"data":{"error":"disk full"}}"#,
        "\u{FEFF}" + #"{"error":"behind a mark"}"#, #"  {"success":false}"#, #"{"error":"cut sho"#,
        #"[{"name":"a.mp4","err"#, "<br />\n<b>Fatal error</b>: Allowed memory size", "<?xml version=\"1.0\"?><ok/>",
        "{", "{'error':'x'}", "{'success': True}", "[OK]", ")]}',\n{\"error\":\"x\"}", "\u{A0}{\"error\":\"x\"}",
        "\u{FEFF}\u{FEFF}<html>login", "\u{A0}<html>login", "\u{200B}<html>login", "\u{FEFF}\u{FEFF}{\"error\":1}",
        #"{"error":null,"error":"x"}"#, #"{"error":"x","error":null}"#, #"{"error":null,"\u0065rror":"x"}"#,
        #"[{"n":1,"n":2}]"#, #"{"data":{"code":500}}"#, #"{"data":{"code":"-1"}}"#, #"{"data":{"errno":3}}"#,
    ]

    /// Not UTF-8.
    static let codings: [(name: String, body: [UInt8])] = {
        let (json, page) = (#"{"error":"x"}"#, "<html>login</html>")
        func wide(_ text: String, _ before: Int, _ after: Int) -> [UInt8] {
            text.utf8.flatMap { Array(repeating: 0, count: before) + [$0] + Array(repeating: 0, count: after) }
        }
        return [
            ("gzip", [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0xAB, 0x56, 0x4A, 0x2D, 0x2A, 0xCA, 0x2F]),
            ("zlib", [0x78, 0x9C, 0xAB, 0x56, 0x4A, 0x2D]),
            ("UTF-16", [0xFF, 0xFE] + wide(json, 0, 1)), ("UTF-16BE", [0xFE, 0xFF] + wide(json, 1, 0)),
            ("UTF-16LE without a mark", wide(json, 0, 1)), ("UTF-16BE without a mark", wide(json, 1, 0)),
            ("UTF-32", [0xFF, 0xFE, 0, 0] + wide(json, 0, 3)), ("a page in UTF-16", [0xFF, 0xFE] + wide(page, 0, 1)),
            ("a page in UTF-16BE", wide(page, 1, 0)), ("a page in UTF-32BE", [0, 0, 0xFE, 0xFF] + wide(page, 3, 0)),
            ("Latin-1", Array(#"{"error":"gr"#.utf8) + [0xF6, 0xDF] + Array(#"e"}"#.utf8)),
        ]
    }()

    @Test(
        "a 200 with a body that is no text acknowledges nothing", arguments: ["resumable", "dropzone", "webuploader"])
    func unreadable(_ preset: String) async throws {
        for (name, body) in Self.codings {
            let server = try FakeServer { exchange in
                _ = exchange.body()
                if exchange.method == "GET" { return exchange.reply(404) }
                exchange.answer(
                    Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body)
            }
            let staged = try StagedUpload(800)
            let destination = try destination(server, preset)
            await #expect(throws: UploadError.self, "\(preset): \(name)") {
                try await destination.upload(staged.order, reporter: RecordingReporter())
            }
            server.stop()
        }
    }

    @Test("a page in another encoding, or after invisible characters, is recognised")
    func pages() {
        func page(_ body: [UInt8]) -> Bool { Response(status: 200, headers: [:], body: body).isWebPage }
        for (name, body) in Self.codings { #expect(page(body) == name.hasPrefix("a page"), "\(name)") }
        #expect(page(Array("\u{FEFF}\u{200B}\u{2060}\u{3000} <html>".utf8)))
        #expect(!page([]) && !page(Array("\u{FEFF}\u{200B}".utf8)) && !page([0, 0]) && !page([0xFF, 0xFE]))
    }

    @Test("a 200 whose body contains an error acknowledges nothing", arguments: Tier.sample(FormScene.presets, 3))
    func refused(_ preset: String) async throws {
        for refusal in Self.refusals {
            let server = try FakeServer { exchange in
                _ = exchange.body()
                exchange.reply(exchange.method == "GET" ? 404 : 200, [("Content-Type", "text/html")], refusal)
            }
            let staged = try StagedUpload(800)
            let destination = try destination(server, preset)
            await #expect(throws: UploadError.self, "\(preset): \(refusal)") {
                try await destination.upload(staged.order, reporter: RecordingReporter())
            }
            server.stop()
        }
    }

    static let welcome = [
        "", "ok", "OK 1 of 3", "{}", "[]", "null", #"{"success":true}"#, #"{"success":1,"error":null}"#,
        #"{"error":false}"#, #"{"error":""}"#, #"{"error":0,"errors":[]}"#, #"{"status":"success","code":200}"#,
        #"{"status":1,"code":0}"#, #"{"code":20000,"data":{"url":"x"}}"#, #"{"code":"0","msg":""}"#,
        #"{"files":[{"name":"a.mp4","size":800,"url":"http://h/a.mp4"}]}"#, #"{"OK":1,"info":"Upload successful."}"#,
        #"{"jsonrpc":"2.0","result":null,"id":"id"}"#, #"{"file":"a.mp4","status":"uploading","state":"done"}"#,
        #"{"errno":"0","errcode":0}"#, #"{"data":{"code":200,"errors":[]}}"#, "1", "success", "Größe: 1 MB", "  \n",
        "\u{FEFF}OK",
        #"[{"a":1},{"a":1}]"#, #"{"a":{"n":1},"b":{"n":1},"n":"\"n\":"}"#, #"{"files":[{"code":0}],"n":"}"}"#,
    ]

    @Test(
        "a correct server is trusted, with an empty, text or JSON body",
        arguments: ["resumable", "flow", "simple-uploader", "dropzone", "webuploader", "blueimp"])
    func believed(_ preset: String) async throws {
        for body in Self.welcome {
            let server = try FakeServer { exchange in
                _ = exchange.body()
                exchange.reply(exchange.method == "GET" ? 404 : 200, [], body)
            }
            let staged = try StagedUpload(800)
            let object = try await destination(server, preset).upload(staged.order, reporter: RecordingReporter())
            #expect(object.warnings.isEmpty, "\(preset): \(body)")
            server.stop()
        }
    }

    @Test("Plupload's and Fine Uploader's own answers count as before")
    func own() {
        func verdict(_ preset: String, _ body: String) -> FormVerdict {
            var reading = FormReading(["preset": .text(preset)].mergedOver(FormPreset.named(preset)?.values ?? [:]))
            return FormVerdict(
                .part, status: 200, FormReply(Array(body.utf8)), reading.settings(), wantsJSON: false, isPage: false,
                wait: nil)
        }
        #expect(verdict("plupload", #"{"jsonrpc":"2.0","result":null,"id":"id"}"#) == .success)
        #expect(verdict("plupload", #"{"OK":1}"#) == .success)
        #expect(verdict("plupload", "Fatal error: memory") == .stop(.refused(after: nil)))
        #expect(verdict("fineuploader", #"{"success":true,"error":null}"#) == .success)
        #expect(verdict("fineuploader", "") == .stop(.refused(after: nil)))
        #expect(verdict("breakpoint", #"{"data":null}"#) == .stop(.refused(after: nil)))
        #expect(verdict("breakpoint", #"{"code":500,"data":{}}"#) == .stop(.refused(after: nil)))
        #expect(verdict("breakpoint", #"{"code":200,"data":{}}"#) == .success)
    }

    @Test("a block query answered with an error in a 200 is no confirmation")
    func probes() async throws {
        let posts = Mutex(0)
        let server = try FakeServer { exchange in
            _ = exchange.body()
            if exchange.method == "POST" { posts.withLock { $0 += 1 } }
            let isOurs = !exchange.target.contains("sluice-")
            let isQuestion = exchange.method == "GET"
            exchange.reply(isQuestion && !isOurs ? 404 : 200, [], isQuestion ? #"{"code":404}"# : "")
        }
        let staged = try StagedUpload(3000)
        _ = try await destination(server, "flow").upload(staged.order, reporter: RecordingReporter())
        #expect(posts.withLock { $0 } == 3)
    }

    @Test("custom rules count by status, and their conditions count in addition")
    func ownRules() async throws {
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.reply(200, [], #"{"files":[{"error":"no"}]}"#)
        }
        let staged = try StagedUpload(800)
        let custom: [String: SettingValue] = ["send.fields": .map(["n": .literal("{index0}")])]
        _ = try await destination(server, "custom", custom).upload(staged.order, reporter: RecordingReporter())
        _ = try await destination(server, "dropzone", ["success.status": .texts(["200"])])
            .upload(staged.order, reporter: RecordingReporter())
        let strict = try destination(
            server, "custom", custom.merging(["success.json": .texts(["/files/*/error empty"])]) { $1 })
        await #expect(throws: UploadError.self) { try await strict.upload(staged.order, reporter: RecordingReporter()) }
    }

    @Test("`check` reports a doubt if rules count by status, and none if a body is read")
    func doubts() {
        func doubts(_ values: [String: SettingValue]) -> Int { ChunkedForm.kind.type.releaseDoubts(values).count }
        for preset in FormScene.presets {
            #expect(doubts(["preset": .text(preset)]) == 0, "\(preset)")
            #expect(doubts(["preset": .text(preset), "success.status": .texts(["200"])]) == 1, "\(preset)")
            #expect(doubts(["preset": .text(preset), "success.json": .texts([])]) == 1, "\(preset)")
            #expect(
                doubts([
                    "preset": .text(preset), "success.status": .texts(["200"]),
                    "success.json": .texts(["/error empty"]),
                ]) == 0, "\(preset)")
        }
        #expect(doubts(["preset": .text("custom")]) == 1)
    }

    // MARK: A block whose answer was lost

    private func lost(
        _ preset: String, size: Int = 800, _ more: [String: SettingValue] = [:], knows: Bool = false
    ) async throws -> (warnings: [String], posts: Int) {
        let posts = Mutex(0)
        let server = try FakeServer { exchange in
            _ = exchange.body()
            if exchange.method == "GET" {
                let hasIt = knows && posts.withLock { $0 } > 0 && !exchange.target.contains("=sluice-")
                return exchange.reply(hasIt ? 200 : 404)
            }
            let number = posts.withLock { posts in
                posts += 1
                return posts
            }
            let last = (size + 999) / 1000
            if number == last { return exchange.cut() }
            exchange.reply(200, [], #"{"success":true,"data":{}}"#)
        }
        defer { server.stop() }
        let staged = try StagedUpload(size)
        let destination = try destination(server, preset, more)
        let recorder = RecordingReporter()
        await #expect(throws: UploadError.self) { try await destination.upload(staged.order, reporter: recorder) }
        var order = staged.order
        order.checkpoint = recorder.last
        let object = try await destination.upload(order, reporter: recorder)
        return (object.warnings, posts.withLock { $0 })
    }

    @Test("a single block with a lost answer is looked for if the server can be queried")
    func lookedFor() async throws {
        for preset in ["resumable", "flow", "simple-uploader"] {
            let end = try await lost(preset, knows: true)
            #expect(end.posts == 1 && end.warnings.isEmpty, "\(preset): \(end)")
        }
    }

    @Test("a single block repeated after a lost answer causes a warning", arguments: FormScene.presets)
    func doubled(_ preset: String) async throws {
        // It begins with a request for a token: covered by FormCountedEndTests.
        if preset == "breakpoint" { return }
        let end = try await lost(preset)
        #expect(end.posts == 2)
        #expect(end.warnings.contains { $0.contains("may hold the file twice") }, "\(preset): \(end)")
    }

    @Test("a last block joined on request causes no warning")
    func notDoubled() async throws {
        let finish: [String: SettingValue] = ["finish.fields": .map(["id": .literal("{id}")])]
        let joined = try await lost("dropzone", finish)
        #expect(joined.warnings.isEmpty, "\(joined)")
    }
}
