internal import API
internal import Config
internal import Core
internal import Linux
internal import Staging
internal import Store
internal import Synchronization
internal import Watch

/// Collects all metrics. The cost depends on the number of folders and destinations and not on that of uploads, and
/// there is none between requests.
struct MetricsCollector: Sendable {
    let context: Context
    let lifecycle: DaemonPhase
    let scheduler: Scheduler
    let watcher: Watcher
    let hooks: Hooks
    let ledger: Ledger
    let counters: Counters
    let troubles: Alerts
    let reportTroubles: Alerts
    let reloader: ConfigurationReloader

    func metrics() async throws -> MetricsView {
        var view = MetricsView()
        let now = await scheduler.shown()
        let runtime = now.configuration
        let destinations = runtime.settings.destinations.map(\.name)
        // Counters start at 0, so that the first increase is seen as well.
        for name in destinations {
            for end in UploadEnd.allCases { view.set(.uploads, [name, end.rawValue], 0) }
            for metric in [Metric.uploadBytes, .verifyFailures] { view.set(metric, [name], 0) }
        }
        for folder in runtime.settings.folders {
            view.set(.files, [folder.watch.name], 0)
            view.set(.folderRemovable, [folder.watch.name], folder.removable == .always)
        }
        for hook in runtime.settings.hooks {
            for result in ["delivered", "given_up", "dropped"] { view.set(.hookNotices, [hook.name, result], 0) }
            view.set(.hookFailures, [hook.name], 0)
        }
        counters.enter(&view)
        for sum in await context.store.endingCounts() {
            view.set(.uploads, [sum.destination, sum.end.rawValue], sum.uploads)
            guard sum.end == .completed else { continue }
            view.set(.uploadBytes, [sum.destination], sum.bytes)
            view.set(.lastSuccess, [sum.destination], sum.lastAt)
        }
        view.set(.overflows, [], watcher.overflows())
        for (queue, hold) in await hooks.queues(now) { view.enter(queue, hold) }
        try await enterQueue(&view, destinations, now)
        view.enterDestinations(now)
        enterFolders(&view)
        await enterSpace(&view, runtime)
        try await enterQuotas(&view)
        view.set(.paused, [], now.pauses.pause(.all, "") != nil)
        view.set(.troubles, [], troubles.all.count + reportTroubles.all.count)
        enterProcess(&view, runtime)
        return view
    }

    private func enterQueue(
        _ view: inout MetricsView, _ destinations: [String], _ now: PolicySnapshot
    ) async throws {
        let states: [UploadState] = [.staging, .queued, .uploading, .failed]
        for name in destinations {
            for state in states {
                view.set(.queueItems, [name, state.rawValue], 0)
                view.set(.queueBytes, [name, state.rawValue], 0)
            }
        }
        // Includes destinations that are no longer configured: their uploads wait for a person.
        let tallies = try await context.store.read { try $0.lists.tallies() }.filter {
            states.contains($0.state) && $0.uploads > 0
        }
        for (labels, tallies) in Dictionary(grouping: tallies, by: { [$0.destination, $0.state.rawValue] }) {
            view.set(.queueItems, labels, tallies.reduce(0) { $0 + $1.uploads })
            view.set(.queueBytes, labels, max(0, tallies.reduce(0) { $0 + $1.bytes }))
        }
        for (name, time) in try await context.store.read({ try $0.lists.oldestOngoing() }) {
            view.set(.oldest, [name], time)
        }
        view.enter(
            try await context.store.read {
                now.held(try $0.lists.waitingClasses(), standby: try $0.alternatives.standby())
            })
    }

    private func enterFolders(_ view: inout MetricsView) {
        for state in watcher.states() {
            let isThere =
                switch state.condition {
                case .watching, .scanning: true
                case .absent, .failed: false
                }
            view.set(.folderPresent, [state.folder], isThere)
            view.set(.settling, [state.folder], state.settling)
            view.set(.polled, [state.folder], state.polled)
            view.set(.unwatched, [state.folder], state.unwatched)
        }
    }

    private func enterSpace(_ view: inout MetricsView, _ runtime: RuntimeConfiguration) async {
        let (staging, state) = (runtime.staging, runtime.settings.state)
        // A number that cannot be read is left out: no number is better than a wrong one.
        if let used = try? await context.store.read({ try $0.staging.totalBytes() }) {
            view.set(.stagingUsed, [], used)
        }
        if let free = try? await blocking({ try staging.free() }) { view.set(.stagingFree, [], free) }
        if let free = try? await blocking({ try Space(at: state).free }) { view.set(.stateFree, [], free) }
        if let cap = runtime.settings.staging.maxSize { view.set(.stagingLimit, [], cap) }
    }

    private func enterQuotas(_ view: inout MetricsView) async throws {
        // A copy: the scheduler may not have refreshed the quotas since the last period ended, for example when no
        // upload waits.
        var quotas = ledger.quotas
        let now = context.clocks.wall()
        for recount in quotas.advance(to: now, in: .local) {
            let spent = try await context.store.read { try $0.ledger.spent(for: recount) }
            quotas.recount(recount, spent: spent, at: now)
        }
        for line in quotas.lines {
            guard let spent = line.spent else { continue }
            let sum = spent + line.reserved
            if let words = line.quota.byteWords, let limit = line.quota.bytes {
                view.set(.quotaUsedBytes, [line.place.words, words], line.quota.direction.bytes(of: sum))
                view.set(.quotaLimitBytes, [line.place.words, words], limit)
            }
            if let words = line.quota.fileWords, let limit = line.quota.files {
                view.set(.quotaUsedFiles, [line.place.words, words], sum.files)
                view.set(.quotaLimitFiles, [line.place.words, words], limit)
            }
        }
    }

    private func enterProcess(_ view: inout MetricsView, _ runtime: RuntimeConfiguration) {
        view.set(.reloadSuccess, [], reloader.isLastReloadApplied)
        view.set(.reloadTime, [], runtime.since)
        view.set(.build, [sluiceVersion], 1)
        view.set(.started, [], lifecycle.startedAt)
        let usage = ProcessUsage()
        view.set(.cpu, [], .real(usage.cpu.inSeconds))
        if let resident = usage.resident { view.set(.resident, [], resident) }
        if let open = usage.openFiles { view.set(.openFiles, [], open) }
        view.set(.maxOpenFiles, [], Int64(clamping: usage.openFileLimit))
    }
}

extension MetricsView {
    /// The notices that wait for a hook, and the hold on them.
    mutating func enter(_ queue: HookQueue, _ hold: Hold?) {
        let name = queue.hook.name
        set(.hookWaiting, [name], queue.waiting.count)
        if let oldest = queue.oldest { set(.hookOldest, [name], oldest) }
        guard !queue.waiting.isEmpty, let hold else { return }
        set(.hookHeld, [name, hold.kind.rawValue], queue.waiting.count)
    }

    /// The uploads that wait, by destination and hold.
    mutating func enter(_ held: [HeldUploads]) {
        // By their labels; `nil` once one of them is not ended by the time.
        var ends: [[String]: WallTime?] = [:]
        for one in held {
            let count = Int64(one.count)
            add(.held, [one.upload.destination, one.hold.kind.rawValue], count)
            for hold in one.rules {
                guard let rule = hold.rule else { continue }
                let labels = [one.upload.destination, rule.name, rule.file, "\(rule.line)"]
                add(.ruleHeld, labels + [rule.facts.joined(separator: ",")], count)
                let known = ends[labels, default: hold.until]
                ends[labels] = .some(known.flatMap { known in hold.until.map { max($0, known) } })
            }
        }
        for (labels, end) in ends { if let end { set(.ruleHoldEnd, labels, end) } }
    }

    /// Whether each destination is open, its free space, and the cost of its route.
    mutating func enterDestinations(_ now: PolicySnapshot) {
        for name in now.settings.destinations.map(\.name) {
            set(.destinationOpen, [name], now.isOpen(name))
            if let space = now.destinations.capacity(of: name)?.space, space.unit == .bytes, let left = space.left {
                set(.remoteFree, [name], left)
            }
            // Without an interface, either the cost was not determined, or no network is involved.
            guard case .open(let route)? = now.network.routes[name]?.route, let interface = route.interface else {
                continue
            }
            let cost =
                switch route.cost {
                case .metered: 1
                case .unmetered: 0
                case .unknown: -1
                }
            set(.metered, [name, interface], cost)
        }
    }
}
