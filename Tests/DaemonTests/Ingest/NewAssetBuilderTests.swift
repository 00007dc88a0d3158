import Core
import Linux
import Store
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Daemon

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
            of: try Self.file(scene, in: "cam"), folder, to: [UploadRoute(to: "nas"), UploadRoute(to: "attic")],
            key: "k")
        #expect(asset.orders.map(\.destination) == ["nas", "attic"])
        #expect(asset.orders.allSatisfy { $0.name == "x/a.mp4" && $0.key == "k" })
        #expect(asset.stagingMode == .inPlace)
    }

    @Test("handed over bytes need no copy of their source")
    func received() async throws {
        let scene = try await ComponentScene { $0.staging.copy = .inPlace }
        let folder = try #require(scene.context.configuration.folder(FolderSettings.received.watch.name))
        let asset = Self.builder(scene).arrival(
            of: try Self.file(scene, in: "cam"), folder, to: [UploadRoute(to: "nas")])
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
