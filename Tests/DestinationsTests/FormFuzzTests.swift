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
    @Test("templates, conditions and pointers of any form are read or objected to, and a body keeps its frame")
    func texts() throws {
        let seeds = [
            "bytes {offset}-{last}/{total}", "{{\"n\": {index0}}}", "/data/fileUrl exists", "/success = true",
            "/a~1b/0 = \"x\"", "200-299", "{secret:nas}", "a \"b\"\r\nc",
        ]
        let words = ["{", "}", "{{", "}}", "/", "~0", "~1", " = ", " absent", "\"", "\r\n", "--", "{crc32:HEX}", "\0"]
        let mutator = Mutator(seeds.map { Array($0.utf8) }, words: words, limit: 400)
        let parcel = try Parcel(10)
        let plan = try #require(PartPlan(size: 10, partSize: 10))
        try Fuzz("form texts", rounds: 1500).each(mutator) { round in
            let text = String(decoding: round.input, as: UTF8.self)
            _ = FormCondition(text)?.holds(in: .object([:]))
            _ = try? FormStatuses([text])
            if let document = JSONValue.read(round.input), let pointer = JSONPointer(text) { _ = document[pointer] }
            if let template = try? FormTemplate(text) {
                var values = FormValues(order: parcel.order, plan: plan, blockSize: 10)
                values.part = plan[0]
                _ = template.filled(values)
            }
            var body = FormBody()
            body.append("text", round.input)
            body.appendFile(Array("block".utf8), filename: round.input, contentType: Array("a/b".utf8))
            body.close()
            let read = try MultipartForm(body.head + [1, 2, 3] + body.tail, contentType: body.contentType)
            try round.expect(body.boundary.filter { $0 != "-" }.count >= 24, "its boundary may stand in a file")
            try round.expect(read.file?.body == [1, 2, 3], "the frame is broken")
        }
    }

    private static let canary = "canary-that-nobody-may-see"

    @Test(
        "a server whose answers are damaged ends every attempt, is believed nothing impossible, and is told no secret")
    func replies() async throws {
        let good = [
            #"{"data":{"upToken":"t-1"}}"#, #"{"data":{}}"#, #"{"data":{"fileUrl":"http://x/y"}}"#,
        ].map { "HTTP/1.1 200 OK\r\nContent-Length: \($0.utf8.count)\r\n\r\n\($0)" }
        let bad = [404, 413, 422, 429, 500, 503].map {
            "HTTP/1.1 \($0) No\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\nno"
        }
        let words = [
            "\r\n", "Content-Length: ", "null", "{", "}", "[", "\"", "fileUrl", "upToken", Self.canary, "<html",
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
        let destination = try ChunkedForm.kind.make(
            [
                "url": .text(server.url + "/upload"), "preset": .text("breakpoint"), "block.size": .bytes(1000),
                "credential": .secret(.literal(Self.canary)), "stall_timeout": .duration(.seconds(5)),
                "reply_timeout": .duration(.seconds(5)),
            ],
            DestinationTools(
                transport: transport, secrets: SecretReader(), clocks: SystemClocks(), name: "archive", log: { _ in }))
        let parcel = try Parcel(2500)
        try await Fuzz("form replies", rounds: 150, share: 100).each(mutator) { round in
            lies.withLock { $0 = (Dice(seed: round.seed), 0) }
            let logbook = Logbook()
            for _ in 0..<3 {
                var order = parcel.order
                order.checkpoint = logbook.last
                do {
                    let object = try await destination.upload(order, notes: logbook)
                    try round.expect(logbook.accepted == 2500, "done with \(logbook.accepted) B acknowledged")
                    try round.expect(object.url.map { printable($0) == $0 } ?? true, "an address that cannot be shown")
                    break
                } catch let error as UploadError {
                    let message = error.failure.message
                    try round.expect(!stands(Self.canary, in: message), "shows the secret: \(message)")
                    try round.expect(printable(message) == message && message.utf8.count < 1500, message)
                    if case .restage = error.remedy { throw round.flaw("stages again because of a server: \(message)") }
                    if case .giveUp = error.remedy { break }
                }
            }
            try round.expect(!stands(Self.canary, in: logbook.everything), "writes the secret down")
            let requests = lies.withLock { $0.requests }
            try round.expect(requests < 100, "\(requests) requests")
        }
        await transport.stop()
    }
}
