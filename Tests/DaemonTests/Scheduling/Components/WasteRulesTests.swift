import Core
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

/// Waits that follow from wasted bytes, over restarts.
@Suite("Waits for wasted bytes")
struct WasteRulesTests {
    private static let failure = Failure(
        .transient, code: .connectionLost, message: "x", at: WallTime(milliseconds: 1), retryable: true)

    /// One run over the same state, until `body` returns.
    private func run<R>(
        _ folder: TemporaryFolder, _ clocks: ManualClocks, _ body: (Context) async throws -> R
    ) async throws -> R {
        let scene = try await ComponentScene()
        var settings = scene.context.settings
        settings.state = folder.path
        settings.policy.retry = Backoff(first: .seconds(1), ceiling: .seconds(1800))
        let store = try await Store.open(folder.path, clocks: clocks, sorting: UploadSort(settings))
        let runtime = RuntimeConfiguration(
            settings: settings, staging: scene.context.staging, destinations: ["nas": scene.remote],
            since: clocks.wall())
        let context = Context(
            store: store, clocks: clocks, log: .silent, configuration: CurrentConfiguration(runtime))
        let result = try await body(context)
        await store.close()
        await scene.store.close()
        return result
    }

    private func newUpload(_ store: Store) async throws -> String {
        let identity = FileIdentity(
            folder: "cam", relative: "a.mp4", size: 60_000_000, modified: 1, inode: 7, born: nil, fileSystem: "uuid")
        let file = SettledFile(
            folder: "cam", root: "/drop", relative: "a.mp4",
            status: FileStatus(
                device: 1, inode: 7, size: 60_000_000, modified: 1, changed: 1, born: nil, mode: 0o100644),
            identity: identity, settledBy: .lease)
        let arrival = NewAsset(
            file: file, action: .keep, priority: 0,
            orders: [
                NewAsset.PlannedUpload(
                    destination: "nas", name: "a.mp4", mediaType: "video/mp4", key: nil, context: [:], metadata: [:])
            ])
        let outcomes = try await store.write { try $0.arrivals.record([arrival]) }
        guard case .recorded(let asset, let ids)? = outcomes.first else { throw Unexpected() }
        try await store.write { try $0.staging.record([StagedCopy(asset: asset, sha256: noise(32))]) }
        return ids[0]
    }

    private struct Unexpected: Error {}

    /// An attempt that sends the whole file and fails, or is killed before it fails.
    private func attempt(_ store: Store, _ id: String, isKilled: Bool = false) async throws {
        #expect(try await store.claim("nas", passingOver: [])?.upload.id == id)
        try await store.write { try $0.failures.beginAttempts([id]) }
        try await store.writeHeld { try $0.checkpoints.record(Checkpoint(["begun": "1"]), for: id) }
        try await store.write { try $0.progress.recordSent(60_000_000, of: id) }
        if isKilled { return }
        let now = MonotonicTime(nanoseconds: 1)
        try await store.write { try $0.attempts.finish([EndedAttempt(id, .held(Self.failure, until: now))]) }
    }

    private func wait(_ context: Context, _ id: String) async throws -> Duration? {
        try await WasteRules.restoreWaits(context)
        let until = try await context.store.read { try $0.uploads.find(id) }?.backoffUntil
        return until.map { $0.since(context.clocks.monotonic()) }
    }

    @Test("a restart does not end the wait that follows from wasted bytes", arguments: [false, true])
    func restarted(_ isKilled: Bool) async throws {
        let (folder, clocks) = (TemporaryFolder(), ManualClocks())
        let id = try await run(folder, clocks) { context in
            let id = try await newUpload(context.store)
            try await attempt(context.store, id)
            return id
        }
        clocks.advance(by: .seconds(20))
        // One attempt has wasted 60 MB: the wait is a minute.
        try await run(folder, clocks) { context in
            #expect(try await wait(context, id) == .seconds(40))
            try await context.store.write { try $0.waits.end(of: [id]) }
            try await attempt(context.store, id, isKilled: isKilled)
        }
        clocks.advance(by: .seconds(30))
        let second = try await run(folder, clocks) { try await wait($0, id) }
        #expect(second == .seconds(90))
        clocks.advance(by: .seconds(90))
        let left = try await run(folder, clocks) { try await wait($0, id) }
        #expect(left == nil)
    }

    @Test("an upload that was broken off once goes on at once, since the destination may have its bytes")
    func once() async throws {
        let (folder, clocks) = (TemporaryFolder(), ManualClocks())
        let id = try await run(folder, clocks) { context in
            let id = try await newUpload(context.store)
            try await attempt(context.store, id, isKilled: true)
            return id
        }
        let left = try await run(folder, clocks) { try await wait($0, id) }
        #expect(left == nil)
    }
}
