internal import Linux
internal import Store

/// The wake-ups of the daemon's loops, one for each, and of requests that wait.
struct WakeUps: Sendable {
    /// Counts the wake-ups, to find out whether all loops are at rest.
    let rest: QuiescenceCounter
    /// Assets may be waiting to be copied.
    let staging: AsyncSignal
    /// Uploads may be waiting to be sent.
    let scheduling: AsyncSignal
    /// Assets may be waiting for their release.
    let release: AsyncSignal
    /// Remote leftovers may be waiting to be removed.
    let removal: AsyncSignal
    /// Files arrived that travel with others.
    let grouping: AsyncSignal
    /// Files arrived whose facts are read.
    let reading: AsyncSignal
    /// Verified sources that are kept for a while may be due for removal.
    let retention: AsyncSignal
    /// Hooks may have notices to deliver.
    let hook: AsyncSignal
    /// Pictures may be switched off.
    let maintenance = AsyncSignal()
    /// Folders of removable media may have a new state.
    let media = AsyncSignal()
    /// A disk is away, and is to be looked for.
    let disks = AsyncSignal()
    /// File systems were mounted or unmounted: cards may be there, or gone.
    let mounts = AsyncSignal()
    /// Work has ended and entered a list, from which it is to be removed later.
    let history = AsyncSignal()
    /// Sources that have changed may disappear before they settle again.
    let unsettled = AsyncSignal()
    /// The files of `metrics` may be due.
    let metrics = AsyncSignal()
    /// Conditions may ask something else of files.
    let questions = AsyncSignal()
    /// Quotas may count other interfaces.
    let counting: AsyncSignal
    /// For readers of events: events were committed.
    let events = AsyncBroadcast()
    /// For requests that wait for a scan: a folder has another state.
    let folders = AsyncBroadcast()

    init() {
        let rest = QuiescenceCounter()
        self.rest = rest
        staging = AsyncSignal(rest)
        scheduling = AsyncSignal(rest)
        release = AsyncSignal(rest)
        removal = AsyncSignal(rest)
        grouping = AsyncSignal(rest)
        reading = AsyncSignal(rest)
        retention = AsyncSignal(rest)
        hook = AsyncSignal(rest)
        counting = AsyncSignal(rest)
    }

    /// Wakes the loops that wait for what a commit has changed.
    func wake(for changes: ChangeSet) {
        wake(
            for: changes,
            [
                (.arrivals, [retention]), (.copies, [staging]), (.queued, [scheduling]),
                (.due, [release]), (.released, [staging, retention]), (.leftovers, [removal]), (.lists, [history]),
                (.unsettled, [unsettled]), (.superseded, [scheduling]), (.events, [events, hook]),
                (.ofMediaWork, [media]),
            ])
    }

    /// Wakes the loops that wait for changed facts in memory.
    func wake(for changes: FactChanges) {
        wake(
            for: changes,
            [
                (.scheduling, [scheduling, counting]), (.removals, [removal]), (.notices, [hook]),
                (.exports, [staging]),
                // It tries to write the state until that succeeds.
                (.stateFailing, [scheduling]),
                (.stateWritable, [scheduling, staging, release, removal, retention, media, hook, mounts]),
                (
                    .configuration,
                    [staging, release, removal, maintenance, retention, metrics, history, hook, questions, counting]
                ),
                (.folders, [media, folders]),
            ])
    }

    private func wake<Changes: SetAlgebra>(for changes: Changes, _ waiting: [(Changes, [any Waking])]) {
        for (change, signals) in waiting where !changes.isDisjoint(with: change) {
            for signal in signals { signal.signal() }
        }
    }
}
