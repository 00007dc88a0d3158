import Core
import Linux
import Store
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Sources of assets")
struct SourceLocatorTests {
    /// The recorded asset of a file in the folder `cam`.
    private static func asset(_ name: String, in scene: ComponentScene) async throws -> AssetRecord {
        _ = try scene.folder.write(FilePath("cam/" + name), [1, 2, 3])
        return try await scene.row(try await scene.record(FilePath(name))).asset
    }

    @Test("a source is there until its file is removed, and then it is gone")
    func removed() async throws {
        let scene = try await ComponentScene()
        let asset = try await Self.asset("a.mp4", in: scene)
        #expect(try scene.parts.locator.whereabouts(of: asset) == .there)
        #expect(scene.parts.locator.source(of: asset).path == asset.path)
        try Files.remove(asset.path.shown)
        #expect(try scene.parts.locator.whereabouts(of: asset) == .gone)
    }

    @Test("a source is away while its folder does not meet its requirement")
    func requirement() async throws {
        let scene = try await ComponentScene { $0.folders[0].watch.requirement = FolderRequirement(file: "disk-1") }
        let asset = try await Self.asset("a.mp4", in: scene)
        #expect(try scene.parts.locator.whereabouts(of: asset) == .away)
        #expect(scene.parts.locator.requirementMissing(of: asset) != nil)
        _ = try scene.folder.write("cam/disk-1", [])
        #expect(try scene.parts.locator.whereabouts(of: asset) == .there)
        #expect(scene.parts.locator.requirementMissing(of: asset) == nil)
    }

    @Test("an error of one file does not show that its folder is absent")
    func oneFile() async throws {
        let scene = try await ComponentScene()
        let asset = try await Self.asset("a.mp4", in: scene)
        let denied = SystemError(call: "open", subject: "a.mp4", code: 13)
        #expect(scene.parts.locator.absence(of: asset, after: denied) == nil)
    }

    @Test("an absent disk is logged once, and again when it was back in between")
    func once() async throws {
        let lines = Mutex(0)
        let scene = try await ComponentScene()
        let counted = Context(
            store: scene.store, clocks: scene.clocks,
            log: Log(level: .info, format: .plain) { _ in lines.withLock { $0 += 1 } },
            configuration: scene.context.configuration)
        let locator = SourceLocator(context: counted, folders: scene.parts.sources)
        for reason in ["not mounted", "pulled out"] { locator.diskIsAway("cam", reason) }
        #expect(lines.withLock { $0 } == 1)
        locator.disksAreBack(["cam"])
        locator.diskIsAway("cam", "not mounted")
        #expect(lines.withLock { $0 } == 2)
    }
}
