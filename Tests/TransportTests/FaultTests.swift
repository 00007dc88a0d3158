import Core
import Dispatch
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@Suite("Transport errors", .timeLimit(.minutes(Patience.minutes(1))))
struct FaultTests {
    let transport = Transport()
    let folder = TemporaryFolder()

    private func failure(_ request: Request) async -> TransportError? {
        await #expect(throws: TransportError.self) { try await transport.send(request) }
    }

    @Test("a connection to a port without a listener fails as `connect`")
    func refused() async throws {
        let server = try FakeServer { $0.reply(200) }
        let url = server.url
        server.stop()
        #expect(await failure(Request("GET", url))?.kind == .connect)
    }

    @Test("a server that refuses `Expect` gets the body without it, and no further `Expect`")
    func expectation() async throws {
        let asked = Mutex<[Bool]>([])
        let server = try FakeServer { exchange in
            let asks = exchange.header("expect") != nil
            asked.withLock { $0.append(asks) }
            if asks { return exchange.reply(417, [], "no expectations here") }
            exchange.reply(exchange.body() == noise(2 << 20) ? 200 : 400, [], "thanks")
        }
        defer { server.stop() }
        let request = Request("PATCH", server.url, body: .bytes(noise(2 << 20)))
        // A refusal that arrives when the body is already being sent ends the request; the next request does not ask.
        #expect([200, 417].contains(try await transport.send(request).status))
        for _ in 0..<2 {
            let response = try await transport.send(request)
            #expect(response.status == 200)
            #expect(String(decoding: response.body, as: UTF8.self) == "thanks")
        }
        let questions = asked.withLock { $0 }
        #expect(
            questions.first == true && questions.count >= 3 && !questions.dropFirst().contains(true), "\(questions)")
        // Another process that is told does not ask either.
        let next = Transport()
        #expect(transport.originsWithoutExpect == [WebAddress(server.url).origin])
        next.recall(originsWithoutExpect: transport.originsWithoutExpect)
        #expect(try await next.send(request).status == 200)
        #expect(asked.withLock { $0 }.last == false)
        await next.stop()
    }

    @Test(
        "a refusal of a proxy is not attributed to the server",
        arguments: [
            (407, "Proxy-Authenticate", true), (407, "", true), (401, "Proxy-Authenticate", true),
            (401, "WWW-Authenticate", false), (401, "", false), (403, "", false),
        ])
    func proxy(_ status: Int, _ header: String, isOfProxy: Bool) async throws {
        let server = try FakeServer { exchange in
            exchange.reply(status, header.isEmpty ? [] : [(header, "Basic realm=\"p\"")])
        }
        defer { server.stop() }
        if isOfProxy {
            let error = await failure(Request("POST", server.url))
            #expect(error?.kind == .proxy)
            #expect(error?.detail.hasPrefix("a proxy on the way answered \(status): it requires a user") == true)
        } else {
            #expect(try await transport.send(Request("POST", server.url)).status == status)
        }
    }

    @Test("an unknown host name fails as `resolve`")
    func unknownName() async { #expect(await failure(Request("GET", "http://sluice.invalid/"))?.kind == .resolve) }

    @Test("a peer without TLS fails as `tls` or `connect`")
    func noTLS() async throws {
        let server = try FakeServer { $0.reply(200) }
        let error = await failure(
            Request("GET", "https://127.0.0.1:\(server.port)/", limits: Limits(connect: .seconds(2))))
        #expect(error?.kind == .tls || error?.kind == .connect)
    }

    @Test("a peer that stops reading is detected while sending")
    func stalls() async throws {
        let path = try folder.write("video", noise(32 << 20))
        let server = try FakeServer { exchange in
            _ = exchange.body(1000)
            exchange.hang()
        }
        let error = await failure(
            Request(
                "PATCH", server.url, body: .file(.path(path), offset: 0, count: 32 << 20),
                limits: Limits(sendingStall: .short)
            ))
        #expect(error?.kind == .stalled)
        #expect((error?.bytesSent ?? 0) > 0)
    }

    @Test("a peer that never responds is detected after the body, by another limit")
    func noReply() async throws {
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.hang()
        }
        let limits = Limits(sendingStall: .milliseconds(1), replyWait: .short)
        let error = await failure(Request("PATCH", server.url, body: .bytes(noise(1000)), limits: limits))
        #expect(error?.kind == .timedOut)
        #expect(error?.bytesSent == 1000)
    }

    @Test("a slow response within its limit is awaited, whatever the sending limit")
    func slowReply() async throws {
        let gate = DispatchSemaphore(value: 0)
        let server = try FakeServer { exchange in
            _ = exchange.body()
            gate.wait()
            exchange.reply(204)
        }
        async let response = transport.send(
            Request("PATCH", server.url, body: .bytes(noise(1000)), limits: Limits(sendingStall: .milliseconds(20))))
        try await eventually("the server has received the request") { !server.seen.isEmpty ? true : nil }
        let start = ContinuousClock.now
        try await eventually("the sending limit has passed") {
            ContinuousClock.now - start > .milliseconds(100) ? true : nil
        }
        gate.signal()
        #expect(try await response.status == 204)
    }

    @Test("a small request has one limit for everything")
    func whole() async throws {
        let server = try FakeServer { $0.hang() }
        #expect(await failure(Request("HEAD", server.url, limits: Limits(whole: .short)))?.kind == .timedOut)
    }

    @Test("a connection cut within the body fails as `reset`", arguments: [false, true])
    func cut(_ reset: Bool) async throws {
        let path = try folder.write("video", noise(8 << 20))
        let server = try FakeServer { exchange in
            _ = exchange.body(100_000)
            exchange.cut(reset: reset)
        }
        let error = await failure(Request("PATCH", server.url, body: .file(.path(path), offset: 0, count: 8 << 20)))
        #expect(error?.kind == .reset)
    }

    @Test(
        "a kept connection that closes without a response: safe requests are repeated, others never",
        arguments: [("HEAD", 3), ("DELETE", 3), ("POST", 2), ("PATCH", 2)])
    func keptConnection(_ method: String, _ requests: Int) async throws {
        let server = try FakeServer { exchange in
            if exchange.number == 2 {
                _ = exchange.body()
                return exchange.cut()
            }
            exchange.reply(200)
        }
        _ = try await transport.send(Request("GET", server.url))
        let body: Request.Body = method == "PATCH" ? .bytes(noise(100)) : .none
        do {
            _ = try await transport.send(Request(method, server.url, body: body))
            #expect(requests == 3)
        } catch {
            #expect(error.kind == .reset)
            #expect(error.bytesSent == body.count, "bytes count as sent, whatever libcurl does afterwards")
        }
        #expect(server.seen.count == requests)
    }

    @Test("a server that dies with a request over a kept connection may have received it")
    func deadServer() async throws {
        let holder = Mutex<FakeServer?>(nil)
        let server = try FakeServer { exchange in
            if exchange.number == 1 { return exchange.reply(200) }
            holder.withLock { $0?.stop() }
        }
        holder.withLock { $0 = server }
        _ = try await transport.send(Request("GET", server.url))
        #expect(await failure(Request("POST", server.url))?.kind == .reset)
    }

    @Test("an endless header is cut off")
    func headerFlood() async throws {
        let server = try FakeServer { exchange in
            exchange.raw("HTTP/1.1 200 OK\r\n")
            for index in 0..<100_000 where !exchange.isGone {
                exchange.raw("X-\(index): \(String(repeating: "a", count: 500))\r\n")
            }
        }
        #expect(await failure(Request("GET", server.url))?.kind == .tooLarge)
    }

    @Test("many interim responses are no endless header")
    func interimFlood() async throws {
        let server = try FakeServer { exchange in
            _ = exchange.body()
            let line = "X: \(String(repeating: "a", count: 1000))"
            for _ in 0..<128 { exchange.raw("HTTP/1.1 104 Upload Resumption Supported\r\n\(line)\r\n\r\n") }
            exchange.reply(403)
        }
        #expect(try await transport.send(Request("PATCH", server.url, body: .bytes([1]))).status == 403)
        let endless = try FakeServer { exchange in
            exchange.raw("HTTP/1.1 104 Upload Resumption Supported\r\n")
            for _ in 0..<100_000 where !exchange.isGone {
                exchange.raw("X: \(String(repeating: "a", count: 500))\r\n")
            }
        }
        #expect(await failure(Request("GET", endless.url))?.kind == .tooLarge)
    }

    @Test("a body over its limit is cut off, a streamed one is not")
    func bodyFlood() async throws {
        let server = try FakeServer { $0.reply(200, [], String(repeating: "a", count: 300_000)) }
        #expect(await failure(Request("GET", server.url, answerLimit: 200_000))?.kind == .tooLarge)
        let got = Mutex(0)
        let response = try await transport.send(
            Request(
                "GET", server.url,
                onBody: { piece in
                    got.withLock { $0 += piece.count }; return true
                }, answerLimit: 1))
        #expect(response.body.isEmpty)
        #expect(got.withLock { $0 } == 300_000)
    }

    @Test("the reader of a response can stop it")
    func readerStops() async throws {
        let server = try FakeServer {
            $0.raw("HTTP/1.1 200 OK\r\n\r\nfirst"); $0.hang()
        }
        #expect(await failure(Request("GET", server.url, onBody: { _ in false }))?.kind == .cancelled)
    }

    @Test(
        "cancellation stops at once and resets the connection, new or reused",
        arguments: [false, true])
    func cancels(_ isUsed: Bool) async throws {
        let path = try folder.write("video", noise(32 << 20))
        let ending = Mutex<(count: Int, wasReset: Bool)?>(nil)
        let gate = DispatchSemaphore(value: 0)
        let server = try FakeServer { exchange in
            if exchange.method == "GET" { return exchange.reply(200) }
            _ = exchange.body(1000)
            gate.wait()
            let count = exchange.body().count
            ending.withLock { $0 = (count, exchange.wasReset) }
        }
        if isUsed { _ = try await transport.send(Request("GET", server.url)) }
        let task = Task { [transport] in
            try await transport.send(
                Request(
                    "PATCH", server.url, headers: [], body: .file(.path(path), offset: 0, count: 32 << 20),
                    limits: Limits(sendingStall: .seconds(3600))))
        }
        try await eventually("the server has received the request") {
            server.seen.contains { $0.hasPrefix("PATCH") } ? true : nil
        }
        task.cancel()
        // The server takes nothing before this has ended, and no time limit ends it.
        let error = await #expect(throws: TransportError.self) { try await task.value }
        #expect(error?.kind == .cancelled)
        gate.signal()
        try await eventually("the server has noticed the end") { ending.withLock { $0 != nil } ? true : nil }
        // A close that is not abortive delivers the kernel's buffer, and ends in order.
        #expect(ending.withLock { $0?.wasReset } == true)
        #expect(ending.withLock { $0?.count ?? .max } < 8 << 20)
        #expect(isUsed ? server.connectionCount == 1 : true)
    }

    @Test("an already cancelled task sends nothing")
    func cancelledBefore() async throws {
        let server = try FakeServer { $0.reply(200) }
        let task = Task { [transport] in
            withUnsafeCurrentTask { $0?.cancel() }
            return try await transport.send(Request("GET", server.url))
        }
        let error = await #expect(throws: TransportError.self) { try await task.value }
        #expect(error?.kind == .cancelled)
        #expect(server.seen.isEmpty)
    }

    @Test("stopping the transport ends running and later requests")
    func stops() async throws {
        let server = try FakeServer { $0.hang() }
        async let first = failure(Request("GET", server.url))
        try await eventually("the server has received the request") { !server.seen.isEmpty ? true : nil }
        await transport.stop()
        #expect(await first?.kind == .cancelled)
        #expect(await failure(Request("GET", server.url))?.kind == .cancelled)
        await transport.stop()
    }

    @Test(
        "a response that is not HTTP is a broken connection, because the request may have been received",
        arguments: [
            "<html>no status", "220 ready\r\n", "HTTP/9.9 200 OK\r\n\r\n", "HTTP/1.1 1000 Odd\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: foo\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nX: " + String(repeating: "x", count: 400_000) + "\r\n\r\n",
        ])
    func noAnswer(_ text: String) async throws {
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.raw(text)
            exchange.cut()
        }
        let error = await failure(Request("POST", server.url, body: .bytes(noise(1000))))
        #expect(error?.kind == .reset, "\(error.map { "\($0)" } ?? "it was taken for an answer")")
    }

    @Test(
        "input that would change the request is refused",
        arguments: [("X-A", "b\r\nX-C: d"), ("X-A\r\n", "b"), ("X A", "b"), ("", "b"), ("X-A", "b\u{0}c")])
    func badHeaders(_ name: String, _ value: String) async {
        let error = await failure(Request("GET", "http://127.0.0.1:1/", headers: [(name, value)]))
        #expect(error?.kind == .other)
        #expect(error?.detail.contains("character") == true)
    }

    @Test(
        "only http and https are accepted, without a user in the address",
        arguments: ["file:///etc/passwd", "ftp://127.0.0.1/", "http://me:secret@127.0.0.1:1/"])
    func schemes(_ url: String) async {
        let error = await failure(Request("GET", url))
        #expect(error?.kind == .other)
        #expect(error?.description.contains("secret") == false)
    }

    @Test(
        "an address in an error shows no secret",
        arguments: [
            ("https://me:pw@host/a?sig=1#f", "https://host/a"), ("http://host", "http://host"),
            ("https://host/@a", "https://host/@a"), ("nonsense?x", "nonsense"),
            ("https://host/a?\u{301}sig=1", "https://host/a"), ("https://me:pw@\u{301}host/", "https://\u{301}host/"),
        ])
    func redacts(_ url: String, _ shown: String) { #expect(withoutSecrets(url) == shown) }

    @Test("a missing interface fails the request instead of using another")
    func interface() async throws {
        let server = try FakeServer { $0.reply(200) }
        #expect(await failure(Request("GET", server.url, interface: "nope0"))?.kind == .interface)
        #expect(server.seen.isEmpty)
        #expect(try await transport.send(Request("GET", server.url, interface: "lo")).status == 200)
    }
}
