import Core
import Destinations
import Linux
import Synchronization
import TestKit
import TestTraits
import Testing
import Transport

/// The time after which a server drops an unfinished upload (tus 1.0, "Expiration").
@Suite("tus: uploads that expire", .timeLimit(.minutes(Patience.minutes(2))))
struct TusExpiryTests {
    let script = ScriptedTusServer()
    private static let noon = WallTime(milliseconds: 1_795_176_000_000)

    private func fields(_ journey: UploadScenario) -> [WallTime?] {
        journey.ledger.book.withLock { $0.checkpoints.map(\.expires) }
    }

    @Test("each answer may move the time; a form that is not that of HTTP changes nothing")
    func moves() async throws {
        let clocks = ManualClocks()
        let now = WallTime(milliseconds: clocks.wall().milliseconds / 1000 * 1000)
        let times = [
            "POST": httpDate(now.advanced(by: .seconds(100))), "PATCH": httpDate(now.advanced(by: .seconds(200))),
            "HEAD": "2026-11-29T12:00:00",
        ]
        let server = try expiring { times[$0] }
        let journey = try UploadScenario(server.url + "/files", chunk: 600, clocks: clocks)
        _ = try await journey.attempt()
        #expect(fields(journey).compactMap(\.self).first == now.advanced(by: .seconds(100)))
        #expect(fields(journey).last == now.advanced(by: .seconds(200)))
    }

    @Test("a server's time that differs from ours moves its date")
    func otherClock() async throws {
        let server = try expiring(date: httpDate(Self.noon)) { _ in httpDate(Self.noon.advanced(by: .seconds(60))) }
        let clocks = ManualClocks()
        let journey = try UploadScenario(server.url + "/files", clocks: clocks)
        _ = try await journey.attempt()
        #expect(fields(journey).last == clocks.wall().advanced(by: .seconds(60)))
    }

    /// A tus server whose answers have these dates.
    private func expiring(
        date: String? = nil, _ expires: @escaping @Sendable (String) -> String?
    ) throws -> FakeServer {
        try FakeServer { [script] exchange in
            var more = date.map { [("Date", $0)] } ?? []
            if let time = expires(exchange.method) { more.append(("Upload-Expires", time)) }
            switch exchange.method {
            case "POST":
                script.state.withLock { state in
                    state.length = exchange.header("upload-length").flatMap { Int64($0) } ?? -1
                    state.exists = true
                }
                exchange.reply(201, [("Location", "/u"), ("Tus-Resumable", "1.0.0")] + more)
            case "PATCH":
                let body = exchange.body()
                let held = script.state.withLock { state in
                    state.held += body
                    return state.held.count
                }
                exchange.reply(204, [("Upload-Offset", "\(held)")] + more)
            case "HEAD":
                let (held, length) = script.state.withLock { ($0.held.count, $0.length) }
                exchange.reply(200, [("Upload-Offset", "\(held)"), ("Upload-Length", "\(length)")] + more)
            default: script.serve(exchange)
            }
        }
    }

    @Test("of several parts, the one that is dropped first counts")
    func sections() async throws {
        let parts = ConcatenatingServer()
        let clocks = ManualClocks()
        let now = WallTime(milliseconds: clocks.wall().milliseconds / 1000 * 1000)
        parts.state.withLock { state in
            state.expires = [50, 90].map { httpDate(now.advanced(by: .seconds($0))) }
        }
        let server = try FakeServer { exchange in
            if exchange.header("upload-concat")?.hasPrefix("final") == true { return exchange.reply(503) }
            parts.serve(exchange)
        }
        let journey = try UploadScenario(
            server.url + "/files", size: 17 << 20, values: ["parallel": .whole(2)], clocks: clocks)
        _ = try await journey.failedAttempt()
        #expect(journey.ledger.last?.expires == now.advanced(by: .seconds(50)))
    }

    @Test("an upload that has expired is asked for, and begun again", .needsPackages)
    func expired() async throws {
        let server = try await TusProcess.faulty(["PATCH=cut:300", "--expiry=1"])
        let journey = try UploadScenario(server.url, size: 1000, chunk: 400)
        _ = try await journey.failedAttempt()
        let checkpoint = try #require(journey.ledger.last)
        let end = try #require(checkpoint.expires)
        #expect(abs(end.milliseconds - SystemClocks().wall().milliseconds) < 30_000)
        let url = try #require(checkpoint.fields["url"])
        try await eventually("the upload has expired", every: .milliseconds(50)) {
            let request = Request("HEAD", url, headers: [("Tus-Resumable", "1.0.0")])
            return try await Transport().send(request).status == 410
        }
        let object = try await journey.attempt()
        #expect(object.verifiedBy == "offset" && object.warnings == [])
        #expect(try server.held.contains(journey.content))
        #expect(try server.requests.filter { $0 == "POST" }.count == 2)
    }
}
