import Core
import TestKit
import Testing

@testable import Destinations

/// The evidence of ETags, queries where they give none, and uploads that wait for a name.
@Suite("s3: tags of accepted bytes", .timeLimit(.minutes(Patience.minutes(2))))
struct S3TagTests {
    private static let small = 900

    /// Which tags are MD5s; those of the other kind have the same length, and another meaning.
    enum Kind: Sendable, CaseIterable {
        case wholes, parts

        func set(_ state: inout S3Emulator.State) {
            state.wholeTags = self == .wholes ? .md5 : .digits
            state.partTags = self == .wholes ? .digits : .md5
        }
        /// A file whose tags depend on its bytes, and one whose tags do not.
        var sizes: [Int] { self == .wholes ? [small, S3Scene.size] : [S3Scene.size, small] }
    }

    @Test("if configured, MD5 tags of one kind do not make the other kind damaged", arguments: Kind.allCases)
    func kinds(_ kind: Kind) async throws {
        let scene = try S3Scene(["etag": .text("opaque")])
        defer { scene.emulator.stop() }
        scene.emulator.change { kind.set(&$0) }
        var contents: [String: [UInt8]] = [:]
        for number in 0..<4 {
            // The meaningful kind is received first.
            let staged = try StagedUpload(
                kind.sizes[number % 2], id: "\(number)", name: FilePath("\(number).mp4"), seed: UInt64(number))
            try await scene.bring(staged, attempts: 1)
            contents["\(number).mp4"] = staged.content
        }
        let isWhole = scene.emulator.objects.mapValues(\.bytes) == contents
        #expect(isWhole)
        for request in ["put", "part 1", "part 2", "part 3"] {
            #expect(scene.emulator.requests.count { $0 == request } == 2, "\(request): \(scene.emulator.requests)")
        }
    }

    @Test("a tag that is the MD5 of other bytes, where tags are MD5s, sends them again", arguments: Kind.allCases)
    func damaged(_ kind: Kind) async throws {
        let scene = try S3Scene()
        defer { scene.emulator.stop() }
        scene.emulator.change { kind.set(&$0) }
        let size = kind.sizes[0]
        try await scene.bring(StagedUpload(size, id: "1", name: "first.mp4"))
        scene.emulator.change { $0.requests = [] }
        scene.emulator.script(kind == .wholes ? .put : .part, kind == .wholes ? .damage : .rot)
        let staged = try StagedUpload(size, id: "2", name: "second.mp4", seed: 2)
        try await scene.bring(staged, attempts: 1)
        let isWhole = scene.emulator.objects["second.mp4"]?.bytes == staged.content
        #expect(isWhole && scene.emulator.objects.count == 2)
        let sent = scene.emulator.requests.filter { $0.hasPrefix("p") }
        #expect(sent.count == (kind == .wholes ? 2 : 4), "\(sent)")
    }

    @Test(
        "a first tag that is no MD5 of the bytes holds everything, until the meaning of tags is configured",
        arguments: [small, S3Scene.size])
    func unclear(_ size: Int) async throws {
        let scene = try S3Scene()
        defer { scene.emulator.stop() }
        scene.emulator.change { ($0.wholeTags, $0.partTags) = (.digits, .digits) }
        let (staged, recorder) = (try StagedUpload(size), RecordingReporter())
        let bodies = size == Self.small ? 1 : 2
        for _ in 0..<2 {
            let error = try await staged.failure(to: scene, recorder)
            #expect(error.failure.code == .etagUnclear, "\(error)")
            #expect(error.failure.message.contains("set `etag: opaque`"), "\(error)")
        }
        let sent = scene.emulator.requests.count { $0 == "put" || $0.hasPrefix("part ") }
        #expect(sent <= bodies, "\(scene.emulator.requests)")
        let knowing = try S3Scene(["etag": .text("opaque")], at: scene.emulator)
        try await knowing.bring(staged, recorder)
        #expect(scene.holds(staged))
    }

    @Test("an existing part with another MD5, not acknowledged before, is sent again")
    func unheard() async throws {
        let scene = try S3Scene(["preset": .text("minio")])
        defer { scene.emulator.stop() }
        scene.emulator.change { $0.partTags = .md5 }
        scene.emulator.script(.part, .rot, .rot, .rot, .rot)
        let (staged, recorder) = (try StagedUpload(S3Scene.size), RecordingReporter())
        let error = try await staged.failure(to: scene, recorder)
        #expect(error.failure.message.contains("of bytes with MD5"), "\(error)")
        try await scene.bring(staged, recorder)
        #expect(scene.holds(staged))
    }

    @Test(
        "a wrong object from good parts is reported, and its source is not released",
        arguments: [true, false])
    func joined(_ isKnown: Bool) async throws {
        let scene = try S3Scene(["preset": .text(isKnown ? "minio" : "other")])
        defer { scene.emulator.stop() }
        scene.emulator.change { ($0.partTags, $0.joinsTags) = (.md5, true) }
        // If it is not known how tags are joined, the first matching one shows it.
        if !isKnown { try await scene.bring(StagedUpload(S3Scene.size, id: "1", name: "first.mp4", seed: 2)) }
        scene.emulator.script(.complete, .rot)
        let (staged, recorder) = (try StagedUpload(S3Scene.size, id: "2"), RecordingReporter())
        for _ in 0..<2 {
            let error = try await staged.failure(to: scene, recorder)
            #expect(error.failure.code == .objectDamaged, "\(error)")
        }
        #expect(scene.emulator.requests.count { $0 == "part 1" } == (isKnown ? 1 : 2))
        scene.emulator.change { $0.objects["front/clip.mp4"] = nil }
        try await scene.bring(staged, recorder)
        #expect(scene.holds(staged) || !isKnown && scene.emulator.objects["front/clip.mp4"]?.bytes == staged.content)
    }

    @Test(
        "a checksum in the answer other than the one sent means damage", arguments: ["crc64nvme", "crc32c", "sha256"])
    func checksum(_ kind: String) async throws {
        let scene = try S3Scene(["checksum": .text(kind)])
        defer { scene.emulator.stop() }
        scene.emulator.script(.put, .claim("x-amz-checksum-\(kind)", "AAAAAA=="))
        let (staged, recorder) = (try StagedUpload(Self.small), RecordingReporter())
        try await scene.bring(staged, recorder)
        #expect(scene.emulator.requests.count { $0 == "put" } == 2, "\(scene.emulator.requests)")
    }

    @Test(
        "a service that repeats no checksum has not compared it: its tag decides",
        arguments: ["crc32c", "sha256", "none"], [small, S3Scene.size])
    func ignored(_ kind: String, _ size: Int) async throws {
        let scene = try S3Scene(["checksum": .text(kind), "preset": .text("minio")])
        defer { scene.emulator.stop() }
        scene.emulator.change { ($0.ignoresChecksums, $0.wholeTags, $0.partTags) = (true, .md5, .md5) }
        scene.emulator.script(.part, .rot)
        let (first, recorder) = (try StagedUpload(size, id: "1", name: "first.mp4"), RecordingReporter())
        let object = try await scene.bring(first, recorder)
        #expect(object.verifiedBy == (size == Self.small ? "etag" : "parts"), "\(object)")
        scene.emulator.script(.put, .damage)
        if size == Self.small {
            let error = try await StagedUpload(size, id: "2", name: "second.mp4", seed: 2).failure(to: scene)
            #expect(error.failure.code == .objectDamaged, "\(error)")
        } else {
            #expect(scene.emulator.requests.count { $0 == "part 1" } == 2, "\(scene.emulator.requests)")
        }
        let isWhole = scene.emulator.objects["first.mp4"]?.bytes == first.content
        #expect(isWhole)
    }

    @Test("an object removed at once by someone else is not created again")
    func taken() async throws {
        let scene = try S3Scene(["preset": .text("minio")])
        defer { scene.emulator.stop() }
        scene.emulator.change { ($0.partTags, $0.joinsTags) = (.md5, true) }
        scene.emulator.script(.head, .pass, .error(404, "NoSuchKey"))
        let object = try await scene.bring(StagedUpload(S3Scene.size), attempts: 1)
        #expect(object.verifiedBy == "parts")
        #expect(scene.emulator.requests.count { $0 == "part 1" } == 1)
    }

    @Test("an object reported as created, and missing, does not count, whatever its tag")
    func notMade() async throws {
        let scene = try S3Scene(["preset": .text("minio")])
        defer { scene.emulator.stop() }
        scene.emulator.change { ($0.partTags, $0.joinsTags) = (.md5, true) }
        scene.emulator.script(.complete, .forget)
        let (staged, recorder) = (try StagedUpload(S3Scene.size), RecordingReporter())
        let error = await #expect(throws: UploadError.self) { try await staged.send(to: scene, recorder) }
        #expect(error?.failure.message.contains("and does not exist") == true, "\(String(describing: error))")
        #expect(try await scene.bring(staged, recorder).verifiedBy == "parts")
        let isWhole = scene.emulator.objects["front/clip.mp4"]?.bytes == staged.content
        #expect(isWhole)
        #expect(scene.emulator.requests.count { $0 == "part 1" } == 1, "\(scene.emulator.requests)")
    }

    /// A key of the service's own makes no difference.
    private static let encryptions = ["aws:kms", "aws:kms:dsse", "AES256"]

    @Test(
        "an object encrypted with its own key is not damaged, and is ours after a lost answer",
        arguments: encryptions, [small, S3Scene.size])
    func encrypted(_ encryption: String, _ size: Int) async throws {
        // Otherwise the tags of this service are MD5s.
        let scene = try S3Scene(["preset": .text("minio")])
        defer { scene.emulator.stop() }
        let tags: S3Emulator.Tags = encryption == "AES256" ? .md5 : .digits
        scene.emulator.change { ($0.encryption, $0.wholeTags, $0.partTags) = (encryption, tags, tags) }
        try await scene.bring(StagedUpload(size, id: "1", name: "first.mp4", seed: 2), attempts: 1)
        scene.emulator.script(.put, .loseReply)
        scene.emulator.script(.complete, .loseReply)
        let staged = try StagedUpload(size, id: "2")
        let object = try await scene.bring(staged)
        #expect(object.id == "front/clip.mp4" && object.verifiedBy == "held", "\(object)")
        let isWhole = scene.emulator.objects["front/clip.mp4"]?.bytes == staged.content
        #expect(isWhole && scene.emulator.objects.count == 2 && scene.emulator.uploads.isEmpty)
        let sent = scene.emulator.requests.filter { $0 == "put" || $0 == "part 1" }
        #expect(sent.count == 2, "\(scene.emulator.requests)")
    }

    @Test("a multipart object is ours by its stored digest, whatever its tag")
    func held() async throws {
        let scene = try S3Scene(["etag": .text("opaque")])
        defer { scene.emulator.stop() }
        scene.emulator.change { Kind.wholes.set(&$0) }
        try await scene.bring(StagedUpload(Self.small, id: "1", name: "first.mp4"))
        let staged = try StagedUpload(S3Scene.size, id: "2")
        try await scene.bring(staged)
        let again = try await scene.bring(staged)
        #expect(again.verifiedBy == "held" && again.id == "front/clip.mp4")
        #expect(scene.emulator.objects.count == 2 && scene.emulator.uploads.isEmpty)
    }

    @Test(
        "a failed query after an accepted request loses nothing: the next attempt sends no byte",
        arguments: ["suffix", "replace"])
    func asked(_ taken: String) async throws {
        let scene = try S3Scene(["taken": .text(taken)])
        defer { scene.emulator.stop() }
        // Once because of the answer's own doubt, and once for the check after an error at the end.
        scene.emulator.script(.head, .pass, .error(500, "InternalError"), .error(500, "InternalError"))
        let (staged, recorder) = (try StagedUpload(Self.small), RecordingReporter())
        let error = try await staged.failure(to: scene, recorder)
        #expect(error.remedy == .holdDestination(after: nil), "\(error)")
        #expect(recorder.last?["final_sent"] == "1", "the checkpoint does not say that the file may exist")
        #expect(scene.emulator.requests == ["head", "put", "head", "head"])
        let object = try await scene.bring(staged, recorder, attempts: 1)
        #expect(object.verifiedBy == "held" && scene.holds(staged))
        #expect(scene.emulator.requests == ["head", "put", "head", "head", "head"])
    }

    @Test("bytes count as sent if the query after them fails, and this is no refusal", arguments: [200, 412])
    func counted(_ status: Int) async throws {
        let scene = try S3Scene(["preset": .text(status == 200 ? "other" : "minio")])
        defer { scene.emulator.stop() }
        if status == 412 { scene.emulator.script(.put, .error(412, "PreconditionFailed")) }
        scene.emulator.script(.head, .error(500, "InternalError"))
        let (staged, api) = (try StagedUpload(Self.small), try #require(scene.destination as? S3).api)
        let dialect = S3Dialect(api: api, isSingle: true)
        let plan = try dialect.plan(staged.order)
        let checkpoint = PartsCheckpoint(Checkpoint(["key": "front/clip.mp4", "checksum": "md5"]))
        let piece = PartsContext(order: staged.order, plan: plan, checkpoint: checkpoint)
        let sending = await dialect.send(plan[0], piece) { _ in }
        guard case .failed = sending.answer else {
            Issue.record("the sending did not fail: \(sending)")
            return
        }
        #expect(scene.emulator.requests == ["put", "head"])
        #expect(sending.bytesSent == Int64(Self.small) && !sending.isRefused)
    }

    @Test("a file whose name another upload is using waits half a minute, and runs when that has ended")
    func waits() async throws {
        let scene = try S3Scene()
        defer { scene.emulator.stop() }
        scene.emulator.script(.put, .silence)
        let (first, second) = (try StagedUpload(Self.small, id: "1"), try StagedUpload(Self.small, id: "2", seed: 2))
        let other = Task { try await first.send(to: scene, RecordingReporter()) }
        try await eventually("the other upload is in flight") { scene.emulator.requests == ["head", "put"] }
        let error = try await second.failure(to: scene)
        #expect(error.remedy == .pending(after: .seconds(30)))
        #expect(error.failure.code == .nameInUse && error.failure.retryable)
        #expect(error.failure.message.contains("/bucket/front/clip.mp4 is the target of another running upload"))
        #expect(scene.emulator.requests == ["head", "put"], "the waiting upload sent no request")
        other.cancel()
        await #expect(throws: CancellationError.self) { try await other.value }
        try await scene.bring(second, attempts: 1)
        #expect(scene.holds(second))
    }
}
