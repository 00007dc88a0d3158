import Core
import Linux
import Staging
import Store
import TestKit

@testable import Config
@testable import Daemon

/// The values that components take, without a daemon: a database in a temporary folder, clocks that a test moves, and a
/// scheduler that does not run.
struct ComponentScene {
    let folder = TemporaryFolder()
    let clocks = ManualClocks()
    let remote = ScriptedRemote()
    let parts: ComponentParts
    let scheduler: Scheduler
    let lifecycle: DaemonPhase

    var context: Context { parts.context }
    var store: Store { parts.store }
    var finder: UploadFinder { UploadFinder(store: store) }
    var views: UploadViews {
        UploadViews(
            context: context, scheduler: scheduler, live: parts.live, stops: parts.stops, making: parts.making,
            troubles: parts.troubles, stagingHolds: parts.stagingHolds)
    }

    /// - Parameter shape: Further settings, after the folders `cam` and `door` and the destination `nas`.
    init(isReady: Bool = true, _ shape: (inout Settings) throws -> Void = { _ in }) async throws {
        let root = folder.path
        var settings = try Self.settings(in: root)
        try shape(&settings)
        let staging = StagingArea(settings.staging)
        try staging.prepare()
        parts = ComponentParts(
            runtime: RuntimeConfiguration(
                settings: settings, staging: staging, destinations: ["nas": remote], since: clocks.wall()),
            store: try await Store.open(settings.state, clocks: clocks, sorting: UploadSort(settings)), clocks: clocks,
            log: .silent)
        await parts.store.onChange { [signals = parts.signals] in signals.wake(for: $0) }
        scheduler = parts.scheduler()
        lifecycle = DaemonPhase(startedAt: clocks.wall())
        if isReady { lifecycle.finishStart() }
    }

    static func settings(in root: FilePath) throws -> Settings {
        func folder(_ name: FilePath) throws -> FolderSettings {
            FolderSettings(
                watch: WatchRule(name: name.display, path: root.appending(name)), routes: [UploadRoute(to: "nas")],
                afterUpload: .keep,
                empty: .skip, duplicates: .upload, priority: 0, name: try Template("{relative}"), metadata: [:],
                key: nil, context: [:], policy: PolicyOverrides())
        }
        return Settings(
            state: root.appending("state"),
            staging: StagingSettings(path: root.appending("staging"), copy: .copy, maxSize: nil, keepFree: 0),
            folders: [try folder("cam"), try folder("door")],
            destinations: [
                DestinationSettings(name: "nas", type: "scripted", values: [:], policy: PolicyOverrides(), place: "s:1")
            ],
            policy: PolicySettings(total: 1, perDestination: 1, order: .oldestFirst, retry: Backoff()),
            control: ControlSettings(socket: root.appending("control.sock")))
    }

    /// Records a file as if it had settled.
    ///
    /// - Parameters:
    ///   - fileSystem: As in ``FileIdentity/fileSystem``; `nil` for an unknown one.
    ///   - changed: Its ctime; by default the time of the clocks.
    /// - Returns: The id of its upload to `nas`.
    func record(
        _ relative: FilePath, in folder: String = "cam", key: String? = nil, context: [String: String] = [:],
        size: Int64 = 100, on fileSystem: String? = nil, changed: Int64? = nil
    ) async throws -> String {
        let root = self.folder.path.appending(FilePath(folder))
        let modified = clocks.wall().milliseconds * 1_000_000
        let asset = NewAsset(
            file: SettledFile(
                folder: folder, root: root, relative: relative,
                status: FileStatus(
                    device: 0, inode: 1, size: size, modified: modified, changed: changed ?? modified, born: nil,
                    mode: 0o100600),
                identity: FileIdentity(
                    folder: folder, relative: relative, size: size, modified: modified, inode: nil, born: nil,
                    fileSystem: fileSystem), settledBy: .quiet),
            action: .keep, priority: 0,
            orders: [
                NewAsset.PlannedUpload(
                    destination: "nas", name: relative, mediaType: "video/mp4", key: key, context: context,
                    metadata: [:])
            ])
        let outcome = try await store.write { try $0.arrivals.record([asset]) }.first
        switch outcome {
        case .recorded(_, let ids)?, .newVersion(_, let ids)?:
            if let id = ids.first { return id }
        default: break
        }
        throw NotRecorded()
    }

    /// The uploads of files whose uploads have a row, by the remote names.
    func uploads(in states: [UploadState] = UploadState.allCases) async throws -> [String: UploadRecord] {
        var filter = UploadFilter()
        filter.states = states
        return try await store.rows(filter).reduce(into: [:]) { $0[$1.upload.name.display] = $1.upload }
    }

    func row(_ id: String) async throws -> UploadRow {
        guard let row = try await store.read({ try $0.uploads.row(id) }) else { throw NotRecorded() }
        return row
    }

    struct NotRecorded: Error {}
}
