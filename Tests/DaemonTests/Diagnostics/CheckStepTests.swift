import API
import Core
import Credentials
import Destinations
import Glibc
import Linux
import TestKit
import Testing
import Transport

@testable import Daemon

/// A transport that waits a second for a connection.
private struct Impatient: Transporting {
    let transport = Transport()

    func send(_ request: Request) async throws(TransportError) -> Response {
        var request = request
        request.limits.connect = .seconds(1)
        return try await transport.send(request)
    }
}

/// Which step of a check fails.
@Suite("Steps of a check", .timeLimit(.minutes(Patience.minutes(1))))
struct CheckStepTests {
    private func steps(_ values: [String: SettingValue]) async throws -> [CheckStep] {
        let clocks = SystemClocks()
        let kind = try #require(DestinationTable.builtIn.first { $0.type.name == "tus" })
        let destination = try kind.make(
            values,
            DestinationTools(
                transport: PermittedTransport(Impatient()), secrets: SecretReader(), clocks: clocks, name: "nas",
                log: { _ in }))
        let witness = CheckWitness(clocks: clocks)
        let result = await destination.check(
            context: witness.witnessing(.open))
        #expect(result.verdict == .failed, "\(result)")
        return await witness.steps(result)
    }

    @Test("a server that accepts the connection and is silent in TLS fails at TLS, and the route to it is there")
    func silent() async throws {
        // The kernel accepts connections to it.
        let loopback = try Loopback()
        defer { close(loopback.descriptor) }
        let steps = try await steps(["url": .text("https://127.0.0.1:\(loopback.port)/files")])
        #expect(steps.map(\.step) == [.route, .tls], "\(steps)")
        #expect(steps.map(\.verdict) == [.ok, .failed], "\(steps)")
        #expect(steps.last?.detail.contains("TCP is connected, and TLS does not answer") == true, "\(steps)")
    }

    @Test("a proxy that answers in place of the server fails at the route, and is named")
    func proxy() async throws {
        let proxy = try FakeServer { $0.reply(403, [("Server", "tinyproxy/1.11.1"), ("Content-Type", "text/html")]) }
        let steps = try await steps([
            "url": .text("http://192.0.2.7/files"), "http.proxy": .text("http://127.0.0.1:\(proxy.port)"),
        ])
        #expect(steps.map(\.step) == [.route] && steps.map(\.verdict) == [.failed], "\(steps)")
        let words = "the proxy 127.0.0.1:\(proxy.port), as `http.proxy` says, answered 403"
        #expect(steps.last?.detail.contains(words) == true, "\(steps)")
    }
}
