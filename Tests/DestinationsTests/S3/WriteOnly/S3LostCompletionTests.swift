import Core
import TestKit
import Testing

@testable import Destinations

/// The answer to the request that completes a multipart upload is lost, and the key may not query the object. Only a
/// positive answer to a completion proves that the service has the file.
@Suite("s3 with a write-only key: lost completions", .timeLimit(.minutes(Patience.minutes(3))))
struct S3LostCompletionTests {
    private let key = WriteOnlyKey()
    private typealias Fault = S3Emulator.Fault

    private func count(_ kind: String, _ scene: S3Scene) -> Int {
        scene.emulator.requests.count { $0.split(separator: " ").first.map(String.init) == kind }
    }

    @Test("a 404 that is not the service's proves nothing: the destination is held until the service answers")
    func foreignAnswer() async throws {
        for answer: Fault in [
            .answer(404, [("Content-Type", "text/html")], "<html><body>404 Not Found</body></html>"), .answer(404),
            .answer(410), .answer(412, [("Content-Type", "text/html")], "<html>no</html>"),
        ] {
            let scene = try key.scene()
            defer { scene.emulator.stop() }
            try await scene.bring(try StagedUpload(S3Scene.size, id: "0", name: "front/0.mp4", seed: 9))
            scene.emulator.script(.complete, .cut(after: 10), answer, answer)
            let (staged, recorder) = (try StagedUpload(S3Scene.size, removesSource: true), RecordingReporter())
            _ = try await staged.failure(to: scene, recorder)
            for _ in 0..<2 {
                let error = try await staged.failure(to: scene, recorder)
                #expect(error.remedy == .misconfigured, "\(error)")
            }
            let object = try await scene.bring(staged, recorder, attempts: 1)
            #expect(object.verifiedBy == "parts" && object.warnings == [], "\(object)")
            #expect(scene.emulator.objects[WriteOnlyKey.name]?.bytes == staged.content)
            #expect(count("create", scene) == 2)
        }
    }

    @Test("a page in place of the list of parts, or of the answer to a part, does not end the upload")
    func foreignList() async throws {
        let scene = try S3Scene()
        defer { scene.emulator.stop() }
        let (staged, recorder) = (try StagedUpload(S3Scene.size), RecordingReporter())
        try await staged.sendStopped(to: scene, recorder, accepting: 5 << 20)
        let page = Fault.answer(404, [("Content-Type", "text/html")], "<html>404</html>")
        scene.emulator.script(.parts, page)
        scene.emulator.script(.part, page)
        for _ in 0..<2 { #expect(try await staged.failure(to: scene, recorder).remedy == .misconfigured) }
        try await scene.bring(staged, recorder, attempts: 1)
        #expect(scene.holds(staged) && count("create", scene) == 1)
    }

    @Test(
        "an unknown upload may have been removed: the file is sent again under the name with its digest",
        arguments: [false, true])
    func removed(_ removesSource: Bool) async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        scene.emulator.script(.complete, .cut(after: 10))
        let (staged, recorder) = (try StagedUpload(S3Scene.size, removesSource: removesSource), RecordingReporter())
        _ = try await staged.failure(to: scene, recorder)
        scene.emulator.change { $0.uploads = [:] }
        let object = try await staged.send(to: scene, recorder)
        #expect(object.id == key.contentName(staged) && object.verifiedBy == "parts")
        #expect(object.warnings.contains { $0.contains("may hold the file twice") }, "\(object)")
        #expect(scene.holds(staged, as: key.contentName(staged)))
    }

    @Test(
        "a completion with a lost answer is confirmed by a second sending, and the doubt is a warning",
        arguments: [false, true], [false, true])
    func arrived(_ isAnsweredTaken: Bool, _ removesSource: Bool) async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        scene.emulator.script(.complete, .loseReply)
        if isAnsweredTaken { scene.emulator.script(.complete, .error(412, "PreconditionFailed")) }
        let staged = try StagedUpload(S3Scene.size, removesSource: removesSource)
        let object = try await key.finish(staged, at: scene)
        #expect(object.id == key.contentName(staged) && object.verifiedBy == "parts")
        #expect(object.warnings.contains { $0.contains("may hold the file twice") }, "\(object)")
        #expect(scene.emulator.objects[key.contentName(staged)]?.bytes == staged.content)
        #expect(scene.emulator.objects.count == 2 && scene.emulator.uploads.isEmpty)
        #expect(count("create", scene) == 2)
    }

    @Test("a second lost completion is the object with the digest in its name")
    func arrivedTwice() async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        scene.emulator.script(.complete, .loseReply, .pass, .loseReply)
        let staged = try StagedUpload(S3Scene.size, removesSource: true)
        let object = try await key.finish(staged, at: scene, within: 6)
        #expect(object.id == key.contentName(staged) && object.verifiedBy == "name")
        #expect(scene.emulator.objects[key.contentName(staged)]?.bytes == staged.content)
        #expect(scene.emulator.objects.count == 2 && scene.emulator.uploads.isEmpty)
    }

    @Test("a completion with a lost answer, refused for another file's name, gets another name")
    func refused() async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        key.occupy(scene, [WriteOnlyKey.name])
        scene.emulator.script(.complete, .loseReply)
        let staged = try StagedUpload(S3Scene.size)
        let object = try await scene.bring(staged)
        #expect(object.id == WriteOnlyKey.second && object.verifiedBy == "parts")
        #expect(scene.emulator.objects[WriteOnlyKey.second]?.bytes == staged.content)
        #expect(key.isUnharmed(scene, WriteOnlyKey.name) && scene.emulator.objects.count == 2)
        #expect(scene.emulator.uploads.isEmpty)
    }

    @Test(
        "after a restart, another file's object is no proof for an upload that was lost under its second name",
        arguments: [false, true])
    func restarted(_ hasArrived: Bool) async throws {
        let first = try key.scene()
        defer { first.emulator.stop() }
        key.occupy(first, [WriteOnlyKey.name])
        first.emulator.script(.complete, .pass, hasArrived ? .loseReply : .cut(after: 10))
        let (staged, recorder) = (try StagedUpload(S3Scene.size, removesSource: true), RecordingReporter())
        _ = try await staged.failure(to: first, recorder)
        if !hasArrived { first.emulator.change { $0.uploads = [:] } }
        let second = try key.scene(at: first.emulator)
        let object = try await staged.send(to: second, recorder)
        #expect(object.id == key.contentName(staged) && object.verifiedBy == "parts")
        #expect(object.warnings.contains { $0.contains("may hold the file twice") }, "\(object)")
        #expect(second.emulator.objects[key.contentName(staged)]?.bytes == staged.content)
        #expect(key.isUnharmed(second, WriteOnlyKey.name))
        #expect(second.emulator.objects.count == (hasArrived ? 3 : 2))
    }
}
