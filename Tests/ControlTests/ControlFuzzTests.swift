import API
import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Control
@testable import Daemon

@Suite("Fuzz: control", .timeLimit(.minutes(Fuzz.minutes)))
struct ControlFuzzTests {
    static let requests = [
        "GET /v1/uploads?list=ongoing&limit=10&after=01JD HTTP/1.1\r\nHost: sluice\r\n\r\n",
        "GET /v1/uploads/%2Fsrv%2Fa.mp4 HTTP/1.1\r\nHost: sluice\r\n\r\n",
        "GET /v1/status HTTP/1.1\r\nHost: sluice\r\n\r\n",
        "POST /v1/pause HTTP/1.1\r\nHost: sluice\r\nContent-Length: 34\r\n\r\n{\"folder\":\"front\",\"duration\":60   }",
        "POST /v1/uploads HTTP/1.1\r\nHost: sluice\r\nContent-Length: 41\r\n\r\n{\"path\":\"2f61\",\"to\":[\"nas\"],\"key\":\"a/b\" }",
        "POST /v1/uploads/01JD/cancel HTTP/1.1\r\nHost: sluice\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ]
    static let words = [
        "\r\n", "\n", "\0", "%", "%00", "%2f", "%ff", "?", "&", "=", "+", "..", "/", "//", "#", "{", "}", "[", "\"",
        "null", "1e400",
        "\\u0000", "\\ud800", "Content-Length: 3\r\nContent-Length: 4\r\n", "Content-Length: -1\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Last-Event-ID: 9223372036854775807\r\n", "HEAD", "DELETE", "pause", "events?since=", "limit=", "\"duration\":",
        "\u{1B}[2J", "\u{301}",
        String(repeating: "[", count: 3000), String(repeating: "{\"a\":", count: 3000),
        String(repeating: "x", count: 20_000),
    ]

    @Test("any request gets a status and, if refused, a reason; the server continues")
    func requests() async throws {
        try await withLine { line in
            let mutator = Mutator(Self.requests.map { Array($0.utf8) }, words: Self.words, limit: 40_000)
            try await Fuzz("control requests", rounds: 120, share: 20).each(mutator) { round in
                let wire = try Wire(unix: line.socket)
                do {
                    try await wire.send(round.input)
                    wire.endSending()
                    // A stream of events has no end mark.
                    let text = String(decoding: round.input, as: UTF8.self)
                    if text.contains("events") { return }
                    let reply = try await wire.reply(isHead: text.hasPrefix("HEAD"))
                    try round.expect((200..<600).contains(reply.status), "the server answers \(reply.status)")
                    try round.expect(reply.status != 500, "the server answers 500: \(reply.text)")
                    if reply.status == 400, !text.hasPrefix("HEAD") {
                        try round.expect(reply.body.count > 10, "the refusal has no message")
                    }
                } catch is Wire.Broken {} catch let error as SystemError where [ECONNRESET, EPIPE].contains(error.code)
                {}
                let honest = try await line.ask("GET", "/v1/status")
                try round.expect(honest.status == 200, "a valid request is answered with \(honest.status)")
            }
        }
    }

    @Test("any JSON body is read or refused with a reason")
    func bodies() throws {
        let seeds = [
            #"{"ids":["01JD"],"all":false,"folder":"front","destination":"nas","duration":60}"#,
            #"{"path":"2f737276","to":["nas"],"key":"a/b","context":{"a":"b"},"again":true}"#,
        ]
        let mutator = Mutator(seeds.map { Array($0.utf8) }, words: Self.words)
        try Fuzz("control bodies", rounds: 800).each(mutator) { round in
            for read: ([UInt8]) throws -> Any in [
                { try JSON.value(Selection.self, from: $0) }, { try JSON.value(AddRequest.self, from: $0) },
            ] {
                do { _ = try read(round.input) } catch let refusal as Refusal {
                    try round.expect(!refusal.message.isEmpty, "the refusal has no message")
                } catch is DecodingError {}
            }
            let text = String(decoding: round.input, as: UTF8.self)
            do { _ = try APIRoute(method: "POST", path: "/v1/" + text) } catch is APIRoute.RoutingError {}
            do {
                let query = try ListQuery(["limit": text, "list": "failed", "after": text])
                try round.expect((1...1000).contains(query.limit), "a page of \(query.limit)")
            } catch let refusal as Refusal { try round.expect(!refusal.message.isEmpty, "the refusal has no message") }
        }
    }

    @Test("a stream cut anywhere yields its events, and keeps no more memory than one event")
    func events() throws {
        let event = try EventView(
            seq: 7, ts: "2026-11-20T07:59:00.000Z", type: .state, op: .sample(), detail: ["to": "x"]
        ).lines()
        let stream = Array("retry: 3000\n\n: still here\n\n".utf8) + event + event
        let mutator = Mutator(
            [stream], words: ["data:", "data: {}", "\n", "\r\n", "\r", ":", "id: x", "null", "\0", "é"])
        try Fuzz("events", rounds: 600, share: 4).each(mutator) { round in
            let whole = Self.read([round.input])
            var rest = round.input[...]
            var pieces: [[UInt8]] = []
            while !rest.isEmpty {
                let piece = rest.prefix(Int.random(in: 1...200, using: &round.dice))
                pieces.append(Array(piece))
                rest = rest.dropFirst(piece.count)
            }
            try round.expect(Self.read(pieces) == whole, "cut in \(pieces.count) pieces the stream has other events")
        }
    }

    /// The events, and whether the stream was refused in the end. A refusal may drop the events of its own piece.
    private static func read(_ pieces: [[UInt8]]) -> Bool {
        var parser = EventParser()
        do {
            for piece in pieces { _ = try parser.parse(piece) }
            return true
        } catch { return false }
    }

    @Test("an endless event is refused before it fills the memory")
    func endless() throws {
        var parser = EventParser()
        let line = Array("data: \(String(repeating: "x", count: 1 << 20))\n".utf8)
        #expect(throws: ControlError.self) { for _ in 0..<64 { _ = try parser.parse(line) } }
    }

    @Test("a daemon that answers nonsense is named as such, with a remedy")
    func lyingDaemon() async throws {
        let seeds = [
            try JSON.bytes(UploadPage(uploads: [.sample()], counts: Counts(ongoing: 1), seq: 7, next: nil)),
            try JSON.bytes(StatusView.sample), try JSON.bytes(UploadsReply(uploads: [.sample()])),
            Array(#"{"error":{"code":"not_found","message":"no upload","id":"01"}}"#.utf8),
        ]
        let mutator = Mutator(seeds, words: Self.words)
        try await Fuzz("control replies", rounds: 400, share: 4).each(mutator) { round in
            let status = [200, 202, 204, 400, 403, 404, 409, 500, 503, 999].randomElement(using: &round.dice) ?? 200
            let client = ControlClient(
                socket: "/nowhere", transport: ConstantReplyServer(status: status, body: round.input))
            for ask: () async throws -> Void in [
                { _ = try await client.list(ListQuery()) }, { _ = try await client.status() },
                { _ = try await client.show("x") }, { _ = try await client.cancel(Selection()) },
            ] {
                do { try await ask() } catch let refusal as Refusal {
                    try round.expect(
                        printable(refusal.message) == refusal.message, "the message has control characters")
                } catch let error as ControlError {
                    try round.expect(
                        !error.remedy.isEmpty && printable(error.description) == error.description, "\(error)")
                }
            }
        }
    }
}

/// Gives every request the same answer.
private struct ConstantReplyServer: Transporting {
    let status: Int
    let body: [UInt8]

    func send(_ request: Request) async throws(TransportError) -> Response { Response(status: status, body: body) }
}
