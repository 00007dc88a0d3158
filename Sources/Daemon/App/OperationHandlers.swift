internal import Core
internal import Linux
internal import Watch

/// The components that carry out the operations of the API, each with the values that it uses.
struct OperationHandlers: Sendable {
    let uploads: UploadQueries
    let why: WhyExplainer
    let status: StatusCollector
    let metrics: MetricsCollector
    let usage: UsageQueries
    let plan: PlanQueries
    let adder: FileAdder
    let receiver: ByteReceiver
    let pauses: PauseCommands
    let commands: UploadCommands
    let overrides: OverrideCommands
    let folders: FolderCommands
    let checks: CheckCommands
    let remotes: RemoteInspector
    let reloader: ConfigurationReloader
    let events: EventStreams

    /// The loops of the daemon that operations use.
    struct Loops: Sendable {
        let watcher: Watcher
        let watchChanges: AsyncBroadcast
        let fileSystems: FileSystems
        let intake: Intake
        let grouping: FileGrouper
        let media: RemovableMedia
        let retention: SourceRetention
        let stager: Stager
        let scheduler: Scheduler
        let releaser: Releaser
        let hooks: Hooks?
    }

    init(
        _ house: House, _ lifecycle: Lifecycle, _ reloader: ConfigurationReloader, _ views: UploadViews,
        _ cache: EventCache, _ loops: Loops
    ) {
        let (context, scheduler) = (house.context, loops.scheduler)
        let finder = UploadFinder(store: house.store)
        let gate = DaemonGate(house: house, scheduler: scheduler)
        let ineffectiveRules = IneffectiveRules(context: context, scheduler: scheduler, sites: { house.sites })
        self.reloader = reloader
        uploads = UploadQueries(
            context: context, finder: finder, views: views, scheduler: scheduler, sources: house.sources,
            mediaReading: house.mediaReading, troubles: house.troubles, stagingHolds: house.stagingHolds)
        why = WhyExplainer(
            context: context, finder: finder, views: views, scheduler: scheduler, watcher: loops.watcher,
            grouping: loops.grouping, sources: house.sources)
        status = StatusCollector(
            context: context, lifecycle: lifecycle, scheduler: scheduler, watcher: loops.watcher,
            grouping: loops.grouping, media: loops.media, retention: loops.retention, hooks: loops.hooks,
            live: house.live, making: house.making, bandwidth: house.bandwidth, ledger: house.ledger,
            alerts: StatusCollector.StatusAlerts(
                troubles: house.troubles, reportTroubles: house.reportTroubles,
                unsureReleases: house.unsureReleases),
            ineffectiveRules: ineffectiveRules)
        metrics = MetricsCollector(
            context: context, lifecycle: lifecycle, scheduler: scheduler, watcher: loops.watcher, hooks: loops.hooks,
            ledger: house.ledger, counters: house.counters, troubles: house.troubles,
            reportTroubles: house.reportTroubles, reloader: reloader)
        usage = UsageQueries(context: context, scheduler: scheduler, ledger: house.ledger)
        plan = PlanQueries(context: context, scheduler: scheduler, live: house.live)
        adder = FileAdder(
            context: context, lifecycle: lifecycle, sources: house.sources, fileSystems: loops.fileSystems,
            intake: loops.intake, views: views)
        receiver = ByteReceiver(
            context: context, lifecycle: lifecycle,
            reception: Reception(
                context: context, making: house.making, mediaReading: house.mediaReading, counters: house.counters,
                stager: loops.stager, intake: loops.intake),
            views: views)
        pauses = PauseCommands(
            context: context, lifecycle: lifecycle, finder: finder, views: views, scheduler: scheduler)
        commands = UploadCommands(
            context: context, lifecycle: lifecycle, finder: finder, views: views, scheduler: scheduler,
            stager: loops.stager, sources: house.sources, secrets: house.secrets, signals: house.signals)
        overrides = OverrideCommands(context: context, lifecycle: lifecycle, finder: finder, scheduler: scheduler)
        folders = FolderCommands(
            context: context, lifecycle: lifecycle, sources: house.sources, watcher: loops.watcher,
            watchChanges: loops.watchChanges, stager: loops.stager, releaser: loops.releaser)
        checks = CheckCommands(
            context: context, lifecycle: lifecycle, scheduler: scheduler, watcher: loops.watcher, hooks: loops.hooks,
            gate: gate, ineffectiveRules: ineffectiveRules)
        remotes = RemoteInspector(
            context: context, lifecycle: lifecycle, gate: gate,
            onRefusal: { house.refused($0, by: $1) })
        events = EventStreams(context: context, cache: cache, live: house.live, making: house.making)
    }
}
