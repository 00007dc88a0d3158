import Core
import Synchronization
import TestKit
import Testing

@testable import Destinations

/// Bytes that the service does not keep: a path cuts requests of a size, the staged copy has rotted, or every part is
/// refused.
@Suite("s3: cut and refused requests", .timeLimit(.minutes(Patience.minutes(3))))
struct S3CutTests {
    private static let settings: [String: SettingValue] = ["part_size": .bytes(8 << 20), "parallel": .whole(3)]
    private static let size = 24 << 20
    private static let cut = S3Emulator.Fault.cut(after: 3 << 20)

    private func parts(_ scene: S3Scene) -> Int { scene.emulator.requests.count { $0.hasPrefix("part ") } }

    @Test("after a cut one part goes alone, after the second the upload has smaller parts, and later ones too")
    func learned() async throws {
        let scene = try S3Scene(Self.settings)
        defer { scene.emulator.stop() }
        scene.emulator.script(.part, Self.cut, Self.cut, Self.cut, Self.cut)
        let (staged, recorder) = (try StagedUpload(Self.size), RecordingReporter())
        _ = try await staged.failure(to: scene, recorder)
        #expect(parts(scene) == 3)
        _ = try await staged.failure(to: scene, recorder)
        #expect(parts(scene) == 4)
        try await scene.bring(staged, recorder, attempts: 1)
        #expect(scene.holds(staged) && parts(scene) == 4 + 5)
        let size = try #require(scene.destination.requestSize)
        #expect(size.most == 4 << 20 && size.failed == 8 << 20)
        let next = try S3Scene(Self.settings, at: scene.emulator)
        next.destination.recall(size)
        try await next.bring(try StagedUpload(Self.size, id: "2", name: "front/2.mp4", seed: 2), attempts: 1)
        #expect(parts(scene) == 4 + 5 + 5)
    }

    @Test("a single request that is cut twice is followed by parts")
    func single() async throws {
        let scene = try S3Scene(["single_up_to": .bytes(16 << 20)])
        defer { scene.emulator.stop() }
        scene.emulator.script(.put, Self.cut, Self.cut)
        let (staged, recorder) = (try StagedUpload(12 << 20), RecordingReporter())
        for _ in 0..<2 { _ = try await staged.failure(to: scene, recorder) }
        let object = try await scene.bring(staged, recorder, attempts: 1)
        #expect(scene.holds(staged) && parts(scene) == 3 && object.warnings == [])
    }

    @Test("parts that are cut again and again are reported with their size, and with the key if there is one")
    func hint() async throws {
        let scene = try S3Scene()
        defer { scene.emulator.stop() }
        scene.emulator.script(.part, Self.cut, Self.cut, Self.cut)
        let (staged, recorder) = (try StagedUpload(S3Scene.size), RecordingReporter())
        var message = ""
        for _ in 0..<3 { message = try await staged.failure(to: scene, recorder).failure.message }
        #expect(message.contains("requests of \(5 << 20) bytes were cut 3 times in a row"), "\(message)")
        var checkpoint = PartsCheckpoint()
        let part = try #require(PartPlan(size: 10, partSize: 5))[0]
        var hints: [String] = []
        for _ in 0..<3 { hints.append(PartCuts(part, in: &checkpoint).hint("block.size")) }
        #expect(hints[0] == "" && hints[1] == "" && hints[2].hasSuffix("a smaller `block.size` may help"))
    }

    @Test("a staged copy that has rotted is checked after the first refusal of a part")
    func rotten() async throws {
        let scene = try S3Scene()
        defer { scene.emulator.stop() }
        let (staged, recorder) = (try StagedUpload(S3Scene.size), RecordingReporter())
        var content = staged.content
        content[3_000_000] ^= 1
        try staged.restage(content)
        let error = try await staged.failure(to: scene, recorder)
        #expect(error.failure.code == .stagedChanged && error.remedy == .restage(.changed), "\(error)")
        #expect(scene.emulator.requests.filter { $0 == "part 1" }.count == 1)
    }

    @Test("bytes of refused parts count as sent in vain, also those of parallel parts")
    func waste() async throws {
        let scene = try S3Scene(Self.settings)
        defer { scene.emulator.stop() }
        scene.emulator.script(.part, .answer(499), .answer(499), .answer(499))
        let (staged, recorder) = (try StagedUpload(Self.size), RecordingReporter())
        _ = try await staged.failure(to: scene, recorder)
        #expect(recorder.sent.last == Int64(Self.size) && recorder.accepted == 0)
        scene.emulator.script(.part, .error(400, "BadDigest"))
        try await scene.bring(staged, recorder, attempts: 1)
        #expect(recorder.sentInVain.withLock { $0 } == 8 << 20)
        #expect(scene.holds(staged))
    }
}
