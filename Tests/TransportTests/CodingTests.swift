import Core
import Synchronization
import TestKit
import Testing

@testable import Transport

@Suite("Compressed responses", .timeLimit(.minutes(Patience.minutes(1))))
struct CodingTests {
    private let transport = Transport()
    private static let text = Array(#"{"uri":"/videos/1","name":"a name a name a name"}"#.utf8)

    private func answer(
        _ codings: [String], _ body: [UInt8], status: Int = 200, limit: Int = 1 << 20, method: String = "GET",
        more: String = ""
    ) async throws -> Response {
        let server = try FakeServer { exchange in
            _ = exchange.body()
            let lines = codings.map { "Content-Encoding: \($0)\r\n" }.joined() + more
            let head = "HTTP/1.1 \(status) Yes\r\n\(lines)Content-Length: \(body.count)\r\nETag: \"coded\"\r\n\r\n"
            exchange.answer(Array(head.utf8) + (method == "HEAD" ? [] : body))
        }
        defer { server.stop() }
        return try await transport.send(Request(method, server.url, answerLimit: limit))
    }

    static let forms: [(name: String, coding: Compressed)] = [
        ("gzip", .gzip), ("x-gzip", .gzip), ("GZIP", .gzip), ("deflate", .zlib), ("deflate", .raw),
    ]

    @Test("compressed responses are decoded, whether requested or not", arguments: forms)
    func read(_ name: String, _ coding: Compressed) async throws {
        let response = try await answer([name], coding(Self.text))
        #expect(response.body == Self.text)
        #expect(response.unreadable == nil)
    }

    @Test("several codings, members and a trailing zero block are decoded in order")
    func several() async throws {
        let gzip = Compressed.gzip
        #expect(try await answer(["deflate, gzip"], gzip(Compressed.zlib(Self.text))).body == Self.text)
        #expect(try await answer(["deflate", "identity", "gzip"], gzip(Compressed.zlib(Self.text))).body == Self.text)
        let members = gzip(Self.text.prefix(10)) + gzip(Self.text.dropFirst(10))
        #expect(try await answer(["gzip"], members).body == Self.text)
        #expect(try await answer(["gzip"], members + [0, 0, 0]).body == Self.text)
        #expect(try await answer(["identity"], Self.text).body == Self.text)
        #expect(try await answer(["gzip"], []).body == [])
        #expect(try await answer(["gzip"], gzip([])).body == [])
    }

    @Test("headers about the coded form are removed from a decoded response")
    func headers() async throws {
        let decoded = try await answer(["gzip"], Compressed.gzip(Self.text), more: "X-Kept: yes\r\n")
        #expect(decoded.headers["ETag"] == nil && decoded.headers["Content-Length"] == nil)
        #expect(decoded.headers["X-Kept"] == "yes")
        let plain = try await answer([], Self.text)
        #expect(plain.headers["ETag"] == "\"coded\"" && plain.headers["Content-Length"] == "\(Self.text.count)")
        // A query for an object: its answer has no body, and nothing is decoded.
        let head = try await answer(["gzip"], Self.text, method: "HEAD")
        #expect(head.headers["ETag"] == "\"coded\"" && head.headers["Content-Length"] == "\(Self.text.count)")
    }

    @Test("a broken, truncated or unknown coding gives no body and a reason")
    func broken() async throws {
        let whole = Compressed.gzip(Self.text)
        var flipped = whole
        flipped[whole.count - 6] ^= 0xFF
        let rows: [(codings: [String], body: [UInt8], words: String)] = [
            (["gzip"], Array(whole.dropLast(9)), "ends in the middle of its `gzip`"),
            (["gzip"], Array(whole.prefix(3)), "ends in the middle"), (["gzip"], flipped, "is not valid `gzip`"),
            (["gzip"], Self.text, "is not valid `gzip`"), (["gzip"], Compressed.zlib(Self.text), "is not valid `gzip`"),
            (["gzip"], whole + [1, 2, 3], "gzip"), (["gzip"], whole + Array(whole.dropLast(2)), "ends in the middle"),
            (["deflate"], Self.text, "deflate"),
            (["deflate"], Array(Compressed.zlib(Self.text).dropLast(3)), "deflate"),
            (["deflate"], whole, "deflate"), (["br"], Self.text, "the encoding `br`"),
            (["zstd, gzip"], whole, "the encoding `zstd`"), (["gzip, gzip, gzip, gzip"], whole, "coded 4 times"),
        ]
        for (codings, body, words) in rows {
            for status in [200, 404] {
                let response = try await answer(codings, body, status: status)
                #expect(response.status == status && response.body.isEmpty, "\(codings)")
                #expect(response.unreadable?.contains(words) == true, "\(words): \(response.unreadable ?? "read")")
            }
        }
    }

    @Test(
        "a few bytes that expand to gigabytes end like any response that is too long", arguments: Compressed.allCases
    )
    func bomb(_ coding: Compressed) async throws {
        let once = coding([UInt8](repeating: 0x20, count: 64 << 20))
        #expect(once.count < 100_000)
        let name = coding == .gzip ? "gzip" : "deflate"
        let error = await #expect(throws: TransportError.self) { try await answer([name], once, limit: 100_000) }
        #expect(error?.kind == .tooLarge)
        #expect(error?.detail == "the answer is longer than 100000 bytes")
        // A body that is compressed twice.
        let twice = Compressed.gzip(once)
        let other = await #expect(throws: TransportError.self) { try await answer([name, "gzip"], twice) }
        #expect(other?.kind == .tooLarge)
    }

    @Test("the limit counts decoded bytes over all members: exactly the limit is accepted, one more is not")
    func limit() async throws {
        let text = [UInt8](repeating: 0x61, count: 70_000)
        for coding in Compressed.allCases {
            let (name, body) = (coding == .gzip ? "gzip" : "deflate", coding(text))
            #expect(try await answer([name], body, limit: 70_000).body == text)
            await #expect(throws: TransportError.self) { try await answer([name], body, limit: 69_999) }
        }
        let members = Compressed.gzip(text.prefix(40_000)) + Compressed.gzip(text.dropFirst(40_000))
        #expect(try await answer(["gzip"], members, limit: 70_000).body == text)
        await #expect(throws: TransportError.self) { try await answer(["gzip"], members, limit: 69_999) }
    }

    @Test("no more than the limit and one piece is decoded")
    func streaming() throws {
        // About a thousandth of these bytes, so the damage is a few pieces beyond the limit.
        var body = Compressed.gzip([UInt8](repeating: 0, count: 16 << 20))
        body.replaceSubrange(1000..<2000, with: [UInt8](repeating: 0xff, count: 1000))
        #expect(throws: ContentCoding.Problem.tooLong) { try ContentCoding.decode(body, ["gzip"], limit: 1000) }
        let error = #expect(throws: ContentCoding.Problem.self) {
            try ContentCoding.decode(body, ["gzip"], limit: 16 << 20)
        }
        #expect(error != .tooLong)
    }

    @Test("a request without a coding asks for none, and bytes on the wire count as received")
    func asking() async throws {
        let seen = Mutex<[String?]>([])
        let server = try FakeServer { exchange in
            seen.withLock { $0.append(exchange.header("accept-encoding")) }
            _ = exchange.body()
            exchange.answer(
                Array("HTTP/1.1 200 Yes\r\nContent-Encoding: gzip\r\nContent-Length: ".utf8)
                    + Array("\(Compressed.gzip(Self.text).count)\r\n\r\n".utf8) + Compressed.gzip(Self.text))
        }
        for method in ["GET", "HEAD", "PUT", "POST", "DELETE"] {
            let response = try await transport.send(Request(method, server.url))
            #expect(response.bytesOnWire > 0)
        }
        _ = try await transport.send(Request("GET", server.url, headers: [("accept-encoding", "gzip")]))
        #expect(seen.withLock { $0 } == ["identity", "identity", "identity", "identity", "identity", "gzip"])
    }

    @Test("a streamed body is passed on undecoded")
    func pieces() async throws {
        let body = Compressed.gzip(Self.text)
        let server = try FakeServer { exchange in
            exchange.answer(
                Array("HTTP/1.1 200 Yes\r\nContent-Encoding: gzip\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body
            )
        }
        let got = Mutex<[UInt8]>([])
        let response = try await transport.send(
            Request(
                "GET", server.url,
                onBody: { piece in
                    got.withLock { $0 += piece }
                    return true
                }))
        #expect(got.withLock { $0 } == body)
        #expect(response.headers["Content-Encoding"] == "gzip")
    }
}
