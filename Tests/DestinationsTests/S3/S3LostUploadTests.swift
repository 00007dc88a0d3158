import Core
import Linux
import Synchronization
import TestKit
import TestTraits
import Testing
import Transport

@testable import Destinations

/// Possible losses of an upload in progress at a server.
@Suite("s3: uploads lost by their servers", .needsPackages, .timeLimit(.minutes(Patience.minutes(5))))
struct S3LostUploadTests {
    private static let part = Int(S3End.part)

    /// Attempts until it is there, each as a new process; remains are removed, like by the daemon.
    private func bring(
        _ staged: StagedUpload, to end: S3End, _ recorder: RecordingReporter, reporter: (any UploadReporter)? = nil
    ) async throws {
        for attempt in 1... {
            var order = staged.order
            order.checkpoint = recorder.last
            recorder.beginAttempt()
            do {
                _ = try await end.destination(["parallel": .whole(1)]).upload(order, reporter: reporter ?? recorder)
                break
            } catch let error as UploadError where error.remedy != .failUpload && attempt < 6 { continue }
        }
        for checkpoint in recorder.left { #expect(try await end.destination.discard(checkpoint)) }
    }

    private func holds(_ staged: StagedUpload, _ end: S3End) async throws {
        let isWhole = try await end.content("front/clip.mp4") == staged.content
        #expect(isWhole)
        #expect(try await end.keys() == ["front/clip.mp4"])
        #expect(try await end.unfinished() == 0)
    }

    /// An upload of two parts and some bytes. Its first part is accepted.
    private func begun(at end: S3End) async throws -> (StagedUpload, RecordingReporter) {
        let staged = try StagedUpload(2 * Self.part + 1)
        let recorder = RecordingReporter()
        try await staged.sendStopped(to: end, recorder, accepting: Self.part)
        return (staged, recorder)
    }

    @Test(
        "a part that has changed is sent again, and the final object is the file",
        arguments: Tier.sample(S3Maker.here.filter(\.replacesParts)))
    func otherPart(_ maker: S3Maker) async throws {
        try await S3End.open(maker, ["parallel": .whole(1)]) { end in
            let (staged, recorder) = try await begun(at: end)
            let upload = try #require(recorder.last?["upload"])
            let query = [(name: "partNumber", value: "1"), (name: "uploadId", value: upload)]
            let answer = try await end.ask("PUT", "front/clip.mp4", query, noise(Self.part, seed: 9))
            try #require(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
            try await bring(staged, to: end, recorder)
            try await holds(staged, end)
        }
    }

    @Test("a part whose file the server has lost is sent again", arguments: S3Maker.here.filter(\.keepsPartsAsFiles))
    func lostPart(_ maker: S3Maker) async throws {
        try await S3End.open(maker, ["parallel": .whole(1)]) { end in
            let (staged, recorder) = try await begun(at: end)
            #expect(try end.loseParts() == 1)
            try await bring(staged, to: end, recorder)
            try await holds(staged, end)
        }
    }

    @Test(
        "an upload ended by the server between two attempts starts again, and is there once",
        arguments: Tier.sample(S3Maker.here))
    func ended(_ maker: S3Maker) async throws {
        try await S3End.open(maker, ["parallel": .whole(1)]) { end in
            let (staged, recorder) = try await begun(at: end)
            try await end.abort(recorder)
            try await bring(staged, to: end, recorder)
            try await holds(staged, end)
        }
    }

    @Test(
        "an upload ended by the server during its parts starts again, and is there once",
        arguments: Tier.sample(S3Maker.here))
    func endedMeanwhile(_ maker: S3Maker) async throws {
        try await S3End.open(maker) { end in
            let staged = try StagedUpload(2 * Self.part + 1)
            let recorder = RecordingReporter()
            let reporter = ActingReporter(recorder) { try await end.abort(recorder) }
            try await bring(staged, to: end, recorder, reporter: reporter)
            #expect(reporter.hasHappened)
            try await holds(staged, end)
        }
    }

    @Test(
        "unfinished uploads are listed and can be removed, whatever program started them",
        arguments: Tier.sample(S3Maker.here))
    func orphans(_ maker: S3Maker) async throws {
        try await S3End.open(maker, ["parallel": .whole(1)]) { end in
            let before = SystemClocks().wall()
            let (staged, recorder) = try await begun(at: end)
            let odd: FilePath = "by others/a b+é.mp4"
            try #require(try await end.ask("POST", odd, [("uploads", "")]).status == 200)
            let found = try #require(try await end.destination().unfinished())
            guard maker.hasUploadList else {
                #expect(found.isEmpty)
                return
            }
            #expect(Set(found.map(\.name)) == ["front/clip.mp4", odd.display])
            #expect(found.contains { $0.id == recorder.last?["upload"] })
            for upload in found where maker.reportsTimes {
                // Its clock is ours; some servers give only seconds.
                let begunAt = try #require(upload.begunAt)
                #expect(abs(begunAt.milliseconds - before.milliseconds) < 120_000, "\(upload)")
            }
            let other = try #require(found.first { $0.name == odd.display })
            #expect(try await end.destination.discard(other.checkpoint))
            #expect(try await end.destination().unfinished()?.map(\.name) == ["front/clip.mp4"])
            try await bring(staged, to: end, recorder)
            #expect(recorder.sent.allSatisfy { $0 >= Self.part }, "the other upload was left alone")
            try await holds(staged, end)
        }
    }
}

/// Takes notes like a ``RecordingReporter``, and runs an action when the first part is recorded.
final class ActingReporter: UploadReporter {
    private let recorder: RecordingReporter
    private let happening: @Sendable () async throws -> Void
    private let state = Mutex(false)
    var hasHappened: Bool { state.withLock { $0 } }

    private let isOnce: Bool

    init(_ recorder: RecordingReporter, isOnce: Bool = true, _ happening: @escaping @Sendable () async throws -> Void) {
        self.recorder = recorder
        self.isOnce = isOnce
        self.happening = happening
    }

    func recordParts(_ parts: [AcknowledgedPart], lost: [Int], acked: Int64) async throws {
        try await recorder.recordParts(parts, lost: lost, acked: acked)
        let isFirst = state.withLock { state in
            defer { state = true }
            return !state
        }
        if isFirst || !isOnce { try await happening() }
    }

    func record(_ checkpoint: Checkpoint) async throws { try await recorder.record(checkpoint) }
    func accepted(_ offset: Int64, _ checkpoint: Checkpoint) async throws {
        try await recorder.accepted(offset, checkpoint)
    }
    func parts() async throws -> [AcknowledgedPart] { try await recorder.parts() }
    func companions() async throws -> [Companion] { try await recorder.companions() }
    func renewed(_ checkpoint: Checkpoint, leaving old: Checkpoint?) async throws {
        try await recorder.renewed(checkpoint, leaving: old)
    }
    func recordName(_ id: String, at url: String?) async throws { try await recorder.recordName(id, at: url) }
    func credential(_ renewal: CredentialRenewal) async throws { try await recorder.credential(renewal) }
    func sending(_ offset: Int64) { recorder.sending(offset) }
    func spent(_ bytes: Int64) { recorder.spent(bytes) }
    func entered(_ phase: UploadPhase) { recorder.entered(phase) }
    var shouldPause: Bool { recorder.shouldPause }
}
