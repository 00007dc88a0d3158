import Core
import Linux
import Synchronization
import TestKit
import Testing

@testable import Destinations

/// A key that may create objects and unfinished uploads, and query nothing: 403 without a body to `HEAD`, and to each
/// list.
@Suite("s3 with a write-only key", .timeLimit(.minutes(Patience.minutes(3))))
struct S3WriteOnlyTests {
    static let sizes = [900, S3Scene.size]
    private static let name = WriteOnlyKey.name
    private static let second = WriteOnlyKey.second
    private let key = WriteOnlyKey()

    @Test("a file arrives, in one request and in parts, and missing permissions are logged once", arguments: sizes)
    func arrives(_ size: Int) async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        let staged = try StagedUpload(size)
        let object = try await scene.bring(staged, attempts: 1)
        #expect(scene.holds(staged))
        #expect(object.verifiedBy == (size == 900 ? "etag" : "parts"))
        #expect(object.warnings == [])
        for number in 2...3 {
            scene.emulator.change { $0.requests = [] }
            let name = "front/\(number).mp4"
            let other = try StagedUpload(size, id: "\(number)", name: FilePath(name), seed: UInt64(number))
            try await scene.bring(other, attempts: 1)
            #expect(scene.emulator.objects[name]?.bytes == other.content && scene.emulator.uploads.isEmpty)
            #expect(
                !scene.emulator.requests.contains("head"), "the missing permission is known: \(scene.emulator.requests)"
            )
        }
        let messageCount = scene.logged.count { $0.contains("the key may not read objects (s3:GetObject)") }
        #expect(messageCount == (size == 900 ? 0 : 1), "\(scene.logged)")
    }

    @Test("a stopped upload resumes with the acknowledged parts")
    func resumed() async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        let (staged, recorder) = (try StagedUpload(S3Scene.size), RecordingReporter())
        try await staged.sendStopped(to: scene, recorder, accepting: 5 << 20)
        scene.emulator.change { $0.requests = [] }
        try await scene.bring(staged, recorder, attempts: 1)
        #expect(scene.holds(staged))
        let sent = scene.emulator.requests.filter { $0.hasPrefix("part ") }
        #expect(sent == ["part 2", "part 3"])
        #expect(scene.logged.contains { $0.contains("may not list parts (s3:ListMultipartUploadParts)") })
    }

    @Test("an upload lost in progress starts again, and is there once")
    func gone() async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        let (staged, recorder) = (try StagedUpload(S3Scene.size), RecordingReporter())
        try await staged.sendStopped(to: scene, recorder, accepting: 5 << 20)
        scene.emulator.change { $0.uploads = [:] }
        try await scene.bring(staged, recorder)
        #expect(scene.holds(staged))
    }

    // MARK: Lost answers

    @Test(
        "a single request with a lost answer loses nothing: a possible duplicate is a warning",
        arguments: [false, true])
    func lostRequest(_ isTaken: Bool) async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        if isTaken { key.occupy(scene, [Self.name]) }
        scene.emulator.script(.put, .loseReply)
        let staged = try StagedUpload(900)
        let object = try await key.finish(staged, at: scene)
        #expect(object.id == key.contentName(staged))
        #expect(scene.emulator.objects[key.contentName(staged)]?.bytes == staged.content)
        #expect(object.warnings.contains { $0.contains("the remote may hold the file twice") }, "\(object)")
        if isTaken { #expect(key.isUnharmed(scene, Self.name)) }
        #expect(scene.emulator.objects.count == 2)
    }

    @Test("a single request that did not arrive is repeated under its name, without a warning")
    func cutRequest() async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        scene.emulator.script(.put, .cut(after: 10))
        let staged = try StagedUpload(900)
        let object = try await scene.bring(staged)
        #expect(scene.holds(staged) && object.warnings == [])
    }

    // MARK: Names

    @Test("another file's name gets a number, and the third one its content's digest", arguments: sizes)
    func taken(_ size: Int) async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        key.occupy(scene, [Self.name])
        let staged = try StagedUpload(size)
        #expect(try await scene.bring(staged, attempts: 1).id == Self.second)
        key.occupy(scene, [Self.second])
        let other = try StagedUpload(size, id: "2", seed: 2)
        // Lost twice in a row, an upload waits for its next attempt.
        let object = try await scene.bring(other)
        #expect(object.id == key.contentName(other) && object.warnings == [])
        #expect(key.isUnharmed(scene, Self.name) && key.isUnharmed(scene, Self.second))
        #expect(scene.emulator.uploads.isEmpty)
    }

    @Test("an object named by its content's digest is this content, whatever program sent it", arguments: sizes)
    func takenByContent(_ size: Int) async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        let staged = try StagedUpload(size)
        key.occupy(scene, [Self.name, Self.second, key.contentName(staged)])
        let object = try await scene.bring(staged)
        #expect(object.id == key.contentName(staged) && object.verifiedBy == "name")
        #expect(object.warnings.count == 1)
        #expect(scene.emulator.objects.count == 3 && scene.emulator.uploads.isEmpty)
    }

    @Test("the same content again is what this program has sent there", arguments: sizes)
    func again(_ size: Int) async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        let staged = try StagedUpload(size)
        try await scene.bring(staged)
        let object = try await StagedUpload(size, id: "2").send(to: scene, RecordingReporter())
        #expect(object.verifiedBy == "held" && object.id == Self.name)
        #expect(scene.holds(staged))
    }

    @Test("`taken` applies with a write-only key too", arguments: sizes)
    func rules(_ size: Int) async throws {
        let scene = try key.scene(["taken": .text("fail")])
        defer { scene.emulator.stop() }
        key.occupy(scene, [Self.name])
        let error = try await StagedUpload(size).failure(to: scene)
        #expect(error.failure.code == .nameTaken && error.remedy == .failUpload, "\(error)")
        #expect(key.isUnharmed(scene, Self.name))
        let replacing = try S3Scene(
            ["preset": .text("other"), "taken": .text("replace"), "etag": .text("opaque")], at: scene.emulator)
        let staged = try StagedUpload(size)
        let object = try await replacing.bring(staged)
        #expect(object.id == Self.name)
        #expect(object.verifiedBy == (size == 900 ? "answer" : "parts"))
        #expect(object.warnings.count == (size == 900 ? 1 : 0))
        #expect(scene.emulator.objects[Self.name]?.bytes == staged.content)
    }

    // MARK: What cannot be known

    @Test("without conditional writes nothing is sent, with the reason and the setting", arguments: sizes)
    func unguarded(_ size: Int) async throws {
        let scene = try key.scene(preset: "other")
        defer { scene.emulator.stop() }
        key.occupy(scene, [Self.name])
        let error = try await StagedUpload(size).failure(to: scene)
        #expect(error.failure.code == .namesUnseen && error.remedy == .misconfigured, "\(error)")
        #expect(error.failure.message.contains("`preset: other`") && error.failure.message.contains("s3:GetObject"))
        #expect(key.isUnharmed(scene, Self.name) && scene.emulator.uploads.isEmpty)
        #expect(!scene.emulator.requests.contains("put") && !scene.emulator.requests.contains("create"))
        let check = await scene.destination.check()
        #expect(check.verdict == .warning && check.detail.contains("names_unseen"), "\(check)")
    }

    @Test("a key without any permission holds the destination like a wrong one", arguments: sizes, ["minio", "other"])
    func nothing(_ size: Int, _ preset: String) async throws {
        let scene = try key.scene(preset: preset)
        defer { scene.emulator.stop() }
        scene.emulator.change { $0.judge = { _ in (403, "AccessDenied", "no") } }
        let (staged, recorder) = (try StagedUpload(size), RecordingReporter())
        for _ in 0..<2 { #expect(try await staged.failure(to: scene, recorder).remedy == .authenticate) }
        #expect(await scene.destination.check().verdict == .failed)
        #expect(scene.logged == [])
    }

    @Test("`check` reports missing permissions and their effects, without writing")
    func check() async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        let check = await scene.destination.check()
        #expect(check.verdict == .ok)
        for word in ["the key may write", "s3:ListBucket", "s3:GetObject", "conditional writes"] {
            #expect(check.detail.contains(word), "\(check)")
        }
        #expect(scene.emulator.objects.isEmpty && scene.emulator.uploads.isEmpty)
    }

    @Test("permissions granted later are used within the hour")
    func givenLater() async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        try await scene.bring(try StagedUpload(S3Scene.size))
        scene.emulator.change { $0.judge = nil }
        scene.clocks.advance(by: .seconds(3601))
        let object = try await StagedUpload(S3Scene.size, id: "2").send(to: scene, RecordingReporter())
        #expect(object.verifiedBy == "held")
        #expect(scene.emulator.requests.last == "head")
    }

    @Test("a key that can read and not list treats a 403 as an unknown name")
    func mayNotList() async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        let emulator = scene.emulator
        emulator.change { state in
            state.judge = { [weak emulator] exchange in
                let isThere = exchange.target.hasSuffix("clip.mp4") && emulator?.objects.isEmpty == false
                return exchange.method == "HEAD" && !isThere ? (403, "AccessDenied", "no") : nil
            }
        }
        let staged = try StagedUpload(S3Scene.size)
        #expect(try await scene.bring(staged, attempts: 1).verifiedBy == "parts")
        #expect(scene.logged == [])
        #expect(try await StagedUpload(S3Scene.size, id: "2").send(to: scene, RecordingReporter()).verifiedBy == "held")
    }

    // MARK: Other people's servers

    @Test("a server with such a policy accepts files complete and in parts, and resumes acknowledged ones")
    func policy() async throws {
        try await S3End.open(.moto) { end in
            let key = try await end.server.makeKey(["s3:PutObject", "s3:AbortMultipartUpload"])
            let destination = try end.destination([
                "preset": .text("minio"), "access_key": .secret(.literal(key.id)),
                "secret_key": .secret(.literal(key.secret)), "parallel": .whole(1),
            ])
            #expect(await destination.check().verdict == .ok)
            let small = try StagedUpload(1000, id: "1", name: "small.mp4")
            #expect(try await destination.upload(small.order, reporter: RecordingReporter()).verifiedBy == "etag")
            let (staged, recorder) = (try StagedUpload(S3Scene.size), RecordingReporter())
            recorder.pause { $0.accepted >= 5 << 20 }
            await #expect(throws: CancellationError.self) {
                _ = try await destination.upload(staged.order, reporter: recorder)
            }
            recorder.pause { _ in false }
            var order = staged.order
            order.checkpoint = recorder.last
            recorder.beginAttempt()
            let object = try await destination.upload(order, reporter: recorder)
            #expect(object.verifiedBy == "parts" && object.warnings == [], "\(object)")
            #expect(recorder.sent.allSatisfy { $0 >= 5 << 20 })
            let other = try StagedUpload(1000, id: "2", name: "small.mp4", seed: 2)
            #expect(try await destination.upload(other.order, reporter: RecordingReporter()).id == "small (2).mp4")
            let unknown = try end.destination(["access_key": .secret(.literal("AKNOBODY0000000000001"))])
            #expect(await unknown.check().verdict == .failed)
            try await end.server.acceptAnyKey()
            for (name, staged) in [("small.mp4", small), ("front/clip.mp4", staged), ("small (2).mp4", other)] {
                let isWhole = try await end.content(FilePath(name)) == staged.content
                #expect(isWhole, "\(name)")
            }
        }
    }

    @Test("OSS accepts a file with such a key too", arguments: [1000, 300_000])
    func oss(_ size: Int) async throws {
        try await OSSEnd.open(["parallel": .whole(1)]) { end in
            try await end.server.control(
                "faults",
                #"[{"do": "error", "status": 403, "code": "AccessDenied", "times": 0, "match": {"operation": ["HeadObject", "ListParts", "ListMultipartUploads", "ListObjectsV2", "ListObjects"]}}]"#
            )
            let check = await end.destination.check()
            #expect(check.verdict == .ok && check.detail.contains("oss:GetObject"), "\(check)")
            let (staged, recorder) = (try StagedUpload(size), RecordingReporter())
            if size > 1000 { try await staged.sendStopped(to: end, recorder, accepting: 128 << 10) }
            let object = try await staged.send(to: end, recorder)
            #expect(object.verifiedBy == "crc64" && object.warnings == [], "\(object)")
            if size > 1000 { #expect(recorder.sent.allSatisfy { $0 >= 128 << 10 }) }
            let other = try StagedUpload(size, id: "2", seed: 2)
            #expect(try await other.send(to: end, RecordingReporter()).id == "front/clip (2).mp4")
            let objects = try await end.objects
            #expect(objects["front/clip.mp4"] == staged.content && objects["front/clip (2).mp4"] == other.content)
            #expect(try await end.server.unfinished() == [])
        }
    }
}
