import API
import Core
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Facts of recordings")
struct RecordingTests {
    private func picture() throws -> [UInt8] {
        try Files.read(Repository.root.appending("Tests/Fixtures/media/whole/camera.jpg"))
    }

    @Test("facts are shown for a staged recording and fill templates that use them")
    func shown() async throws {
        let scene = try await DaemonScene()
        let path = try scene.folder.write("cam/a.jpg", picture())
        let plain = try await scene.add(path)
        try await scene.reach(.completed, [plain])
        let media = try await scene.daemon.show(plain).media
        #expect(media?.recordedAt == "2024-05-01T10:20:30.000Z")
        #expect(media?.camera == "Acme Still 5")
        #expect([media?.width, media?.height] == [48, 64])

        let named = try Template("{recorded:%Y}/{camera}/{width}x{height}/{name}")
        scene.written.edit { $0.folders[0].name = named }
        _ = try await scene.daemon.reload()
        let id = try await scene.add(try scene.folder.write("cam/b.jpg", picture() + [0]))
        try await scene.reach(.completed, [id])
        #expect(
            try await scene.daemon.context.store.read { try $0.uploads.find(id) }?.name
                == "2024/Acme Still 5/48x64/b.jpg"
        )
        try await scene.stop()
    }

    @Test("sidecars of a group get the name of their video, including late ones")
    func sidecars() async throws {
        let scene = try await DaemonScene()
        let template = try named
        scene.written.edit { $0.folders[0].name = template }
        _ = try await scene.daemon.reload()
        let intake = scene.daemon.intake
        let video = try settled("a.jpg", picture(), scene)
        try await intake.record([try settled("a.xml", [1], scene), video], as: FileUnit(rule: GroupRule()))
        try await intake.record([try settled("a.srt", [2], scene)], as: FileUnit(rule: GroupRule(), leader: "a.jpg"))
        try await eventually("all three objects are at the remote") { scene.remote.objects.count == 3 }
        #expect(scene.remote.objects.map(\.display).sorted() == ["2024/a.jpg", "2024/a.srt", "2024/a.xml"])
        try await scene.stop()
    }

    @Test(
        "a file goes where the conditions of `upload_to` send it; sidecars follow, and a file that none takes is left alone"
    )
    func routed() async throws {
        let scene = try await DaemonScene()
        scene.written.edit {
            $0.folders[0].routes = [UploadRoute(to: "nas", when: .fact(.file(.kind([.photo]))))]
            $0.folders[0].group = GroupRule()
        }
        _ = try await scene.daemon.reload()
        let intake = scene.daemon.intake
        let picture = try settled("a.jpg", picture(), scene)
        try await intake.record([try settled("a.xml", [1], scene), picture], as: FileUnit(rule: GroupRule()))
        try await intake.record([try settled("a.srt", [2], scene)], as: FileUnit(rule: GroupRule(), leader: "a.jpg"))
        try await intake.record([try settled("b.mp4", [3], scene)])
        try await eventually("the picture and its sidecars are at the remote") { scene.remote.objects.count == 3 }
        // The scan that follows finds the known file again.
        scene.written.edit { $0.folders[0].watch.exclude = [] }
        _ = try await scene.daemon.reload()
        let path = scene.folder.path.appending("cam/b.mp4")
        let why = try await scene.daemon.why(path.display).answers.first
        #expect(why?.text.contains("no item of `upload_to` of folder cam takes it") == true, "\(why?.text ?? "")")
        await #expect { _ = try await scene.add(path) } throws: {
            ($0 as? Refusal)?.message.contains("name a destination with `--to`") == true
        }
        #expect(try FileStatus.ifPresent(at: path) != nil)
        #expect(scene.remote.objects.count == 3)
        try await scene.stop()
    }

    private var named: Template { get throws { try Template("{recorded:%Y}/{name}") } }

    /// A file of the folder `cam`, as the watcher would deliver it.
    private func settled(_ name: FilePath, _ content: [UInt8], _ scene: DaemonScene) throws -> SettledFile {
        let status = try FileStatus(at: try scene.folder.write(FilePath("cam").appending(name), content))
        let identity = FileIdentity(
            folder: "cam", relative: name, size: status.size, modified: status.modified, inode: nil, born: nil,
            fileSystem: nil)
        return SettledFile(
            folder: "cam", root: scene.folder.path.appending("cam"), relative: name, status: status, identity: identity,
            settledBy: .lease)
    }

    @Test("other files and pictures without facts have none")
    func nothing() async throws {
        let scene = try await DaemonScene()
        let text = try await scene.add(try scene.folder.write("cam/a.txt", picture()))
        let noise = try await scene.add("a.jpg")
        try await scene.reach(.completed, [text, noise])
        for id in [text, noise] { #expect(try await scene.daemon.show(id).media == nil) }
        try await scene.stop()
    }
}
