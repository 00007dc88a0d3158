internal import API
internal import Config
internal import Core
internal import Linux
internal import Store
internal import Watch

/// Decides when a `run --once` has finished, and reports the remaining work.
struct OnceRun: Sendable {
    let context: Context
    let watcher: Watcher
    let held: HeldFiles
    let stager: Stager
    let scheduler: Scheduler
    let releaser: Releaser
    let hooks: Hooks
    let views: UploadViews
    let signals: WakeUps
    let troubles: Alerts
    let unsureReleases: Alerts

    /// If the state cannot be written for this long, a person has to act.
    private static let longestTrouble: Duration = .seconds(10)

    /// Returns when nothing is left that may be sent now, or when the task is cancelled.
    ///
    /// - Parameter maxWait: How long to wait, once all loops are at rest, for uploads that may be sent within that
    ///   time: those with waits that end, and files that stop changing.
    func waitForEnd(_ maxWait: Duration) async throws {
        var leaveAt: MonotonicTime?
        while !Task.isCancelled {
            if let hold = troubles[Alerts.state],
                hold.since.advanced(by: Self.longestTrouble) < context.clocks.wall()
            {
                return
            }
            if await isAtRest() {
                let now = context.clocks.monotonic()
                let last = leaveAt ?? now.advanced(by: maxWait)
                leaveAt = last
                guard now < last, try await mayGo(by: last, now) else { return }
            }
            // Woken every second, since no signal comes for two conditions: the end of `maxWait`, and a state that
            // cannot be written.
            await signals.rest.signal.wait(atMost: .seconds(1))
        }
    }

    /// Whether no work is under way, and none will begin before a deadline or an event.
    func isAtRest() async -> Bool {
        let before = signals.rest.signalCount
        let loops = [
            signals.staging, signals.scheduling, signals.release, signals.removal, signals.retention, signals.grouping,
            signals.reading, signals.counting,
        ]
        guard signals.hook.isWaiting, await hooks.isAtRest else { return false }
        guard watcher.isAtRest, loops.allSatisfy(\.isWaiting), await stager.isAtRest, await scheduler.isIdle,
            await held.isAtRest
        else { return false }
        guard signals.hook.isWaiting, await hooks.isAtRest else { return false }
        return watcher.isAtRest && loops.allSatisfy(\.isWaiting) && signals.rest.signalCount == before
    }

    /// Whether some upload waits that a deadline may release in time, or some file may settle.
    private func mayGo(by last: MonotonicTime, _ now: MonotonicTime) async throws -> Bool {
        let states = watcher.states()
        if OnceRun.mayProgress(states, by: last) { return true }
        let deadlines = [
            try await scheduler.nextDeadline(), await stager.nextDeadline(), await releaser.nextDeadline(),
            scheduler.attempts.absentDisks.nextDeadline(),
        ]
        return deadlines.contains { $0.map { now.advanced(by: $0) <= last } ?? false }
    }

    /// Whether some file may settle in time. A file that changes has no deadline, and is given the time; a file that is
    /// too young has one.
    static func mayProgress(_ states: [WatchState], by last: MonotonicTime) -> Bool {
        states.contains { state in
            state.settling > state.belowMinAge.files || state.belowMinAge.next.map { $0 <= last } ?? false
        }
    }

    /// The work that remains at the end of the run.
    func leftovers() async throws -> OnceView {
        var view = OnceView(completed: await scheduler.cycles.completed)
        for tally in try await context.store.read({ try $0.lists.tallies() }) {
            switch tally.state {
            case .staging, .queued, .uploading: view.waiting += tally.uploads
            case .failed: view.failed += tally.uploads
            case .completed, .cancelled, .removed: break
            }
        }
        var builder = await views.builder()
        for states in [[UploadState.failed], [.staging, .queued, .uploading]]
        where view.uploads.count < OnceView.maxListed {
            var filter = UploadFilter()
            filter.states = states
            filter.limit = OnceView.maxListed - view.uploads.count
            view.uploads += await views.views(try await context.store.rows(filter)[...], &builder)
        }
        let states = watcher.states()
        view.young = states.reduce(0) { $0 + $1.belowMinAge.files }
        // Files that keep the run from being done come first.
        let waiting = watcher.settlingFiles()
        let files = waiting.filter { !$0.isYoung } + waiting.filter(\.isYoung)
        view.settling = files.prefix(OnceView.maxListed).map { file in
            OnceView.Unsettled(
                folder: file.folder, path: file.path.display, size: file.size,
                reason: file.explanation, isYoung: file.isYoung)
        }
        // A file that changed while it was copied is already recorded and counted.
        let listed = Set(view.uploads.map(\.path))
        let named = view.settling.count
        view.settling.removeAll { listed.contains($0.path) }
        view.waiting += states.reduce(0) { $0 + $1.settling - $1.belowMinAge.files } - (named - view.settling.count)
        // A group that only waits for a file that is too young is left for the next run, as that file is.
        let young = Set(waiting.filter(\.isYoung).map(\.path))
        let held = await self.held.waiting(naming: .max).values.flatMap(\.first)
        let left = held.count { $0.awaited.map(young.contains) ?? false }
        view.young += left
        view.waiting += held.count - left
        view.settling += held.prefix(max(0, OnceView.maxListed - view.settling.count)).map { one in
            OnceView.Unsettled(
                folder: one.file.folder, path: one.file.path.display, size: one.file.status.size, reason: one.reason,
                isYoung: one.awaited.map(young.contains) ?? false)
        }
        view.unreleased = try await context.store.read { try $0.releases.releasable(limit: OnceView.maxListed) }.map {
            asset, _ in
            OnceView.Unreleased(path: asset.path.display, reason: asset.sourceNote ?? "the run ended before its turn")
        }
        let kept = unsureReleases.byName
        view.kept = kept.values.map(\.text).sorted()
        // If `release_unsure` is set, keeping the source is intended: as in `check`.
        let isLeft = kept.keys.contains { context.configuration.folder($0)?.releaseUnsure == nil }
        view.absent = watcher.states().map(FolderView.init).filter { !$0.state.isWatched }
        view.withoutCard = context.settings.foldersWithoutCard.map(\.watch.name)
        view.troubles = troubles.all.map(\.text).sorted()
        view.done =
            view.waiting == 0 && view.failed == 0 && view.unreleased.isEmpty && !isLeft
            && view.absent.isEmpty && view.troubles.isEmpty
        return view
    }
}
