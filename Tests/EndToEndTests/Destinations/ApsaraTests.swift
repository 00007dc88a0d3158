import Core
import Digests
import Glibc
import Linux
import TestKit
import TestTraits
import Testing

/// The daemon with ApsaraVideo VOD at an emulator, killed after each step and at random moments.
@Suite("ApsaraVideo VOD as destination", .needsPackages, .serialized, .timeLimit(.minutes(Patience.minutes(10))))
struct ApsaraTests {
    private struct Site: CrashSite {
        let fixture: DaemonFixture
        let server: OSSServer
        let camera: Camera

        init(isOwn: Bool = false, more: String = "") async throws {
            fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
            server = try await OSSServer()
            let key = try fixture.folder.write("vod.key", Array(OSSServer.secretKey.utf8))
            let right =
                isOwn
                ? "authorisation: {url: \"\(server.url)/_auth\"}, upload_endpoint: \"\(server.url)\", "
                : "endpoint: \"\(server.url)\", access_key: {literal: \(OSSServer.id)}, secret_key: {file: \(key.display)}, "
            fixture.uploadTo = ["vod"]
            fixture.moreDestinations = [
                "vod: {type: apsara-vod, \(right)part_size: 1 MiB, single_up_to: 512 KiB\(more)}"
            ]
            camera = Camera(fixture, dice: Dice(seed: Setting.seed))
        }

        /// VOD has exactly the clips, each once.
        func expectAll() async throws {
            let clips = camera.clips
            let objects = try await server.objects()
            let there = objects.values.map(\.sha256)
            let wanted = clips.map { hexadecimal(Hasher.digest(.sha256, of: $0.content)) }
            let media = try await server.control("videos")
            #expect(there.sorted() == wanted.sorted(), "\(objects) of \(media)")
            // A kill has cut off the answer to a creation. The permission to send does not include listing, so the
            // upload cannot be found, and is reported.
            let begun = try await server.operations().count { $0 == "InitiateMultipartUpload" }
            let large = clips.count { $0.size > 512 << 10 }
            #expect(try await server.unfinished().count == begun - large)
            // A permission that would overwrite a complete medium was never requested.
            #expect(!media.contains("\"refreshes_after_upload\": 1"), "\(media)")
        }
    }

    static let steps = [
        "claimed:1", "opening:1", "opened:1", "opening:2", "opened:2", "opening:3", "part-answered:1",
        "part-answered:3", "accepted:2", "parts-completed:1", "verified:1", "completed:1",
    ]

    @Test(
        "killed at a step, the next start continues: each file is there once and complete",
        arguments: Tier.sample(steps)
    )
    func killed(behind step: String) async throws {
        let site = try await Site()
        try site.drop(1, size: 4_000_000)
        try site.drop(2, size: 100_000, ending: "mp3")
        try site.drop(3, size: 150_000, ending: "jpg")
        try await site.kill(behind: step)
        let operations = try await site.server.operations()
        #expect(operations.filter { $0 == "CreateUploadVideo" }.count == 2, "\(operations)")
        #expect(operations.filter { $0 == "InitiateMultipartUpload" }.count <= 2, "\(operations)")
    }

    @Test("killed at any moment with parallel parts, each file is there once and complete", arguments: [false, true])
    func killedAnywhere(_ isOwn: Bool) async throws {
        let site = try await Site(isOwn: isOwn)
        try await site.killAnywhere(rounds: Setting.kills / 10, large: 8_000_000, others: 1...1_000_000)
    }

    @Test("an expired credential during an upload is an event, and the medium is shown from its start")
    func credential() async throws {
        let site = try await Site(more: ", parallel: 1")
        try await site.server.control(
            "faults",
            #"[{"do": "expire", "match": {"operation": "UploadPart", "part": 2}}, {"do": "slow", "seconds": 3, "match": {"operation": "UploadPart", "part": 1}}]"#
        )
        try site.drop(1, size: 3_000_000)
        try site.fixture.startDaemon()
        try await eventually("the list shows the medium", within: .seconds(30), every: .milliseconds(50)) {
            try await site.fixture.runVerb("list", ["--json"])?.contains("\"remote\":{\"id\":") == true
        }
        #expect(try await site.fixture.status()?.counts.completed == 0)
        try await site.settle()
        let events = site.fixture.folder.path.appending("events")
        let follower = try Child(
            site.fixture.binary, ["events", "--since", "0", "--json", "--config", site.fixture.config.display],
            output: events, errors: site.fixture.folder.path.appending("events.err"))
        defer { follower.end(with: SIGKILL) }
        try await eventually("an event reports the renewed credential", within: .seconds(20), every: .milliseconds(50))
        {
            try follower.standardOutput().contains("\"type\":\"credential\"")
        }
        #expect(try follower.standardOutput().contains("\"reason\":\"refused\""))
    }
}
