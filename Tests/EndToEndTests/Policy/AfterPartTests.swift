import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// `sluice pause --after-part`, from the built program.
@Suite("Pause after the running part", .timeLimit(.minutes(Patience.minutes(2))))
struct AfterPartTests {
    private struct Page: Decodable {
        struct Upload: Decodable {
            struct Progress: Decodable { let sent, acked, total: Int64 }
            struct Hold: Decodable { let kind: String }
            let id, state: String
            let progress: Progress
            let holds: [Hold]
        }
        let uploads: [Upload]
    }

    private static let chunk: Int64 = 1 << 20

    @Test(
        "the running request is completed, no byte is sent twice, and a kill in between loses neither hold nor byte"
    )
    func behindChunk() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.destinationKeys = ", chunk_size: 1 MiB"
        // Half a second for each request; an instrumented daemon needs longer for each command in between.
        fixture.policyKeys = ["bandwidth: \(Setting.isInstrumented ? 200 : 2000) kB/s"]
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 0, size: 12_000_000, relative: "clip.mp4"))
        func upload() async throws -> Page.Upload? {
            guard let text = try await fixture.runVerb("list", ["--json"]) else { return nil }
            return try JSONDecoder().decode(Page.self, from: Data(text.utf8)).uploads.first
        }
        func sends(more bytes: Int64) async throws -> Page.Upload {
            try await eventually("a request is in progress", within: .seconds(30), every: .milliseconds(20)) {
                try await upload().flatMap { one in
                    let (sent, acked) = (one.progress.sent, one.progress.acked)
                    return acked > bytes && sent > acked + 50_000 && sent < acked + Self.chunk / 2 ? one : nil
                }
            }
        }
        func isPaused(since earlier: Page.Upload, by kind: String) async throws -> Page.Upload {
            let held = try await eventually("the upload is paused", within: .seconds(30)) {
                try await upload().flatMap { $0.state == "waiting" ? $0 : nil }
            }
            #expect(held.holds.map(\.kind) == [kind])
            #expect(held.progress.sent == held.progress.acked, "all sent bytes have been acknowledged")
            #expect(held.progress.acked % Self.chunk == 0 && held.progress.acked > earlier.progress.acked)
            #expect(held.progress.acked < held.progress.total)
            return held
        }
        var going = try await sends(more: 0)
        let said = try #require(try await fixture.runVerb("pause", ["--after-part", going.id]))
        #expect(said.hasPrefix("paused \(going.id)"), "\(said)")
        var held = try await isPaused(since: going, by: "operator")
        _ = try await fixture.runVerb("resume", [going.id])

        going = try await sends(more: held.progress.acked)
        _ = try #require(try await fixture.runVerb("pause", ["--after-part"]))
        held = try await isPaused(since: going, by: "global")
        _ = try await fixture.runVerb("resume")

        going = try await sends(more: held.progress.acked)
        _ = try #require(try await fixture.runVerb("pause", ["--after-part", going.id]))
        fixture.killDaemon()
        try fixture.startDaemon()
        let again = try await eventually("the daemon is back and holds the upload") {
            try await upload().flatMap { $0.state == "waiting" ? $0 : nil }
        }
        #expect(again.holds.map(\.kind) == ["operator"] && again.progress.acked >= going.progress.acked)
        _ = try await fixture.runVerb("resume", [going.id])
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait()
        try await outcome.check()
    }
}
