import Core
import Synchronization
import TestKit
import Testing
import WebServer

/// Reads bodies as they arrive.
private final class Reader: WebService {
    let read = Mutex<[UInt8]>([])
    /// Whether the last body was complete; `nil` while it arrives.
    let isWhole = Mutex<Bool?>(nil)
    /// Opens `/gate`, which reads nothing before that.
    let (gate, opener) = AsyncStream<Void>.makeStream()

    func plan(_ request: WebRequest) -> BodyPlan {
        request.path == "/plain" ? .collect(limit: 10) : .stream(timeout: 0)
    }

    func reply(to request: WebRequest, body: ReceivedBody) async -> WebReply {
        guard case .stream(let stream) = body else { return .text(200, "plain") }
        if request.path == "/no" { return .text(403, "not here") }
        if request.path == "/gate" { for await _ in gate { break } }
        do {
            while let piece = try await stream.next() {
                let count = read.withLock { read in
                    read += piece
                    return read.count
                }
                if request.path == "/half", count >= 100_000 { return .text(507, "full") }
            }
            isWhole.withLock { $0 = true }
            return .text(200, "\(read.withLock { $0.count })")
        } catch {
            isWhole.withLock { $0 = false }
            return .text(400, "cut")
        }
    }
}

@Suite("Streamed request bodies", .timeLimit(.minutes(Patience.minutes(1))))
struct StreamedBodyTests {
    private let service = Reader()

    private func serving(_ body: (WebServer) async throws -> Void) async throws {
        let server = try WebServer(.tcp(host: "127.0.0.1", port: 0), service: service, threads: 1)
        do { try await body(server) } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    private func head(_ path: String, _ framing: String) -> String {
        "POST \(path) HTTP/1.1\r\nHost: h\r\n\(framing)\r\n\r\n"
    }

    @Test(
        "every byte arrives in order, with a known or unknown length", arguments: [0, 1, 5_000_000],
        [true, false])
    func whole(_ size: Int, _ isChunked: Bool) async throws {
        try await serving { server in
            let wire = try Wire(port: server.port)
            let content = noise(size)
            if isChunked {
                try await wire.send(head("/read", "Transfer-Encoding: chunked"))
                var rest = content[...]
                while !rest.isEmpty {
                    let piece = rest.prefix(70_001)
                    rest = rest.dropFirst(piece.count)
                    try await wire.send("\(String(piece.count, radix: 16))\r\n")
                    try await wire.send(Array(piece))
                    try await wire.send("\r\n")
                }
                try await wire.send("0\r\n\r\n")
            } else {
                try await wire.send(head("/read", "Content-Length: \(size)"))
                try await wire.send(content)
            }
            #expect(try await wire.reply().text == "\(size)\n")
            #expect(service.read.withLock { $0 } == content)
            if isChunked {
                #expect(try await wire.isAtEnd())
                return
            }
            // The connection stays usable.
            try await wire.send("GET /plain HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await wire.reply().text == "plain\n")
        }
    }

    @Test("a sender faster than the reader is slowed down, and no other is")
    func slow() async throws {
        try await serving { server in
            let wire = try Wire(port: server.port)
            let isSent = Atomic(false)
            let size = 64 << 20
            async let sending: Void = {
                try await wire.send(head("/gate", "Content-Length: \(size)"))
                try await wire.send([UInt8](repeating: 7, count: size))
                isSent.store(true, ordering: .releasing)
            }()
            for _ in 0..<20 {
                let other = try Wire(port: server.port)
                try await other.send("GET /plain HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try await other.reply().text == "plain\n")
            }
            // The kernel does not hold as much between two sockets, so the rest would be in our memory.
            let isOver = isSent.load(ordering: .acquiring)
            #expect(!isOver)
            service.opener.yield()
            try await sending
            #expect(try await wire.reply().text == "\(size)\n")
        }
    }

    @Test("a response before the end reaches the client within its body", arguments: ["/no", "/half"])
    func early(_ path: String) async throws {
        try await serving { server in
            let wire = try Wire(port: server.port)
            try await wire.send(head(path, "Content-Length: 300000000"))
            try await wire.send(noise(1_000_000))
            #expect(try await wire.reply().status == (path == "/half" ? 507 : 403))
            #expect(try await wire.isAtEnd())
        }
    }

    @Test("a client that disconnects within the body leaves an incomplete body", arguments: [true, false])
    func gone(_ isChunked: Bool) async throws {
        try await serving { server in
            let wire = try Wire(port: server.port)
            try await wire.send(head("/read", isChunked ? "Transfer-Encoding: chunked" : "Content-Length: 3000000"))
            try await wire.send(isChunked ? "186a0\r\n" : "")
            try await wire.send(noise(100_000))
            try await eventually("the service has read bytes") { service.read.withLock { !$0.isEmpty } }
            wire.vanish()
            try await eventually(
                "the service knows that the body is incomplete", holds: { service.isWhole.withLock { $0 } == false })
        }
    }

    @Test("a stop ends slow bodies and bodies that wait for space", arguments: ["/read", "/gate"])
    func stops(_ path: String) async throws {
        let wires = try await {
            var wires: [Wire] = []
            try await serving { server in
                let wire = try Wire(port: server.port)
                try await wire.send(head(path, "Content-Length: 30000000"))
                try await wire.send(noise(path == "/gate" ? 3_000_000 : 1000))
                if path == "/read" {
                    try await eventually("the service has read bytes") { service.read.withLock { !$0.isEmpty } }
                }
                wires.append(wire)
            }
            return wires
        }()
        #expect(service.isWhole.withLock { $0 } != true)
        #expect(wires.count == 1)
    }
}
