import Core
import Credentials
import Linux
import TestKit
import TestTraits
import Testing
import Transport

@testable import Destinations

/// A bucket whose key only an external signer has.
@Suite("s3 with a signing service", .needsPackages, .timeLimit(.minutes(Patience.minutes(3))))
struct S3PresignTests {
    final class Scene: RemoteFixture {
        let emulator: S3Emulator
        let signer: SignerServer
        let destination: any Destination
        private let temporary = TemporaryFolder()
        let tokenFile: FilePath
        var folder: FilePath { temporary.path }
        let secret: String? = "signature-that-nobody-may-see"

        init(_ more: [String: SettingValue] = [:]) throws {
            let (emulator, signer) = (try S3Emulator(), try SignerServer())
            (self.emulator, self.signer) = (emulator, signer)
            emulator.change { $0.judge = { signer.refusal($0) } }
            tokenFile = try temporary.write("token", Array("first-token-of-it\n".utf8))
            signer.change { $0.token = "first-token-of-it" }
            let values: [String: SettingValue] = [
                "endpoint": .text(emulator.url), "bucket": .text("bucket"), "single_up_to": .bytes(1000),
                "part_size": .bytes(5 << 20), "parallel": .whole(1), "presign.url": .text(signer.url),
                "presign.token": .secret(.file(tokenFile)),
            ]
            destination = try S3(values.merging(more) { $1 }, Self.tools)
        }

        static var tools: DestinationTools {
            DestinationTools(
                transport: Transport(), secrets: SecretReader(), clocks: SystemClocks(), name: "archive", log: { _ in })
        }

        func goAway() async throws { emulator.stop() }
        func close() async throws {
            emulator.stop()
            signer.stop()
        }

        func holds(_ staged: StagedUpload, as key: String = "front/clip.mp4") -> Bool {
            emulator.objects.keys.sorted() == [key] && emulator.objects[key]?.bytes == staged.content
                && emulator.uploads.isEmpty
        }
    }

    static let size = (10 << 20) + 1

    @Test("parts are requested together, and each address is used once, for its purpose")
    func together() async throws {
        let scene = try Scene()
        let staged = try StagedUpload(Self.size, name: "é +(1)/視 頻~.mp4")
        let recorder = RecordingReporter()
        try await scene.bring(staged, recorder, attempts: 1)
        #expect(scene.holds(staged, as: "é +(1)/視 頻~.mp4"))
        #expect(scene.signer.requestedOperations == ["head", "create", "part+2", "complete", "head"])
        #expect(scene.emulator.requests == ["head", "create", "part 1", "part 2", "part 3", "complete", "head"])
        let questions = scene.signer.questions
        #expect(questions.allSatisfy { $0.version == 1 && $0.destination == "archive" && $0.bucket == "bucket" })
        #expect(questions[2].requests.map(\.size) == [5 << 20, 5 << 20, 1])
        #expect(questions[1].requests[0].headers["x-amz-meta-mtime"] == "1700000000")
        #expect(!recorder.everything.contains("signature-that"))
    }

    @Test("parallel parts request no address that another has requested")
    func sideBySide() async throws {
        let scene = try Scene(["parallel": .whole(4)])
        let staged = try StagedUpload(7 * (5 << 20) + 1)
        try await scene.bring(staged, attempts: 1)
        #expect(scene.holds(staged))
        let parts = scene.signer.questions.flatMap(\.requests).filter { $0.operation == "part" }
        // A part that already has its address may be requested again together with an earlier one.
        #expect(parts.count <= 8 + 3, "\(scene.signer.requestedOperations)")
    }

    @Test("a part's checksum is signed with it, and parts are then requested one by one")
    func checksums() async throws {
        let scene = try Scene(["checksum": .text("crc64nvme")])
        let staged = try StagedUpload(Self.size)
        let object = try await scene.bring(staged, attempts: 1)
        #expect(object.verifiedBy == "crc64nvme")
        #expect(scene.holds(staged))
        #expect(scene.signer.requestedOperations == ["head", "create", "part", "part", "part", "complete"])
        let headers = scene.signer.questions.filter { $0.requests[0].operation == "part" }.map(
            \.requests[0].headers.keys)
        #expect(headers.allSatisfy { $0.contains("x-amz-checksum-crc64nvme") })
    }

    @Test("a small file is one request, looked up and signed")
    func single() async throws {
        let scene = try Scene()
        let staged = try StagedUpload(900)
        try await scene.bring(staged, attempts: 1)
        #expect(scene.holds(staged))
        #expect(scene.signer.requestedOperations == ["head", "put", "head"])
        #expect(scene.signer.questions[1].requests[0].size == 900)
        #expect(scene.signer.questions[1].requests[0].headers["content-type", default: ""].isEmpty)
        #expect(scene.signer.questions[1].requests[0].headers["Content-Type"] == "video/mp4")
    }

    @Test("a signer that issues one address at a time is asked for each")
    func one() async throws {
        let scene = try Scene()
        scene.signer.change { $0.most = 1 }
        let staged = try StagedUpload(Self.size)
        try await scene.bring(staged, attempts: 1)
        #expect(scene.holds(staged))
        #expect(scene.signer.requestedOperations == ["head", "create", "part+2", "part+1", "part", "complete", "head"])
    }

    @Test(
        "after each fault of the bucket the object is there once and complete",
        arguments: Tier.sample(S3FaultTests.troubles, 4))
    func recovers(_ trouble: S3FaultTests.Trouble) async throws {
        let scene = try Scene()
        let staged = try StagedUpload(Self.size)
        scene.emulator.change { $0.faults[trouble.kind] = trouble.faults }
        try await scene.bring(staged)
        #expect(scene.holds(staged), "\(scene.emulator.requests)")
        #expect(scene.emulator.requests.filter { $0 == "create" }.count <= 2, "\(scene.emulator.requests)")
    }

    @Test(
        "stopped after any note, an upload resumes with the existing parts",
        arguments: Tier.onlyInFull(["md5", "crc64nvme"]))
    func stops(_ checksum: String) async throws {
        for note in 1... {
            let scene = try Scene(["checksum": .text(checksum)])
            let staged = try StagedUpload(Self.size)
            let recorder = RecordingReporter()
            let wasStopped = try await staged.sendStopped(to: scene, recorder) { $0.taken == note }
            let accepted = recorder.accepted
            try await scene.bring(staged, recorder, attempts: 1)
            #expect(recorder.sent.allSatisfy { $0 >= accepted }, "note \(note)")
            #expect(scene.holds(staged), "stopped at note \(note)")
            if !wasStopped { break }
            try #require(note < 40, "the upload does not end")
        }
    }

    @Test("an upload started with a key resumes without one")
    func changed() async throws {
        let scene = try Scene()
        let values: [String: SettingValue] = [
            "endpoint": .text(scene.emulator.url), "bucket": .text("bucket"), "part_size": .bytes(5 << 20),
            "single_up_to": .bytes(1000), "parallel": .whole(1), "access_key": .secret(.literal("AK")),
            "secret_key": .secret(.literal("a-key-that-is-gone-soon")),
        ]
        let signer = scene.signer
        scene.emulator.change { $0.judge = nil }
        scene.emulator.change { $0.faults[.part] = [.error(500, "InternalError")] }
        let staged = try StagedUpload(Self.size)
        let recorder = RecordingReporter()
        let keyed = try S3(values, Scene.tools)
        await #expect(throws: UploadError.self) { try await keyed.upload(staged.order, reporter: recorder) }
        scene.emulator.change { $0.judge = { signer.refusal($0) } }
        try await scene.bring(staged, recorder, attempts: 1)
        #expect(scene.holds(staged))
        #expect(scene.emulator.requests.filter { $0 == "create" }.count == 1)
    }

    @Test("an expired address is requested once more, without an attempt", arguments: [false, true])
    func ended(_ isFresh: Bool) async throws {
        let scene = try Scene()
        let staged = try StagedUpload(Self.size)
        let recorder = RecordingReporter()
        try await staged.sendStopped(to: scene, recorder, accepting: 5 << 20)
        let asked = scene.signer.requestedOperations.count
        if isFresh {
            // The address for the list of parts, which is requested next, and the stored ones.
            scene.signer.change { $0.ended = 6 }
        } else {
            scene.signer.endAll()
        }
        scene.emulator.change { $0.requests = [] }
        try await scene.bring(staged, recorder, attempts: 1)
        #expect(scene.holds(staged))
        #expect(!scene.emulator.requests.contains("part 1"))
        let again = Array(scene.signer.requestedOperations[asked...])
        #expect(
            again == (isFresh ? ["head", "head"] : ["head"]) + ["parts", "part+1", "complete", "head"], "\(again)")
    }

    @Test("addresses are kept as long as the signer says, and no longer")
    func life() async throws {
        let scene = try Scene()
        // Less than the minimum validity at the beginning of a request.
        scene.signer.change { $0.life = 20 }
        let staged = try StagedUpload(Self.size)
        try await scene.bring(staged, attempts: 1)
        #expect(scene.holds(staged))
        #expect(scene.signer.requestedOperations == ["head", "create", "part+2", "part+1", "part", "complete", "head"])
    }

    @Test("an address refused for another reason is not tried twice with bytes, and never shown")
    func refused() async throws {
        let scene = try Scene()
        // For the query for an object, and for the one whether the key may write.
        scene.signer.script(.address { $0 + "0" }, .address { $0 + "0" }, .address { $0 + "0" })
        let staged = try StagedUpload(900)
        let error = try await staged.failure(to: scene)
        #expect(error.remedy == .authenticate)
        #expect(scene.emulator.requests == ["head", "head", "part 1"])
        scene.signer.script(.address { $0 }, .address { $0 + "0" })
        let second = try await staged.failure(to: scene)
        #expect(second.failure.code == .service("SignatureDoesNotMatch"))
        #expect(second.failure.message.contains("it was not signed: ***"), "\(second)")
        #expect(!second.failure.message.contains("signature-that"), "\(second)")
        // The last request checks whether the object exists anyway.
        #expect(scene.emulator.requests == ["head", "head", "part 1", "head", "put", "head"])
    }

    @Test(
        "the id of the signing key is never shown",
        arguments: ["X-Amz-Credential", "AWSAccessKeyId"])
    func keyID(_ name: String) async throws {
        let scene = try Scene()
        let id = "AKIAEXAMPLE0000001"
        let more = name == "AWSAccessKeyId" ? "" : "%2F20261123%2Fus-east-1%2Fs3%2Faws4_request"
        scene.signer.script(.address { $0 }, .address { "\($0)&\(name)=\(id)\(more)" })
        scene.emulator.script(.head, .answer(404))
        scene.emulator.change { $0.judge = { _ in (403, "AccessDenied", "`\(id)` may not") } }
        let error = try await StagedUpload(900).failure(to: scene)
        #expect(error.failure.message.contains("AccessDenied: `***` may not"), "\(error)")
    }

    @Test("headers of the signer replace ours")
    func headers() async throws {
        let scene = try Scene(["storage_class": .text("STANDARD")])
        scene.signer.script(.address { $0 }, .headers(["X-Amz-Storage-Class": "GLACIER_IR", "x-amz-acl": "private"]))
        let staged = try StagedUpload(900)
        try await scene.bring(staged, attempts: 1)
        let headers = try #require(scene.emulator.objects["front/clip.mp4"]).headers
        #expect(headers["x-amz-storage-class"] == "GLACIER_IR" && headers["x-amz-acl"] == "private")
    }

    @Test(
        "a corrupted staged copy creates no object, whatever is sent with the bytes",
        arguments: [900, size],
        ["md5", "none"])
    func rotten(_ size: Int, _ checksum: String) async throws {
        let scene = try Scene(["preset": .text("minio"), "checksum": .text(checksum)])
        let staged = try StagedUpload(size)
        var other = staged.content
        other[size / 2] ^= 1
        try staged.restage(other)
        let recorder = RecordingReporter()
        let error = try await staged.failure(to: scene, recorder)
        #expect(error.remedy == .restage(.changed))
        recorder.giveUp(by: scene.destination)
        for checkpoint in recorder.left { #expect(try await scene.destination.discard(checkpoint)) }
        #expect(scene.emulator.objects.isEmpty && scene.emulator.uploads.isEmpty)
        let headers = scene.signer.questions.flatMap(\.requests).flatMap(\.headers.keys).map { $0.lowercased() }
        #expect(!headers.contains("x-amz-content-sha256"))
    }

    @Test("a removal is signed too, and unfinished uploads are listed")
    func removal() async throws {
        let scene = try Scene()
        let staged = try StagedUpload(Self.size)
        let recorder = RecordingReporter()
        try await staged.sendStopped(to: scene, recorder, accepting: 5 << 20)
        #expect(try await scene.destination.unfinished()?.map(\.name) == ["front/clip.mp4"])
        let last = try #require(recorder.last)
        #expect(try await scene.destination.discard(last))
        #expect(scene.emulator.uploads.isEmpty)
        #expect(try await scene.destination.discard(last), "a missing upload counts as discarded")
    }
}
