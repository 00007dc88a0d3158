internal import Core
internal import Credentials
internal import Linux
internal import Watch

/// The components that carry out the operations of the API, each with the values that it uses.
struct OperationHandlers: Sendable {
    let uploads: UploadQueries
    let thumbnails: Thumbnails
    let why: WhyExplainer
    let status: StatusCollector
    let metrics: MetricsCollector
    let usage: UsageQueries
    let plan: PlanQueries
    let routes: RouteQueries
    let adder: FileAdder
    let receiver: ByteReceiver
    let pauses: PauseCommands
    let commands: UploadCommands
    let overrides: OverrideCommands
    let usageCommands: UsageCommands
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
        let held: HeldFiles
        let media: RemovableMedia
        let retention: SourceRetention
        let stager: Stager
        let scheduler: Scheduler
        let releaser: Releaser
        let hooks: Hooks
    }

    init(
        context: Context, lifecycle: DaemonPhase, stateHealth: StateHealth, sources: SourceFolders,
        secrets: SecretReader, mediaReading: MediaReading, live: LiveUploads, making: LiveStaging,
        bandwidth: BandwidthLimiter, ledger: Ledger, counters: Counters, alerts: StatusCollector.StatusAlerts,
        stagingHolds: StagingHolds, traces: RequestTraces, reloader: ConfigurationReloader, views: UploadViews,
        cache: EventCache, loops: Loops
    ) {
        let scheduler = loops.scheduler
        let finder = UploadFinder(store: context.store)
        let requests = scheduler.requests
        let locator = SourceLocator(context: context, folders: sources)
        self.reloader = reloader
        uploads = UploadQueries(
            context: context, finder: finder, views: views, sources: sources,
            mediaReading: mediaReading, troubles: alerts.troubles, stagingHolds: stagingHolds)
        thumbnails = Thumbnails(
            context: context, stateHealth: stateHealth, finder: finder, scheduler: scheduler,
            locator: locator)
        why = WhyExplainer(
            context: context, finder: finder, views: views, scheduler: scheduler, watcher: loops.watcher,
            held: loops.held, sources: sources)
        status = StatusCollector(
            context: context, lifecycle: lifecycle, scheduler: scheduler, watcher: loops.watcher,
            held: loops.held, media: loops.media, retention: loops.retention,
            hooks: loops.hooks,
            live: live, making: making, bandwidth: bandwidth, ledger: ledger,
            alerts: alerts)
        metrics = MetricsCollector(
            context: context, lifecycle: lifecycle, scheduler: scheduler, watcher: loops.watcher, hooks: loops.hooks,
            ledger: ledger, counters: counters, troubles: alerts.troubles,
            reportTroubles: alerts.reportTroubles, reloader: reloader)
        usage = UsageQueries(context: context, scheduler: scheduler, ledger: ledger)
        plan = PlanQueries(context: context, scheduler: scheduler, live: live)
        routes = RouteQueries(context: context, scheduler: scheduler)
        adder = FileAdder(
            context: context, lifecycle: lifecycle, sources: sources, fileSystems: loops.fileSystems,
            intake: loops.intake, views: views)
        receiver = ByteReceiver(
            context: context, lifecycle: lifecycle,
            reception: Reception(
                context: context, making: making, mediaReading: mediaReading, counters: counters,
                stager: loops.stager, intake: loops.intake),
            views: views)
        pauses = PauseCommands(
            context: context, lifecycle: lifecycle, finder: finder, views: views, scheduler: scheduler)
        commands = UploadCommands(
            context: context, lifecycle: lifecycle, finder: finder, views: views, scheduler: scheduler,
            stager: loops.stager, locator: locator, secrets: secrets)
        overrides = OverrideCommands(context: context, lifecycle: lifecycle, finder: finder, scheduler: scheduler)
        usageCommands = UsageCommands(
            context: context, lifecycle: lifecycle, scheduler: scheduler, ledger: ledger)
        folders = FolderCommands(
            context: context, lifecycle: lifecycle, sources: sources, watcher: loops.watcher,
            watchChanges: loops.watchChanges, stager: loops.stager, releaser: loops.releaser,
            absentDisks: scheduler.attempts.absentDisks)
        checks = CheckCommands(
            context: context, lifecycle: lifecycle, scheduler: scheduler, watcher: loops.watcher, hooks: loops.hooks,
            requests: requests)
        remotes = RemoteInspector(
            context: context, lifecycle: lifecycle, requests: requests, traces: traces,
            onRefusal: { if $0?.mayConcernSecret == true { secrets.renew(of: $1) } })
        events = EventStreams(context: context, cache: cache, live: live, making: making)
    }
}
