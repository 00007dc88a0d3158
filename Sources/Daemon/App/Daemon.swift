package import API
package import Config
package import Core
internal import Credentials
package import Destinations
internal import Egress
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
    let context: Context
    let signals: WakeUps
    private let stateHealth: StateHealth
    let lifecycle: DaemonPhase
    let scheduler: Scheduler
    let watcher: Watcher
    let stager: Stager
    let events: EventCache
    /// The components that carry out the operations of the API.
    let operations: OperationHandlers
    let intake: Intake
    private let grouping: FileGrouper
    private let reading: MediaQueue
    private let reports: ReportWriter
    private let once: OnceRun
    private let firstWatch: NewFolders
    /// The loops that run until the daemon stops, besides the one of the watcher.
    private let loops: [@Sendable () async throws -> Void]
    private let transport: Transport
    /// Kept for the reader of secrets.
    private let credentialCommands: CredentialCommands

    /// Opens the state and the staging folder, and makes the destinations. Uploads that an earlier process left running
    /// are queued again; nothing is sent yet.
    ///
    /// - Parameters:
    ///   - reloading: The source of the settings; without it they cannot be reloaded.
    ///   - countsLinks: Whether the bytes that an earlier run left reserved are bounded by the bytes that the machine's
    ///     links have sent since.
    /// - Throws: `StateLockedError`, `StoreError`, `SystemError`, or a destination's error about its settings.
    package static func start(
        _ settings: Settings, kinds: [DestinationDefinition], clocks: any Clocks = SystemClocks(), log: Log,
        reloading: Reloading? = nil, countsLinks: Bool = false
    ) async throws -> Daemon {
        let staging = StagingArea(settings.staging)
        // If the staging folder contains copies, a missing database is a loss and not a first start.
        let store = try await Store.open(
            settings.state, clocks: clocks, sorting: UploadSort(settings),
            linkBytes: countsLinks ? LinkQuestion.kernelReader(clocks) : LinkQuestion.unanswered,
            copies: { try staging.copies().count })
        do {
            return try await start(settings, kinds, clocks, log, reloading, store, staging)
        } catch {
            // Otherwise the next try would find the state locked.
            await store.close()
            throw error
        }
    }

    private static func start(
        _ written: Settings, _ kinds: [DestinationDefinition], _ clocks: any Clocks, _ log: Log,
        _ reloading: Reloading?,
        _ store: Store, _ staging: StagingArea
    ) async throws -> Daemon {
        try await blocking { try staging.prepare() }
        let cards = CardFolders(store: store, log: log)
        let settings = try await cards.expand(written)
        try await cards.remember(settings)
        if !written.patternFolders.isEmpty { try await store.sort(by: UploadSort(settings)) }
        cards.logChange(from: written, to: settings)
        let lastEvent = await store.seq
        let forgotten = try await store.write {
            try $0.notices.keepHooks(settings.hooks.map(\.name), from: lastEvent)
        }
        if forgotten > 0 { log.notice(Hooks.forgotten, ["count": "\(forgotten)"]) }
        if let charge = await store.leftCharge {
            log.notice(
                charge.isBounded ? Ledger.countedAtStart : Ledger.countedAllAtStart,
                ["sent": "\(charge.spending.bytes)", "received": "\(charge.spending.received)"])
        }
        let configuration = CurrentConfiguration(
            RuntimeConfiguration(
                settings: settings, staging: staging, destinations: [:],
                questions: try await store.ask(settings.fileQuestions), since: clocks.wall()))
        let context = Context(store: store, clocks: clocks, log: log, configuration: configuration)
        let addresses = AddressCache()
        let secrets = SecretReader(known: context.secrets)
        await secrets.learn(settings)
        let traces = RequestTraces(clocks: clocks)
        let factory = DestinationFactory(
            kinds: kinds, transport: Transport(names: addresses), secrets: secrets, clocks: clocks, log: log,
            traces: traces)
        let daemon = Daemon(
            context, try await SourceFolders(recordedIn: store, log), cards, addresses, factory, traces, reloading)
        _ = await store.listen { [stateHealth = daemon.stateHealth] in stateHealth.committed() }
        await store.onChange { [signals = daemon.signals, superseded = daemon.scheduler.superseded] changes in
            superseded.record(changes)
            signals.wake(for: changes)
        }
        var runtime = configuration.value
        for destination in settings.destinations {
            runtime.destinations[destination.name] = try factory.make(destination)
        }
        configuration.replace(runtime)
        try await WasteRules.restoreWaits(context)
        daemon.firstWatch.replace(try await daemon.firstWatch.find(in: settings))
        daemon.watcher.change(settings.presentFolders.map(\.watch), skipExisting: daemon.firstWatch.skipping(settings))
        return daemon
    }

    /// Makes all components and connects them.
    private init(
        _ context: Context, _ sources: SourceFolders, _ cards: CardFolders, _ addresses: AddressCache,
        _ factory: DestinationFactory, _ traces: RequestTraces, _ reloading: Reloading?
    ) {
        let (transport, secrets) = (factory.transport, factory.secrets)
        let (signals, counters, fileSystems, mediaReading) = (WakeUps(), Counters(), FileSystems(), MediaReading())
        let alerts = StatusCollector.StatusAlerts(
            troubles: Alerts { changes in signals.wake(for: changes) }, reportTroubles: Alerts(),
            unsureReleases: Alerts())
        let stagingHolds = StagingHolds()
        let stateHealth = StateHealth(
            configuration: context.configuration, clocks: context.clocks, log: context.log, troubles: alerts.troubles)
        let locator = SourceLocator(context: context, folders: sources)
        let (live, making) = (LiveUploads(clocks: context.clocks), LiveStaging(clocks: context.clocks))
        let stops = StopRequests()
        let absentDisks = AbsentDisks(
            context: context, locator: locator, holds: stagingHolds, stateHealth: stateHealth, signal: signals.disks)
        let ledger = Ledger(
            store: context.store, clocks: context.clocks, log: context.log, settings: context.settings,
            counters: counters, counting: signals.counting)
        let egress = EgressProxy(clocks: context.clocks, log: context.log)
        ledger.set(charging: { [weak transport, weak egress] in
            await transport?.charge()
            await egress?.charge()
        })
        let bandwidth = BandwidthLimiter(clocks: context.clocks)
        let hookSlots = AsyncSemaphore(slots: Hooks.slots) { signals.wake(for: .notices) }
        let lifecycle = DaemonPhase(startedAt: context.clocks.wall())
        let firstWatch = NewFolders(store: context.store)
        let intake = Intake(
            context: context, stateHealth: stateHealth,
            assets: NewAssetBuilder(
                configuration: context.configuration, sources: sources, mediaReading: mediaReading),
            counters: counters)
        let watcher = Self.makeWatcher(context, sources)
        let reconsider: @Sendable (String, FilePath) -> Void = { watcher.reconsider(folder: $0, relative: $1) }
        let scheduler = Scheduler(
            attempts: AttemptContext(
                context: context, live: live, stops: stops, locator: locator, stagingHolds: stagingHolds,
                absentDisks: absentDisks, hookSlots: hookSlots, pendingApprovals: PendingApprovals(),
                counters: counters,
                learned: LearnedFacts(
                    context: context, live: live, stateHealth: stateHealth, transport: transport)),
            sendingLimits: SendingLimits(ledger: ledger, bandwidth: bandwidth), stateHealth: stateHealth,
            signals: signals, addresses: addresses,
            callbacks: SchedulerCallbacks(
                closeInterface: { [transport, egress] in
                    await transport.close(interface: $0)
                    await egress.close(interface: $0)
                },
                loseAddresses: { [transport, egress] in
                    transport.removeAddresses(addresses: $0)
                    egress.removeAddresses($0)
                },
                reconsiderSource: reconsider,
                renewSecret: { secrets.renew(of: $0) }))
        let policed = PolicedPrograms(
            proxy: egress, connections: ProgramConnections(scheduler: scheduler, names: addresses))
        credentialCommands = CredentialCommands(policed: policed)
        secrets.police(by: credentialCommands)
        let stager = Stager(
            context: context, stateHealth: stateHealth, locator: locator, mediaReading: mediaReading, making: making,
            policed: policed, troubles: alerts.troubles, stagingHolds: stagingHolds, signals: signals,
            reconsider: reconsider)
        let releaser = Releaser(
            context: context, stateHealth: stateHealth, locator: locator, unsureReleases: alerts.unsureReleases,
            signal: signals.release, writers: WriterSearch(clocks: context.clocks), reconsider: reconsider)
        let retention = SourceRetention(context: context, stateHealth: stateHealth, signal: signals.retention)
        let grouping = FileGrouper(
            context: context, sources: sources, intake: intake, fileSystems: fileSystems, signal: signals.grouping,
            reconsider: reconsider)
        let reading = MediaQueue(
            context: context, intake: intake, signal: signals.reading, media: signals.media,
            reconsider: reconsider)
        let held = HeldFiles(grouping: grouping, reading: reading)
        let media = RemovableMedia(
            context: context, stateHealth: stateHealth, signal: signals.media, states: { watcher.states() },
            held: { await held.counts }, awaited: { locator.awaitedFolders },
            onReturn: {
                locator.disksAreBack($0)
                await stager.retry($0)
                try await absentDisks.recordReturn(of: $0)
                try await releaser.retry($0)
            })
        let views = UploadViews(
            context: context, scheduler: scheduler, live: live, stops: stops, making: making,
            troubles: alerts.troubles, stagingHolds: stagingHolds)
        let events = EventCache(
            context: context, commits: signals.events, views: views, live: live, making: making)
        let sender = HookSender(
            transport: PermittedTransport(transport), secrets: secrets, clocks: context.clocks)
        let hooks = Hooks(
            context: context, stateHealth: stateHealth, counters: counters, slots: hookSlots,
            signal: signals.hook,
            programs: HookPrograms(sender: sender, policed: policed),
            events: events)
        let reloader = ConfigurationReloader(
            context: context, lifecycle: lifecycle, reloading: reloading, factory: factory, firstWatch: firstWatch,
            cards: cards, secrets: secrets,
            loops: ConfigurationReloader.Loops(
                watcher: watcher, scheduler: scheduler, stager: stager, releaser: releaser, hooks: hooks),
            signals: signals)
        let operations = OperationHandlers(
            context: context, lifecycle: lifecycle, stateHealth: stateHealth, sources: sources,
            secrets: secrets, mediaReading: mediaReading, live: live, making: making, bandwidth: bandwidth,
            ledger: ledger, counters: counters, alerts: alerts, stagingHolds: stagingHolds,
            traces: traces, reloader: reloader,
            views: views, cache: events,
            loops: OperationHandlers.Loops(
                watcher: watcher, watchChanges: signals.folders, fileSystems: fileSystems, intake: intake,
                held: held, media: media, retention: retention, stager: stager,
                scheduler: scheduler,
                releaser: releaser, hooks: hooks))
        let reports = ReportWriter(
            context: context, metrics: operations.metrics, status: operations.status,
            signal: signals.metrics, troubles: alerts.reportTroubles)
        let removals = RemoteRemovals(
            context: context, stateHealth: stateHealth, secrets: secrets, signal: signals.removal,
            scheduler: scheduler)
        let cleaner = HistoryCleaner(context: context, stateHealth: stateHealth, signal: signals.history)
        let questions = WaitingFileQuestions(context: context, stateHealth: stateHealth, signal: signals.questions)
        let interfaces = InterfaceCounts(
            context: context, stateHealth: stateHealth, ledger: ledger, scheduler: scheduler, signals: signals)
        let maintenance = Maintenance(
            context: context, sources: sources, fileSystems: fileSystems, thumbnails: operations.thumbnails.cache,
            signal: signals.maintenance)
        let loops: [@Sendable () async throws -> Void] = [
            { try await stager.run() }, { try await scheduler.run() }, { try await releaser.run() },
            { try await retention.run() }, { try await grouping.run() }, { try await reading.run() },
            { try await media.run() }, { try await absentDisks.run() },
            { try await removals.run() }, { try await reports.run() }, { try await cleaner.run() },
            { try await maintenance.run() }, { try await hooks.run() }, { try await reloader.followCards() },
            { try await questions.run() }, { try await interfaces.run() },
        ]
        once = OnceRun(
            context: context, watcher: watcher, held: held, stager: stager,
            scheduler: scheduler,
            releaser: releaser, hooks: hooks, views: views, signals: signals, troubles: alerts.troubles,
            unsureReleases: alerts.unsureReleases)
        (self.context, self.signals, self.stateHealth, self.lifecycle) = (context, signals, stateHealth, lifecycle)
        (self.transport, self.firstWatch, self.intake, self.watcher) = (transport, firstWatch, intake, watcher)
        (self.stager, self.scheduler, self.events) = (stager, scheduler, events)
        (self.grouping, self.reading) = (grouping, reading)
        (self.operations, self.reports, self.loops) = (operations, reports, loops)
    }

    private static func makeWatcher(_ context: Context, _ sources: SourceFolders) -> Watcher {
        let (store, log) = (context.store, context.log)
        return Watcher(
            rules: context.settings.presentFolders.map(\.watch), in: sources, clocks: context.clocks,
            isKnown: { try await store.areKnown($0) },
            log: { entry in
                switch entry.level {
                case .info: log.info(entry.text)
                case .notice: log.notice(entry.text)
                case .warning: log.warning(entry.text)
                }
            })
    }

    // MARK: Life cycle

    /// Whether start-up is still under way. Verbs that change something are accepted only after it.
    var isStarting: Bool { lifecycle.isStarting }

    /// Whether no work is under way, and none will begin before a deadline or an event.
    func isAtRest() async -> Bool { await once.isAtRest() }

    /// Runs until the task is cancelled; then stops every transfer at once, with its checkpoint stored, and returns.
    ///
    /// - Parameter onReady: Called when requests that change something are accepted.
    package func run(onReady: @Sendable () -> Void = {}) async throws { try await run(until: nil, onReady: onReady) }

    /// Scans, uploads and releases, and returns when nothing is left that may be sent now, or when the task is
    /// cancelled.
    ///
    /// - Parameter maxWait: How long to wait, once all loops are at rest, for uploads that may be sent within that
    ///   time: those with waits that end, and files that stop changing.
    package func runOnce(maxWait: Duration = .zero) async throws -> OnceView {
        try await run { [once] in try await once.waitForEnd(maxWait) }
        // The files show the result of the run, and not the state of up to `metrics.every` ago.
        await reports.write(context.settings.metrics)
        return try await once.leftovers()
    }

    /// - Parameter end: One more loop: when it returns, the daemon stops.
    func run(until end: (@Sendable () async throws -> Void)?, onReady: @Sendable () -> Void = {}) async throws {
        await announceStart()
        onReady()
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
        do { try await context.store.write { try $0.settings.storeRunTime() } } catch {
            context.log.debug("running time not saved", ["reason": "\(error)"])
        }
        context.log.notice("stopped")
    }

    private func runLoops(until end: (@Sendable () async throws -> Void)?) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.watch(reportsRest: end != nil) }
            for loop in loops { group.addTask { try await loop() } }
            group.addTask { try await self.watchForDamage() }
            if let end { group.addTask { try await end() } }
            // The first loop that ends, ends all: by cancellation, or by an error that no loop can repair.
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    private func watch(reportsRest: Bool) async throws {
        let signal = signals.rest.signal
        var onRest: (@Sendable () -> Void)?
        if reportsRest { onRest = { signal.signal() } }
        defer { signals.folders.end() }
        try await watcher.run(
            onSettled: { [grouping, reading] in try await reading.take(await grouping.partition($0)) },
            onSkipped: { [intake] in try await intake.skipExisting($0) },
            onScanned: { [firstWatch] in try await firstWatch.recordScan(of: $0) }, onRest: onRest,
            onMounts: { [signals] in signals.mounts.signal() },
            onStateChange: { [signals] in signals.wake(for: .folders) })
    }

    /// Any loop may meet a damaged page, as one failed step among others. Then all loops end.
    private func watchForDamage() async throws {
        guard let error = await context.store.damage.first() else { return }
        throw unusable(error)
    }

    private func unusable(_ error: StoreError) -> any Error {
        error.isCorrupt ? UnusableStateError(database: context.store.path, error: error) : error
    }

    private func announceStart() async {
        do {
            let tallies = try await context.store.read { try $0.lists.tallies() }
            let ongoing = tallies.filter { !$0.state.isTerminal }.reduce(0) { $0 + $1.uploads }
            try await context.store.write { try $0.events.append(.loaded(ongoing: ongoing)) }
            context.log.notice(
                "started",
                [
                    "version": sluiceVersion, "state": context.settings.state.display,
                    "staging": context.staging.folder.display, "folders": "\(context.settings.presentFolders.count)",
                    "destinations": "\(context.settings.destinations.count)", "ongoing": "\(ongoing)",
                ])
            await warnOfLowSpace()
        } catch {
            stateHealth.noteFailure(error)
            context.log.error("cannot record the start", ["reason": "\(error)"])
        }
        lifecycle.finishStart()
    }

    private func warnOfLowSpace() async {
        let folder = context.settings.state
        // A file system that does not report its free space is no fault.
        guard let free = try? await blocking({ try Space(at: folder).free }), free < Store.scarceSpace else { return }
        context.log.warning(
            "little free space for the state folder: the daemon continues, with more disk writes",
            ["path": folder.display, "free": "\(free)", "wanted": "\(Store.scarceSpace)"])
    }
}
