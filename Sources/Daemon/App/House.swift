internal import Config
internal import Core
internal import Credentials
internal import Destinations
internal import Linux
internal import Names
internal import Staging
internal import Store

/// The values that the loops of the daemon share. A component should take from it only the values that it uses.
struct House: Sendable {
    let context: Context
    let signals = Signals()
    let stateHealth: StateHealth
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
    let hookSlots: AsyncSemaphore
    let pendingApprovals = PendingApprovals()
    let mediaReading = MediaReading()
    let troubles = Alerts()
    /// Reasons why the files of `metrics` cannot be written. They hold no upload.
    let reportTroubles = Alerts()
    /// Reasons why single assets wait for their copy, by asset number.
    let stagingHolds = Alerts()
    /// Folders with verified sources that stay, since it is unknown whether a program has them open for writing.
    let unsureReleases = Alerts()
    let locator: SourceLocator

    init(
        setup: RuntimeConfiguration, store: Store, clocks: any Clocks, log: Log,
        sources: SourceFolders = SourceFolders()
    ) {
        self.sources = sources
        let configuration = CurrentConfiguration(setup)
        context = Context(store: store, clocks: clocks, log: log, configuration: configuration)
        stateHealth = StateHealth(
            configuration: configuration, clocks: clocks, log: log, troubles: troubles, signals: signals)
        locator = SourceLocator(context: context, folders: sources)
        live = LiveUploads(clocks: clocks)
        making = LiveStaging(clocks: clocks)
        bandwidth = BandwidthLimiter(clocks: clocks)
        ledger = Ledger(store: store, clocks: clocks, log: log, settings: setup.settings, counters: counters)
        hookSlots = AsyncSemaphore { [signals] in signals.hook.signal() }
    }

    // MARK: Context

    var store: Store { context.store }
    var clocks: any Clocks { context.clocks }
    var log: Log { context.log }
    /// The configuration in force. A caller that needs several of its values reads it once.
    var setup: RuntimeConfiguration { context.configuration.value }
    var settings: Settings { context.settings }
    var staging: StagingArea { context.staging }
    var destinations: [String: any Destination] { context.destinations }

    /// Only for ``Scheduler/take(_:changed:)``, which handles the running transfers.
    func replace(_ setup: RuntimeConfiguration) { context.configuration.replace(setup) }

    func folder(_ name: String) -> FolderSettings? { context.configuration.folder(name) }
    func settings(ofDestination name: String) -> DestinationSettings? {
        context.configuration.settings(ofDestination: name)
    }
    func retry(folder: String, destination: String) -> Backoff {
        context.configuration.retry(folder: folder, destination: destination)
    }

    // MARK: Signals

    var rest: QuiescenceCounter { signals.rest }
    var stagingSignal: AsyncSignal { signals.staging }
    var schedulingSignal: AsyncSignal { signals.scheduling }
    var releaseSignal: AsyncSignal { signals.release }
    var removalSignal: AsyncSignal { signals.removal }
    var groupingSignal: AsyncSignal { signals.grouping }
    var retentionSignal: AsyncSignal { signals.retention }
    var hookSignal: AsyncSignal { signals.hook }
    var maintenanceSignal: AsyncSignal { signals.maintenance }
    var mediaSignal: AsyncSignal { signals.media }
    var historySignal: AsyncSignal { signals.history }
    var metricsSignal: AsyncSignal { signals.metrics }

    // MARK: Alerts

    func stateFailed(_ error: StoreError) { stateHealth.failed(error) }
}
