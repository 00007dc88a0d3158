import Core
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Daily maintenance, without a daemon", .timeLimit(.minutes(Patience.minutes(1))))
struct MaintenanceTests {
    private static func identity(_ name: FilePath) -> FileIdentity {
        FileIdentity(folder: "cam", relative: name, size: 1, modified: 1, inode: nil, born: nil, fileSystem: nil)
    }

    private static func isKnown(_ scene: ComponentScene, _ name: FilePath) async throws -> Bool {
        try await scene.store.read { try $0.tombstones.knownFile("cam", name) } != nil
    }

    /// Runs maintenance once, after all tombstones have become old.
    private static func maintain(_ scene: ComponentScene) async throws {
        scene.clocks.advance(by: .seconds(91 * 86_400))
        let signal = scene.parts.signals.maintenance
        let maintenance = Maintenance(
            context: scene.context, sources: scene.parts.sources, fileSystems: FileSystems(),
            thumbnails: ThumbnailCache(in: scene.context.settings.state), signal: signal)
        let loop = Task { try await maintenance.run() }
        try await eventually("maintenance sleeps") { signal.isWaiting }
        loop.cancel()
    }

    @Test("the record of a source that is gone is removed after 90 days, and that of one that is there stays")
    func gone() async throws {
        let scene = try await ComponentScene()
        try scene.folder.write("cam/there.mp4", noise(1))
        try await scene.store.write { try $0.tombstones.skip(["there.mp4", "gone.mp4"].map { Self.identity($0) }) }
        try await Self.maintain(scene)
        #expect(try await Self.isKnown(scene, "there.mp4"))
        #expect(try await !Self.isKnown(scene, "gone.mp4"))
    }

    @Test("records of a folder that is not configured are kept: it may come back")
    func unconfigured() async throws {
        let scene = try await ComponentScene { $0.folders.remove(at: 0) }
        try await scene.store.write { try $0.tombstones.skip([Self.identity("gone.mp4")]) }
        try await Self.maintain(scene)
        #expect(try await Self.isKnown(scene, "gone.mp4"))
    }

    @Test("a thumbnail is removed 30 days after its last use, and all of them where they are switched off")
    func thumbnails() async throws {
        for isOn in [true, false] {
            let scene = try await ComponentScene { $0.control.thumbnails = isOn }
            let cache = ThumbnailCache(in: scene.context.settings.state)
            // `maintain` lets 91 days go by.
            for (key, age) in [("old", 60), ("new", 62)] as [(String, Int64)] {
                try cache.store(.picture([1]), as: key)
                cache.noteUse(of: key, at: scene.clocks.wall().advanced(by: .seconds(age * 86_400)))
            }
            try await Self.maintain(scene)
            #expect(cache.find("old") == nil && (cache.find("new") != nil) == isOn)
            #expect(try (FileStatus.ifPresent(at: cache.folder) != nil) == isOn)
        }
    }

    @Test("a thumbnail is removed after its time also if no file arrives and no signal comes")
    func idle() async throws {
        let scene = try await ComponentScene()
        let cache = ThumbnailCache(in: scene.context.settings.state)
        try cache.store(.picture([1]), as: "a")
        cache.noteUse(of: "a", at: scene.clocks.wall())
        let signal = AsyncSignal()
        let maintenance = Maintenance(
            context: scene.context, sources: scene.parts.sources, fileSystems: FileSystems(), thumbnails: cache,
            signal: signal, interval: .milliseconds(20))
        let loop = Task { try await maintenance.run() }
        try await eventually("maintenance sleeps") { signal.isWaiting }
        #expect(cache.find("a") != nil)
        scene.clocks.advance(by: ThumbnailCache.kept + .seconds(1))
        try await eventually("it is gone") { cache.find("a") == nil }
        loop.cancel()
    }

    @Test("thumbnails go when a reload switches them off, on the same day")
    func switchedOff() async throws {
        let scene = try await ComponentScene()
        let cache = ThumbnailCache(in: scene.context.settings.state)
        try cache.store(.picture([1]), as: "a")
        cache.noteUse(of: "a", at: scene.clocks.wall())
        let signal = scene.parts.signals.maintenance
        let maintenance = Maintenance(
            context: scene.context, sources: scene.parts.sources, fileSystems: FileSystems(), thumbnails: cache,
            signal: signal)
        let loop = Task { try await maintenance.run() }
        try await eventually("maintenance sleeps") { signal.isWaiting }
        #expect(cache.find("a") != nil)
        var runtime = scene.context.configuration.value
        runtime.settings.control.thumbnails = false
        scene.context.configuration.replace(runtime)
        scene.parts.signals.wake(for: FactChanges.configuration)
        try await eventually("they are gone") { try FileStatus.ifPresent(at: cache.folder) == nil }
        loop.cancel()
    }
}
