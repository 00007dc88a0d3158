internal import API
internal import Config
internal import Core
internal import Linux
internal import Staging
internal import Store
internal import Watch

/// Collects the status of the whole daemon.
struct StatusCollector: Sendable {
    let context: Context
    let lifecycle: Lifecycle
    let scheduler: Scheduler
    let watcher: Watcher
    let grouping: FileGrouper
    let media: RemovableMedia
    let retention: SourceRetention
    let hooks: Hooks
    let live: LiveUploads
    let making: LiveStaging
    let bandwidth: BandwidthLimiter
    let ledger: Ledger
    let alerts: StatusAlerts
    let ineffectiveRules: IneffectiveRules
    private let totals = ProgressTotals()

    /// The obstacles that the status shows.
    struct StatusAlerts: Sendable {
        let troubles: Alerts
        let reportTroubles: Alerts
        let unsureReleases: Alerts
    }

    func status() async throws -> StatusView {
        let tallies = try await context.store.read { try $0.lists.tallies() }
        let counts = Counts(tallies)
        let ongoing = tallies.filter { !$0.state.isTerminal }
        let live = self.live.ids.compactMap { self.live[$0] }
        let rate = live.reduce(0) { $0 + $1.rate }
        let done = await context.store.endingCounts().filter { $0.end == .completed || $0.end == .duplicate }
        let figures = totals.figures(
            ongoing: ongoing.reduce(0) { $0 + $1.uploads }, ongoingBytes: ongoing.reduce(0) { $0 + $1.bytes },
            // Since the start: uploads that have left the list count too.
            completed: done.reduce(0) { $0 + Int($1.uploads) }, completedBytes: done.reduce(0) { $0 + $1.bytes })
        let sent =
            figures.bytesDone + live.reduce(0) { $0 + $1.sent }
            + (try await context.store.read { try $0.backlog.bytesBegun() })
        let staging = context.staging
        let files = watcher.settlingFiles()
        return StatusView(
            version: sluiceVersion, pid: Machine.process, startedAt: lifecycle.startedAt.description,
            starting: lifecycle.isStarting,
            counts: counts, filesTotal: figures.filesTotal, filesDone: figures.filesDone,
            bytesTotal: figures.bytesTotal, bytesDone: min(sent, figures.bytesTotal), rate: rate,
            eta: rate > 0 ? max(0, figures.bytesTotal - sent) / rate : nil,
            paused: try await context.store.read { try $0.pauses.all() }.map {
                PauseView(
                    scope: $0.scope.rawValue, name: $0.name.isEmpty ? nil : $0.name, since: $0.since.description,
                    until: $0.until?.description)
            },
            folders: try await folderViews(), destinations: try await destinationViews(tallies),
            staging: StagingView(
                path: staging.folder.display, used: try await context.store.read { try $0.staging.totalBytes() },
                free: (try? await blocking { try staging.free() }) ?? 0,  // the hold says why it is not known
                cap: context.settings.staging.maxSize, hold: alerts.troubles["staging"].map(HoldView.init),
                running: making.isEmpty ? nil : making.all.map(StagingRunView.init)),
            warnings: alerts.troubles.all.map(\.text) + alerts.reportTroubles.all.map(\.text)
                + alerts.unsureReleases.all.map(\.text).sorted() + StatusWarnings.ofFolders(watcher.states())
                + StatusWarnings.ofUnknownDestinations(ongoing, known: Set(context.destinations.keys))
                + StatusWarnings.ofUnknownStates(try await context.store.read { try $0.lists.unknownStates() })
                + StatusWarnings.ofOverdueFiles(files)
                + (await ineffectiveRules.all().map { "destinations.\($0): \($1)" }),
            seq: await context.store.seq,
            settling: files.prefix(Self.mostSettling).map { settlingView($0) }, overflows: watcher.overflows(),
            limit: bandwidth.rate, exceptions: await scheduler.facts.overrides.records.map { OverrideView($0) },
            classes: try await classViews(), hooks: await hookViews())
    }

    private func hookViews() async -> [HookView]? {
        let views = await hooks.views()
        return views.isEmpty ? nil : views
    }

    private func classViews() async throws -> [ClassView] {
        var views: [ClassView] = []
        for (one, count) in try await context.store.read({ try $0.lists.waitingClasses() }) {
            guard let hold = await scheduler.shown().holds(folder: one.folder, destination: one.destination).binding
            else {
                continue
            }
            // Uploads that have begun continue nevertheless.
            let begun = hold.sparesBegun ? try await context.store.read { try $0.backlog.begun(one) } : 0
            if count == begun { continue }
            views.append(
                ClassView(
                    folder: one.folder, destination: one.destination, waiting: count - begun, hold: HoldView(hold)))
        }
        return views
    }

    private static let mostSettling = 20

    private func settlingView(_ file: WaitingFile) -> SettlingView {
        SettlingView(
            folder: file.folder, path: file.path.display, size: file.size, since: since(file).description,
            reason: watcher.states().absence(of: file.folder) ?? file.explanation, rate: file.rate,
            overdue: file.isOverdue)
    }

    private func since(_ file: WaitingFile) -> WallTime {
        context.clocks.wall().advanced(by: .zero - context.clocks.monotonic().since(file.since))
    }

    private func folderViews() async throws -> [FolderView] {
        var views: [FolderView] = []
        let held = await grouping.waiting(naming: 20)
        for state in watcher.states() {
            var view = FolderView(state)
            view.settling += held[state.folder]?.files ?? 0
            view.gathering = held[state.folder]?.first.map {
                GatheringView(path: $0.file.path.display, reason: $0.reason)
            }
            view.card = await media.view(state.folder)
            view.hold = await scheduler.snapshot.shown.hold(ofFolder: state.folder).map(HoldView.init)
            view.limit = bandwidth.rate(ofFolder: state.folder)
            if let folder = context.configuration.folder(state.folder) {
                view.retention = try await retention.view(folder)
            }
            views.append(view)
        }
        return views
    }

    private func destinationViews(_ tallies: [Tally]) async throws -> [DestinationView] {
        let today = Period.day.interval(around: context.clocks.wall(), in: .local).lowerBound
        var views: [DestinationView] = []
        for destination in context.settings.destinations {
            let hold = await scheduler.shown().hold(of: destination.name)
            let room = await scheduler.facts.destinations.capacities[destination.name]
            let waiting = tallies.filter {
                $0.destination == destination.name && ($0.state == .queued || $0.state == .staging)
            }
            let spentToday =
                try await context.store.read { try $0.ledger.spent(since: today, destination: destination.name) }
                + ledger.open.unentered(for: destination.name)
            views.append(
                DestinationView(
                    name: destination.name, type: destination.type, state: hold?.text ?? "up",
                    hold: hold.map(HoldView.init), running: await scheduler.running(to: destination.name),
                    waiting: waiting.reduce(0) { $0 + $1.uploads },
                    sentToday: spentToday.bytes, receivedToday: spentToday.received,
                    limit: bandwidth.rate(ofDestination: destination.name),
                    space: room?.space.map { SpaceView($0, askedAt: room?.queriedAt) }))
        }
        return views
    }
}

extension FolderView {
    init(_ state: WatchState) {
        let word =
            switch state.condition {
            case .watching: "watching"
            case .scanning: "scanning"
            case .absent(let reason): "absent: \(reason)"
            case .failed(let reason): "failed: \(reason)"
            }
        self.init(
            name: state.folder, path: state.path.display, state: word, settling: state.settling,
            polled: state.polled, unwatched: state.unwatched)
    }
}

extension HookView {
    init(_ line: HookQueue, _ hold: Hold?) {
        self.init(
            name: line.hook.name, target: line.hook.target.shown, waiting: line.waiting.count,
            oldest: line.oldest?.description, hold: hold.map(HoldView.init), told: line.deliveredCount,
            givenUp: line.abandonedCount, dropped: line.droppedCount, lastTold: line.lastDelivered?.description)
    }
}
