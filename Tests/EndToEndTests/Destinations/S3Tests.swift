import Core
import Linux
import TestKit
import TestTraits
import Testing

/// The daemon with a bucket at a third-party server, killed after each step and at random moments.
@Suite("Bucket as destination", .needsPackages, .serialized, .timeLimit(.minutes(Patience.minutes(10))))
struct S3Tests {
    private struct Site: CrashSite {
        let fixture: DaemonFixture
        let server: S3Server
        let camera: Camera

        init(_ maker: S3Maker) async throws {
            fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
            server = try await S3Server(maker)
            if maker.makesBuckets { try await server.client("mkdir", "there:\(server.bucket)") }
            let key = try fixture.folder.write("s3.key", Array(S3Server.secretKey.utf8))
            fixture.uploadTo = ["bucket"]
            fixture.moreDestinations = [
                "bucket: {type: s3, preset: \(maker.preset), endpoint: \"\(server.url)\", bucket: \(server.bucket), "
                    + "access_key: {literal: \(S3Server.id)}, secret_key: {file: \(key.display)}, "
                    + "part_size: 5 MiB, single_up_to: 1 MiB}"
            ]
            camera = Camera(fixture, dice: Dice(seed: Setting.seed))
        }

        /// The bucket has exactly the clips, each once.
        func expectAll() async throws {
            let clips = camera.clips
            let copy = TemporaryFolder()
            try await server.client("copy", "there:\(server.bucket)", copy.path.display)
            #expect(try Set(Outcome.files(in: copy.path, hidden: true)) == Set(clips.map(\.relative)))
            for clip in clips {
                let isWhole = try Files.read(copy.path.appending(clip.relative), limit: 1 << 30) == clip.content
                #expect(isWhole, "\(clip.relative)")
            }
        }
    }

    static let steps = [
        "claimed:1", "opening:1", "opening:2", "opened:1", "opened:2", "opened:4", "part-answered:1", "part-answered:2",
        "part-answered:4", "accepted:1", "accepted:2", "accepted:3", "parts-completed:1", "verified:1", "completed:1",
        "release-done:1",
    ]

    private static let makers = S3Maker.here.filter { $0 == .rclone || $0 == .ceph }

    @Test(
        "killed at a step, the next start continues: each file is there once and complete",
        arguments: Tier.sample(makers), Tier.sample(steps))
    func killed(_ maker: S3Maker, behind step: String) async throws {
        let site = try await Site(maker)
        try site.drop(1, size: 11_000_000)
        // These files are uploaded at the same time.
        for number in 2...4 { try site.drop(number, size: number * 50_000) }
        try await site.kill(behind: step)
        let unfinished = try await site.server.client(
            "backend", "list-multipart-uploads", "there:\(site.server.bucket)")
        #expect(!unfinished.contains("UploadId"), "\(unfinished)")
    }

    @Test("our own orphaned unfinished uploads are listed and removed; others stay")
    func orphans() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let emulator = try S3Emulator()
        defer { emulator.stop() }
        let key = try fixture.folder.write("s3.key", Array("some-secret-key".utf8))
        fixture.uploadTo = ["bucket"]
        fixture.moreDestinations = [
            "bucket: {type: s3, endpoint: \"\(emulator.url)\", bucket: bucket, access_key: {literal: AK}, "
                + "secret_key: {file: \(key.display)}, part_size: 5 MiB, single_up_to: 1 MiB, bandwidth: 2 MB/s}"
        ]
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 1, size: 3_000_000, relative: "done.mp4"))
        try fixture.startDaemon()
        try await eventually("the first upload has begun", within: .seconds(20), every: .milliseconds(20)) {
            emulator.uploads.count == 1
        }
        // An unfinished upload, as a creation without an answer leaves it.
        emulator.change { $0.uploads["left"] = S3Emulator.Upload(key: "done.mp4") }
        try await eventually("the first upload is complete", within: .seconds(20), every: .milliseconds(50)) {
            try await fixture.status()?.counts.completed == 1
        }
        try camera.drop(Clip(number: 2, size: 12_000_000, relative: "going.mp4"))
        try await eventually("the second upload has begun", within: .seconds(20), every: .milliseconds(50)) {
            emulator.uploads.count == 2
        }
        emulator.change { state in
            // After our time, and before it: keys do not show their owner. Times are whole seconds.
            let later = SystemClocks().wall().advanced(by: .seconds(2))
            state.uploads["later"] = S3Emulator.Upload(key: "done.mp4", begunAt: later)
            state.uploads["earlier"] = S3Emulator.Upload(key: "done.mp4", begunAt: WallTime(milliseconds: 1))
            state.uploads["foreign"] = S3Emulator.Upload(key: "somebody/else.mp4")
        }
        let listed = try #require(try await fixture.runVerb("orphans", ["bucket"]))
        #expect(listed.contains("done.mp4") && listed.contains("unfinished"), "\(listed)")
        #expect(listed.contains("1 in all; 4 more are in use, or belong to other clients"), "\(listed)")
        #expect(emulator.uploads.count == 5)
        let removed = try #require(try await fixture.runVerb("orphans", ["bucket", "--abort", "--json"]))
        #expect(removed.contains("\"removed\":true"), "\(removed)")
        #expect(emulator.uploads["left"] == nil && emulator.uploads.count == 4)
        try await eventually("the second upload is complete", within: .seconds(30), every: .milliseconds(50)) {
            try await fixture.status()?.counts.completed == 2
        }
        #expect(Set(emulator.uploads.keys) == ["earlier", "later", "foreign"])
    }

    @Test("killed at any moment with parallel parts, each file is there once and complete", arguments: makers)
    func killedAnywhere(_ maker: S3Maker) async throws {
        let site = try await Site(maker)
        // Ceph keeps its objects in memory.
        let rounds = Setting.kills / (maker == .ceph ? 40 : 10)
        try await site.killAnywhere(rounds: rounds, large: 16_000_000, others: 1...2_000_000)
    }
}
