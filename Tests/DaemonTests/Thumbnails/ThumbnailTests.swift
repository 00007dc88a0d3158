import API
import Core
import Linux
import Media
import Staging
import Store
import Synchronization
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

        init(
            probe: BusyProbe = BusyProbe(), _ shape: (inout Settings) throws -> Void = { _ in }
        ) async throws {
            base = try await ComponentScene(isReady: true, shape)
            thumbnails = Self.thumbnails(base, probe)
            try Files.makeFolders(base.folder.path.appending("cam"))
        }

        /// Those of a daemon that starts now.
        static func thumbnails(_ scene: ComponentScene, _ probe: BusyProbe = BusyProbe()) -> Thumbnails {
            Thumbnails(
                context: scene.context, stateHealth: scene.parts.stateHealth, finder: scene.finder,
                scheduler: scene.scheduler, locator: scene.parts.locator, probe: probe,
                // ffmpeg gets the least share of a busy processor.
                limit: .seconds(300))
        }

        var source: FilePath { base.folder.path.appending("cam") }

        static func recording(_ name: String) throws -> [UInt8] {
            try Files.read(Repository.root.appending("Tests/Fixtures/media/whole").appending(FilePath(name)))
        }

        /// Records a file that lies in its folder.
        func record(_ name: FilePath, _ content: [UInt8]) async throws -> String {
            try write(content, at: source.appending(name))
            return try await base.record(
                name, size: Int64(content.count), changed: try FileStatus(at: source.appending(name)).changed)
        }

        func write(_ content: [UInt8], at path: FilePath) throws {
            try Files.replace(path, with: content)
            try Descriptor.open(path, for: .updating)
                .setModified(base.clocks.wall().milliseconds * 1_000_000, named: path)
        }

        func ask(_ id: String, hasLeft: Bool = false) async throws -> ThumbnailView {
            try await thumbnails.thumbnail(of: id, hasLeft: { hasLeft })
        }

        func refusal(
            _ id: String, hasLeft: Bool = false, _ code: Refusal.Code = .notFound
        ) async throws -> String {
            do {
                _ = try await ask(id, hasLeft: hasLeft)
                return ""
            } catch let refusal as Refusal {
                #expect(refusal.code == code)
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

    @Test("a picture is as old as its last use; a file without one is not")
    func used() async throws {
        let scene = try await Scene()
        let video = try await scene.record("a.mp4", Scene.recording("plain.mp4"))
        let none = try await scene.record("b.mp4", Array("no recording".utf8))
        let picture = try await scene.ask(video)
        _ = try await scene.refusal(none)
        func ages() throws -> [Int64] {
            let folder = scene.thumbnails.cache.folder
            return try Files.names(in: folder).map { name in
                try FileStatus(at: folder.appending(name)).modified
            }.sorted()
        }
        // The clock of the test differs from that of the file system.
        for name in try Files.names(in: scene.thumbnails.cache.folder) {
            let path = scene.thumbnails.cache.folder.appending(name)
            try Descriptor.open(path, for: .updating)
                .setModified(scene.base.clocks.wall().milliseconds * 1_000_000, named: path)
        }
        let before = try ages()
        scene.base.clocks.advance(by: .seconds(80_000))
        #expect(try await scene.ask(video) == picture)
        #expect(try ages() == before)
        scene.base.clocks.advance(by: .seconds(80_000))
        #expect(try await scene.ask(video) == picture)
        #expect(try ages() == [before[0], scene.base.clocks.wall().milliseconds * 1_000_000])
    }

    /// A source of `busy` that cannot be watched, with its answer, and how often it was asked.
    private final class Camera: Sendable {
        private let state = Mutex((answer: BusyAnswer.Answer?.some(.busy), asked: 0))
        var asked: Int { state.withLock { $0.asked } }
        func set(_ answer: BusyAnswer.Answer?) { state.withLock { $0.answer = answer } }
        var probe: BusyProbe {
            BusyProbe { [self] _, _ in
                state.withLock { state in
                    state.asked += 1
                    return state.answer
                }
            }
        }
    }

    @Test(
        "a command of `busy` that no upload waits for is asked before a picture is made, and again when its answer is old"
    )
    func busy() async throws {
        let camera = Camera()
        let rule = BusyRule(.command(["/bin/is-recording"]), every: .seconds(30))
        let scene = try await Scene(probe: camera.probe) { $0.folders[0].policy.rules = PolicyRules(busy: rule) }
        let id = try await scene.record("a.mp4", Scene.recording("plain.mp4"))
        let folder = scene.thumbnails.cache.folder
        #expect(try await scene.refusal(id, .unavailable).contains("`/bin/is-recording` reports busy"))
        #expect(try await scene.refusal(id, .unavailable).contains("reports busy"))
        #expect(camera.asked == 1)
        scene.base.clocks.advance(by: .seconds(30))
        for (answer, text) in [
            (nil, "has not answered yet"),
            (.unknown(problem: "hangs", remedy: "kick it"), "hangs, which counts as busy"),
        ] as [(BusyAnswer.Answer?, String)] {
            camera.set(answer)
            #expect(try await scene.refusal(id, .unavailable).contains(text))
        }
        #expect(try FileStatus.ifPresent(at: folder) == nil)
        scene.base.clocks.advance(by: .seconds(30))
        camera.set(.free)
        let none = try await scene.refusal(id)
        #expect(none == "" && camera.asked == 4)
    }

    @Test("the battery is read before a picture is made, although no upload waits for its level")
    func battery() async throws {
        let supplies = TemporaryFolder()
        func level(_ percent: Int) throws {
            for (name, value) in [
                ("BAT0/type", "Battery"), ("BAT0/status", "Discharging"), ("BAT0/capacity", "\(percent)"),
                ("AC/type", "Mains"), ("AC/online", "0"),
            ] { try supplies.write(FilePath(name), Array("\(value)\n".utf8)) }
        }
        try level(80)
        let rule = PauseRule(name: "low", when: .fact(.batteryBelow(50)))
        let scene = try await Scene { $0.folders[0].policy.rules = PolicyRules(pauses: [rule]) }
        await scene.base.scheduler.use(PowerMonitor(PowerSupplies(root: supplies.path)))
        let id = try await scene.record("a.mp4", Scene.recording("plain.mp4"))
        let other = try await scene.record("b.mp4", Scene.recording("plain.mp4"))
        let none = try await scene.refusal(id)
        #expect(none == "")
        try level(40)
        #expect(try await scene.refusal(other, .unavailable).contains("the rule `low`"))
    }

    @Test("nothing is made for a client that has left, and none when it is switched off")
    func unwanted() async throws {
        let scene = try await Scene()
        let id = try await scene.record("a.mp4", Scene.recording("plain.mp4"))
        // That says nothing about the file: it is not the answer that there is none.
        #expect(try await scene.refusal(id, hasLeft: true, .unavailable).contains("has left"))
        let none = try await scene.refusal(id)
        #expect(none == "")
        let off = try await Scene { $0.control.thumbnails = false }
        let other = try await off.record("a.mp4", Scene.recording("plain.mp4"))
        #expect(try await off.refusal(other).contains("thumbnails: false"))
    }
}
