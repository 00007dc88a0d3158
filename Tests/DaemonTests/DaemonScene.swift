import API
import Core
import Destinations
import Linux
import Store
import Synchronization
import TestKit

@testable import Config
@testable import Daemon

/// A daemon in this process, over a temporary folder and one scripted remote. Files are added by hand, so that a test
/// knows their ids and no file has to become quiet.
struct DaemonScene {
    let folder: TemporaryFolder
    let remote: ScriptedRemote
    let daemon: Daemon
    /// The configuration that a reload reads.
    let written: Written
    private let running: Task<Void, any Error>

    /// - Parameters:
    ///   - retry: Waits between attempts; the test decides whether they pass or last.
    ///   - cap: Bytes that staged copies may take.
    ///   - folder: The folder of an earlier daemon, to continue in its place.
    ///   - second: The remote behind destinations of the type `second`.
    ///   - shape: Further settings.
    ///   - solo: Uploads at the same time from the folder `solo`; the folder `cam` has no limit of its own.
    init(
        retry: Duration = .milliseconds(10), cap: Int64? = nil, solo: Int? = nil, clocks: any Clocks = SystemClocks(),
        folder: TemporaryFolder = TemporaryFolder(),
        remote: ScriptedRemote = ScriptedRemote(), second: ScriptedRemote = ScriptedRemote(),
        _ shape: (inout Settings) throws -> Void = { _ in }
    ) async throws {
        (self.folder, self.remote) = (folder, remote)
        let root = folder.path
        for name in ["cam", "solo", "state"] { try Files.makeFolders(root.appending(FilePath(name))) }
        func settings(_ name: FilePath, _ concurrency: Int? = nil) throws -> FolderSettings {
            FolderSettings(
                watch: WatchRule(name: name.display, path: root.appending(name), exclude: ["*"]),
                routes: [UploadRoute(to: "nas")],
                afterUpload: .keep, empty: .skip, duplicates: .upload, priority: 0, name: try Template("{relative}"),
                metadata: [:], key: nil, context: [:], policy: PolicyOverrides(concurrency: concurrency))
        }
        let kind = DestinationDefinition(type: DestinationSchema(name: "scripted", summary: "", keys: [])) {
            values, _ in
            if values["bad"] != nil { throw UnusableSettingError(key: "bad", problem: "is bad") }
            return remote
        }
        let other = DestinationDefinition(type: DestinationSchema(name: "second", summary: "", keys: [])) { _, _ in
            second
        }
        let written = Written(
            Settings(
                state: root.appending("state"),
                staging: StagingSettings(path: root.appending("staging"), copy: .copy, maxSize: cap, keepFree: 0),
                folders: [try settings("cam"), try settings("solo", solo)],
                destinations: [
                    DestinationSettings(
                        name: "nas", type: "scripted", values: [:], policy: PolicyOverrides(), place: "")
                ],
                policy: PolicySettings(
                    total: 8, perDestination: 8, order: .oldestFirst, retry: Backoff(first: retry, ceiling: retry * 4)),
                control: ControlSettings(socket: root.appending("control.sock"))))
        var shaped = written.settings
        try shape(&shaped)
        written.edit { $0 = shaped }
        self.written = written
        let daemon = try await Daemon.start(
            written.settings, kinds: [kind, other] + DestinationTable.builtIn, clocks: clocks, log: .silent,
            reloading: Reloading(load: { try written.load() }))
        self.daemon = daemon
        running = Task { try await daemon.run() }
        try await eventually("the daemon is ready") { !daemon.isStarting }
    }

    /// Asks the daemon to stop, and returns when it has.
    func stop() async throws {
        running.cancel()
        try await running.value
    }

    /// - Returns: The upload's id.
    func add(_ name: String, in place: String = "cam", size: Int = 100) async throws -> String {
        let path = try folder.write(FilePath(place).appending(FilePath(name)), noise(size))
        return try await add(path)
    }

    func add(_ path: FilePath) async throws -> String {
        guard let made = try await daemon.add(AddRequest(path: path.display)).uploads.first else { throw NotAdded() }
        return made.id
    }

    func state(_ id: String) async throws -> UploadState? {
        try await daemon.context.store.read { try $0.uploads.find(id) }?.state
    }

    /// Waits until the uploads are in this state. Those that are not running have left the scheduler then: the store
    /// knows of the end of an attempt before the scheduler and the ledger do.
    func reach(_ wanted: UploadState, _ ids: [String]) async throws {
        for id in ids {
            try await eventually("\(id) is \(wanted.rawValue)") {
                guard try await state(id) == wanted else { return false }
                let isOver = wanted == .queued || wanted.isTerminal
                return isOver ? await !daemon.scheduler.isRunning(id) : true
            }
        }
    }

    /// Waits until the remote has this many uploads. With none, all transfers have left the scheduler too.
    func isRunning(_ count: Int) async throws {
        try await eventually("\(count) uploads run") {
            count > 0 ? remote.running.count == count : await isIdle
        }
    }

    /// Whether neither the remote nor the scheduler has an upload that runs.
    var isIdle: Bool {
        get async { remote.running.isEmpty ? await daemon.scheduler.facts.transfers.isEmpty : false }
    }

    /// Complete and partial copies in the staging folder.
    var copies: [FilePath] {
        get throws {
            let staging = folder.path.appending("staging")
            return try Files.names(in: staging)
        }
    }

    struct NotAdded: Error {}

    /// The configuration, as a person might edit it.
    final class Written: Sendable {
        private let state: Mutex<(settings: Settings, mistake: ConfigErrors?)>

        init(_ settings: Settings) { state = Mutex((settings, nil)) }

        var settings: Settings { state.withLock { $0.settings } }
        func edit(_ change: (inout Settings) -> Void) { state.withLock { change(&$0.settings) } }
        func spoil(_ mistake: ConfigErrors?) { state.withLock { $0.mistake = mistake } }

        func load() throws -> LoadedSettings {
            try state.withLock { state in
                if let mistake = state.mistake { throw mistake }
                return LoadedSettings(settings: state.settings, warnings: [], files: ["/s.yaml"])
            }
        }
    }
}

extension Scheduler {
    /// Reads the power supplies from another place.
    func use(_ power: PowerMonitor) { facts.power = power }

    /// Reads the temperature from other sensors.
    func use(_ temperature: TemperatureMonitor) { facts.temperature = temperature }

    /// Replaces the check of the sources of `busy`.
    func use(_ probe: BusyProbe) { facts.busy.probe = probe }

    /// Waits longer for the first inspection of files.
    func use(busyTimeout: Duration) { facts.busy.timeout = busyTimeout }
}
