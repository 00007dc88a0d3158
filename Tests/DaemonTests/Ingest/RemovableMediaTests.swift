import API
import Core
import Linux
import Store
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Daemon
@testable import Watch

@Suite("Removable media, without a daemon")
struct RemovableMediaTests {
    /// A folder that lies on another file system than the root of the machine.
    private static let mount: FilePath = "/proc"

    /// A medium with one folder, whose state a test sets.
    private final class Card: Sendable {
        let state: Mutex<WatchState>
        let returned = Mutex(0)
        /// As in ``FileIdentity/fileSystem``.
        let fileSystem: String?

        init() throws {
            var state = WatchState(folder: "cam", path: RemovableMediaTests.mount, condition: .watching)
            state.device = try FileStatus(at: RemovableMediaTests.mount).device
            state.isQuiet = true
            fileSystem = FileSystems().identity(at: RemovableMediaTests.mount, device: state.device)?.name
            self.state = Mutex(state)
        }

        /// - Parameter awaited: Folders with files that wait for their disk.
        func media(_ scene: ComponentScene, awaited: Set<String> = []) -> RemovableMedia {
            RemovableMedia(
                context: scene.context, stateHealth: scene.parts.stateHealth, signal: scene.parts.signals.media,
                states: { self.state.withLock { [$0] } }, held: { [:] }, awaited: { awaited },
                onReturn: { _ in self.returned.withLock { $0 += 1 } })
        }
    }

    private static func scene() async throws -> ComponentScene {
        try await ComponentScene { settings in
            settings.folders[0].removable = .always
            settings.folders[0].watch.path = mount
        }
    }

    private static func levels(_ scene: ComponentScene) async throws -> [String] {
        try await scene.store.read { try $0.events.list(after: 0, limit: 200) }
            .filter { $0.type == .safeToRemove }.compactMap { $0.detail[.level] }
    }

    /// Moves the clock until the loop has reported `count` levels: a level counts when it has held for a moment. Only
    /// while the loop sleeps: it measures its work by this clock, and rests for longer after long work.
    private static func report(_ count: Int, _ scene: ComponentScene) async throws {
        let signal = scene.parts.signals.media
        try await eventually("\(count) levels are reported") {
            if try await levels(scene).count == count { return true }
            guard signal.isWaiting else { return false }
            scene.clocks.advance(by: .seconds(3))
            signal.signal()
            return false
        }
    }

    @Test("a medium is reported when its files are staged, and again when they are verified")
    func levels() async throws {
        let scene = try await Self.scene()
        let card = try Card()
        let media = card.media(scene)
        let id = try await scene.record("a.mp4", on: card.fileSystem)
        let asset = try await scene.row(id).upload.asset
        let loop = Task { try await media.run() }
        defer { loop.cancel() }
        try await eventually("the medium is seen") { await media.view("cam")?.unstaged == 1 }
        #expect(await media.view("cam")?.level == "busy")
        // Only the commits wake the loop.
        try await scene.store.write { try $0.staging.record([StagedCopy(asset: asset, sha256: noise(32))]) }
        try await eventually("the copy was counted") { await media.view("cam")?.unstaged == 0 }
        #expect(await media.view("cam")?.unverified == 1)
        try await Self.report(1, scene)
        #expect(try await Self.levels(scene) == ["staged"])
        _ = try #require(try await scene.store.claim("nas", passingOver: []))
        try await scene.store.write {
            try $0.attempts.finish(id, .verified(RemoteObject(id: nil, url: "u", verifiedBy: "offset")))
        }
        try await eventually("the upload was counted") { await media.view("cam")?.unverified == 0 }
        try await Self.report(2, scene)
        #expect(try await Self.levels(scene) == ["staged", "verified"])
        #expect(await media.view("door") == nil)
    }

    @Test("a medium that is pulled out is no longer shown, and its folders are reported when it is back")
    func returns() async throws {
        let scene = try await Self.scene()
        let card = try Card()
        let media = card.media(scene)
        let loop = Task { try await media.run() }
        defer { loop.cancel() }
        try await eventually("the medium is seen") { await media.view("cam") != nil }
        card.state.withLock { $0.condition = .absent("no medium") }
        scene.parts.signals.wake(for: .folders)
        try await eventually("the medium is gone") { await media.view("cam") == nil }
        #expect(card.returned.withLock { $0 } == 0)
        card.state.withLock { $0.condition = .watching }
        scene.parts.signals.wake(for: .folders)
        try await eventually("the medium is back") { await media.view("cam") != nil }
        #expect(card.returned.withLock { $0 } == 1)
    }

    @Test(
        "where files wait for their disk, the next disk is noticed by its file system, and other mounts are not",
        .enabled("\(LoopDisk.need)") { await LoopDisk.isPossible.value })
    func nextDisk() async throws {
        let place = TemporaryFolder()
        let scene = try await ComponentScene { $0.folders[0].watch.path = place.path }
        let card = try Card()
        let media = card.media(scene, awaited: ["cam"])
        let loop = Task { try await media.run() }
        defer { loop.cancel() }
        func mounted() async throws {
            // The device number stays, as that of a slot for cards does.
            card.state.withLock { $0.mounts += 1 }
            let signal = scene.parts.signals.media
            scene.parts.signals.wake(for: .folders)
            try await eventually("the loop has seen it") {
                guard signal.isWaiting else { return false }
                scene.clocks.advance(by: .seconds(3))
                return true
            }
        }
        func returned(_ count: Int) async throws {
            try await eventually("the folder has returned \(count) times") {
                card.returned.withLock { $0 } == count
            }
        }
        try await returned(1)
        let disk = try await LoopDisk(.ext4, at: place.path)
        try await mounted()
        try await returned(2)
        try await mounted()
        let next = try await LoopDisk(.ext4, at: place.path)
        try await mounted()
        try await returned(3)
        withExtendedLifetime((disk, next)) {}
    }
}
