import Core
import Synchronization
import TestKit
import Testing
import Transport

@Suite("Framed bodies")
struct FramedBodyTests {
    let transport = Transport()
    let folder = TemporaryFolder()

    private func body(_ path: FilePath, _ offset: Int64, _ count: Int64) -> Request.Body {
        .framed(head: Array("head>".utf8), .path(path), offset: offset, count: count, tail: Array("<tail".utf8))
    }

    @Test(
        "a framed body is its head, the piece of the file and its tail, with a known length",
        arguments: [0, 1, 70_000, 3_000_000])
    func whole(_ count: Int) async throws {
        let content = noise(count + 20)
        let path = try folder.write("file", content)
        let seen = Mutex<(length: String?, chunked: String?, body: [UInt8])>((nil, nil, []))
        let server = try FakeServer { exchange in
            let body = exchange.body()
            seen.withLock { $0 = (exchange.header("content-length"), exchange.header("transfer-encoding"), body) }
            exchange.reply(200)
        }
        let told = Mutex<[Int64]>([])
        let response = try await transport.send(
            Request(
                "POST", server.url, body: body(path, 10, Int64(count)),
                onSent: { sent in told.withLock { $0.append(sent) } }))
        let (length, chunked, got) = seen.withLock { $0 }
        #expect(got == Array("head>".utf8) + content[10..<10 + count] + Array("<tail".utf8))
        #expect(length == "\(count + 10)")
        #expect(chunked == nil)
        #expect(response.bytesSent == Int64(count))
        #expect(told.withLock { $0 }.allSatisfy { (0...Int64(count)).contains($0) })
        #expect(told.withLock { $0.last } == Int64(count))
    }

    @Test("a file that became shorter is not padded, and fails the request as a file error")
    func short() async throws {
        let path = try folder.write("file", noise(100))
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.reply(200)
        }
        let error = await #expect(throws: TransportError.self) {
            try await transport.send(Request("POST", server.url, body: body(path, 50, 100)))
        }
        #expect(error?.kind == .sourceFile)
    }

    @Test("an interrupted request reports how much of the file was sent")
    func cut() async throws {
        let path = try folder.write("file", noise(20 << 20))
        let server = try FakeServer { exchange in
            _ = exchange.body(1 << 20)
            exchange.cut(reset: true)
        }
        let error = await #expect(throws: TransportError.self) {
            try await transport.send(Request("POST", server.url, body: body(path, 0, 20 << 20)))
        }
        let sent = try #require(error?.bytesSent)
        #expect(sent >= (1 << 20) - 5 && sent < 20 << 20)
    }
}
