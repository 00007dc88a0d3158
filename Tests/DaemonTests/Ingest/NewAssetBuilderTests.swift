import Core
import Glibc
import Linux
import Media
import Store
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("New assets")
struct NewAssetBuilderTests {
    private static func builder(_ scene: ComponentScene) -> NewAssetBuilder { scene.parts.intake().assets }

    private static func file(
        _ scene: ComponentScene, in folder: String, _ name: FilePath = "a.mp4"
    ) throws -> SettledFile {
        let status = try FileStatus(at: try scene.folder.write(FilePath(folder).appending(name), [1, 2, 3]))
        return SettledFile(
            folder: folder, root: scene.folder.path.appending(FilePath(folder)), relative: name, status: status,
            identity: FileIdentity(
                folder: folder, relative: name, size: status.size, modified: status.modified, inode: nil, born: nil,
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

    @Test("after a time the files whose facts are read are recorded, and the others are left")
    func slowFacts() async throws {
        let scene = try await ComponentScene { $0.folders[0].name = try Template("{recorded:%Y}/{name}") }
        let place = scene.folder.path
        // Each call waits until the test lets it go on.
        let probe = try scene.folder.writeProgram(
            "ffprobe", "echo >> \(place.display)/calls; read line < \(place.display)/go; exit 1")
        try systemCall("mkfifo", on: "go") { place.appending("go").withCString { mkfifo($0, 0o600) } }
        let parts = scene.parts
        let intake = Intake(
            context: scene.context, stateHealth: parts.stateHealth,
            assets: NewAssetBuilder(
                configuration: scene.context.configuration, sources: parts.sources,
                mediaReading: MediaReading(probe: FFProbe(program: probe))),
            counters: parts.counters)
        let files = try ["a.mkv", "b.mkv", "c.mkv"].map { try Self.file(scene, in: "cam", $0) }
        let recording = Task { try await intake.record(files, within: .seconds(2)) }
        for call in 1...2 {
            try await eventually("call \(call)") {
                try FileStatus.ifPresent(at: place.appending("calls"))?.size == Int64(call)
            }
            scene.clocks.advance(by: .seconds(1))
            let child = try Child(
                "/bin/sh", ["-c", "echo > \(place.display)/go"], output: place.appending("output"),
                errors: place.appending("errors"))
            #expect(try await child.end(within: .seconds(20)) == .status(0))
        }
        #expect(try await recording.value.map(\.relative) == ["c.mkv"])
        let recorded = try await scene.store.read { tx in
            try files.map { try !tx.uploads.rows(path: $0.path.shown).isEmpty }
        }
        #expect(recorded == [true, true, false])
    }
}
