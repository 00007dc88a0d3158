import Core
import Glibc
import Linux
import TestKit
import TestTraits
import Testing

/// The daemon with a bucket whose key belongs to another service, killed after each step.
@Suite("Bucket with a signing service", .needsPackages, .serialized, .timeLimit(.minutes(Patience.minutes(10))))
struct S3SignerTests {
    private static let canary = "signature-that-nobody-may-see"

    static let steps = [
        "claimed:1", "opening:1", "opened:1", "part-answered:1", "accepted:1", "accepted:2", "parts-completed:1",
        "verified:1", "completed:1",
    ]

    @Test(
        "killed at a step, the next start continues: each file is there once and complete, and no signature is stored",
        arguments: steps)
    func killed(behind step: String) async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let (emulator, signer) = (try S3Emulator(), try SignerServer())
        defer {
            emulator.stop()
            signer.stop()
        }
        emulator.change { $0.judge = { signer.refusal($0) } }
        signer.change { $0.token = "the-token-of-the-signer" }
        let token = try fixture.folder.write("signer.token", Array("the-token-of-the-signer".utf8))
        fixture.uploadTo = ["bucket"]
        fixture.moreDestinations = [
            "bucket: {type: s3, endpoint: \"\(emulator.url)\", bucket: bucket, part_size: 5 MiB, single_up_to: 1 MiB, "
                + "presign: {url: \"\(signer.url)\", token: {file: \(token.display)}}}"
        ]
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 1, size: 11_000_000, relative: "long one.mp4"))
        try camera.drop(Clip(number: 2, size: 100_000, relative: "short.mp4"))
        try fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": step])
        let ending = try await #require(fixture.daemon).end(within: .seconds(30))
        try #require(ending == .signal(SIGKILL), "\(step) was not reached: \(fixture.lastWords())")
        let first = try fixture.daemon?.standardError() ?? ""
        try fixture.startDaemon()
        try await eventually("both uploads are complete", within: .seconds(60), every: .milliseconds(50)) {
            try fixture.daemon?.requireRunning()
            return try await fixture.status()?.counts.completed == 2
        }
        for clip in camera.clips {
            let isWhole = emulator.objects[clip.relative.display]?.bytes == clip.content
            #expect(isWhole, "\(clip.relative)")
        }
        #expect(emulator.objects.count == 2 && emulator.uploads.isEmpty, "\(emulator.requests)")
        let checked = try await fixture.runVerb("check", ["--running"]) ?? ""
        #expect(checked.contains("the signer's addresses work"), "\(checked)")
        let said = try first + (fixture.daemon?.standardError() ?? "") + checked
        #expect(!said.contains(Self.canary) && !said.contains("the-token-of"))
        for name in try Files.names(in: fixture.state) {
            let path = fixture.state.appending(name)
            guard try FileStatus.ifPresent(at: path)?.isDirectory == false else { continue }
            let isKept = try Files.read(path, limit: 1 << 30).contains(Array(Self.canary.utf8))
            #expect(!isKept, "\(name)")
        }
    }
}
