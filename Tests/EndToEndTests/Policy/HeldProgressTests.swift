import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// The progress of held uploads, as people see it.
@Suite("Progress of held uploads", .timeLimit(.minutes(Patience.minutes(2))))
struct HeldProgressTests {
    private struct Page: Decodable {
        struct Upload: Decodable {
            struct Progress: Decodable { let sent, acked, total: Int64 }
            let id, state: String
            let progress: Progress
        }
        let uploads: [Upload]
    }

    private struct Status: Decodable {
        let bytes_done: Int64
        let rate: Int64
    }

    private func read<Value: Decodable>(
        _ type: Value.Type, _ verb: String, _ words: [String] = [], of fixture: DaemonFixture
    ) async throws -> Value? {
        guard let text = try await fixture.runVerb(verb, words + ["--json"]) else { return nil }
        return try JSONDecoder().decode(type, from: Data(text.utf8))
    }

    @Test(
        "progress stays at its value while paused, in every view and after a restart, and continues at its own rate")
    func paused() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        // One request for all of it: no offset is acknowledged before its end.
        fixture.policyKeys = ["bandwidth: 2 MB/s"]
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 0, size: 24_000_000, relative: "clip.mp4"))
        func upload() async throws -> Page.Upload? { try await read(Page.self, "list", of: fixture)?.uploads.first }
        try await eventually("some bytes have been sent") { try await upload().map { $0.progress.sent > 3_000_000 } }
        _ = try await eventually("the daemon has paused") { try await fixture.runVerb("pause") }
        let held = try await eventually("the upload is paused") {
            try await upload().flatMap { $0.state == "waiting" ? $0 : nil }
        }
        #expect(held.progress.sent > 3_000_000)
        func check() async throws {
            #expect(try await upload()?.progress.sent == held.progress.sent)
            #expect(try await read(Status.self, "status", of: fixture)?.bytes_done == held.progress.sent)
        }
        try await check()
        _ = try await fixture.stopDaemon()
        try fixture.startDaemon()
        _ = try await eventually("the daemon lists the upload again") { try await upload() }
        try await check()
        _ = try await eventually("the daemon has resumed") { try await fixture.runVerb("resume") }
        var most: Int64 = 0
        try await eventually("the upload is complete", within: .seconds(30), every: .milliseconds(20)) {
            most = max(most, try await read(Status.self, "status", of: fixture)?.rate ?? 0)
            return try await fixture.status()?.counts.completed == 1
        }
        #expect(most > 0 && most < 3_000_000, "\(most)")
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait()
        try await outcome.check()
    }
}
