import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

@testable import WebServer

/// Accepts requests that ask for it, and answers.
private struct Guarded: WebService {
    var delay = Duration.zero

    func denial(of request: WebRequest) -> WebDenial? {
        request.bearer == Array("yes".utf8) ? nil : WebDenial(.text(401, "no"), delay: delay)
    }
    func plan(_ request: WebRequest) -> BodyPlan { .collect(limit: 1000) }
    func reply(to request: WebRequest, body: ReceivedBody) async -> WebReply { .text(200, request.peer.address ?? "-") }
}

/// Also answers requests for `/public`, without a token.
private struct Open: WebService {
    func denial(of request: WebRequest) -> WebDenial? {
        request.path == "/public" || isKnown(request) ? nil : WebDenial(.text(401, "no"))
    }
    func isKnown(_ request: WebRequest) -> Bool { request.bearer == Array("yes".utf8) }
    func plan(_ request: WebRequest) -> BodyPlan { .collect(limit: 100_000) }
    func reply(to request: WebRequest, body: ReceivedBody) async -> WebReply { .text(200, "-") }
}

/// Accepts requests without a token, and holds the reply to them back.
private struct SlowToStrangers: WebService {
    var delay = Duration.seconds(3600)

    func denial(of request: WebRequest) -> WebDenial? { nil }
    func isKnown(_ request: WebRequest) -> Bool { request.bearer == Array("yes".utf8) }
    func plan(_ request: WebRequest) -> BodyPlan { .collect(limit: 1000) }
    func reply(to request: WebRequest, body: ReceivedBody) async -> WebReply {
        var reply = WebReply.text(isKnown(request) ? 200 : 401, "-")
        if !isKnown(request) { reply.delay = delay }
        return reply
    }
}

/// Answers when the test lets it.
private struct Slow: WebService {
    let gate = AsyncStream<Void>.makeStream()

    func plan(_ request: WebRequest) -> BodyPlan { .collect(limit: 1000) }
    func reply(to request: WebRequest, body: ReceivedBody) async -> WebReply {
        if request.path == "/gate" { for await _ in gate.stream { break } }
        return .text(200, request.peer.address ?? "-")
    }
}

@Suite("Connections of a server", .timeLimit(.minutes(Patience.minutes(1))))
struct ConnectionTests {
    private func serving(
        _ service: any WebService, _ limits: ConnectionLimits, _ body: (WebServer) async throws -> Void
    ) async throws {
        let server = try WebServer(.tcp(host: "127.0.0.1", port: 0), service: service, threads: 1, limits: limits)
        do { try await body(server) } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    private static let good = "GET /a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer yes\r\n\r\n"
    private static let bad = "GET /a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer no\r\n\r\n"

    /// Sends a byte from time to time, and returns when the server has closed the connection.
    private func dribble(_ wire: Wire, _ bytes: String) async throws {
        for byte in bytes.utf8 {
            do { try await wire.send([byte]) } catch { return }
            try await Alarms.shared.sleep(for: .milliseconds(10))
        }
        Issue.record("the server read all bytes")
    }

    @Test("an address that no interface has yet, as before DHCP, is bound; a taken port is an error as before")
    func absentAddress() async throws {
        // For documentation (RFC 5737), so no interface has it.
        let early = try WebServer(.tcp(host: "192.0.2.1", port: 0), service: Guarded(), threads: 1)
        #expect(early.awaitsAddress && early.port > 0)
        #expect(throws: WebServerError.self) {
            try WebServer(.tcp(host: "192.0.2.1", port: early.port), service: Guarded(), threads: 1)
        }
        await early.stop()
        try await serving(Guarded(), ConnectionLimits()) { server in
            #expect(!server.awaitsAddress)
            #expect(throws: WebServerError.self) {
                try WebServer(.tcp(host: "127.0.0.1", port: server.port), service: Guarded(), threads: 1)
            }
        }
    }

    @Test("a header sent byte by byte has a time limit; an authorized client keeps its connection")
    func slowHead() async throws {
        try await serving(Guarded(), ConnectionLimits(headTime: .milliseconds(1500))) { server in
            let kept = try Wire(port: server.port)
            try await kept.send(Self.good)
            #expect(try await kept.reply().status == 200)
            let head = "GET /a HTTP/1.1\r\nHost: h\r\nX: \(String(repeating: "x", count: 6000))"
            try await dribble(try Wire(port: server.port), head)
            // Neither silence nor refused requests keep a connection.
            #expect(try await Wire(port: server.port).isAtEnd())
            let refused = try Wire(port: server.port)
            try await refused.send(Self.bad)
            #expect(try await refused.reply().status == 401)
            #expect(try await refused.isAtEnd())
            try await kept.send(Self.good)
            #expect(try await kept.reply().status == 200)
        }
    }

    @Test("a second header has a time limit too, counted from the end of the idle time")
    func slowSecondHead() async throws {
        let limits = ConnectionLimits(headTime: .milliseconds(1500), idle: .seconds(1))
        try await serving(Guarded(), limits) { server in
            let wire = try Wire(port: server.port)
            try await wire.send(Self.good)
            #expect(try await wire.reply().status == 200)
            try await dribble(wire, "GET /a HTTP/1.1\r\nHost: h\r\nX: \(String(repeating: "x", count: 6000))")
        }
    }

    @Test("unauthorized clients take at most half of the places, the oldest makes room, and authorized ones stay")
    func half() async throws {
        try await serving(Guarded(), ConnectionLimits(connections: 8, headTime: .seconds(600))) { server in
            let kept = try Wire(port: server.port)
            try await kept.send(Self.good)
            #expect(try await kept.reply().status == 200)
            var silent: [Wire] = []
            for _ in 0..<12 {
                let wire = try Wire(port: server.port)
                // Only refused requests get an answer here, which shows that the server knows of the connection.
                try await wire.send(Self.bad)
                #expect(try await wire.reply().status == 401)
                silent.append(wire)
            }
            for wire in silent.prefix(8) { #expect(try await wire.isAtEnd()) }
            for wire in silent.suffix(4) {
                try await wire.send(Self.bad)
                #expect(try await wire.reply().status == 401)
            }
            try await kept.send(Self.good)
            #expect(try await kept.reply().status == 200)
            // A new connection is served.
            let late = try Wire(port: server.port)
            try await late.send(Self.good)
            #expect(try await late.reply().status == 200)
        }
    }

    @Test("clients that only got what is public take at most half of the places, and make room like refused ones")
    func publicPlaces() async throws {
        let open = "GET /public HTTP/1.1\r\nHost: h\r\n\r\n"
        try await serving(Open(), ConnectionLimits(connections: 8, headTime: .seconds(600))) { server in
            let kept = try Wire(port: server.port)
            try await kept.send(Self.good)
            #expect(try await kept.reply().status == 200)
            var strangers: [Wire] = []
            for _ in 0..<12 {
                let wire = try Wire(port: server.port)
                try await wire.send(open)
                #expect(try await wire.reply().status == 200)
                strangers.append(wire)
            }
            for wire in strangers.prefix(8) { #expect(try await wire.isAtEnd()) }
            try await kept.send(Self.good)
            #expect(try await kept.reply().status == 200)
        }
    }

    @Test("a body of a client that is not known has a time limit, however steadily it comes")
    func slowPublicBody() async throws {
        try await serving(Open(), ConnectionLimits(headTime: .milliseconds(1500))) { server in
            let wire = try Wire(port: server.port)
            try await dribble(
                wire,
                "POST /public HTTP/1.1\r\nHost: h\r\nContent-Length: 6000\r\n\r\n" + String(repeating: "x", count: 6000)
            )
            // After a request it may send another one within the time.
            let again = try Wire(port: server.port)
            for _ in 0..<2 {
                try await again.send("GET /public HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try await again.reply().status == 200)
            }
            #expect(try await again.isAtEnd())
        }
    }

    /// Two ends of one connection; the server's end closes with the value.
    private final class Pair {
        let (near, far): (CInt, CInt)
        init() {
            var both: [CInt] = [0, 0]
            socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &both)
            (near, far) = (both[0], both[1])
        }
        deinit {
            close(near)
            close(far)
        }
        /// Whether the server has shut it down.
        var isShut: Bool {
            var byte: UInt8 = 0
            return recv(far, &byte, 1, CInt(MSG_DONTWAIT)) == 0
        }
    }

    /// Numbers in place of the addresses of libmicrohttpd's connections.
    private func id(_ number: Int) throws -> Connections.ID {
        Connections.ID(try #require(OpaquePointer(bitPattern: number)))
    }

    @Test("an address has a limit, where its oldest client without a token makes room; loopback and proxies have none")
    func perAddress() throws {
        let proxy = try #require(IPSubnet("10.0.0.0/8"))
        let connections = Connections(
            ConnectionLimits(connections: 100, perAddress: 3, headTime: .seconds(600), trustedProxies: [proxy]))
        defer { connections.end() }
        var number = 0
        func open(_ address: String?) throws -> (Connections.ID, Pair) {
            number += 1
            let pair = Pair()
            connections.opened(try id(number), socket: pair.near, peer: WebPeer(address: address))
            return (try id(number), pair)
        }
        let first = try (0..<3).map { _ in try open("192.0.2.1") }
        connections.recordAccepted(first[0].0)
        #expect(first.allSatisfy { !$0.1.isShut })
        let fourth = try open("192.0.2.1")
        #expect(first.map(\.1.isShut) == [false, true, false] && !fourth.1.isShut)
        for (id, _) in [first[2], fourth] { connections.recordAccepted(id) }
        // All were accepted: a new connection has to wait.
        let fifth = try open("::ffff:192.0.2.1")
        #expect(fifth.1.isShut && first.map(\.1.isShut) == [false, true, false])
        connections.closed(first[0].0)
        let sixth = try open("192.0.2.1")
        #expect(!sixth.1.isShut)
        // Other addresses, a network of IPv6, and a peer that is not counted.
        let v6 = try (1...4).map { try open("2001:db8:0:1::\($0)") }
        #expect(v6.map(\.1.isShut) == [true, false, false, false])
        for address in ["127.0.0.1", "::1", "10.1.2.3", nil] {
            let many = try (0..<8).map { _ in try open(address) }
            #expect(many.allSatisfy { !$0.1.isShut })
        }
    }

    @Test(
        "a client behind a trusted proxy is the one that the last untrusted hop names",
        arguments: [
            ("127.0.0.1", "203.0.113.9", "203.0.113.9"), ("127.0.0.1", "1.2.3.4, 203.0.113.9", "203.0.113.9"),
            ("127.0.0.1", "1.2.3.4, 203.0.113.9, 10.0.0.7", "203.0.113.9"),
            ("127.0.0.1", "[2001:db8::1]:99", "2001:db8::1"),
            ("127.0.0.1", "203.0.113.9:8080", "203.0.113.9"), ("127.0.0.1", "1.2.3.4, unknown", "127.0.0.1"),
            ("127.0.0.1", nil, "127.0.0.1"), ("192.0.2.5", "203.0.113.9", "192.0.2.5"),
            ("10.0.0.1", "10.0.0.2", "10.0.0.2"),
            ("127.0.0.1", "", "127.0.0.1"),
        ] as [(String, String?, String)])
    func sender(_ peer: String, _ forwardedFor: String?, _ sender: String) throws {
        let proxies = try ["127.0.0.1", "10.0.0.0/8"].map { try #require(IPSubnet($0)) }
        let limits = ConnectionLimits(trustedProxies: proxies)
        #expect(limits.sender(peer: IPAddress(peer), forwardedFor: forwardedFor)?.description == sender)
    }

    @Test("behind a trusted proxy, the address that it names counts and is reported")
    func forwarded() async throws {
        let proxy = try #require(IPSubnet("127.0.0.1"))
        let service = Slow()
        try await serving(service, ConnectionLimits(perAddress: 1, trustedProxies: [proxy])) { server in
            func ask(_ path: String, for address: String) async throws -> Wire {
                let wire = try Wire(port: server.port)
                try await wire.send("GET \(path) HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: \(address)\r\n\r\n")
                return wire
            }
            let first = try await ask("/gate", for: "203.0.113.9")
            try await eventually("the first request runs, and a second one is refused", every: .milliseconds(10)) {
                try await ask("/a", for: "203.0.113.9").reply().status == 429 ? () : nil
            }
            #expect(try await ask("/a", for: "203.0.113.10").reply().text == "203.0.113.10\n")
            service.gate.continuation.yield()
            #expect(try await first.reply().text == "203.0.113.9\n")
            try await eventually("the first request has freed its place", every: .milliseconds(10)) {
                try await ask("/a", for: "203.0.113.9").reply().status == 200 ? () : nil
            }
        }
    }

    @Test("only the response to a wrong token is delayed")
    func delay() async throws {
        try await serving(Guarded(delay: .seconds(3600)), ConnectionLimits()) { server in
            let wrong = try Wire(port: server.port)
            try await wrong.send(Self.bad)
            let right = try Wire(port: server.port)
            for _ in 0..<3 {
                try await right.send(Self.good)
                #expect(try await right.reply().status == 200)
            }
            await server.stop()
            // The stop ends the wait; the reply may or may not arrive.
            _ = try? await wrong.reply()
            #expect(try await wrong.isAtEnd())
        }
    }

    @Test("a client waiting for the response to a wrong token makes room for others at once")
    func heldMakesRoom() async throws {
        let limits = ConnectionLimits(connections: 8, headTime: .seconds(600))
        try await serving(Guarded(delay: .seconds(3600)), limits) { server in
            var wrong: [Wire] = []
            for _ in 0..<20 {
                let wire = try Wire(port: server.port)
                try await wire.send(Self.bad)
                wrong.append(wire)
                // One after the other, so that the server has seen each.
                let right = try Wire(port: server.port)
                try await right.send(Self.good)
                #expect(try await right.reply().status == 200)
            }
            for wire in wrong.prefix(12) { #expect(try await wire.isAtEnd()) }
        }
    }

    @Test("a client waiting for a delayed reply of the service makes room for others at once")
    func delayedMakesRoom() async throws {
        let limits = ConnectionLimits(connections: 8, headTime: .seconds(600))
        try await serving(SlowToStrangers(), limits) { server in
            var wrong: [Wire] = []
            for _ in 0..<20 {
                let wire = try Wire(port: server.port)
                try await wire.send(Self.bad)
                wrong.append(wire)
                let right = try Wire(port: server.port)
                try await right.send(Self.good)
                #expect(try await right.reply().status == 200)
            }
            for wire in wrong.prefix(12) { #expect(try await wire.isAtEnd()) }
        }
        try await serving(SlowToStrangers(delay: .milliseconds(50)), limits) { server in
            let wire = try Wire(port: server.port)
            for _ in 0..<2 {
                let began = ContinuousClock.now
                try await wire.send(Self.bad)
                #expect(try await wire.reply().status == 401)
                #expect(began.duration(to: .now) >= .milliseconds(50))
            }
        }
    }

    @Test("behind a trusted proxy, clients without a token take no place of one with a token at the same address")
    func sharedAddress() async throws {
        let proxy = try #require(IPSubnet("127.0.0.1"))
        let limits = ConnectionLimits(perAddress: 1, trustedProxies: [proxy])
        try await serving(Guarded(delay: .seconds(3600)), limits) { server in
            func ask(_ token: String) async throws -> Wire {
                let wire = try Wire(port: server.port)
                try await wire.send(
                    "GET /a HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 203.0.113.9\r\nAuthorization: Bearer \(token)\r\n\r\n"
                )
                return wire
            }
            let held = try await ask("no")
            try await eventually("a second client without a token is refused", every: .milliseconds(10)) {
                try await ask("no").reply().status == 429 ? () : nil
            }
            for _ in 0..<3 { #expect(try await ask("yes").reply().status == 200) }
            withExtendedLifetime(held) {}
        }
    }

    @Test(
        "a delayed response arrives whatever its request",
        arguments: [
            "\r\n", "Content-Length: 5\r\n\r\nabcde", "Content-Length: 300000\r\nExpect: 100-continue\r\n\r\n",
            "Content-Length: 300000\r\n\r\n" + String(repeating: "x", count: 200_000),
            "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ])
    func held(_ rest: String) async throws {
        try await serving(Guarded(delay: .milliseconds(50)), ConnectionLimits()) { server in
            let wire = try Wire(port: server.port)
            let clock = ContinuousClock()
            let began = clock.now
            try await wire.send("POST /a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer no\r\n" + rest)
            #expect(try await wire.reply().status == 401)
            #expect(began.duration(to: clock.now) >= .milliseconds(50))
        }
    }
}
