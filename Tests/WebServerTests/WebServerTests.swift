import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing
import WebServer

/// Answers by path, with the values that a test needs to see.
private final class Echo: WebService {
    let sink = CountingSink()
    /// The body of `/stream`, which the test supplies.
    let (stream, feed) = AsyncStream<[UInt8]>.makeStream()
    /// Opens `/gate`.
    let (gate, opener) = AsyncStream<Void>.makeStream()

    func plan(_ request: WebRequest) -> BodyPlan {
        switch request.path {
        case "/refuse": .refuse(.text(403, "not here"))
        case "/sink": .sink(sink)
        default: .collect(limit: 1000)
        }
    }

    func reply(to request: WebRequest, body: ReceivedBody) async -> WebReply {
        switch request.path {
        case "/stream": return WebReply(status: 200, body: .stream(stream))
        case "/sink": return .text(sink.isFull ? 507 : 200, "\(sink.count)")
        case "/offset":
            return WebReply(status: 200, headers: [("Upload-Offset", "7")], body: .bytes(Array("seven".utf8)))
        case "/gate":
            for await _ in gate { break }
            return .text(200, "open")
        case "/peer": return .text(200, "\(request.peer.user ?? .max) \(request.peer.address ?? "-")")
        default:
            guard case .collected(let bytes) = body else { return WebReply(status: 500) }
            let query = request.query.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: "&")
            return .text(
                200, "\(request.method) \(request.path) \(query) \(request.headers["x-two"] ?? "-") \(bytes.count)")
        }
    }
}

private final class CountingSink: BodySink {
    private let state = Mutex((count: 0, limit: Int.max, isComplete: Bool?.none))
    var count: Int { state.withLock(\.count) }
    var isComplete: Bool? { state.withLock(\.isComplete) }
    var isFull: Bool { state.withLock { $0.count > $0.limit } }
    func setLimit(_ limit: Int) { state.withLock { $0.limit = limit } }

    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        state.withLock { state in
            state.count += bytes.count
            return state.count <= state.limit
        }
    }
    func ended(complete: Bool) { state.withLock { $0.isComplete = complete } }
}

@Suite("WebServer", .timeLimit(.minutes(Patience.minutes(1))))
struct WebServerTests {
    private let service = Echo()

    private func serving(_ body: (WebServer) async throws -> Void) async throws {
        let server = try WebServer(.tcp(host: "127.0.0.1", port: 0), service: service, threads: 1)
        do { try await body(server) } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    @Test("method, decoded path, query, joined headers and body are passed on, on one connection")
    func request() async throws {
        try await serving { server in
            let wire = try Wire(port: server.port)
            try await wire.send("GET /a%20b?x=%26&y HTTP/1.1\r\nHost: h\r\nX-Two: 1\r\nx-two: 2\r\n\r\n")
            #expect(try await wire.reply().text == "GET /a b x=&&y= 1, 2 0\n")
            // The form for a proxy, which every server has to understand.
            try await wire.send("GET HTTP://h:80/a%20b?x=1 HTTP/1.1\r\nHost: h\r\nX-Two: 1\r\n\r\n")
            #expect(try await wire.reply().text == "GET /a b x=1 1 0\n")
            try await wire.send("POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc")
            #expect(try await wire.reply().text == "POST /p  - 3\n")
        }
    }

    /// `<n>` represents n letters.
    @Test(
        "malformed or too large requests are refused",
        arguments: [
            ("GET /%zz HTTP/1.1|Host: h||", 400), ("GET /%00 HTTP/1.1|Host: h||", 400),
            ("GET /?a=% HTTP/1.1|Host: h||", 400), ("GET /a b HTTP/1.1|Host: h||", 400), ("GET / HTTP/1.1||", 400),
            ("GET / HTTP/1.1|Host: h|X: <20000>||", 431),
            ("POST / HTTP/1.1|Host: h|Content-Length: 3|Content-Length: 5||abc", 400),
            ("POST / HTTP/1.1|Host: h|Content-Length: 3|Transfer-Encoding: chunked||0||", 400),
            ("POST / HTTP/1.1|Host: h|Content-Length: +3||abc", 400),
            ("POST / HTTP/1.1|Host: h|Transfer-Encoding: gzip, chunked||0||", 400),
            ("POST / HTTP/1.1|Host: h|Transfer-Encoding: chunked|Transfer-Encoding: chunked||0||", 400),
            ("POST / HTTP/1.1|Host: h|Content-Length: 3|Content-Length: 3||abc", 200),
            ("POST / HTTP/1.1|Host: h|Content-Length: 1001||<1001>", 413),
            ("POST / HTTP/1.1|Host: h|Transfer-Encoding: chunked||3E9|<1001>|0||", 413),
        ])
    func malformed(_ request: String, _ status: Int) async throws {
        try await serving { server in
            let wire = try Wire(port: server.port)
            for piece in request.split(separator: "<", omittingEmptySubsequences: false) {
                let parts = piece.split(separator: ">", maxSplits: 1, omittingEmptySubsequences: false)
                if parts.count == 2, let count = Int(parts[0]) {
                    try await wire.send(String(repeating: "x", count: count))
                }
                try await wire.send(
                    parts.last.map(String.init)?.split(separator: "|", omittingEmptySubsequences: false).joined(
                        separator: "\r\n") ?? "")
            }
            #expect(try await wire.reply().status == status)
        }
    }

    @Test(
        "the end of a body is never guessed: bytes after an ambiguous request are no request",
        arguments: [
            "Content-Length: 3\r\nContent-Length: 45", "Content-Length: 45\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nContent-Length: 3",
        ])
    func smuggling(_ framing: String) async throws {
        try await serving { server in
            let wire = try Wire(port: server.port)
            try await wire.send(
                "POST / HTTP/1.1\r\nHost: h\r\n\(framing)\r\n\r\n0\r\n\r\nGET /offset HTTP/1.1\r\nHost: h\r\n\r\n")
            let reply = try await wire.reply()
            #expect(reply.status == 400)
            #expect(reply.headers["connection"] == "close")
            #expect(try await wire.isAtEnd())
        }
    }

    @Test(
        "bytes after a chunked body are no request",
        arguments: ["5\r\nhello\r\n0\r\n\r\n", "5\nhello\n0\n\n", "0;a\n\r\n"])
    func behindChunks(_ body: String) async throws {
        try await serving { server in
            let wire = try Wire(port: server.port)
            try await wire.send(
                "POST /read HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\(body)"
                    + "GET /offset HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await wire.reply().headers["connection"] == "close")
            #expect(try await wire.isAtEnd())
        }
    }

    @Test(
        "a Host that is no name and port is refused",
        arguments: ["a b", "a, b", "a/b", "u@h", "a?b", "a\\b", "h\u{E9}"])
    func notAHost(_ host: String) async throws {
        try await serving { server in
            let wire = try Wire(port: server.port)
            try await wire.send("GET /offset HTTP/1.1\r\nHost: \(host)\r\n\r\n")
            #expect(try await wire.reply().status == 400)
        }
    }

    @Test(
        "an ambiguous header is refused, and bytes after it are no request",
        arguments: [
            "GET / HTTP/1.1\r\nHost : h\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nX-Two\t: 1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nX Two: 1\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n : 1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nX-Two: 1\r\n 2\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nX-Two: 1\r\n\t2\r\nX: 3\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nContent-Len: 5\r\n gth\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nX-Two:\r\n \r\n\r\n",
            "GET / HTTP/1.1\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n\n",
            "GET / HTTP/1.1\nHost: h\n\n", "GET / HTTP/1.1\r\nHost: h\nX-Two: 1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nX-Two: 1\0\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nX-Two: \0 1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nX-Two: 1\r2\r\n\r\n",
            "GET / HTTP/1.0\n\n", "GET / HTTP/1.0\r\n\n", "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nhost: other\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n\0\r\nX: 1\r\n\r\n",
        ])
    func ambiguous(_ head: String) async throws {
        try await serving { server in
            let wire = try Wire(port: server.port)
            try await wire.send(head + "GET /offset HTTP/1.1\r\nHost: h\r\n\r\n")
            let reply = try await wire.reply()
            #expect(reply.status == 400)
            #expect(try await wire.isAtEnd())
        }
    }

    @Test(
        "a header is parsed in any pieces, also a long one",
        arguments: [
            "GET /a?b=c HTTP/1.1\r\nHost: h\r\nX-Two: 1 \r\nCookie: a=b; c=\"d\"\r\nX-Empty:\r\nX-Blank:   \r\n\r\n",
            "GET / HTTP/1.0\r\n\r\n", "\r\nGET / HTTP/1.1\r\nHost:h\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\n"
                + (0..<120).map { "X-\($0): \(String(repeating: "y", count: 100))\r\n" }.joined()
                + "\r\n",
        ])
    func pieces(_ head: String) async throws {
        try await serving { server in
            // Not so many pieces that a busy machine could exceed the time limit of a head.
            for size in [1, 7, 97, 1000, head.utf8.count] where head.utf8.count / size < 200 {
                let wire = try Wire(port: server.port)
                var rest = Array(head.utf8)[...]
                while !rest.isEmpty {
                    try await wire.send(Array(rest.prefix(size)))
                    rest = rest.dropFirst(size)
                }
                #expect(try await wire.reply().status == 200)
            }
        }
    }

    @Test("a HEAD has the headers of its response and no body")
    func head() async throws {
        try await serving { server in
            let wire = try Wire(port: server.port)
            try await wire.send("HEAD /offset HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await wire.reply(isHead: true).headers["upload-offset"] == "7")
            // A body would come before this reply.
            try await wire.send("GET /offset HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await wire.reply().text == "seven")
        }
    }

    @Test("a client with `Expect` is told to continue, or refused before it sends")
    func expect() async throws {
        try await serving { server in
            let wire = try Wire(port: server.port)
            try await wire.send("POST /sink HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
            #expect(try await wire.read(through: "\r\n\r\n").hasPrefix("HTTP/1.1 100"))
            try await wire.send("abc")
            #expect(try await wire.reply().text == "3\n")
            let other = try Wire(port: server.port)
            try await other.send(
                "POST /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 300000000\r\nExpect: 100-continue\r\n\r\n")
            #expect(try await other.read(through: "\r\n").hasPrefix("HTTP/1.1 403"))
        }
    }

    @Test("a sink gets every byte in order, and its end")
    func sink() async throws {
        try await serving { server in
            let wire = try Wire(port: server.port)
            try await wire.send("PATCH /sink HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n")
            try await wire.send(noise(3_000_000))
            #expect(try await wire.reply().text == "3000000\n")
            #expect(service.sink.isComplete == true)
        }
    }

    @Test("a sink is told when its client disconnects")
    func interrupted() async throws {
        try await serving { server in
            let wire = try Wire(port: server.port)
            try await wire.send("PATCH /sink HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n")
            try await wire.send(noise(100_000))
            wire.vanish()
            try await eventually(
                "the sink knows that the body is incomplete", holds: { service.sink.isComplete == false })
            #expect(service.sink.count == 100_000)
        }
    }

    @Test(
        "a refusal within a long body reaches the client as a response, not a reset",
        arguments: ["/sink", "/refuse"])
    func early(_ path: String) async throws {
        try await serving { server in
            service.sink.setLimit(100_000)
            let wire = try Wire(port: server.port)
            try await wire.send("PATCH \(path) HTTP/1.1\r\nHost: h\r\nContent-Length: 300000000\r\n\r\n")
            try await wire.send(noise(1_000_000))
            #expect(try await wire.reply().status == (path == "/sink" ? 507 : 403))
            #expect(try await wire.isAtEnd())
        }
    }

    @Test("a stream arrives chunk by chunk and ends with its source")
    func stream() async throws {
        try await serving { server in
            let wire = try Wire(port: server.port)
            try await wire.send("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n")
            _ = try await wire.read(through: "\r\n\r\n")
            service.feed.yield(Array("one;".utf8))
            _ = try await wire.read(through: "one;")
            let large = noise(200_000)
            service.feed.yield(Array("two;".utf8) + large)
            _ = try await wire.read(through: "two;")
            service.feed.yield(Array("three;".utf8))
            service.feed.finish()
            _ = try await wire.read(through: "three;\r\n0\r\n\r\n")
        }
    }

    @Test("a stream's task ends when its client has gone and something is sent")
    func streamGone() async throws {
        let ended = Mutex(false)
        service.feed.onTermination = { _ in ended.withLock { $0 = true } }
        try await serving { server in
            let wire = try Wire(port: server.port)
            try await wire.send("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n")
            service.feed.yield(Array("one;".utf8))
            _ = try await wire.read(through: "one;")
            wire.vanish()
            try await eventually(
                "the stream has ended",
                holds: {
                    service.feed.yield(Array(": still there?\n".utf8))
                    return ended.withLock { $0 }
                })
        }
    }

    @Test("the server stops during a response, an idle stream and a partial body", arguments: [1, 2])
    func stops(_ threads: Int) async throws {
        // A port that the kernel assigns to no other socket: after the stop, no other test's server answers there.
        let port = try Loopback.freePort()
        let server = try WebServer(.tcp(host: "127.0.0.1", port: port), service: service, threads: threads)
        var wires: [Wire] = []
        for _ in 0..<4 {
            for head in ["GET /gate HTTP/1.1\r\nHost: h\r\n\r\n", "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"] {
                let wire = try Wire(port: server.port)
                try await wire.send(head)
                wires.append(wire)
            }
        }
        _ = try await wires[1].read(through: "\r\n\r\n")
        let half = try Wire(port: server.port)
        try await half.send("PATCH /sink HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nabc")
        try await eventually("the sink has the partial body", holds: { service.sink.count == 3 })
        await server.stop()
        #expect(service.sink.isComplete == false)
        for wire in wires {
            // Bytes in flight may arrive; then the end.
            while try await !wire.isAtEnd() { _ = try await wire.read(count: 1) }
        }
        #expect(throws: SystemError.self) { try Wire(port: server.port) }
    }

    @Test("a slow response delays no other")
    func concurrent() async throws {
        try await serving { server in
            let slow = try Wire(port: server.port)
            try await slow.send("GET /gate HTTP/1.1\r\nHost: h\r\n\r\n")
            let quick = try Wire(port: server.port)
            try await quick.send("GET /offset HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await quick.reply().text == "seven")
            service.opener.yield()
            #expect(try await slow.reply().text == "open\n")
        }
    }

    @Test("a Unix socket has its mode, knows its peer, and is removed with the server")
    func unix() async throws {
        let folder = TemporaryFolder()
        let path = folder.path.appending("control.sock")
        let server = try WebServer(.unix(path, mode: 0o660), service: service, threads: 1)
        #expect(try FileStatus(at: path).mode & 0o777 == 0o660)
        let wire = try Wire(unix: path)
        try await wire.send("GET /peer HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try await wire.reply().text == "\(geteuid()) -\n")
        #expect(throws: WebServerError.self) { try WebServer(.unix(path, mode: 0o660), service: service, threads: 1) }
        await server.stop()
        #expect(try FileStatus.ifPresent(at: path) == nil)
    }

    @Test("a stale Unix socket is replaced, any other file is not")
    func stale() async throws {
        let folder = TemporaryFolder()
        let path = folder.path.appending("stale.sock")
        let number = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.bytes) }
        let bound = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        #expect(bound == 0)
        close(number)
        let server = try WebServer(.unix(path, mode: 0o600), service: service, threads: 1)
        await server.stop()
        try folder.write("file", [1])
        #expect(throws: WebServerError.self) {
            try WebServer(.unix(folder.path.appending("file"), mode: 0o600), service: service, threads: 1)
        }
        #expect(try Files.read(folder.path.appending("file")) == [1])
    }

    @Test("an address in use is reported")
    func taken() async throws {
        try await serving { server in
            let error = #expect(throws: WebServerError.self) {
                try WebServer(.tcp(host: "127.0.0.1", port: server.port), service: service, threads: 1)
            }
            #expect(error?.description == "listen on 127.0.0.1:\(server.port): Address already in use")
        }
    }
}
