internal import Config
internal import Core
internal import Glibc
internal import Linux
internal import Staging
internal import Store
internal import Watch

// The status of the whole daemon.

extension Daemon {
    func counts() async throws -> Counts {
        var counts = Counts()
        for tally in try await house.store.tallies() {
            switch tally.state {
            case .staging, .queued, .uploading: counts.ongoing += tally.uploads
            case .completed: counts.completed += tally.uploads
            case .failed: counts.failed += tally.uploads
            case .cancelled: counts.cancelled += tally.uploads
            case .removed: break
            }
        }
        return counts
    }

    package func status() async throws -> StatusView {
        let tallies = try await house.store.tallies()
        let counts = try await counts()
        let ongoing = tallies.filter { !$0.state.isTerminal }
        let live = house.live.ids.compactMap { house.live[$0] }
        let rate = live.reduce(0) { $0 + $1.rate }
        let done = await house.store.endSums().filter { $0.end == .completed || $0.end == .duplicate }
        let figures = batch.figures(
            ongoing: ongoing.reduce(0) { $0 + $1.uploads }, ongoingBytes: ongoing.reduce(0) { $0 + $1.bytes },
            // Since the start: uploads that have left the list count too.
            completed: done.reduce(0) { $0 + Int($1.uploads) }, completedBytes: done.reduce(0) { $0 + $1.bytes })
        let sent = figures.bytesDone + live.reduce(0) { $0 + $1.sent } + (try await house.store.bytesBegun())
        let staging = house.staging
        let files = watcher.settlingFiles()
        return StatusView(
            version: sluiceVersion, pid: getpid(), startedAt: startedAt.description, starting: isStarting,
            counts: counts, filesTotal: figures.filesTotal, filesDone: figures.filesDone,
            bytesTotal: figures.bytesTotal, bytesDone: min(sent, figures.bytesTotal), rate: rate,
            eta: rate > 0 ? max(0, figures.bytesTotal - sent) / rate : nil,
            paused: try await house.store.pauses().map {
                PauseView(
                    scope: $0.scope.rawValue, name: $0.name.isEmpty ? nil : $0.name, since: $0.since.description,
                    until: $0.until?.description)
            },
            folders: try await folderViews(), destinations: try await destinationViews(tallies),
            staging: StagingView(
                path: staging.folder.display, used: try await house.store.stagedBytes(),
                free: (try? await blocking { try staging.free() }) ?? 0,  // the hold says why it is not known
                cap: house.settings.staging.maxSize, hold: house.troubles["staging"].map(HoldView.init),
                running: house.making.isEmpty ? nil : house.making.all.map(StagingRunView.init)),
            warnings: house.troubles.all.map(\.text) + house.reportTroubles.all.map(\.text)
                + house.unsureReleases.all.map(\.text).sorted() + blind() + orphans(ongoing)
                + overdue(files) + (await withoutEffect().map { "destinations.\($0): \($1)" }),
            seq: await house.store.seq,
            settling: files.prefix(Self.mostSettling).map { settlingView($0) }, overflows: watcher.overflows(),
            limit: house.bandwidth.rate, exceptions: await scheduler.exceptions.map { OverrideView($0) },
            classes: try await classViews(), hooks: await hookViews())
    }

    /// Rules without an effect, which a person may rely on.
    func withoutEffect() async -> [(destination: String, words: String)] {
        var all: [(destination: String, words: String)] = []
        for destination in house.settings.destinations {
            guard let site = house.sites[destination.name],
                let reachability = await scheduler.reached[destination.name]?.reachability
            else { continue }
            all += destination.policy.rules.withoutEffect(at: site, reachability).map { (destination.name, $0) }
        }
        return all
    }

    private func hookViews() async -> [HookView]? {
        guard let views = await hooks?.views(), !views.isEmpty else { return nil }
        return views
    }

    private func classViews() async throws -> [ClassView] {
        var views: [ClassView] = []
        for (one, count) in try await house.store.waitingClasses() {
            guard let hold = await scheduler.holds(folder: one.folder, destination: one.destination).binding else {
                continue
            }
            // Uploads that have begun continue nevertheless.
            let begun = hold.sparesBegun ? try await house.store.begun(one) : 0
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
            reason: absence(of: file.folder) ?? file.explanation, rate: file.rate, overdue: file.isOverdue)
    }

    private func since(_ file: WaitingFile) -> WallTime {
        house.clocks.wall().advanced(by: .zero - house.clocks.monotonic().since(file.since))
    }

    /// Directories whose files are not seen, or not at once, until a person solves the problem.
    private func blind() -> [String] {
        var said: Set<FilePath> = []
        // Folders may share a path, and its troubles with it.
        return watcher.states().filter { said.insert($0.path).inserted }.flatMap { state in
            state.troubles
                + (state.moreTroubles > 0 ? ["\(state.moreTroubles) more directories of \(state.path.display)"] : [])
        }
    }

    /// Files that do not settle, for a person to inspect.
    private func overdue(_ files: [WaitingFile]) -> [String] {
        let late = files.filter(\.isOverdue)
        let named = late.prefix(3).map { "\($0.path.display) does not settle: \($0.fullExplanation)" }
        return named + (late.count > 3 ? ["\(late.count - 3) more files do not settle"] : [])
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
            view.card = await cards.view(state.folder)
            view.hold = await scheduler.hold(ofFolder: state.folder).map(HoldView.init)
            view.limit = house.bandwidth.rate(ofFolder: state.folder)
            if let folder = house.folder(state.folder) { view.retention = try await sourceRoom.view(folder) }
            views.append(view)
        }
        return views
    }

    /// Uploads whose destination was removed from the configuration: no other line would report them.
    private func orphans(_ ongoing: [Tally]) -> [String] {
        let known = house.destinations
        var waiting: [String: Int] = [:]
        for tally in ongoing where known[tally.destination] == nil {
            waiting[tally.destination, default: 0] += tally.uploads
        }
        return waiting.filter { $0.value > 0 }.sorted { $0.key < $1.key }.map {
            "\($0.value) uploads wait for destination \($0.key), which is not in the configuration"
        }
    }

    private func destinationViews(_ tallies: [Tally]) async throws -> [DestinationView] {
        let today = Period.day.interval(around: house.clocks.wall(), in: .local).lowerBound
        var views: [DestinationView] = []
        for destination in house.settings.destinations {
            let hold = await scheduler.hold(of: destination.name)
            let room = await scheduler.rooms[destination.name]
            let waiting = tallies.filter {
                $0.destination == destination.name && ($0.state == .queued || $0.state == .staging)
            }
            let spentToday =
                try await house.store.spent(since: today, destination: destination.name)
                + house.ledger.open.unentered(for: destination.name)
            views.append(
                DestinationView(
                    name: destination.name, type: destination.type, state: hold?.text ?? "up",
                    hold: hold.map(HoldView.init), running: await scheduler.running(to: destination.name),
                    waiting: waiting.reduce(0) { $0 + $1.uploads },
                    sentToday: spentToday.bytes, receivedToday: spentToday.received,
                    limit: house.bandwidth.rate(ofDestination: destination.name),
                    space: room?.space.map { SpaceView($0, askedAt: room?.askedAt) }))
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
