package import Config
package import Core
internal import Credentials
package import Destinations
package import Linux
internal import Names
internal import Notices
internal import Staging
internal import Store
internal import Synchronization
internal import Transport
internal import Watch

/// The daemon: opens the modules, connects them, and runs their loops until it is cancelled.
///
/// ```
/// let agent = try await Agent.start(loaded.settings, kinds: DestinationTable.builtIn, log: log)
/// try await agent.run()
/// ```
package final class Daemon: Sendable {
    let house: House
    let scheduler: Scheduler
    let watcher: Watcher
    /// Rung when the watcher reports news of a folder.
    let watchNews = AsyncBroadcast()
    let intake: Intake
    let fileSystems: FileSystems
    let startedAt: WallTime
    let batch = ProgressTotals()
    let board: EventCache
    let stager: Stager
    let releaser: Releaser
    let sourceRoom: SourceRetention
    let grouping: FileGrouper
    let cards: RemovableMedia
    private let removals: RemoteRemovals
    /// `nil` where there is no way to encode an event.
    let hooks: Hooks?
    /// Folders that were never watched before.
    let firstWatch: Mutex<Set<String>>
    let reloading: Reloading?
    let reloads = ReloadQueue()
    let isLastReloadApplied = Atomic(true)
    let reporting: Reporting?
    let reportDisks = (metrics: SlowDisk(patience: .seconds(5)), status: SlowDisk(patience: .seconds(5)))
    let isStopping = Atomic(false)
    /// Whether a requested check is under way.
    let isChecking = Atomic(false)
    private let kinds: [DestinationKind]
    private let transport: Transport
    private let isReady = Atomic(false)

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
        let staging = stagingArea(settings.staging)
        // If the staging folder contains copies, a missing database is a loss and not a first start.
        let store = try await Store.open(
            settings.state, clocks: clocks, sorting: sorting(settings),
            linkBytes: countsLinks ? Store.askKernel(clocks) : Store.askNobody,
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
        let forgotten = try await store.keepHooks(settings.hooks.map(\.name), from: await store.seq)
        if forgotten > 0 { log.notice(Hooks.forgotten, ["count": "\(forgotten)"]) }
        let house = House(
            setup: RuntimeConfiguration(settings: settings, staging: staging, destinations: [:], since: clocks.wall()),
            store: store,
            clocks: clocks, log: log, sources: try await sources(store, log))
        _ = await store.listen(house.stateWorks)
        await store.listenToLists { [signal = house.historySignal] in signal.signal() }
        let daemon = Daemon(house, kinds, reloading, reporting)
        var setup = house.setup
        for destination in settings.destinations { setup.destinations[destination.name] = try daemon.make(destination) }
        house.replace(setup)
        let first = try await daemon.foldersOfFirstWatch(settings)
        daemon.firstWatch.withLock { $0 = first }
        daemon.watcher.change(settings.folders.map(\.watch), skipExisting: daemon.skipping(settings))
        return daemon
    }

    private init(
        _ house: House, _ kinds: [DestinationKind], _ reloading: Reloading?, _ reporting: Reporting?
    ) {
        self.reporting = reporting
        self.house = house
        self.kinds = kinds
        self.reloading = reloading
        transport = Transport(names: house.addresses)
        house.ledger.set(charging: { [weak transport] in await transport?.charge() })
        firstWatch = Mutex([])
        startedAt = house.clocks.wall()
        fileSystems = FileSystems()
        intake = Intake(house: house)
        board = EventCache(house: house)
        let store = house.store
        let watcher = Watcher(
            rules: house.settings.folders.map(\.watch), in: house.sources, clocks: house.clocks,
            isKnown: { try await store.known($0) },
            log: { remark in
                switch remark.level {
                case .info: house.log.info(remark.text)
                case .notice: house.log.notice(remark.text)
                case .warning: house.log.warning(remark.text)
                }
            })
        self.watcher = watcher
        let stager = Stager(house: house) { watcher.reconsider(folder: $0, relative: $1) }
        self.stager = stager
        scheduler = Scheduler(
            house: house, closeInterface: { [transport] in await transport.close(interface: $0) },
            loseAddresses: { [transport] in transport.lose(addresses: $0) },
            reconsiderSource: { watcher.reconsider(folder: $0, relative: $1) })
        let releaser = Releaser(house: house, writers: WriterSearch(clocks: house.clocks)) {
            watcher.reconsider(folder: $0, relative: $1)
        }
        self.releaser = releaser
        sourceRoom = SourceRetention(house: house)
        let grouping = FileGrouper(house: house, intake: intake, fileSystems: fileSystems) {
            watcher.reconsider(folder: $0, relative: $1)
        }
        self.grouping = grouping
        cards = RemovableMedia(
            house: house, states: { watcher.states() }, grouping: { await grouping.held },
            onReturn: {
                house.disksAreBack($0)
                await stager.retry($0)
                try await releaser.retry($0)
            })
        removals = RemoteRemovals(house: house, scheduler: scheduler)
        let sender = HookSender(
            transport: PermittedTransport(transport: transport), secrets: house.secrets, clocks: house.clocks)
        hooks = reporting.map { [scheduler] in
            Hooks(house: house, scheduler: scheduler, sender: sender, encode: $0.event)
        }
    }

    /// Runs until the task is cancelled; then stops every transfer at once, with its checkpoint stored, and returns.
    package func run() async throws { try await run(until: nil) }

    /// - Parameter end: One more loop: when it returns, the daemon stops.
    func run(until end: (@Sendable () async throws -> Void)?) async throws {
        await announceStart()
        do {
            try await withTaskCancellationHandler {
                try await work(until: end)
            } onCancel: {
                isStopping.store(true, ordering: .releasing)
            }
        } catch is CancellationError {
            // The normal end of a stop.
        } catch {
            await transport.stop()
            // The error of the loop that failed first.
            throw (error as? StoreError).map(unusable) ?? error
        }
        isStopping.store(true, ordering: .releasing)
        await transport.stop()
        do { try await house.store.keepRun() } catch {
            house.log.debug("how long it ran is not kept", ["reason": "\(error)"])
        }
        house.log.notice("stopped")
    }

    private func work(until end: (@Sendable () async throws -> Void)?) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.watch(tellsRest: end != nil) }
            group.addTask { try await self.stager.run() }
            group.addTask { try await self.scheduler.run() }
            group.addTask { try await self.releaser.run() }
            group.addTask { try await self.sourceRoom.run() }
            group.addTask { try await self.grouping.run() }
            group.addTask { try await self.cards.run() }
            group.addTask { try await self.removals.run() }
            if let hooks { group.addTask { try await hooks.run(self) } }
            group.addTask { try await self.watchForDamage() }
            group.addTask { try await self.report() }
            group.addTask { try await HistoryCleaner(house: self.house).run() }
            group.addTask { try await Maintenance(house: self.house, fileSystems: self.fileSystems).run() }
            if let end { group.addTask { try await end() } }
            for signal in [house.stagingSignal, house.releaseSignal, house.maintenanceSignal, house.retentionSignal] {
                signal.signal()
            }
            // The first loop that ends, ends all: by cancellation, or by an error that no loop can repair.
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// Whether start-up is still under way. Verbs that change something are accepted only after it.
    var isStarting: Bool { !isReady.load(ordering: .acquiring) }

    private func watch(tellsRest: Bool) async throws {
        let (store, signal) = (house.store, house.rest.signal)
        var onRest: (@Sendable () -> Void)?
        if tellsRest { onRest = { signal.signal() } }
        defer { watchNews.end() }
        try await watcher.run(
            onSettled: { [intake, grouping] in
                let alone = await grouping.partition($0)
                if !alone.isEmpty { try await intake.take(alone) }
            },
            onSkipped: { [intake] in try await intake.skipExisting($0) },
            // Recorded only after the scan: if it were recorded before and the process died, the next start would take
            // the rest of the old files for new ones.
            onScanned: { folders in
                let first = self.firstWatch.withLock { first in folders.filter { first.contains($0) } }
                if !first.isEmpty { try await store.noteWatched(first) }
            }, onRest: onRest,
            onStateChange: { [signal = house.mediaSignal, watchNews] in
                signal.signal()
                watchNews.signal()
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
            let tallies = try await house.store.tallies()
            let ongoing = tallies.filter { !$0.state.isTerminal }.reduce(0) { $0 + $1.uploads }
            try await house.store.announce("loaded", ["ongoing": "\(ongoing)"])
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
            house.log.error("the start could not be recorded", ["reason": "\(error)"])
        }
        isReady.store(true, ordering: .releasing)
    }

    private func warnOfLittleRoom() async {
        let folder = house.settings.state
        // A file system that does not report its free space is no fault.
        guard let free = try? await blocking({ try Space(at: folder).free }), free < Store.scarceRoom else { return }
        house.log.warning(
            "little room for the state: it works on, with more writes to the disk",
            ["path": folder.display, "free": "\(free)", "wanted": "\(Store.scarceRoom)"])
    }

    /// - Throws: The destination's error about its settings.
    func make(_ destination: DestinationSettings) throws -> any Destination {
        try Self.make(destination, kinds, transport, house.secrets, house.clocks, house.log)
    }

    static func make(
        _ destination: DestinationSettings, _ kinds: [DestinationKind], _ transport: Transport, _ secrets: SecretReader,
        _ clocks: any Clocks, _ log: Log
    ) throws -> any Destination {
        guard let kind = kinds.first(where: { $0.type.name == destination.type }) else {
            throw UnusableSetting(key: "type", problem: "is `\(destination.type)`, which this program does not know")
        }
        let tools = DestinationTools(
            transport: PermittedTransport(transport: transport), secrets: secrets.of(destination.name), clocks: clocks,
            name: destination.name, log: { log.notice($0, ["destination": destination.name]) })
        do { return try kind.make(destination.values, tools) } catch let error as UnusableSetting {
            throw error.standing(
                at: destination.places.byKey[error.key] ?? destination.place, in: destination.name)
        }
    }

    func foldersOfFirstWatch(_ settings: Settings) async throws -> Set<String> {
        var first: Set<String> = []
        for folder in settings.folders where try await house.store.isFirstWatch(of: folder.watch.name) {
            first.insert(folder.watch.name)
        }
        return first
    }

    /// Folders whose existing files are to be ignored.
    func skipping(_ settings: Settings) -> Set<String> {
        let skipping = settings.folders.filter { $0.watch.existing == .skip }.map(\.watch.name)
        return firstWatch.withLock { $0.intersection(skipping) }
    }

    static func stagingArea(_ settings: StagingSettings) -> StagingArea {
        StagingArea(folder: settings.path, method: method(settings.copy))
    }

    static func sorting(_ settings: Settings) -> UploadSort {
        func own(_ all: [(name: String, policy: PolicyOverrides)]) -> [String: UploadOrdering] {
            Dictionary(all.compactMap { one in one.policy.order.map { (one.name, $0) } }, uniquingKeysWith: { $1 })
        }
        return UploadSort(
            settings.policy.order, destinations: own(settings.destinations.map { ($0.name, $0.policy) }),
            folders: own(settings.folders.map { ($0.watch.name, $0.policy) }))
    }

    static func method(_ copy: StagingSettings.Copy) -> StagingArea.Method {
        switch copy {
        // An asset that is uploaded in place has no copy; one that was taken up before the setting changed has one.
        case .auto, .inPlace: .auto
        case .copy: .copy
        case .reflink: .reflink
        }
    }
}
