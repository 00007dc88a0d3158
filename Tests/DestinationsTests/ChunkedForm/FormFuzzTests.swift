import Core
import Credentials
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

@Suite("Fuzz: chunked forms", .timeLimit(.minutes(Fuzz.minutes)))
struct FormFuzzTests {
    @Test("any template, condition and pointer is accepted or refused, and a body keeps its frame")
    func texts() throws {
        let seeds = [
            "bytes {offset}-{last}/{total}", "{{\"n\": {index0}}}", "/data/fileUrl exists", "/success = true",
            "/a~1b/0 = \"x\"", "200-299", "{secret:nas}", "a \"b\"\r\nc",
        ]
        let words = ["{", "}", "{{", "}}", "/", "~0", "~1", " = ", " absent", "\"", "\r\n", "--", "{crc32:HEX}", "\0"]
        let mutator = Mutator(seeds.map { Array($0.utf8) }, words: words, limit: 400)
        let staged = try StagedUpload(10)
        let plan = try #require(PartPlan(size: 10, partSize: 10))
        try Fuzz("form texts", rounds: 1500).each(mutator) { round in
            let text = String(decoding: round.input, as: UTF8.self)
            _ = FormCondition(text)?.holds(in: .object([:]))
            _ = try? FormStatuses([text])
            if let document = JSONValue.read(round.input), let pointer = JSONPointer(text) { _ = document[pointer] }
            if let template = try? FormTemplate(text) {
                var values = FormValues(order: staged.order, plan: plan, blockSize: 10)
                values.part = plan[0]
                _ = template.filled(values)
            }
            var body = FormBody()
            body.append("text", round.input)
            body.appendFile(Array("block".utf8), filename: round.input, contentType: Array("a/b".utf8))
            body.close()
            let read = try MultipartForm(body.head + [1, 2, 3] + body.tail, contentType: body.contentType)
            try round.expect(body.boundary.filter { $0 != "-" }.count >= 24, "a file may contain the boundary")
            try round.expect(read.file?.body == [1, 2, 3], "the frame is broken")
        }
    }

    private static let canary = "canary-that-nobody-may-see"

    /// The answers of a correct server with each preset.
    private static func answers(_ preset: String) -> [String] {
        let bodies: [String] =
            switch preset {
            case "breakpoint":
                [#"{"data":{"upToken":"t-1"}}"#, #"{"data":{}}"#, #"{"data":{"fileUrl":"http://x/y"}}"#]
            case "fineuploader": [#"{"success":true}"#, #"{"success":true,"newUuid":"u-2"}"#, #"{"reset":true}"#]
            case "plupload": [#"{"jsonrpc":"2.0","result":null,"id":"id"}"#, #"{"error":{"code":101}}"#]
            default: ["{}", "ok"]
            }
        let lines = preset == "blueimp" ? ["Range: 0-999\r\n", "Range: 0-1999\r\n", "Range: 0-2499\r\n"] : [""]
        return bodies.flatMap { body in
            lines.map { "HTTP/1.1 200 OK\r\n\($0)Content-Length: \(body.utf8.count)\r\n\r\n\(body)" }
        }
    }

    @Test(
        "a file of any name and size arrives complete and under its own name",
        arguments: Tier.sample(FormScene.presets, 3)
    )
    func names(_ preset: String) async throws {
        let scene = try FormScene(preset)
        let seeds = [
            "clip.mp4", "a b.tar.gz", "no extension", ".hidden", "\u{E9}\u{4E2D}.MP4", "a\"b\";filename=\"c",
            "%0D%0A%22",
            "x\r\ny", "{name}", "{{", "'; --", "-rf", "\\", "a&b=c", "~", "CON",
        ]
        let words = [
            "\"", "\r\n", "\r\n\r\n--", "%", "\u{7F}", "\t", "&", "=", "+", ";", "{", "}", ".", " ", "\u{301}", "?",
            "#",
        ]
        let mutator = Mutator(seeds.map { Array($0.utf8) }, words: words, limit: 120)
        var number = 0
        try await Fuzz("names at \(preset)", rounds: 25, share: 400).each(mutator) { round in
            number += 1
            // As bytes, since names are bytes; each is different, so that the server has no reason to rename it.
            var own = Array("\(number) ".utf8) + round.input.filter { $0 != 0 && $0 != UInt8(ascii: "/") }
            // In a part's file name `%22` may be a quote or those three characters, which cannot be distinguished.
            if preset == "breakpoint" || preset == "dropzone" { own.removeAll { $0 == UInt8(ascii: "%") } }
            let name = FilePath(bytes: own)
            let size = Int.random(in: 0...(3 * Int(FormScene.block) + 1), using: &round.dice)
            let staged = try StagedUpload(size, id: "\(number)", name: name, seed: round.seed)
            _ = try await staged.send(to: scene, RecordingReporter())
            try round.expect(scene.server.refused.isEmpty, "\(scene.server.refused)")
            let held = try scene.objects
            let isThere = held.contains { path, content in
                // Servers that know an upload only by its name have our id before it.
                content == staged.content && path.name.bytes.suffix(own.count) == own[...]
            }
            try round.expect(
                isThere && held.count == number,
                "\(size) B of \(escaped(own)) are not there, but \(held.keys.map { escaped($0.bytes) }.sorted())")
        }
        try await scene.close()
    }

    @Test(
        "damaged server answers end every attempt, cause no false success, and reveal no secret",
        arguments: Tier.sample(FormScene.presets, 3))
    func replies(_ preset: String) async throws {
        let good = Self.answers(preset)
        let bad = [404, 413, 422, 429, 500, 503].map {
            "HTTP/1.1 \($0) No\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\nno"
        }
        let words = [
            "\r\n", "Content-Length: ", "null", "{", "}", "[", "\"", "fileUrl", "upToken", Self.canary, "<html",
            "Range: ",
            "0-", "9223372036854775807", "newUuid", "success", "reset", "true",
        ]
        let mutator = Mutator((good + bad).map { Array($0.utf8) }, words: words, limit: 8 << 10)
        let lies = Mutex((dice: Dice(seed: 1), requests: 0))
        let server = try FakeServer { exchange in
            _ = exchange.body()
            let reply = lies.withLock { lies -> [UInt8] in
                lies.requests += 1
                if Bool.random(using: &lies.dice) { return mutator.text(&lies.dice) }
                return Array(((good + bad).randomElement(using: &lies.dice) ?? "").utf8)
            }
            exchange.answer(reply)
            exchange.cut()
        }
        let transport = Transport()
        var values: [String: SettingValue] = [
            "url": .text(server.url + "/upload"), "preset": .text(preset), "block.size": .bytes(1000),
            "credential": .secret(.literal(Self.canary)), "stall_timeout": .duration(.seconds(5)),
            "reply_timeout": .duration(.seconds(5)),
        ]
        if preset == "webuploader" { values["finish"] = .text("none") }
        let destination = try ChunkedForm.kind.make(
            values,
            DestinationTools(
                transport: transport, secrets: SecretReader(), clocks: SystemClocks(), name: "archive", log: { _ in }))
        let staged = try StagedUpload(2500)
        try await Fuzz("form replies of \(preset)", rounds: 40, share: 400).each(mutator) { round in
            lies.withLock { $0 = (Dice(seed: round.seed), 0) }
            let recorder = RecordingReporter()
            for _ in 0..<3 {
                var order = staged.order
                order.checkpoint = recorder.last
                do {
                    let object = try await destination.upload(order, reporter: recorder)
                    try round.expect(recorder.accepted == 2500, "completed with \(recorder.accepted) B acknowledged")
                    try round.expect(object.url.map { printable($0) == $0 } ?? true, "the address is not printable")
                    break
                } catch let error as UploadError {
                    let message = error.failure.message
                    try round.expect(!occurs(Self.canary, in: message), "the message shows the secret: \(message)")
                    try round.expect(printable(message) == message && message.utf8.count < 1500, message)
                    if case .restage = error.remedy { throw round.flaw("stages again because of a server: \(message)") }
                    if case .failUpload = error.remedy { break }
                }
            }
            try round.expect(!occurs(Self.canary, in: recorder.everything), "a record contains the secret")
            let requests = lies.withLock { $0.requests }
            try round.expect(requests < 100, "\(requests) requests")
        }
        await transport.stop()
    }
}
