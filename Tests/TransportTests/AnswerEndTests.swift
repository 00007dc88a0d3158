import Core
import Dispatch
import Linux
import Synchronization
import TestKit
import Testing
import Transport

/// The value of an interrupted answer, and the time limit of an endless one.
@Suite("Ends of responses", .timeLimit(.minutes(Patience.minutes(1))))
struct AnswerEndTests {
    let transport = Transport()

    private func answer(_ text: String, to method: String, body: Int) async throws -> Response {
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.answer(Array(text.utf8))
            exchange.closeAfterwards()
        }
        defer { server.stop() }
        return try await transport.send(
            Request(method, server.url, body: body == 0 ? .none : .bytes(noise(body))))
    }

    @Test(
        "a response that ends in its header, or before its body is complete, is an error",
        arguments: [
            "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\nContent-Type: appl",
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n",
            "HTTP/1.1 204 No Content\r\nUpload-Offset: 1",
            "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Le",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n1234",
            "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n1234\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n12",
        ], [("GET", 0), ("POST", 0), ("PATCH", 1000), ("DELETE", 0)])
    func cut(_ text: String, _ request: (method: String, body: Int)) async throws {
        let error = await #expect(throws: TransportError.self) {
            try await answer(text, to: request.method, body: request.body)
        }
        #expect(error?.kind == .reset, "\(error?.detail ?? "")")
    }

    @Test(
        "if only the status is needed, a long body is not read completely, and a broken one is no failure"
    )
    func status() async throws {
        let server = try FakeServer { exchange in
            exchange.answer(Array("HTTP/1.1 200 OK\r\nContent-Length: 33554432\r\n\r\n".utf8) + noise(32 << 20))
            exchange.closeAfterwards()
        }
        defer { server.stop() }
        let arrived = Atomic<Int64>(0)
        var request = Request("POST", server.url)
        request.onArrived = { arrived.add($0, ordering: .relaxed) }
        (request.needsStatusOnly, request.answerLimit) = (true, 16 << 10)
        #expect(try await transport.send(request).status == 200)
        // The bytes that the kernel had accepted meanwhile.
        #expect(arrived.load(ordering: .relaxed) < 8 << 20)

        let broken = try FakeServer { exchange in
            exchange.answer(Array("HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\n123".utf8))
            exchange.closeAfterwards()
        }
        defer { broken.stop() }
        request.url = broken.url
        #expect(try await transport.send(request).status == 202)
    }

    @Test("a truncated header is no response to HEAD either")
    func cutHead() async throws {
        let error = await #expect(throws: TransportError.self) {
            try await answer("HTTP/1.1 200 OK\r\nContent-Length: 5", to: "HEAD", body: 0)
        }
        #expect(error?.kind == .reset)
        let whole = try await answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", to: "HEAD", body: 0)
        #expect(whole.status == 200)
    }

    @Test(
        "a response that ends with its connection, as in HTTP/1.0, is complete",
        arguments: [
            "HTTP/1.0 200 OK\r\n\r\n1234", "HTTP/1.0 200 OK\nContent-Type: text/plain\n\n1234",
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n1234",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n1234\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n1234\r\n0\r\nX-Sum: 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n1234",
        ], [0, 1000])
    func whole(_ text: String, _ body: Int) async throws {
        let response = try await answer(text, to: "POST", body: body)
        #expect(response.status == 200 && response.body == Array("1234".utf8))
    }

    /// Bodies that arrive a piece at a time, for ever.
    private static let dripping = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", " "),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n"),
        ("HTTP/1.1 200 OK\r\n", "X-More: 1\r\n"), ("", "HTTP/1.1 102 Processing\r\n\r\n"),
        ("HTTP/1.1 200 O", "K"),
    ]

    @Test(
        "a response that arrives in pieces without end is limited in time", arguments: dripping,
        [0, 1000])
    func endless(_ pieces: (first: String, more: String), _ body: Int) async throws {
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.answer(Array(pieces.first.utf8))
            let pause = DispatchSemaphore(value: 0)
            while !exchange.isGone {
                exchange.raw(pieces.more)
                _ = pause.wait(timeout: .now() + 0.02)
            }
        }
        defer { server.stop() }
        let error = await #expect(throws: TransportError.self) {
            try await transport.send(
                Request(
                    "POST", server.url, body: body == 0 ? .none : .bytes(noise(body)),
                    limits: Limits(replyWait: .milliseconds(600), answer: .milliseconds(900))))
        }
        #expect(error?.kind == .timedOut, "\(error?.detail ?? "")")
        #expect(error?.bytesSent == Int64(body))
    }

    @Test("the response time limit does not run while bytes are sent")
    func slowBody() async throws {
        let server = try FakeServer { exchange in
            let pause = DispatchSemaphore(value: 0)
            while !exchange.piece(256 << 10).isEmpty { _ = pause.wait(timeout: .now() + 0.02) }
            exchange.reply(200)
        }
        defer { server.stop() }
        let response = try await transport.send(
            Request(
                "PUT", server.url, body: .bytes(noise(32 << 20)),
                limits: Limits(sendingStall: .seconds(20), answer: .milliseconds(1500))))
        #expect(response.status == 200)
    }
}
