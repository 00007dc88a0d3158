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

@Suite("New assets")
struct NewAssetBuilderTests {
    private static func builder(_ scene: ComponentScene) -> NewAssetBuilder { scene.parts.intake().assets }

    private static func file(_ scene: ComponentScene, in folder: String) throws -> SettledFile {
        let status = try FileStatus(at: try scene.folder.write(FilePath(folder + "/a.mp4"), [1, 2, 3]))
        return SettledFile(
            folder: folder, root: scene.folder.path.appending(FilePath(folder)), relative: "a.mp4", status: status,
            identity: FileIdentity(
                folder: folder, relative: "a.mp4", size: status.size, modified: status.modified, inode: nil, born: nil,
                fileSystem: nil), settledBy: .quiet)
    }

    @Test("a file is uploaded to the destinations that are given, in the way that its folder says")
    func orders() async throws {
        let scene = try await ComponentScene {
            $0.folders[0].copy = .inPlace
            $0.folders[0].name = try Template("x/{name}")
        }
        let folder = try #require(scene.context.configuration.folder("cam"))
        let asset = Self.builder(scene).arrival(
            of: try Self.file(scene, in: "cam"), folder, to: ["nas", "attic"], key: "k")
        #expect(asset.orders.map(\.destination) == ["nas", "attic"])
        #expect(asset.orders.allSatisfy { $0.name == "x/a.mp4" && $0.key == "k" })
        #expect(asset.stagingMode == .inPlace)
    }

    @Test("handed over bytes need no copy of their source")
    func received() async throws {
        let scene = try await ComponentScene { $0.staging.copy = .inPlace }
        let folder = try #require(scene.context.configuration.folder(FolderSettings.received.watch.name))
        let asset = Self.builder(scene).arrival(of: try Self.file(scene, in: "cam"), folder, to: ["nas"])
        #expect(asset.stagingMode == .received)
    }

    @Test("the facts of a recording are read only where a template of its folder needs them")
    func facts() async throws {
        let scene = try await ComponentScene { $0.folders[1].name = try Template("{recorded:%Y}/{name}") }
        #expect(!scene.context.configuration.asksMedia(of: "cam"))
        #expect(scene.context.configuration.asksMedia(of: "door"))
        #expect(await Self.builder(scene).facts(of: try Self.file(scene, in: "cam")).isEmpty)
    }
}
