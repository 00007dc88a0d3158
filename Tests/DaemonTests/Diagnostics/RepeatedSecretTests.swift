import API
import Core
import Credentials
import Destinations
import Linux
import TestKit
import Testing
import Transport

@testable import Daemon

/// A server that repeats secrets in the headers that traces and checks show.
@Suite("Secrets that a server repeats", .timeLimit(.minutes(Patience.minutes(1))))
struct RepeatedSecretTests {
    private static let token = "PLANTED-token"
    private static let header = "PLANTED-header"
    private static let key = "PLANTED-key"

    /// What a check of a destination shows of it.
    private struct Shown {
        let result: CheckResult
        let steps: [CheckStep]
        /// The trace of its requests.
        let entries: [TraceEntry]
    }

    private func check(_ type: String, _ values: [String: SettingValue]) async throws -> Shown {
        let clocks = SystemClocks()
        let traces = RequestTraces(clocks: clocks)
        let kind = try #require(DestinationTable.builtIn.first { $0.type.name == type })
        let destination = try kind.make(
            values,
            DestinationTools(
                transport: PermittedTransport(
                    TracedTransport(transport: Transport(), destination: "nas", traces: traces, clocks: clocks)),
                secrets: SecretReader(), clocks: clocks, name: "nas", log: { _ in }))
        let begun = try traces.follow("nas", TraceRequest(seconds: 60))
        let witness = CheckWitness(clocks: clocks)
        let result = await destination.check(context: witness.witnessing(.open))
        return Shown(
            result: result, steps: await witness.steps(result),
            entries: try traces.follow("nas", TraceRequest(after: begun.next)).entries)
    }

    @Test("neither a trace nor a check shows them, in any header")
    func hidden() async throws {
        let all = "\(Self.token) \(Self.header) \(Self.key)"
        // The end of the part of `Server` that a check shows is inside a secret.
        let cut = String(repeating: "x", count: 75) + Self.token
        let names = [
            "Via", "Retry-After", "Content-Type", "Cache-Control", "Upload-Expires", "Vary", "Set-Cookie",
            "X-\(Self.token)",
        ]
        let server = try FakeServer { exchange in
            exchange.reply(
                204,
                [("Tus-Version", "1.0.0,\(all)"), ("Tus-Extension", "creation,\(all)"), ("Server", cut)]
                    + names.map { ($0, "a \(all)") })
        }
        let shown = try await check(
            "tus",
            [
                "url": .text("\(server.url)/files?key=\(Self.key)"), "token": .secret(.literal(Self.token)),
                "http.headers": .map(["X-Site": .literal(Self.header)]),
            ])
        #expect(shown.steps.contains { $0.step == .server && $0.detail.contains("***") }, "\(shown.steps)")
        let lines = try #require(shown.entries.first?.answer).headers
        #expect(lines.contains("Via: a *** *** ***") && lines.contains { $0.hasPrefix("X-***: (") }, "\(lines)")
        #expect(!"\(shown)".contains("PLANTED"), "\(shown)")
    }

    @Test("neither a trace nor a check shows a part of a header that a server repeats alone")
    func parts() async throws {
        let server = try FakeServer { exchange in
            exchange.reply(403, [("Server", "PLANTED-sid"), ("Via", "1.1 PLANTED-token")], "PLANTED-sid")
        }
        let shown = try await check(
            "chunked-form",
            [
                "url": .text("\(server.url)/up"), "preset": .text("dropzone"),
                "http.headers": .map(["Cookie": .literal("a=1; sid=PLANTED-sid")]),
                "http.auth": .text("bearer"), "http.token": .secret(.literal("PLANTED-token")),
            ])
        let lines = try #require(shown.entries.first?.answer).headers
        #expect(lines.contains("Server: ***") && lines.contains("Via: 1.1 ***"), "\(lines)")
        #expect(!"\(shown)".contains("PLANTED"), "\(shown)")
    }
}
