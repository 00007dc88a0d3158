import API
import Core
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Work that a loop finds without a signal")
struct StartTests {
    /// Records a file of the folder `cam` while no daemon runs.
    private static func record(_ name: FilePath, in folder: TemporaryFolder, _ store: Store) async throws -> (
        asset: Int64, upload: String
    ) {
        let root = folder.path.appending("cam")
        let status = try FileStatus(at: try folder.write(FilePath("cam").appending(name), noise(100)))
        let identity = FileIdentity(
            folder: "cam", relative: name, size: status.size, modified: status.modified, inode: status.inode, born: nil,
            fileSystem: nil)
        let order = NewAsset.PlannedUpload(
            destination: "nas", name: name, mediaType: "video/mp4", key: nil, context: [:], metadata: [:])
        let asset = NewAsset(
            file: SettledFile(
                folder: "cam", root: root, relative: name, status: status, identity: identity, settledBy: .lease),
            action: .delete, priority: 0, orders: [order])
        guard
            case .recorded(let number, let uploads)? = try await store.write({ try $0.arrivals.record([asset]) }).first,
            let upload = uploads.first
        else { throw NotRecorded() }
        return (number, upload)
    }

    struct NotRecorded: Error {}

    @Test("a start copies, uploads and releases what an earlier process left, without a commit that wakes the loops")
    func start() async throws {
        let first = try await DaemonScene()
        try await first.stop()
        await first.daemon.context.store.close()
        let store = try await Store.open(
            first.written.settings.state, clocks: SystemClocks(), sorting: .oldestFirst)
        let waiting = try await Self.record("a.mp4", in: first.folder, store)
        await store.close()
        let second = try await DaemonScene(folder: first.folder)
        try await second.reach(.completed, [waiting.upload])
        try await eventually("the uploaded source is deleted") {
            try await second.daemon.context.store.read { try $0.assets.find(waiting.asset) }?.sourceState == .released
        }
        try await second.stop()
    }

    @Test("a start takes a cancelled file that was never copied off the release's list")
    func cancelled() async throws {
        let first = try await DaemonScene()
        try await first.stop()
        await first.daemon.context.store.close()
        let store = try await Store.open(
            first.written.settings.state, clocks: SystemClocks(), sorting: .oldestFirst)
        let waiting = try await Self.record("a.mp4", in: first.folder, store)
        _ = try await store.write { try $0.transitions.cancel([waiting.upload]) }
        #expect(try await store.read { try $0.releases.dueAssets(limit: 10, after: 0) } == [waiting.asset])
        await store.close()
        let second = try await DaemonScene(folder: first.folder)
        try await eventually("it is off the list") {
            try await second.daemon.context.store.read { try $0.releases.dueAssets(limit: 10, after: 0) }.isEmpty
        }
        try await second.stop()
    }

    @Test("a retry of a failed upload wakes the scheduler by its commit")
    func retry() async throws {
        let scene = try await DaemonScene()
        scene.remote.set(.fail(.failUpload), for: "a.mp4")
        let id = try await scene.add("a.mp4")
        try await scene.reach(.failed, [id])
        try await eventually("the scheduler waits for a signal") {
            guard await scene.isIdle else { return false }
            return scene.daemon.signals.scheduling.isWaiting
        }
        scene.remote.set(.take, for: "a.mp4")
        _ = try await scene.daemon.retry(Selection(ids: [id]))
        try await scene.reach(.completed, [id])
        try await scene.stop()
    }
}
