import Core
import Synchronization
import TestKit
import Testing

@testable import Destinations

/// The names that other files have, as found by the requests of a key that may only write.
@Suite("s3 with a write-only key: taken names", .timeLimit(.minutes(Patience.minutes(3))))
struct S3TakenNameTests {
    private let key = WriteOnlyKey()
    private let names = [WriteOnlyKey.name, WriteOnlyKey.second]

    private func count(_ kind: String, _ scene: S3Scene) -> Int { scene.emulator.requests.count { $0 == kind } }

    @Test(
        "each taken name costs one sending, and the name with the digest follows at once",
        arguments: [900, S3Scene.size])
    func threeNames(_ size: Int) async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        key.occupy(scene, names)
        let staged = try StagedUpload(size)
        let object = try await scene.bring(staged, attempts: 1)
        #expect(object.id == key.contentName(staged) && object.warnings == [])
        #expect(count(size == 900 ? "put" : "create", scene) == 3)
        #expect(names.allSatisfy { key.isUnharmed(scene, $0) })
    }

    @Test("a name that was taken is not tried again after a restart", arguments: [900, S3Scene.size])
    func restarted(_ size: Int) async throws {
        let scene = try key.scene()
        defer { scene.emulator.stop() }
        key.occupy(scene, [WriteOnlyKey.name])
        let (staged, recorder) = (try StagedUpload(size), RecordingReporter())
        // The second name's request never arrives.
        let kind: S3Emulator.Kind = size == 900 ? .put : .create
        scene.emulator.script(kind, .pass, .cut(after: 0))
        _ = try await staged.failure(to: scene, recorder)
        scene.emulator.change { $0.requests = [] }
        let object = try await key.scene(at: scene.emulator).bring(staged, recorder, attempts: 1)
        #expect(object.id == WriteOnlyKey.second)
        #expect(count(kind.rawValue, scene) == 1)
    }

    @Test(
        "in a bundle, a taken name is sent to once: the upload alone begins with the next name",
        arguments: ["suffix", "fail"], [false, true])
    func bundle(_ rule: String, _ mayLookUp: Bool) async throws {
        let scene = try key.scene(["taken": .text(rule)])
        defer { scene.emulator.stop() }
        if mayLookUp { scene.emulator.change { $0.judge = nil } }
        key.occupy(scene, [WriteOnlyKey.name])
        let (taken, free) = (try StagedUpload(900), try StagedUpload(900, id: "2", name: "front/free.mp4", seed: 2))
        let notes = Notes()
        let done = try await scene.destination.upload(together: [taken.order, free.order], reporter: notes)
        #expect(Array(done.keys) == ["2"])
        let recorder = RecordingReporter()
        try await recorder.record(try #require(notes.checkpoints.withLock { $0["01JQ"] }))
        let next = try key.scene(["taken": .text(rule)], at: scene.emulator)
        if mayLookUp { scene.emulator.change { $0.judge = nil } }
        if rule == "fail" {
            #expect(try await taken.failure(to: next, recorder).failure.code == .nameTaken)
            #expect(count("put", scene) == 2)
        } else {
            let object = try await taken.send(to: next, recorder)
            #expect(object.id == WriteOnlyKey.second && object.warnings == [])
            #expect(count("put", scene) == 3)
        }
        #expect(key.isUnharmed(scene, WriteOnlyKey.name))
    }

    private final class Notes: BundleReporter {
        let checkpoints = Mutex<[String: Checkpoint]>([:])
        func record(_ checkpoints: [String: Checkpoint]) async throws -> Set<String> {
            self.checkpoints.withLock { $0.merge(checkpoints) { $1 } }
            return Set(checkpoints.keys)
        }
        func sending(_ id: String, _ offset: Int64) {}
        func spent(_ id: String, _ bytes: Int64) {}
        func received(_ id: String, _ bytes: Int64) {}
        func entered(_ phase: UploadPhase) {}
        func shouldPause(_ id: String) -> Bool { false }
    }
}
