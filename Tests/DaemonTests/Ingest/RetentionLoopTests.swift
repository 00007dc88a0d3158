import API
import Core
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Retention of sources, without a daemon")
struct RetentionLoopTests {
    private static func scene() async throws -> ComponentScene {
        try await ComponentScene { $0.folders[0].retention = Retention(time: .seconds(3600)) }
    }

    /// Uploads a file, and keeps its verified source.
    private static func keep(_ name: FilePath, _ scene: ComponentScene) async throws {
        let id = try await scene.record(name)
        let asset = try await scene.row(id).upload.asset
        try await scene.store.write { try $0.staging.record([StagedCopy(asset: asset, sha256: noise(32))]) }
        _ = try #require(try await scene.store.claim("nas", passingOver: []))
        try await scene.store.write {
            try $0.attempts.finish(id, .verified(RemoteObject(id: nil, url: "u", verifiedBy: "offset")))
        }
        try await scene.store.write { try $0.releases.finish(asset, .kept) }
    }

    private static func leaving(_ scene: ComponentScene) async throws -> Int {
        try await scene.store.read { try $0.keptSources.countLeaving("cam") }.files
    }

    @Test("a source that is kept while the loop sleeps is removed when its time is over")
    func woken() async throws {
        let scene = try await Self.scene()
        let signal = scene.parts.signals.retention
        let retention = SourceRetention(
            context: scene.context, stateHealth: scene.parts.stateHealth, signal: signal)
        let loop = Task { try await retention.run() }
        defer { loop.cancel() }
        try await eventually("the loop sleeps") { signal.isWaiting }
        try await Self.keep("a.mp4", scene)
        try await eventually("the loop has looked, and sleeps") { signal.isWaiting }
        #expect(try await Self.leaving(scene) == 0)
        #expect(try await retention.view(scene.context.settings.folders[0])?.goingFiles == 0)
        scene.clocks.advance(by: .seconds(3601))
        #expect(try await retention.view(scene.context.settings.folders[0])?.goingFiles == 1)
        // Only commits wake the loop: another file arrives.
        _ = try await scene.record("b.mp4")
        try await eventually("the source is on its way") { try await Self.leaving(scene) == 1 }
    }

    @Test("a clock that jumps removes nothing until it was stable for an hour")
    func jump() async throws {
        let scene = try await Self.scene()
        let signal = scene.parts.signals.retention
        let retention = SourceRetention(
            context: scene.context, stateHealth: scene.parts.stateHealth, signal: signal)
        try await Self.keep("a.mp4", scene)
        let loop = Task { try await retention.run() }
        defer { loop.cancel() }
        try await eventually("the loop sleeps") { signal.isWaiting }
        scene.clocks.step(by: .seconds(400 * 86_400))
        signal.signal()
        try await eventually("the loop has looked, and sleeps") { signal.isWaiting }
        #expect(try await Self.leaving(scene) == 0)
        scene.clocks.advance(by: .seconds(3601))
        signal.signal()
        try await eventually("the source is on its way") { try await Self.leaving(scene) == 1 }
    }
}
