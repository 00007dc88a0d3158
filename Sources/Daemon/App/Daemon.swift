package import Config
package import Core
internal import Credentials
package import Destinations
package import Linux
internal import Names
internal import Notices
internal import Staging
internal import Store
internal import Transport
internal import Watch

/// The daemon: opens the modules, connects them, and runs their loops until it is cancelled.
///
/// ```
/// let daemon = try await Daemon.start(loaded.settings, kinds: DestinationTable.builtIn, log: log)
/// try await daemon.run()
/// ```
package final class Daemon: Sendable {
    let house: House
    let lifecycle: Lifecycle
    let scheduler: Scheduler
    let watcher: Watcher
    let stager: Stager
    let events: EventCache
    /// The components that carry out the operations of the API.
    let operations: OperationHandlers
    private let intake: Intake
    private let grouping: FileGrouper
    private let releaser: Releaser
    private let retention: SourceRetention
    private let media: RemovableMedia
    /// `nil` where there is no way to encode an event.
    private let hooks: Hooks?
    private let reports: ReportWriter
    private let once: OnceRun
    private let firstWatch: FirstWatch
    /// Signalled when the watcher reports a change of a folder.
    private let watchChanges = AsyncBroadcast()
    private let fileSystems = FileSystems()
    private let transport: Transport

    /// Opens the state and the staging folder, and makes the destinations. Uploads that an earlier process left running
    /// are queued again; nothing is sent yet.
    ///
    /// - Parameters:
    ///   - reloading: The source of the settings; without it they cannot be reloaded.
    ///   - reporting: Without it the files of `metrics` are not written.
    ///   - countsLinks: Whether the bytes that an earlier run left reserved are bounded by the bytes that the machine's
    ///     links have sent since.
    /// - Throws: `StateLocked`, `StoreError`, `SystemError`, or a destination's error about its settings.
    package static func start(
        _ settings: Settings, kinds: [DestinationKind], clocks: any Clocks = SystemClocks(), log: Log,
        reloading: Reloading? = nil, reporting: Reporting? = nil, countsLinks: Bool = false
    ) async throws -> Daemon {
        let staging = StagingArea(settings.staging)
        // If the staging folder contains copies, a missing database is a loss and not a first start.
        let store = try await Store.open(
            settings.state, clocks: clocks, sorting: UploadSort(settings),
            linkBytes: countsLinks ? LinkQuestion.askKernel(clocks) : LinkQuestion.unanswered,
            copies: { try staging.copies().count })
        do {
            return try await start(settings, kinds, clocks, log, reloading, reporting, store, staging)
        } catch {
            // Otherwise the next try would find the state locked.
            await store.close()
            throw error
        }
    }

    private static func start(
        _ settings: Settings, _ kinds: [DestinationKind], _ clocks: any Clocks, _ log: Log, _ reloading: Reloading?,
        _ reporting: Reporting?, _ store: Store, _ staging: StagingArea
    ) async throws -> Daemon {
        try await blocking { try staging.prepare() }
        let lastEvent = await store.seq
        let forgotten = try await store.write {
            try $0.notices.keepHooks(settings.hooks.map(\.name), from: lastEvent)
        }
        if forgotten > 0 { log.notice(Hooks.forgotten, ["count": "\(forgotten)"]) }
        let house = House(
            setup: RuntimeConfiguration(settings: settings, staging: staging, destinations: [:], since: clocks.wall()),
            store: store,
            clocks: clocks, log: log, sources: try await SourceFolders(recordedIn: store, log))
        _ = await store.listen { [stateHealth = house.stateHealth] in stateHealth.committed() }
        await store.onChange { [signals = house.signals] in signals.wake(for: $0) }
        let transport = Transport(names: house.addresses)
        let factory = DestinationFactory(
            kinds: kinds, transport: transport, secrets: house.secrets, clocks: clocks, log: log)
        let daemon = Daemon(house, factory, reloading, reporting)
        var setup = house.setup
        for destination in settings.destinations {
            setup.destinations[destination.name] = try factory.make(destination)
        }
        house.replace(setup)
        daemon.firstWatch.replace(try await daemon.firstWatch.find(in: settings))
        daemon.watcher.change(settings.folders.map(\.watch), skipExisting: daemon.firstWatch.skipping(settings))
        return daemon
    }

    private init(_ house: House, _ factory: DestinationFactory, _ reloading: Reloading?, _ reporting: Reporting?) {
        self.house = house
        let transport = factory.transport
        self.transport = transport
        house.ledger.set(charging: { [weak transport] in await transport?.charge() })
        let lifecycle = Lifecycle(startedAt: house.clocks.wall())
        let firstWatch = FirstWatch(store: house.store)
        let (context, signals, stateHealth) = (house.context, house.signals, house.stateHealth)
        let assets = NewAssetBuilder(
            configuration: context.configuration, sources: house.sources, mediaReading: house.mediaReading)
        let intake = Intake(
            context: context, stateHealth: stateHealth, assets: assets, counters: house.counters, live: house.live,
            signal: signals.scheduling)
        let watcher = Self.watcher(house)
        let stager = Stager(
            context: context, stateHealth: stateHealth, locator: house.locator, mediaReading: house.mediaReading,
            making: house.making, troubles: house.troubles, stagingHolds: house.stagingHolds, signals: signals
        ) { watcher.reconsider(folder: $0, relative: $1) }
        let scheduler = Scheduler(
            house: house,
            connections: Scheduler.Connections(
                closeInterface: { [transport] in await transport.close(interface: $0) },
                loseAddresses: { [transport] in transport.lose(addresses: $0) }),
            reconsiderSource: { watcher.reconsider(folder: $0, relative: $1) })
        let releaser = Releaser(
            context: context, stateHealth: stateHealth, locator: house.locator, unsureReleases: house.unsureReleases,
            signal: signals.release, writers: WriterSearch(clocks: context.clocks)
        ) { watcher.reconsider(folder: $0, relative: $1) }
        let retention = SourceRetention(context: context, stateHealth: stateHealth, signal: signals.retention)
        let grouping = FileGrouper(
            context: context, sources: house.sources, intake: intake, fileSystems: fileSystems,
            signal: signals.grouping
        ) { watcher.reconsider(folder: $0, relative: $1) }
        let media = RemovableMedia(
            context: context, stateHealth: stateHealth, signal: signals.media, states: { watcher.states() },
            grouping: { await grouping.held },
            onReturn: {
                house.locator.disksAreBack($0)
                await stager.retry($0)
                try await releaser.retry($0)
            })
        let views = UploadViews(
            context: house.context, scheduler: scheduler, live: house.live, making: house.making,
            troubles: house.troubles, stagingHolds: house.stagingHolds)
        let events = EventCache(context: house.context, views: views, live: house.live, making: house.making)
        let sender = HookSender(
            transport: PermittedTransport(transport), secrets: house.secrets, clocks: house.clocks)
        let hooks = reporting.map { [scheduler] in
            Hooks(
                context: context, stateHealth: stateHealth, ledger: house.ledger, counters: house.counters,
                slots: house.hookSlots, signal: signals.hook, scheduler: scheduler, sender: sender, events: events,
                encode: $0.event)
        }
        let reloader = ConfigurationReloader(
            context: house.context, lifecycle: lifecycle, reloading: reloading, factory: factory,
            firstWatch: firstWatch, secrets: house.secrets,
            loops: ConfigurationReloader.Loops(
                watcher: watcher, scheduler: scheduler, stager: stager, releaser: releaser, hooks: hooks),
            signals: house.signals)
        operations = OperationHandlers(
            context: context, lifecycle: lifecycle, signals: signals, stateHealth: stateHealth, sources: house.sources,
            secrets: house.secrets, mediaReading: house.mediaReading, live: house.live, making: house.making,
            bandwidth: house.bandwidth, ledger: house.ledger, counters: house.counters,
            alerts: StatusCollector.StatusAlerts(
                troubles: house.troubles, reportTroubles: house.reportTroubles,
                unsureReleases: house.unsureReleases),
            stagingHolds: house.stagingHolds, reloader: reloader, views: views, cache: events,
            loops: OperationHandlers.Loops(
                watcher: watcher, watchChanges: watchChanges, fileSystems: fileSystems, intake: intake,
                grouping: grouping, media: media, retention: retention, stager: stager, scheduler: scheduler,
                releaser: releaser, hooks: hooks))
        reports = ReportWriter(
            context: house.context, reporting: reporting, metrics: operations.metrics, status: operations.status,
            signal: house.metricsSignal, troubles: house.reportTroubles)
        once = OnceRun(
            context: house.context, watcher: watcher, grouping: grouping, stager: stager, scheduler: scheduler,
            releaser: releaser, hooks: hooks, views: views, signals: house.signals, troubles: house.troubles,
            unsureReleases: house.unsureReleases)
        (self.lifecycle, self.firstWatch, self.intake, self.watcher) = (lifecycle, firstWatch, intake, watcher)
        (self.stager, self.scheduler, self.releaser) = (stager, scheduler, releaser)
        (self.retention, self.grouping, self.media) = (retention, grouping, media)
        (self.events, self.hooks) = (events, hooks)
    }

    private static func watcher(_ house: House) -> Watcher {
        let (store, log) = (house.store, house.log)
        return Watcher(
            rules: house.settings.folders.map(\.watch), in: house.sources, clocks: house.clocks,
            isKnown: { try await store.known($0) },
            log: { remark in
                switch remark.level {
                case .info: log.info(remark.text)
                case .notice: log.notice(remark.text)
                case .warning: log.warning(remark.text)
                }
            })
    }

    // MARK: Life cycle

    /// Whether start-up is still under way. Verbs that change something are accepted only after it.
    var isStarting: Bool { lifecycle.isStarting }

    /// Whether no work is under way, and none will begin before a deadline or an event.
    func isAtRest() async -> Bool { await once.isAtRest() }

    /// Runs until the task is cancelled; then stops every transfer at once, with its checkpoint stored, and returns.
    package func run() async throws { try await run(until: nil) }

    /// Scans, uploads and releases, and returns when nothing is left that may be sent now, or when the task is
    /// cancelled.
    ///
    /// - Parameter patience: How long to wait, once all loops are at rest, for uploads that may be sent within that
    ///   time: those with waits that end, and files that stop changing.
    package func runOnce(patience: Duration = .zero) async throws -> OnceView {
        try await run { [once] in try await once.waitForEnd(patience) }
        // The files show the result of the run, and not the state of up to `metrics.every` ago.
        await reports.write(house.settings.metrics)
        return try await once.leftovers()
    }

    /// - Parameter end: One more loop: when it returns, the daemon stops.
    func run(until end: (@Sendable () async throws -> Void)?) async throws {
        await announceStart()
        do {
            try await withTaskCancellationHandler {
                try await runLoops(until: end)
            } onCancel: {
                lifecycle.beginStop()
            }
        } catch is CancellationError {
            // The normal end of a stop.
        } catch {
            await transport.stop()
            // The error of the loop that failed first.
            throw (error as? StoreError).map(unusable) ?? error
        }
        lifecycle.beginStop()
        await transport.stop()
        do { try await house.store.write { try $0.settings.storeRunTime() } } catch {
            house.log.debug("running time not saved", ["reason": "\(error)"])
        }
        house.log.notice("stopped")
    }

    private func runLoops(until end: (@Sendable () async throws -> Void)?) async throws {
        let (context, signals) = (house.context, house.signals)
        let cleaner = HistoryCleaner(
            context: context, stateHealth: house.stateHealth, signal: signals.history)
        let maintenance = Maintenance(
            context: context, sources: house.sources, fileSystems: fileSystems, signal: signals.maintenance)
        let removals = RemoteRemovals(
            context: context, stateHealth: house.stateHealth, ledger: house.ledger, secrets: house.secrets,
            signal: signals.removal, scheduler: scheduler)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.watch(reportsRest: end != nil) }
            group.addTask { try await self.stager.run() }
            group.addTask { try await self.scheduler.run() }
            group.addTask { try await self.releaser.run() }
            group.addTask { try await self.retention.run() }
            group.addTask { try await self.grouping.run() }
            group.addTask { try await self.media.run() }
            group.addTask { try await removals.run() }
            if let hooks { group.addTask { try await hooks.run() } }
            group.addTask { try await self.watchForDamage() }
            group.addTask { try await self.reports.run() }
            group.addTask { try await cleaner.run() }
            group.addTask { try await maintenance.run() }
            if let end { group.addTask { try await end() } }
            for signal in [signals.staging, signals.release, signals.maintenance, signals.retention] {
                signal.signal()
            }
            // The first loop that ends, ends all: by cancellation, or by an error that no loop can repair.
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    private func watch(reportsRest: Bool) async throws {
        let signal = house.rest.signal
        var onRest: (@Sendable () -> Void)?
        if reportsRest { onRest = { signal.signal() } }
        defer { watchChanges.end() }
        try await watcher.run(
            onSettled: { [intake, grouping] in
                let alone = await grouping.partition($0)
                if !alone.isEmpty { try await intake.record(alone) }
            },
            onSkipped: { [intake] in try await intake.skipExisting($0) },
            onScanned: { [firstWatch] in try await firstWatch.recordScan(of: $0) }, onRest: onRest,
            onStateChange: { [signal = house.mediaSignal, watchChanges] in
                signal.signal()
                watchChanges.signal()
            })
    }

    /// Any loop may meet a damaged page, as one failed step among others. Then all loops end.
    private func watchForDamage() async throws {
        guard let error = await house.store.damage.first() else { return }
        throw unusable(error)
    }

    private func unusable(_ error: StoreError) -> any Error {
        error.isCorrupt ? StateUnusable(database: house.store.path, error: error) : error
    }

    private func announceStart() async {
        do {
            let tallies = try await house.store.read { try $0.lists.tallies() }
            let ongoing = tallies.filter { !$0.state.isTerminal }.reduce(0) { $0 + $1.uploads }
            try await house.store.write { try $0.events.append("loaded", nil, ["ongoing": "\(ongoing)"]) }
            house.log.notice(
                "started",
                [
                    "version": sluiceVersion, "state": house.settings.state.display,
                    "staging": house.staging.folder.display, "folders": "\(house.settings.folders.count)",
                    "destinations": "\(house.settings.destinations.count)", "ongoing": "\(ongoing)",
                ])
            await warnOfLittleRoom()
        } catch {
            if let error = error as? StoreError { house.stateFailed(error) }
            house.log.error("cannot record the start", ["reason": "\(error)"])
        }
        lifecycle.finishStart()
    }

    private func warnOfLittleRoom() async {
        let folder = house.settings.state
        // A file system that does not report its free space is no fault.
        guard let free = try? await blocking({ try Space(at: folder).free }), free < Store.scarceRoom else { return }
        house.log.warning(
            "little free space for the state folder: the daemon continues, with more disk writes",
            ["path": folder.display, "free": "\(free)", "wanted": "\(Store.scarceRoom)"])
    }
}
