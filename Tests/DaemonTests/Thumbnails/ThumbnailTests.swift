import API
import Core
import Linux
import Media
import Staging
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite(
    "Thumbnails of uploads", .timeLimit(.minutes(Patience.minutes(2))),
    .enabled(
        if: ThumbnailMaker.installed() != nil && Confinement.Support.here.holdsDecoders,
        "needs ffmpeg, Landlock (Linux 5.13) and seccomp"))
struct ThumbnailTests {
    private struct Scene {
        let base: ComponentScene
        let thumbnails: Thumbnails

        init(_ shape: (inout Settings) throws -> Void = { _ in }) async throws {
            base = try await ComponentScene(isReady: true, shape)
            thumbnails = Self.thumbnails(base)
            try Files.makeFolders(base.folder.path.appending("cam"))
        }

        /// Those of a daemon that starts now.
        static func thumbnails(_ scene: ComponentScene) -> Thumbnails {
            Thumbnails(
                context: scene.context, stateHealth: scene.parts.stateHealth, finder: scene.finder,
                scheduler: scene.scheduler, locator: scene.parts.locator)
        }

        var source: FilePath { base.folder.path.appending("cam") }

        static func recording(_ name: String) throws -> [UInt8] {
            try Files.read(Repository.root.appending("Tests/Fixtures/media/whole").appending(FilePath(name)))
        }

        /// Records a file that lies in its folder.
        func record(_ name: FilePath, _ content: [UInt8]) async throws -> String {
            try write(content, at: source.appending(name))
            return try await base.record(name, size: Int64(content.count))
        }

        func write(_ content: [UInt8], at path: FilePath) throws {
            try Files.replace(path, with: content)
            try Descriptor.open(path, for: .updating)
                .setModified(base.clocks.wall().milliseconds * 1_000_000, named: path)
        }

        func ask(_ id: String, hasLeft: Bool = false) async throws -> ThumbnailView {
            try await thumbnails.thumbnail(of: id, hasLeft: { hasLeft })
        }

        func refusal(_ id: String, hasLeft: Bool = false) async throws -> String {
            do {
                _ = try await ask(id, hasLeft: hasLeft)
                return ""
            } catch let refusal as Refusal {
                #expect(refusal.code == .notFound)
                return refusal.message
            }
        }

        var stored: Int {
            get throws { try Files.names(in: base.context.settings.state.appending("thumbnails")).count }
        }
    }

    @Test("a picture is made once, of the source or of the staged copy, and is there after a restart without them")
    func made() async throws {
        let scene = try await Scene()
        let id = try await scene.record("a.mp4", Scene.recording("plain.mp4"))
        let first = try await scene.ask(id)
        #expect(first.bytes.starts(with: [0xFF, 0xD8]) && first.bytes.count <= ThumbnailMaker.mostBytes)
        try Files.remove(scene.source.appending("a.mp4"))
        #expect(try await scene.ask(id) == first)
        let later = Scene.thumbnails(scene.base)
        #expect(try await later.thumbnail(of: id, hasLeft: { false }) == first)
        // The copy alone.
        let other = try await scene.base.record("b.mp4")
        let asset = try await scene.base.row(other).asset
        try Files.replace(
            scene.base.parts.staging.path(asset.stagedName), with: try Scene.recording("plain.mp4"))
        #expect(try await scene.ask(other) == first)
        #expect(try scene.stored == 2)
    }

    @Test("there is none, with the reason, where the file cannot have one, is gone, or is another one by now")
    func none() async throws {
        let scene = try await Scene()
        let video = try Scene.recording("plain.mp4")
        for name in ["a.txt", "a.svg", "a.mp3", "a"] {
            let id = try await scene.record(FilePath(name), video)
            #expect(try await scene.refusal(id).contains("not that of a video or a photo"), "\(name)")
        }
        let gone = try await scene.base.record("gone.mp4")
        #expect(try await scene.refusal(gone).contains("neither the staged copy nor the unchanged source"))
        let changed = try await scene.record("changed.mp4", video)
        try scene.write(video + [0], at: scene.source.appending("changed.mp4"))
        #expect(try await scene.refusal(changed).contains("unchanged source"))
        let linked = try await scene.record("linked.mp4", video)
        try Files.remove(scene.source.appending("linked.mp4"))
        #expect(
            makeLink(
                to: Repository.root.appending("Tests/Fixtures/media/whole/plain.mp4"),
                at: scene.source.appending("linked.mp4")))
        #expect(try await scene.refusal(linked).contains("unchanged source"))
        #expect(try await scene.refusal("01JD3K8QXW0000000000000001").contains("no upload"))
        // Nothing of this says anything about the files.
        #expect(try FileStatus.ifPresent(at: scene.base.context.settings.state.appending("thumbnails")) == nil)
    }

    @Test("a broken file is tried again a day later")
    func remembered() async throws {
        let scene = try await Scene()
        let id = try await scene.record("a.mp4", Array("no recording".utf8))
        #expect(try await scene.refusal(id).contains("ffmpeg cannot read the file"))
        let entry = try #require(
            try Files.names(in: scene.base.context.settings.state.appending("thumbnails")).first)
        let path = scene.base.context.settings.state.appending("thumbnails").appending(entry)
        func made(_ ago: Duration) throws {
            let then = scene.base.clocks.wall().advanced(by: .zero - ago)
            try Descriptor.open(path, for: .updating).setModified(then.milliseconds * 1_000_000, named: path)
        }
        try made(.seconds(86_000))
        // A recording by now: only another try shows that.
        let staged = try await scene.base.row(id).asset.stagedName
        try Files.replace(scene.base.parts.staging.path(staged), with: try Scene.recording("plain.mp4"))
        #expect(try await scene.refusal(id).contains("tried again a day later"))
        try made(.seconds(86_401))
        let none = try await scene.refusal(id)
        #expect(none == "")
    }

    @Test("nothing is made for a client that has left, and none when it is switched off")
    func unwanted() async throws {
        let scene = try await Scene()
        let id = try await scene.record("a.mp4", Scene.recording("plain.mp4"))
        #expect(try await scene.refusal(id, hasLeft: true).contains("has left"))
        let none = try await scene.refusal(id)
        #expect(none == "")
        let off = try await Scene { $0.control.thumbnails = false }
        let other = try await off.record("a.mp4", Scene.recording("plain.mp4"))
        #expect(try await off.refusal(other).contains("thumbnails: false"))
    }
}
