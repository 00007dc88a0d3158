import Core
import Digests
import TestKit
import TestTraits
import Testing

/// The daemon with a bucket at the emulator of OSS, killed after each step and at random moments.
@Suite("OSS bucket as destination", .needsPackages, .serialized, .timeLimit(.minutes(Patience.minutes(10))))
struct OSSTests {
    private struct Site: CrashSite {
        let fixture: DaemonFixture
        let server: OSSServer
        let camera: Camera

        init(more: String = "") async throws {
            fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
            server = try await OSSServer()
            let key = try fixture.folder.write("oss.key", Array(OSSServer.secretKey.utf8))
            fixture.uploadTo = ["bucket"]
            fixture.moreDestinations = [
                "bucket: {type: oss, endpoint: \"\(server.url)\", addressing: path, region: \(OSSServer.region), "
                    + "bucket: \(OSSServer.bucket), access_key: {literal: \(OSSServer.id)}, "
                    + "secret_key: {file: \(key.display)}, part_size: 1 MiB, single_up_to: 512 KiB\(more)}"
            ]
            camera = Camera(fixture, dice: Dice(seed: Setting.seed))
        }

        /// The bucket has exactly the clips, each once.
        func expectAll() async throws {
            let clips = camera.clips
            let there = try await server.objects()
            #expect(Set(there.keys) == Set(clips.map(\.relative.display)))
            for clip in clips {
                let whole = hexadecimal(Hasher.digest(.sha256, of: clip.content))
                #expect(there[clip.relative.display]?.sha256 == whole, "\(clip.relative)")
            }
            #expect(try await server.unfinished() == [])
        }
    }

    static let steps = [
        "claimed:1", "opening:1", "opened:1", "part-answered:1", "part-answered:3", "accepted:2", "parts-completed:1",
        "verified:1", "completed:1",
    ]

    @Test(
        "killed at a step, the next start continues: each file is there once and complete",
        arguments: Tier.sample(steps)
    )
    func killed(behind step: String) async throws {
        let site = try await Site()
        try site.drop(1, size: 4_000_000)
        // These files are uploaded at the same time.
        for number in 2...4 { try site.drop(number, size: number * 50_000) }
        try await site.kill(behind: step)
    }

    @Test("killed at any moment with parallel parts, each file is there once and complete")
    func killedAnywhere() async throws {
        let site = try await Site()
        try await site.killAnywhere(rounds: Setting.kills / 10, large: 8_000_000, others: 1...1_000_000)
    }

    @Test("a bandwidth limit of the policy is passed to the service if configured")
    func limit() async throws {
        let site = try await Site(more: ", traffic_limit: true, bandwidth: 4 MB/s")
        try site.drop(1, size: 2_000_000)
        try site.fixture.startDaemon()
        try await site.settle()
        let record = try await site.server.control("record")
        #expect(record.contains("\"x-oss-traffic-limit\": \"32000000\""), "\(record.suffix(2000))")
    }
}
