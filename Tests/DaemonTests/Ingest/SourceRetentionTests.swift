import API
import Core
import Linux
import TestKit
import Testing

@testable import Config
@testable import Daemon
@testable import Store

@Suite("Retention of sources")
struct SourceRetentionTests {
    private let clocks = ManualClocks()

    private func scene(_ retention: Retention) async throws -> DaemonScene {
        let scene = try await DaemonScene(clocks: clocks)
        scene.written.edit { $0.folders[0].retention = retention }
        _ = try await scene.daemon.reload()
        return scene
    }

    private func stands(_ name: String, _ scene: DaemonScene) throws -> Bool {
        try FileStatus.ifPresent(at: scene.folder.path.appending(FilePath("cam/\(name)"))) != nil
    }

    private func kept(_ id: String, _ scene: DaemonScene) async throws {
        let asset = try #require(try await scene.daemon.context.store.read { try $0.uploads.find(id) }?.asset)
        try await eventually("the source of \(id) is kept") {
            try await scene.daemon.context.store.read { try $0.assets.find(asset) }?.sourceState == .kept
        }
    }

    @Test("a source is deleted when its time since verification has ended, not before")
    func time() async throws {
        let scene = try await scene(Retention(time: .seconds(3600)))
        let early = try await scene.add("early.mp4")
        try await scene.reach(.completed, [early])
        try await kept(early, scene)
        clocks.advance(by: .seconds(1800))
        let late = try await scene.add("late.mp4")
        try await scene.reach(.completed, [late])
        try await kept(late, scene)
        clocks.advance(by: .seconds(1799))
        #expect(try await going(scene).isEmpty)
        clocks.advance(by: .seconds(2))
        scene.daemon.signals.retention.signal()
        try await eventually("the source of the early upload has been deleted") { try !stands("early.mp4", scene) }
        #expect(try stands("late.mp4", scene))
        try await eventually("the early upload shows its source as deleted") {
            try await scene.daemon.show(early).upload.sourceState == "done: deleted"
        }
        try await scene.stop()
    }

    /// Names of the files that the rules release now.
    private func going(_ scene: DaemonScene) async throws -> [String] {
        let store = scene.daemon.context.store
        return try await scene.daemon.context.settings.folders[0].sourcesToRelease(
            free: nil, on: nil, now: clocks.wall()
        ) {
            (disk: String?, latest: WallTime?, limit: Int) in
            try await store.read { try $0.keptSources.oldest(in: "cam", on: disk, until: latest, limit: limit) }
        }.map(\.path.name.display)
    }

    @Test("a retried upload keeps its source until it is verified again")
    func again() async throws {
        let scene = try await scene(Retention(time: .seconds(3600)))
        let id = try await scene.add("a.mp4")
        try await scene.reach(.completed, [id])
        try await kept(id, scene)
        let other = try #require(
            await scene.daemon.add(
                AddRequest(path: scene.folder.path.appending("cam/a.mp4").display, again: true)
            ).uploads.first)
        _ = other
        try await scene.reach(.completed, [other.id])
        clocks.advance(by: .seconds(3601))
        scene.daemon.signals.retention.signal()
        try await eventually("the source has been deleted") { try !stands("a.mp4", scene) }
        try await scene.stop()
    }

    @Test("a file that changed after verification is kept, whatever its age")
    func changed() async throws {
        let scene = try await scene(Retention(time: .seconds(3600)))
        let id = try await scene.add("a.mp4")
        try await scene.reach(.completed, [id])
        try await kept(id, scene)
        try scene.folder.write("cam/a.mp4", noise(300, seed: 9))
        clocks.advance(by: .seconds(3601))
        scene.daemon.signals.retention.signal()
        let store = scene.daemon.context.store
        let asset = try #require(try await store.read { try $0.uploads.find(id) }?.asset)
        try await eventually("the changed source has been checked") {
            try await store.read { try $0.assets.find(asset) }?.sourceNote?.contains("changed") ?? false
        }
        #expect(try stands("a.mp4", scene))
        #expect(try await store.read { try $0.keptSources.oldest(in: "cam", limit: 10) }.isEmpty)
        try await scene.stop()
    }

    @Test("no source is deleted by a clock that jumped until it was stable for an hour")
    func jump() async throws {
        let scene = try await scene(Retention(time: .seconds(86_400)))
        let id = try await scene.add("a.mp4")
        try await scene.reach(.completed, [id])
        try await kept(id, scene)
        try await eventually("the sources have been checked") { scene.daemon.signals.retention.isWaiting }
        clocks.step(by: .seconds(400 * 86_400))
        scene.daemon.signals.retention.signal()
        try await eventually("the sources have been checked") { scene.daemon.signals.retention.isWaiting }
        clocks.advance(by: .seconds(3000))
        scene.daemon.signals.retention.signal()
        try await eventually("the sources have been checked") { scene.daemon.signals.retention.isWaiting }
        #expect(
            try await scene.daemon.context.store.read { try $0.keptSources.oldest(in: "cam", limit: 10) }.count == 1)
        #expect(try stands("a.mp4", scene))
        clocks.advance(by: .seconds(700))
        scene.daemon.signals.retention.signal()
        try await eventually("the source has been deleted") { try !stands("a.mp4", scene) }
        try await scene.stop()
    }

    @Test("only as many sources are deleted as free the missing space, the oldest first")
    func enough() {
        func kept(_ sizes: [Int64]) -> [KeptSource] {
            sizes.enumerated().map {
                KeptSource(
                    asset: Int64($0), size: $1, since: clocks.wall(),
                    path: SourcePath(root: "/", relative: FilePath("\($0)")))
            }
        }
        #expect(SourceRetention.prefixCovering(kept([10, 10, 10]), for: 11).map(\.asset) == [0, 1])
        #expect(SourceRetention.prefixCovering(kept([10, 10, 10]), for: 10).map(\.asset) == [0])
        #expect(SourceRetention.prefixCovering(kept([0, 0, 5]), for: 1).map(\.asset) == [0, 1, 2])
        #expect(SourceRetention.prefixCovering(kept([10]), for: 0).isEmpty)
        #expect(SourceRetention.prefixCovering(kept([3, 4]), for: 100).count == 2)
    }
}
