import Core
import Credentials
import Egress
import Linux
import Names
import Staging
import Store
import Transport

@testable import Config
@testable import Daemon

/// The values that components take, connected as a daemon connects them, and components over them that do not run.
struct ComponentParts {
    let context: Context
    let sources: SourceFolders
    let locator: SourceLocator
    let signals = WakeUps()
    let stateHealth: StateHealth
    let live: LiveUploads
    let making: LiveStaging
    let stops = StopRequests()
    let limits: SendingLimits
    let counters = Counters()
    let mediaReading = MediaReading()
    let secrets = SecretReader()
    let addresses = AddressCache()
    let troubles: Alerts
    let reportTroubles = Alerts()
    let stagingHolds = StagingHolds()
    let unsureReleases = Alerts()

    var store: Store { context.store }
    var staging: StagingArea { context.staging }
    var settings: Settings { context.settings }
    var runtime: RuntimeConfiguration { context.configuration.value }

    init(
        runtime: RuntimeConfiguration, store: Store, clocks: any Clocks, log: Log,
        sources: SourceFolders = SourceFolders()
    ) {
        let configuration = CurrentConfiguration(runtime)
        self.sources = sources
        context = Context(store: store, clocks: clocks, log: log, configuration: configuration)
        locator = SourceLocator(context: context, folders: sources)
        troubles = Alerts { [signals] changes in signals.wake(for: changes) }
        stateHealth = StateHealth(configuration: configuration, clocks: clocks, log: log, troubles: troubles)
        (live, making) = (LiveUploads(clocks: clocks), LiveStaging(clocks: clocks))
        limits = SendingLimits(
            ledger: Ledger(store: store, clocks: clocks, log: log, settings: runtime.settings, counters: counters),
            bandwidth: BandwidthLimiter(clocks: clocks))
    }

    func intake() -> Intake {
        Intake(
            context: context, stateHealth: stateHealth,
            assets: NewAssetBuilder(
                configuration: context.configuration, sources: sources, mediaReading: mediaReading),
            counters: counters)
    }

    func grouper(
        maxWaitingFiles: Int = 20_000,
        reconsider: @escaping @Sendable (String, FilePath) -> Void = { _, _ in }
    ) -> FileGrouper {
        FileGrouper(
            context: context, sources: sources, intake: intake(), fileSystems: FileSystems(),
            signal: signals.grouping, maxWaitingFiles: maxWaitingFiles, reconsider: reconsider)
    }

    func stager() -> Stager {
        Stager(
            context: context, stateHealth: stateHealth, locator: locator, mediaReading: mediaReading, making: making,
            policed: policed(scheduler()), troubles: troubles, stagingHolds: stagingHolds, signals: signals
        ) { _, _ in }
    }

    func policed(_ scheduler: Scheduler) -> PolicedPrograms {
        PolicedPrograms(
            proxy: EgressProxy(clocks: context.clocks, log: .silent),
            connections: ProgramConnections(scheduler: scheduler, names: addresses))
    }

    func releaser(
        _ writers: any WriterDetecting, reconsider: @escaping @Sendable (String, FilePath) -> Void = { _, _ in }
    ) -> Releaser {
        Releaser(
            context: context, stateHealth: stateHealth, locator: locator, unsureReleases: unsureReleases,
            signal: signals.release, writers: writers, reconsider: reconsider)
    }

    func scheduler() -> Scheduler {
        Scheduler(
            attempts: AttemptContext(
                context: context, live: live, stops: stops, locator: locator, stagingHolds: stagingHolds,
                absentDisks: AbsentDisks(
                    context: context, locator: locator, holds: stagingHolds, stateHealth: stateHealth,
                    signal: signals.disks),
                hookSlots: AsyncSemaphore(slots: Hooks.slots) { [signals] in signals.wake(for: .notices) },
                pendingApprovals: PendingApprovals(),
                counters: counters,
                learned: LearnedFacts(
                    context: context, live: live, stateHealth: stateHealth, transport: Transport())),
            sendingLimits: limits, stateHealth: stateHealth, signals: signals, addresses: addresses,
            callbacks: SchedulerCallbacks(renewSecret: { [secrets] in secrets.renew(of: $0) }))
    }
}
