import Core
import Glibc
import Linux
import TestKit
import Testing

/// The built program and a server of the IETF's draft: each file arrives once, also after kills.
@Suite("Resumable Uploads for HTTP as destination", .serialized, .timeLimit(.minutes(Patience.minutes(5))))
struct ResumableHTTPEndToEndTests {
    static let steps = [
        "opening:1", "opened:1", "opened:2", "accepted:1", "accepted:2", "accepted:3", "verified:1", "completed:1",
    ]

    @Test(
        "killed at a step, the next start continues: each file is there once and complete",
        arguments: Tier.sample(steps))
    func killed(behind step: String) async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        try Files.makeFolders(fixture.received)
        var options = ResumableServer.Options()
        (options.versions, options.folder, options.interimEvery) = (["6"], fixture.received, 16 << 10)
        let server = try ResumableServer(options)
        fixture.uploadTo = ["album"]
        fixture.moreDestinations = [
            "album: {type: resumable-http, url: \"\(server.url)\", chunk_size: 64 KiB}"
        ]
        let camera = Camera(fixture, dice: Dice(seed: 1))
        for number in 0..<2 {
            try camera.drop(Clip(number: number, size: 150_000, relative: FilePath("clip \(number).mp4")))
        }
        try fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": step])
        let ending = try await #require(fixture.daemon).end(within: .seconds(20))
        try #require(ending == .signal(SIGKILL), "\(step) was not reached: \(fixture.lastWords())")
        try fixture.startDaemon()
        try await eventually("the server has both files", within: .seconds(60), every: .milliseconds(20)) {
            try fixture.daemon?.requireRunning()
            guard let counts = try await fixture.status()?.counts else { return false }
            return try counts.completed == 2 && counts.ongoing == 0
                && Outcome.files(in: fixture.drop, hidden: true).isEmpty
        }
        #expect(server.finished.count == 2 && Set(server.finished) == Set(camera.clips.map(\.content)))
        for clip in camera.clips {
            #expect(try Files.read(fixture.received.appending(clip.relative), limit: 1 << 20) == clip.content)
        }
        #expect(server.violations.isEmpty, "\(server.violations)")
        // Two uploads are in flight at once: the other one may have lost the answer to its creation in the kill.
        #expect(server.uploads.filter { !$0.isComplete }.allSatisfy { $0.held.isEmpty })
    }
}
