import Core
import FoundationEssentials
import Glibc
import Linux
import TestKit
import TestTraits
import Testing

/// SIGKILL at random moments while several parts of each file are sent at the same time to a third-party tus server.
@Suite("Kills while parts of a file are sent to tus", .needsPackages, .serialized)
struct SectionCrashTests {
    static let rounds = Tier.onlyInFull(Tier.isLong ? Array(1...20) : [1, 2])

    @Test(
        "every file is at the server once and whole, or Sluice says that it may be there twice",
        .timeLimit(.minutes(Patience.minutes(5))), arguments: rounds)
    func survives(_ round: Int) async throws {
        let seed = Setting.seed &+ UInt64(round)
        var dice = Dice(seed: seed)
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let port = try Loopback.freePort()
        let store = fixture.folder.path.appending("store")
        try Files.makeFolders(store)
        fixture.destination = "http://127.0.0.1:\(port)/files"
        fixture.destinationKeys = ", parallel: 3, chunk_size: 1 MiB"
        fixture.policyKeys = ["bandwidth: 20 MB/s"]
        var server = try await startServer(port: port, store: store)
        defer { server.end(with: SIGKILL) }  // before the fixture's folder is removed
        let camera = Camera(fixture, dice: Dice(seed: seed))
        for number in 0..<4 {
            let size = number == 0 ? 300_000 : (16 << 20) + number * 1_500_001
            try camera.drop(Clip(number: number, size: size, relative: FilePath("clip \(number).mp4")))
        }
        try fixture.startDaemon()
        do {
            for _ in 0..<6 {
                // The time is random on purpose, so that the kill meets files in any state.
                try await Task.sleep(for: .milliseconds(Int.random(in: 100...1500, using: &dice)))
                if Int.random(in: 0..<3, using: &dice) == 0 {
                    server.end(with: SIGKILL)
                    server = try await startServer(port: port, store: store)
                } else {
                    fixture.killDaemon()
                    try fixture.startDaemon()
                }
            }
            try await eventually("every source is released", within: .seconds(90), every: .milliseconds(200)) {
                if try Outcome.files(in: fixture.drop, hidden: true).isEmpty { return true }
                // Killed twice in the request that joins its parts.
                for upload in try await uploads(fixture) where upload.error?.code == "outcome_unknown" {
                    _ = try await fixture.runVerb("retry", [upload.id])
                }
                return false
            }
        } catch { Issue.record(error, "seed \(seed): \(fixture.lastWords())") }
        let files = store.appending("up")
        let contents = try Files.names(in: files).map { try Files.read(files.appending($0), limit: 64 << 20) }
        let told = try await uploads(fixture)
        for clip in camera.clips {
            let count = contents.count { $0 == clip.content }
            let isDoubted = told.contains { $0.name == clip.relative.display && $0.tellsOfDoubt }
            #expect(count == 1 || count == 2 && isDoubted, "\(clip.relative): \(count), seed \(seed)")
        }
        #expect(try Outcome.files(in: fixture.staging, hidden: true) == [])
    }

    private func uploads(_ fixture: DaemonFixture) async throws -> [CampaignList.Upload] {
        let text = try await eventually("the daemon lists its uploads", within: .seconds(20), every: .milliseconds(100))
        {
            try await fixture.runVerb("list", ["--json"])
        }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(CampaignList.self, from: Data(text.utf8)).uploads
    }

    private func startServer(port: Int, store: FilePath) async throws -> Child {
        let child = try Child(
            try Tools.python("tus").appending("resumable-upload"),
            [
                "serve", "--host", "127.0.0.1", "--port", "\(port)", "--base-path", "/files", "--log-level", "WARNING",
                "--upload-dir", store.appending("up").display, "--db-path", store.appending("tus.db").display,
            ], output: store.appending("out"), errors: store.appending("err"))
        try await eventually("the tus server accepts connections") {
            try child.requireRunning()
            return Loopback.answers(port)
        }
        return child
    }
}
