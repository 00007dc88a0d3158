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
    let lifecycle: DaemonPhase
    let scheduler: Scheduler
    let watcher: Watcher
    let held: HeldFiles
    let media: RemovableMedia
    let retention: SourceRetention
    let hooks: Hooks
    let live: LiveUploads
    let making: LiveStaging
    let bandwidth: BandwidthLimiter
    let ledger: Ledger
    let alerts: StatusAlerts
    private let totals = ProgressTotals()

    /// The obstacles that the status shows.
    struct StatusAlerts: Sendable {
        let troubles: Alerts
        let reportTroubles: Alerts
        let unsureReleases: Alerts
    }

    func status() async throws -> StatusView {
        let tallies = try await context.store.read { try $0.lists.tallies() }
        let now = await scheduler.shown()
        let parts = StatusParts(now: now)
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
        let pauses = try await context.store.read { try $0.pauses.all() }.map {
            PauseView(
                scope: $0.scope.rawValue, name: $0.name.isEmpty ? nil : $0.name, since: $0.since.description,
                until: $0.until?.description)
        }
        let stagingView = StagingView(
            path: staging.folder.display, used: try await context.store.read { try $0.staging.totalBytes() },
            free: (try? await blocking { try staging.free() }) ?? 0,  // the hold says why it is not known
            cap: context.settings.staging.maxSize, hold: alerts.troubles["staging"].map(HoldView.init),
            running: making.isEmpty ? nil : making.all.map(StagingRunView.init))
        var warnings = alerts.troubles.all.map(\.text) + alerts.reportTroubles.all.map(\.text)
        warnings += alerts.unsureReleases.all.map(\.text).sorted() + StatusWarnings.ofFolders(watcher.states())
        warnings += StatusWarnings.ofUnknownDestinations(ongoing, known: Set(now.configuration.destinations.keys))
        warnings += StatusWarnings.ofUnknownStates(try await context.store.read { try $0.lists.unknownStates() })
        warnings += StatusWarnings.ofOverdueFiles(files)
        warnings += StatusWarnings.ofControl(context.settings.control)
        warnings += now.ineffectiveRules.map { "destinations.\($0): \($1)" }
        return StatusView(
            version: sluiceVersion, pid: Machine.process, startedAt: lifecycle.startedAt.description,
            starting: lifecycle.isStarting,
            counts: counts, filesTotal: figures.filesTotal, filesDone: figures.filesDone,
            bytesTotal: figures.bytesTotal, bytesDone: min(sent, figures.bytesTotal), rate: rate,
            eta: rate > 0 ? max(0, figures.bytesTotal - sent) / rate : nil,
            paused: pauses,
            folders: try await folderViews(parts), destinations: try await destinationViews(parts, tallies),
            staging: stagingView,
            warnings: warnings,
            seq: await context.store.seq,
            settling: files.prefix(Self.maxSettling).map { settlingView($0) }, overflows: watcher.overflows(),
            limit: bandwidth.rate, exceptions: now.overrides.records.map { OverrideView($0) },
            queue: StatusParts.queue(tallies), classes: try await classViews(parts), hooks: await hookViews(now))
    }

    private func hookViews(_ now: PolicySnapshot) async -> [HookView]? {
        let views = await hooks.queues(now).map { HookView($0.queue, $0.hold) }
        return views.isEmpty ? nil : views
    }

    private func classViews(_ parts: StatusParts) async throws -> [ClassView] {
        let held = try await context.store.read {
            parts.now.held(try $0.lists.waitingClasses(), standby: try $0.alternatives.standby())
        }
        var begun: [UploadClass: Int] = [:]
        for one in held where one.hold.holdsOnlyNewUploads {
            begun[one.upload] = try await context.store.read { try $0.backlog.begun(one.upload) }
        }
        return parts.classes(held, begun: begun)
    }

    private static let maxSettling = 20

    private func settlingView(_ file: WaitingFile) -> SettlingView {
        SettlingView(
            folder: file.folder, path: file.path.display, size: file.size, since: since(file).description,
            reason: watcher.states().absence(of: file.folder) ?? file.explanation, rate: file.rate,
            overdue: file.isOverdue)
    }

    private func since(_ file: WaitingFile) -> WallTime {
        context.clocks.wall().advanced(by: .zero - context.clocks.monotonic().since(file.since))
    }

    private func folderViews(_ parts: StatusParts) async throws -> [FolderView] {
        var views: [FolderView] = []
        let held = await self.held.waiting(naming: 20)
        for state in watcher.states() {
            var retained: RetentionView?
            if let folder = context.configuration.folder(state.folder) { retained = try await retention.view(folder) }
            views.append(
                parts.folder(
                    state, held: held[state.folder], card: await media.view(state.folder),
                    limit: bandwidth.rate(ofFolder: state.folder), retention: retained))
        }
        // Without a card a pattern has no folder yet, and people look for its name.
        for folder in parts.now.settings.foldersWithoutCard {
            guard let pattern = folder.pattern else { continue }
            let state = WatchState(
                folder.watch, .absent("no file system is mounted at \(pattern.mount.display)"))
            views.append(parts.folder(state, held: nil, card: nil, limit: nil, retention: nil))
        }
        return views
    }

    private func destinationViews(_ parts: StatusParts, _ tallies: [Tally]) async throws -> [DestinationView] {
        let today = Period.day.interval(around: context.clocks.wall(), in: .local).lowerBound
        var views: [DestinationView] = []
        for destination in parts.now.settings.destinations {
            let name = destination.name
            let spent =
                try await context.store.read { try $0.ledger.spent(since: today, destination: name) }
                + ledger.open.unentered(for: name)
            views.append(
                parts.destination(
                    destination, tallies, today: spent, limit: bandwidth.rate(ofDestination: name)))
        }
        return views
    }
}
