internal import Config
internal import Core
internal import Credentials
internal import Linux
internal import Names
internal import Staging
internal import Store
internal import Synchronization

/// The configuration in force with its destinations. A reload replaces it as one value, so that every reader sees
/// either the old or the new one whole.
struct RuntimeConfiguration: Sendable {
    var settings: Settings
    var staging: StagingArea
    var destinations: [String: any Destination]
    /// The time since which it is in force.
    var since: WallTime
}

/// The components and bells that all loops of the daemon share.
struct House: Sendable {
    private let current: Current
    let store: Store
    let clocks: any Clocks
    let log: Log
    /// The configured folders, through which every source is reached.
    let sources: SourceFolders
    let live: LiveUploads
    /// Copies in progress.
    let making: LiveStaging
    /// The rate limits.
    let bandwidth: BandwidthLimiter
    let addresses = AddressCache()
    let secrets = SecretReader()
    let ledger: Ledger
    /// Counters since the start.
    let counters = Counters()

    private final class Current: Sendable {
        let setup: Mutex<RuntimeConfiguration>
        init(_ setup: RuntimeConfiguration) { self.setup = Mutex(setup) }
    }

    init(
        setup: RuntimeConfiguration, store: Store, clocks: any Clocks, log: Log,
        sources: SourceFolders = SourceFolders()
    ) {
        self.sources = sources
        current = Current(setup)
        self.store = store
        self.clocks = clocks
        self.log = log
        live = LiveUploads(clocks: clocks)
        making = LiveStaging(clocks: clocks)
        bandwidth = BandwidthLimiter(clocks: clocks)
        ledger = Ledger(store: store, clocks: clocks, log: log, settings: setup.settings, counters: counters)
        stagingSignal = AsyncSignal(rest)
        schedulingSignal = AsyncSignal(rest)
        releaseSignal = AsyncSignal(rest)
        removalSignal = AsyncSignal(rest)
        retentionSignal = AsyncSignal(rest)
        groupingSignal = AsyncSignal(rest)
        let hookSignal = AsyncSignal(rest)
        self.hookSignal = hookSignal
        hookSlots = AsyncSemaphore { hookSignal.signal() }
    }

    /// The configuration in force. A caller that needs several of its values reads it once.
    var setup: RuntimeConfiguration { current.setup.withLock { $0 } }
    var settings: Settings { setup.settings }
    var staging: StagingArea { setup.staging }
    var destinations: [String: any Destination] { setup.destinations }

    /// Only for ``Scheduler/take(_:changed:)``, which handles the running transfers.
    func replace(_ setup: RuntimeConfiguration) { current.setup.withLock { $0 = setup } }

    let rest = QuiescenceCounter()
    /// Assets may be waiting to be copied.
    let stagingSignal: AsyncSignal
    /// Uploads may be waiting to be sent.
    let schedulingSignal: AsyncSignal
    /// Assets may be waiting for their release.
    let releaseSignal: AsyncSignal
    /// Remote leftovers may be waiting to be removed.
    let removalSignal: AsyncSignal
    /// Files arrived that travel with others.
    let groupingSignal: AsyncSignal
    /// Verified sources that are kept for a while may be due for removal.
    let retentionSignal: AsyncSignal
    /// Hooks may have notices to deliver.
    let hookSignal: AsyncSignal
    let hookSlots: AsyncSemaphore
    let pendingApprovals = PendingApprovals()
    /// Files arrived, or the daemon has started: the daily maintenance may be due.
    let maintenanceSignal = AsyncSignal()
    /// Folders of removable media may have a new state.
    let mediaSignal = AsyncSignal()
    /// Work has ended and entered a list, from which it is to be removed later.
    let historySignal = AsyncSignal()
    /// The files of `metrics` may be due.
    let metricsSignal = AsyncSignal()
    let mediaReading = MediaReading()
    let troubles = Alerts()
    /// Reasons why the files of `metrics` cannot be written. They hold no upload.
    let reportTroubles = Alerts()
    /// Reasons why single assets wait for their copy, by asset number.
    let stagingHolds = Alerts()
    /// Folders with verified sources that stay, since it is unknown whether a program has them open for writing.
    let unsureReleases = Alerts()
    /// Folders whose disk is absent, with files that wait for it.
    let away = Alerts()

    /// Reports that the state cannot be written: once, however many callers find it and however often. The dispatcher
    /// then tries to write it every few seconds until it succeeds; ``stateWorks`` clears the report.
    func stateFailed(_ error: StoreError) {
        var text = "the state in \(settings.state.display) cannot be written: \(error.message)"
        let reason = text
        // A disk that does not report its free space may be the cause itself.
        if error.isFull, let space = try? Space(at: settings.state) {
            text += "; \(space.free) bytes are free there, and \(Store.neededRoom) are needed"
        }
        guard troubles.set("state", Hold(.disk, since: clocks.wall(), text: text), news: reason) else { return }
        log.error("the state cannot be written: nothing is taken in, sent or released", ["reason": text])
        schedulingSignal.signal()
    }

    /// Reports that files wait for the disk of their folder: once, however many files wait. ``disksAreBack(_:)`` clears
    /// it.
    func diskIsAway(_ folder: String, _ reason: String) {
        guard away.set(folder, Hold(.absent, since: clocks.wall(), text: reason), news: "") else { return }
        log.notice("files of a folder wait for its disk", ["folder": folder, "reason": reason])
    }

    func disksAreBack(_ folders: Set<String>) { for folder in folders { _ = away.clear(folder) } }

    /// Called after each commit: the loops that wait for the state continue.
    var stateWorks: @Sendable () -> Void {
        // Not `self`: the store keeps this closure, and would keep itself.
        let (troubles, log) = (troubles, log)
        let signals = [
            schedulingSignal, stagingSignal, releaseSignal, removalSignal, retentionSignal, mediaSignal, hookSignal,
        ]
        return {
            guard troubles.clear("state") else { return }
            log.notice("the state can be written again")
            for signal in signals { signal.signal() }
        }
    }

    func source(of asset: AssetRecord) -> SourceFile { sources.source(asset.path) }

    func folder(_ name: String) -> FolderSettings? {
        settings.folders.first { $0.watch.name == name }
            ?? (name == FolderSettings.received.watch.name ? .received : nil)
    }

    /// The names of all folders that uploads may come from.
    var folderNames: [String] { settings.folders.map(\.watch.name) + [FolderSettings.received.watch.name] }

    func settings(ofDestination name: String) -> DestinationSettings? {
        settings.destinations.first { $0.name == name }
    }

    /// How long to wait between attempts for a destination: its own setting, else the folder's, else the global one.
    func retry(folder: String, destination: String) -> Backoff {
        settings(ofDestination: destination)?.policy.retry ?? self.folder(folder)?.policy.retry ?? settings.policy.retry
    }
}

/// Obstacles that concern more than one upload, by subject: shown by `status`, and logged when they come and go.
final class Alerts: Sendable {
    private let standing = Mutex<[String: (hold: Hold, news: String, count: Int)]>([:])

    subscript(about: String) -> Hold? { standing.withLock { $0[about]?.hold } }
    var all: [Hold] { standing.withLock { $0.values.map(\.hold) } }
    var byName: [String: Hold] { standing.withLock { $0.mapValues(\.hold) } }

    /// - Parameter news: The part of the text whose change is worth a report; the whole text by default.
    /// - Returns: Whether this is news and deserves a line in the log.
    func set(_ about: String, _ hold: Hold, news: String? = nil) -> Bool {
        let news = news ?? hold.text
        return standing.withLock { standing in
            let isNews = standing[about]?.news != news
            // The obstacle keeps its first time, however often it is found again.
            let since = standing[about]?.hold.since ?? hold.since
            let count = (standing[about]?.count ?? 0) + 1
            standing[about] = (Hold(hold.kind, since: since, until: hold.until, text: hold.text), news, count)
            return isNews
        }
    }

    /// How often the obstacle was met since it came.
    func count(_ about: String) -> Int { standing.withLock { $0[about]?.count ?? 0 } }

    /// - Returns: Whether there was an obstacle.
    func clear(_ about: String) -> Bool { standing.withLock { $0.removeValue(forKey: about) != nil } }
}
