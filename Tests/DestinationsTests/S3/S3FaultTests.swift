import Core
import Credentials
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// Faults that no third-party server can produce on demand.
@Suite("s3 with faults", .timeLimit(.minutes(Patience.minutes(3))))
struct S3FaultTests {
    private typealias Scene = S3Scene

    private static let size = S3Scene.size

    struct Trouble: Sendable, CustomTestStringConvertible {
        var kind: S3Emulator.Kind
        var faults: [S3Emulator.Fault]
        var testDescription: String { "\(kind.rawValue): \(faults)" }
        init(_ kind: S3Emulator.Kind, _ faults: S3Emulator.Fault...) { (self.kind, self.faults) = (kind, faults) }
    }

    static let troubles = [
        Trouble(.create, .loseReply), Trouble(.create, .error(500, "InternalError")),
        Trouble(.create, .error(503, "SlowDown")),
        Trouble(.create, .answer(200, [], "<html>log in</html>")),
        Trouble(.part, .loseReply), Trouble(.part, .cut(after: 1000)), Trouble(.part, .error(500, "InternalError")),
        Trouble(.part, .error(400, "RequestTimeout")), Trouble(.part, .damage), Trouble(.part, .damage, .damage),
        Trouble(.part, .forget), Trouble(.part, .error(404, "NoSuchUpload")),
        Trouble(.part, .answer(200)), Trouble(.part, .doneBut(200, "<Error><Code>InternalError</Code></Error>")),
        Trouble(.complete, .loseReply), Trouble(.complete, .error(500, "InternalError")),
        Trouble(.complete, .doneBut(200, "  <Error><Code>InternalError</Code></Error>")),
        Trouble(.complete, .answer(200, [], " <Error><Code>SlowDown</Code></Error>")),
        Trouble(.complete, .error(400, "InvalidPart")), Trouble(.complete, .error(404, "NoSuchUpload")),
        Trouble(.complete, .error(409, "ConditionalRequestConflict")),
        Trouble(.complete, .error(409, "OperationAborted")),
        Trouble(.head, .error(500, "")), Trouble(.head, .loseReply),
    ]

    @Test(
        "after each of these faults the object is there once and complete, without remains",
        arguments: Tier.sample(troubles, 6))
    func recovers(_ trouble: Trouble) async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        let staged = try StagedUpload(Self.size)
        scene.emulator.change { $0.faults[trouble.kind] = trouble.faults }
        try await scene.bring(staged)
        #expect(scene.holds(staged), "\(scene.emulator.requests)")
        let creations = scene.emulator.requests.filter { $0 == "create" }.count
        #expect(creations <= 2, "\(scene.emulator.requests)")
    }

    @Test("a single request with a lost answer leaves one object", arguments: [true, false])
    func single(_ isGuarded: Bool) async throws {
        let scene = try Scene(isGuarded ? ["preset": .text("minio")] : [:])
        defer { scene.emulator.stop() }
        let staged = try StagedUpload(900)
        scene.emulator.script(.put, .loseReply)
        let recorder = RecordingReporter()
        try await scene.bring(staged, recorder)
        #expect(scene.holds(staged), "\(scene.emulator.requests)")
        #expect(scene.emulator.requests.filter { $0 == "put" }.count <= 2)
    }

    @Test("after a lost answer to the completion nothing is sent again")
    func lostCompletion() async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        let staged = try StagedUpload(Self.size)
        scene.emulator.script(.complete, .loseReply)
        let recorder = RecordingReporter()
        let object = try await scene.bring(staged, recorder)
        #expect(object.verifiedBy == "held")
        #expect(scene.emulator.requests.filter { $0.hasPrefix("part ") }.count == 3)
        #expect(scene.emulator.requests.filter { $0 == "create" }.count == 1)
    }

    @Test("an upload whose creation got no answer is found by a list, and resumed")
    func lostBeginning() async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        scene.emulator.script(.create, .loseReply)
        let staged = try StagedUpload(Self.size)
        let recorder = RecordingReporter()
        let object = try await scene.bring(staged, recorder)
        #expect(scene.holds(staged))
        #expect(
            object.warnings == [
                "1 creation(s) got no answer: the upload that the last one began was found, and continued"
            ])
        #expect(recorder.names == [try #require(object.id)], "its key is known from the list")
        #expect(scene.emulator.requests.filter { $0 == "create" }.count == 1)
    }

    @Test("a paginated list of parts is read completely, and existing parts are not sent again")
    func pages() async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        scene.emulator.change { $0.page = 1 }
        let staged = try StagedUpload(4 * (5 << 20))
        let recorder = RecordingReporter()
        try await staged.sendStopped(to: scene, recorder, accepting: 15 << 20)
        scene.emulator.change { $0.requests = [] }
        try await scene.bring(staged, recorder)
        #expect(scene.holds(staged))
        #expect(scene.emulator.requests == ["head", "parts", "parts", "parts", "part 4", "complete", "head"])
    }

    @Test("a key that expires during an upload is read again, and no part is lost")
    func expired() async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        scene.emulator.change { $0.token = "token-1" }
        let staged = try StagedUpload(Self.size)
        let recorder = RecordingReporter()
        try await staged.sendStopped(to: scene, recorder, accepting: 5 << 20)
        scene.emulator.change { $0.token = "token-2" }
        let error = try await staged.failure(to: scene, recorder)
        #expect(error.remedy == .authenticate)
        #expect(!error.failure.message.contains("token-1") && !error.failure.message.contains("the-secret"))
        try Files.replace(scene.keyFile, with: Array(Scene.document("token-2").utf8))
        scene.emulator.change { $0.requests = [] }
        try await scene.bring(staged, recorder)
        #expect(scene.holds(staged))
        #expect(!scene.emulator.requests.contains("part 1") && !scene.emulator.requests.contains("create"))
    }

    @Test("a query with an empty answer makes an expired key be read again too")
    func endedUnsaid() async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        scene.emulator.change { $0.token = "token-1" }
        #expect(await scene.destination.check().verdict == .ok, "the key has been read")
        scene.emulator.change { $0.token = "token-2" }
        let staged = try StagedUpload(Self.size)
        // The upload begins with HEAD.
        #expect(try await staged.failure(to: scene).remedy == .authenticate)
        try Files.replace(scene.keyFile, with: Array(Scene.document("token-2").utf8))
        try await scene.bring(staged, attempts: 1)
        #expect(scene.holds(staged))
    }

    @Test("a partially written key file holds the destination until it is complete")
    func halfWritten() async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        try Files.replace(scene.keyFile, with: Array("{\"AccessKeyId\":\"AK".utf8))
        let staged = try StagedUpload(900)
        for _ in 0..<2 { #expect(try await staged.failure(to: scene).remedy == .authenticate) }
        try Files.replace(scene.keyFile, with: Array(Scene.document("token-1").utf8))
        try await scene.bring(staged, attempts: 1)
        #expect(scene.holds(staged))
    }

    @Test("a started upload continues with its own checksum and sizes when these are changed", arguments: [900, size])
    func changedSettings(_ size: Int) async throws {
        let scene = try Scene(["checksum": .text("crc64nvme")])
        defer { scene.emulator.stop() }
        let staged = try StagedUpload(size)
        let recorder = RecordingReporter()
        scene.emulator.script(size == 900 ? .put : .complete, .error(500, "InternalError"))
        _ = try await staged.failure(to: scene, recorder)
        var order = staged.order
        order.checkpoint = recorder.last
        let values: [String: SettingValue] = [
            "endpoint": .text(scene.emulator.url), "bucket": .text("bucket"),
            "credentials": .secret(.file(scene.keyFile)), "single_up_to": .bytes(size == 900 ? 10 : 1 << 30),
            "checksum": .text("sha256"),
        ]
        let changed = try S3(
            values,
            DestinationTools(
                transport: Transport(), secrets: SecretReader(), clocks: scene.clocks, name: "archive", log: { _ in }))
        #expect(try await changed.upload(order, reporter: recorder).verifiedBy == "crc64nvme")
        #expect(scene.holds(staged))
        #expect(scene.emulator.requests.filter { $0 == "create" }.count == (size == 900 ? 0 : 1))
    }

    @Test("another region is learned once")
    func region() async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        scene.emulator.change { $0.region = "eu-north-7" }
        let staged = try StagedUpload(Self.size)
        try await scene.bring(staged, attempts: 1)
        #expect(scene.holds(staged))
        #expect(scene.emulator.requests.prefix(3) == ["head", "head", "create"])
    }

    @Test("a clock difference is corrected once", arguments: [-7200, 7200])
    func clock(_ seconds: Int) async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        scene.emulator.change { $0.ahead = seconds }
        let staged = try StagedUpload(Self.size)
        try await scene.bring(staged, attempts: 1)
        #expect(scene.holds(staged))
        #expect(scene.emulator.requests.prefix(3) == ["head", "head", "create"])
    }

    @Test(
        "each refusal has its remedy, and its message is shown",
        arguments: [
            (503, "SlowDown", Remedy.rateLimit(after: nil)), (500, "InternalError", .holdDestination(after: nil)),
            (403, "AccessDenied", .authenticate), (403, "SignatureDoesNotMatch", .authenticate),
            (403, "QuotaExceeded", .outOfSpace(after: nil)), (507, "XMinioStorageFull", .outOfSpace(after: nil)),
            (400, "EntityTooLarge", .failUpload), (400, "KeyTooLongError", .failUpload),
            (404, "NoSuchBucket", .misconfigured),
            (409, "OperationAborted", .retry(after: nil)), (400, "ThrottlingException", .rateLimit(after: nil)),
            (400, "ExpiredToken", .authenticate), (501, "NotImplemented", .holdDestination(after: nil)),
        ])
    func verdicts(_ status: Int, _ code: String, _ remedy: Remedy) async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        scene.emulator.script(.create, .error(status, code), .error(status, code))
        let error = try await StagedUpload(Self.size).failure(to: scene)
        #expect(error.remedy == remedy)
        #expect(error.failure.code == .service(code))
        #expect(error.failure.message.contains("\(code): no"))
    }

    @Test(
        "a corrupted staged copy creates no object, even if earlier digests say otherwise",
        arguments: [900, size], Tier.sample([("other", true), ("other", false), ("minio", true), ("minio", false)], 2))
    func rotten(_ size: Int, _ way: (preset: String, isCounted: Bool)) async throws {
        let scene = try Scene(["preset": .text(way.preset)])
        defer { scene.emulator.stop() }
        let staged = try StagedUpload(size, isCounted: way.isCounted)
        var other = staged.content
        other[size / 2] ^= 1
        try staged.restage(other)
        let recorder = RecordingReporter()
        let error = try await staged.failure(to: scene, recorder)
        #expect(error.remedy == .restage(.changed))
        recorder.giveUp(by: scene.destination)
        for checkpoint in recorder.left { #expect(try await scene.destination.discard(checkpoint)) }
        #expect(scene.emulator.objects.isEmpty && scene.emulator.uploads.isEmpty)
        // The file is staged once more, and sent.
        try staged.restage(staged.content)
        try await scene.bring(staged, recorder)
        #expect(scene.holds(staged))
    }

    @Test(
        "an object created meanwhile is not overwritten, even if the service would",
        arguments: [900, size])
    func keyTaken(_ size: Int) async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        scene.emulator.change { $0.hasConditions = false }
        let first = try StagedUpload(size, id: "first", seed: 1), second = try StagedUpload(size, id: "second", seed: 2)
        let recorder = RecordingReporter()
        // The upload is recorded as begun, and no byte was sent.
        #expect(try await first.sendStopped(to: scene, recorder) { $0.checkpoints.last?["begun"] != nil })
        try await scene.bring(second)
        try await scene.bring(first, recorder)
        let objects = scene.emulator.objects.mapValues(\.bytes)
        #expect(objects == ["front/clip.mp4": second.content, "front/clip (2).mp4": first.content])
        #expect(scene.emulator.uploads.isEmpty)
    }

    @Test(
        "a damaged object of ours is reported and kept, without a second one: once it is removed the file is sent",
        arguments: [true, false])
    func contradicted(_ isCounted: Bool) async throws {
        let scene = try Scene(["preset": .text("minio")])
        defer { scene.emulator.stop() }
        scene.emulator.change { $0.wholeTags = .md5 }
        scene.emulator.script(.put, .damage)
        let (staged, recorder) = (try StagedUpload(900, isCounted: isCounted), RecordingReporter())
        for _ in 0..<3 {
            let error = try await staged.failure(to: scene, recorder)
            #expect(error.failure.code == .objectDamaged && error.remedy == .refused(after: nil), "\(error)")
        }
        #expect(scene.emulator.requests.count { $0 == "put" } <= 2, "\(scene.emulator.requests)")
        #expect(Array(scene.emulator.objects.keys) == ["front/clip.mp4"])
        scene.emulator.change { $0.objects = [:] }
        try await scene.bring(staged, recorder)
        #expect(scene.holds(staged))
    }

    @Test(
        "an object without a digest is compared by size, and an ETag that was an MD5 once always is one",
        arguments: [true, false])
    func halved(_ tagsAreMD5: Bool) async throws {
        let scene = try Scene(["single_up_to": .bytes(10_000)])
        defer { scene.emulator.stop() }
        scene.emulator.change { $0.wholeTags = tagsAreMD5 ? .md5 : .words }
        let first = try await scene.bring(StagedUpload(900, id: "1", name: "first.mp4"))
        #expect(first.verifiedBy == (tagsAreMD5 ? "etag" : "size"))
        scene.emulator.script(.put, tagsAreMD5 ? .damage : .halve)
        let second = try StagedUpload(901, id: "2", name: "second.mp4", seed: 2)
        let object = try await scene.bring(second)
        #expect(scene.emulator.objects[object.id ?? ""]?.bytes == second.content)
    }

    @Test(
        "a key known to be another file's costs a query, and no bytes; once free it is used again"
    )
    func known() async throws {
        let scene = try Scene(["preset": .text("minio")])
        defer { scene.emulator.stop() }
        func bring(_ seed: UInt64) async throws -> String? {
            try await scene.bring(StagedUpload(900, id: "\(seed)", seed: seed), attempts: 1).id
        }
        #expect(try await bring(1) == "front/clip.mp4")
        #expect(try await bring(2) == "front/clip (2).mp4")
        #expect(scene.emulator.requests == ["put", "head", "head", "put"])
        scene.emulator.change { ($0.objects, $0.requests) = ([:], []) }
        #expect(try await bring(3) == "front/clip.mp4")
        #expect(scene.emulator.requests == ["head", "put"])
    }

    @Test("concurrent uploads to one key are each kept", arguments: [900, size])
    func sameKey(_ size: Int) async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        scene.emulator.change { $0.hasConditions = false }
        let stagedUploads = try (0..<4).map { try StagedUpload(size, id: "\($0)", seed: UInt64($0)) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for staged in stagedUploads {
                group.addTask {
                    let recorder = RecordingReporter()
                    while true {
                        do {
                            _ = try await staged.send(to: scene, recorder)
                            return
                        } catch let error as UploadError {
                            // The upload does not wait for the time in the answer.
                            guard case .pending = error.remedy else { throw error }
                            await Task.yield()
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let arrived = Set(scene.emulator.objects.values.map(\.bytes))
        #expect(arrived == Set(stagedUploads.map(\.content)))
        #expect(scene.emulator.objects.count == 4 && scene.emulator.uploads.isEmpty)
    }

    @Test("each object has the configured attributes")
    func headers() async throws {
        let scene = try Scene([
            "storage_class": .text("STANDARD_IA"), "acl": .text("private"), "encryption": .text("aws:kms"),
            "kms_key": .text("alias/cameras"), "tags": .map(["keep": .literal("a year & more")]),
            "checksum": .text("crc64nvme"),
        ])
        defer { scene.emulator.stop() }
        for size in [900, Self.size] {
            let staged = try StagedUpload(size, name: FilePath("\(size).mp4"))
            let object = try await scene.bring(staged)
            #expect(object.verifiedBy == "crc64nvme")
            let headers = try #require(scene.emulator.objects["\(size).mp4"]).headers
            #expect(headers["content-type"] == "video/mp4")
            #expect(headers["x-amz-storage-class"] == "STANDARD_IA" && headers["x-amz-acl"] == "private")
            #expect(headers["x-amz-server-side-encryption"] == "aws:kms")
            #expect(headers["x-amz-server-side-encryption-aws-kms-key-id"] == "alias/cameras")
            #expect(headers["x-amz-tagging"] == "keep=a%20year%20%26%20more")
            #expect(headers["x-amz-meta-sluice-sha256"]?.count == 64 && headers["x-amz-meta-mtime"] == "1700000000")
        }
    }
}
