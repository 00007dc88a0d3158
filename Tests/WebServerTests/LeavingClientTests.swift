import Core
import Linux
import Synchronization
import TestKit
import Testing
import WebServer

/// Works on a request until its client has left.
private final class Patient: WebService {
    enum End { case none, clientLeft, stopped }

    private let state = Mutex((hasBegun: false, end: End.none))
    var hasBegun: Bool { state.withLock(\.hasBegun) }
    var end: End { state.withLock(\.end) }

    func plan(_ request: WebRequest) -> BodyPlan { .collect(limit: 1000) }

    func reply(to request: WebRequest, body: ReceivedBody) async -> WebReply {
        if request.path == "/short" { return .text(200, "\(request.clientHasLeft())") }
        state.withLock { $0.hasBegun = true }
        while !Task.isCancelled {
            if request.clientHasLeft() {
                state.withLock { $0.end = .clientLeft }
                return .text(200, "unread")
            }
            try? await Task.sleep(for: .milliseconds(5))
        }
        state.withLock { $0.end = .stopped }
        return .text(503, "stopped")
    }
}

@Suite("Clients that leave", .timeLimit(.minutes(Patience.minutes(1))))
struct LeavingClientTests {
    private let service = Patient()
    private let folder = TemporaryFolder()

    /// A connection to a server on a Unix socket or on TCP.
    private func serving(onSocket: Bool, _ body: (WebServer, () throws -> Wire) async throws -> Void) async throws {
        let path = folder.path.appending("server.sock")
        let server = try WebServer(
            onSocket ? .unix(path, mode: 0o600) : .tcp(host: "127.0.0.1", port: 0), service: service, threads: 1)
        do { try await body(server) { try onSocket ? Wire(unix: path) : Wire(port: server.port) } } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    @Test("work on a request learns that its client has left, on TCP and on a Unix socket", arguments: [true, false])
    func leaves(_ onSocket: Bool) async throws {
        try await serving(onSocket: onSocket) { server, connect in
            let stays = try connect()
            try await stays.send("GET /short HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await stays.reply().text == "false\n")
            let wire = try connect()
            try await wire.send("GET /long HTTP/1.1\r\nHost: h\r\n\r\n")
            try await eventually("the work has begun") { service.hasBegun }
            #expect(service.end == .none)
            wire.vanish()
            try await eventually("the work has ended") { service.end == .clientLeft }
            try await stays.send("GET /short HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await stays.reply().text == "false\n")
        }
    }

    @Test("when the server stops, the work ends too")
    func stops() async throws {
        let path = folder.path.appending("server.sock")
        let server = try WebServer(.unix(path, mode: 0o600), service: service, threads: 1)
        let wire = try Wire(unix: path)
        try await wire.send("GET /long HTTP/1.1\r\nHost: h\r\n\r\n")
        try await eventually("the work has begun") { service.hasBegun }
        await server.stop()
        #expect(service.end != .none)
    }
}
