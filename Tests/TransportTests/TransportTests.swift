import Core
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@Suite("Transport")
struct TransportTests {
    let transport = Transport()
    let folder = TemporaryFolder()

    @Test("a request is sent and its response returned")
    func plain() async throws {
        let server = try FakeServer { exchange in
            exchange.reply(
                201, [("Location", "/files/1"), ("X-Two", " b ")], "made \(exchange.header("x-mine") ?? "")")
        }
        let response = try await transport.send(Request("POST", server.url + "/files", headers: [("X-Mine", "yes")]))
        #expect(response.status == 201)
        #expect(response.headers["location"] == "/files/1")
        #expect(response.headers["x-two"] == "b")
        #expect(String(decoding: response.body, as: UTF8.self) == "made yes")
        #expect(server.seen == ["POST /files"])
    }

    @Test("a POST without a body has length 0 and no content type")
    func emptyPost() async throws {
        let seen = Mutex<[String?]>([])
        let server = try FakeServer { exchange in
            seen.withLock { $0 = ["content-length", "content-type", "expect"].map { exchange.header($0) } }
            exchange.reply(201)
        }
        _ = try await transport.send(Request("POST", server.url))
        #expect(seen.withLock { $0 } == ["0", nil, nil])
    }

    @Test(
        "a status line without a status is no response",
        arguments: [
            "HTTP/{.1 200 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 20", "HTTP/1.1200 OK", "HTTP/",
            "HTtP/1.1 2-922337203685477580900 OK", "http/1.1 404 Gone",
        ])
    func garbled(_ status: String) async throws {
        let server = try FakeServer {
            $0.raw("\(status)\r\nContent-Length: 0\r\n\r\n")
            $0.cut()
        }
        await #expect(throws: TransportError.self) { try await transport.send(Request("HEAD", server.url)) }
    }

    @Test(
        "a header with an invalid name is dropped",
        arguments: [
            "\r Upload-Offset: 7", "Upload-Offset\u{301}: 7", "Up load-Offset: 7", ": 7", "\u{B}Upload-Offset: 7",
        ])
    func nameless(_ line: String) async throws {
        let server = try FakeServer {
            $0.raw("HTTP/1.1 200 OK\r\nX-One: a\r\nContent-Length: 0\r\n\(line)\r\n\r\n")
            $0.cut()
        }
        let response = try await transport.send(Request("HEAD", server.url))
        #expect(response.headers["X-One"] == "a")
        #expect(response.headers["Upload-Offset"] == nil && response.headers.lines.count == 2)
    }

    @Test("a folded header line has one value, and its continuation is no header")
    func folded() async throws {
        let server = try FakeServer {
            $0.raw("HTTP/1.1 200 OK\r\nX-One: a\r\n Upload-Offset: 7\r\n\tb\r\nContent-Length: 0\r\n\r\n")
        }
        let response = try await transport.send(Request("HEAD", server.url))
        #expect(response.headers["Upload-Offset"] == nil)
        #expect(response.headers["X-One"] == "a Upload-Offset: 7 b")
    }

    @Test("a HEAD does not wait for the announced body")
    func head() async throws {
        let server = try FakeServer {
            $0.raw("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\nUpload-Offset: 7\r\n\r\n"); $0.hang()
        }
        let response = try await transport.send(Request("HEAD", server.url))
        #expect(response.headers["Upload-Offset"] == "7")
    }

    @Test(
        "exactly the requested part of a file is sent, with progress",
        arguments: [(0, 0), (0, 1), (1, 3), (5, 100_000), (0, 3_000_000)])
    func file(_ offset: Int64, _ count: Int64) async throws {
        let content = noise(3_000_100)
        let path = try folder.write("video", content)
        let got = Mutex<[UInt8]>([])
        let expected = Mutex<String?>(nil)
        let server = try FakeServer { exchange in
            expected.withLock { $0 = exchange.header("expect") }
            let body = exchange.body()
            got.withLock { $0 = body }
            exchange.reply(204)
        }
        let sent = Mutex<[Int64]>([])
        let response = try await transport.send(
            Request(
                "PATCH", server.url, body: .file(.path(path), offset: offset, count: count),
                onSent: { value in sent.withLock { $0.append(value) } }))
        #expect(response.status == 204)
        #expect(response.bytesSent == count)
        #expect(got.withLock { $0 } == Array(content[Int(offset)..<Int(offset + count)]))
        #expect(sent.withLock { $0.last ?? 0 } == count)
        #expect(sent.withLock { $0 } == sent.withLock { $0.sorted() })
        #expect(expected.withLock { $0 } == (count > 1 << 20 ? "100-continue" : nil))
    }

    @Test("a file shorter than promised ends the transfer and is never padded")
    func shortFile() async throws {
        let path = try folder.write("video", noise(100_000))
        let got = Mutex(0)
        let server = try FakeServer { exchange in
            let count = exchange.body().count
            got.withLock { $0 = count }
        }
        let error = await #expect(throws: TransportError.self) {
            try await transport.send(Request("PATCH", server.url, body: .file(.path(path), offset: 0, count: 200_000)))
        }
        #expect(error?.kind == .sourceFile)
        #expect(error?.detail.contains("ends at byte 100000") == true)
        #expect(got.withLock { $0 } <= 100_000)
    }

    @Test("a missing file is a file error, not a network error")
    func missingFile() async throws {
        let error = await #expect(throws: TransportError.self) {
            try await transport.send(
                Request(
                    "PATCH", "http://127.0.0.1:1/", body: .file(.path(folder.path.appending("no")), offset: 0, count: 1)
                ))
        }
        #expect(error?.kind == .sourceFile)
    }

    @Test("headers of interim responses are dropped, and they are no response")
    func interim() async throws {
        let server = try FakeServer { exchange in
            exchange.raw("HTTP/1.1 104 Upload\r\nLocation: /wrong\r\nX-Interim: 1\r\n\r\n")
            if exchange.target == "/then-cut" { return exchange.cut() }
            exchange.reply(200, [("X-Final", "1")])
        }
        let response = try await transport.send(Request("POST", server.url))
        #expect(response.status == 200)
        #expect(response.headers.lines.map(\.name) == ["X-Final", "Content-Length"])
        let error = await #expect(throws: TransportError.self) {
            try await transport.send(Request("POST", server.url + "/then-cut"))
        }
        #expect(error?.kind == .reset)
    }

    @Test("a redirect is returned like any other response")
    func redirect() async throws {
        let server = try FakeServer { $0.reply(302, [("Location", "/elsewhere")]) }
        #expect(try await transport.send(Request("GET", server.url)).status == 302)
        #expect(server.seen.count == 1)
    }

    @Test("a response before the body is complete is received")
    func earlyAnswer() async throws {
        let path = try folder.write("video", noise(8 << 20))
        let server = try FakeServer { exchange in
            _ = exchange.body(64 << 10)
            exchange.reply(409, [("Upload-Offset", "5"), ("Connection", "close")])
            _ = exchange.body()  // a server that closes with unread bytes may destroy its own answer
            exchange.closeAfterwards()
        }
        let response = try await transport.send(
            Request("PATCH", server.url, headers: [("Expect", "")], body: .file(.path(path), offset: 0, count: 8 << 20))
        )
        #expect(response.status == 409)
        #expect(response.headers["upload-offset"] == "5")
    }

    @Test("connections are kept and reused")
    func reuse() async throws {
        let server = try FakeServer { $0.reply(200, [], "x") }
        for _ in 0..<20 { _ = try await transport.send(Request("GET", server.url)) }
        #expect(server.connectionCount == 1)
    }

    @Test("concurrent requests each get their own response")
    func many() async throws {
        let server = try FakeServer { $0.reply(200, [], $0.target) }
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for index in 0..<100 {
                group.addTask { [transport] in
                    let response = try await transport.send(Request("GET", server.url + "/\(index)"))
                    return response.body == Array("/\(index)".utf8)
                }
            }
            for try await isRight in group { #expect(isRight) }
        }
    }
}

extension Duration { static let short = Duration.milliseconds(150) }
