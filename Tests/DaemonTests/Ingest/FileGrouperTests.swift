import Core
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("File grouper, without a daemon")
struct FileGrouperTests {
    private static func scene(wait: Duration = .zero) async throws -> ComponentScene {
        let scene = try await ComponentScene { $0.folders[0].group = GroupRule(wait: wait) }
        try Files.makeFolders(scene.folder.path.appending("cam"))
        return scene
    }

    /// Writes a file, and describes it as if it had settled.
    private static func settle(_ name: FilePath, _ scene: ComponentScene) throws -> SettledFile {
        let root = scene.folder.path.appending("cam")
        let status = try FileStatus(at: scene.folder.write(FilePath("cam").appending(name), noise(10)))
        return SettledFile(
            folder: "cam", root: root, relative: name, status: status,
            identity: FileIdentity(
                folder: "cam", relative: name, size: status.size, modified: status.modified, inode: status.inode,
                born: nil, fileSystem: nil), settledBy: .quiet)
    }

    /// Runs the loop until it waits without a deadline, and then `body`.
    private static func whileItSleeps(
        _ grouper: FileGrouper, _ scene: ComponentScene, _ body: () async throws -> Void
    ) async throws {
        let loop = Task { try await grouper.run() }
        defer { loop.cancel() }
        try await eventually("the loop waits") { scene.parts.signals.grouping.isWaiting }
        try await body()
    }

    @Test("a video and its sidecar wake the loop that sleeps, and are recorded together")
    func together() async throws {
        let scene = try await Self.scene()
        let grouper = scene.parts.grouper()
        try await Self.whileItSleeps(grouper, scene) {
            let files = [try Self.settle("a.mp4", scene), try Self.settle("a.xml", scene)]
            #expect(await grouper.partition(files).isEmpty)
            try await eventually("both are recorded") { try await scene.uploads().count == 2 }
            // The commit is seen before the grouper has noted it.
            try await eventually("the grouper holds neither") { await grouper.held.isEmpty }
        }
        let uploads = try await scene.uploads()
        #expect(Set(uploads.keys) == ["a.mp4", "a.xml"])
        #expect(await grouper.isAtRest)
    }

    @Test("a sidecar waits for its video, and says so")
    func sidecar() async throws {
        let scene = try await Self.scene()
        let grouper = scene.parts.grouper()
        try await Self.whileItSleeps(grouper, scene) {
            #expect(await grouper.partition([try Self.settle("a.xml", scene)]).isEmpty)
            try await eventually("the group was inspected") { await grouper.isAtRest }
            #expect(try await scene.uploads().isEmpty)
            #expect(await grouper.held == ["cam": 1])
            let waiting = await grouper.waiting(naming: 10)["cam"]
            #expect(waiting?.first.first?.reason.contains("a sidecar file that waits for its a.*") == true)
            #expect(await grouper.partition([try Self.settle("a.mp4", scene)]).isEmpty)
            try await eventually("both are recorded") { try await scene.uploads().count == 2 }
        }
    }

    @Test("a file of a folder without groups, and an empty file, travel alone")
    func alone() async throws {
        let scene = try await Self.scene()
        let grouper = scene.parts.grouper()
        var door = try Self.settle("a.mp4", scene)
        door.folder = "door"
        var empty = try Self.settle("b.mp4", scene)
        empty.status.size = 0
        #expect(await grouper.partition([door, empty]).map(\.relative) == ["a.mp4", "b.mp4"])
        #expect(await grouper.isAtRest)
    }

    @Test("a file that changed while it waited is not recorded; the watcher is asked to let it settle again")
    func changed() async throws {
        let scene = try await Self.scene()
        let asked = AsyncSignal()
        let grouper = scene.parts.grouper { _, _ in asked.signal() }
        let file = try Self.settle("a.mp4", scene)
        _ = try scene.folder.write("cam/a.mp4", noise(11))
        try await Self.whileItSleeps(grouper, scene) {
            #expect(await grouper.partition([file]).isEmpty)
            await asked.wait()
        }
        #expect(try await scene.uploads().isEmpty)
        #expect(await grouper.held.isEmpty)
    }
}
