internal import Core

/// The scheduler's knowledge besides the configuration and the database: a component for each subject.
///
/// Components record in ``changes`` what their changes have made possible. The scheduler wakes who waits for it.
struct SchedulerFacts: Sendable, RecordsChanges {
    var transfers = RunningTransfers() { didSet { changes.formUnion(transfers.takeChanges()) } }
    var destinations = DestinationTracker() { didSet { changes.formUnion(destinations.takeChanges()) } }
    var uploads = UploadTracker()
    var quotaWaits = QuotaWaitlist()
    var requests = BackgroundRequests() { didSet { changes.formUnion(requests.takeChanges()) } }
    var expiry = ExpiryTimer()
    var pauses = PauseSet() { didSet { policyChanged(pauses.takeChanges()) } }
    var overrides = OverrideSet() { didSet { policyChanged(overrides.takeChanges()) } }
    var clock = ClockMonitor() { didSet { policyChanged(clock.takeChanges()) } }
    var power = PowerMonitor() { didSet { policyChanged(power.takeChanges()) } }
    var busy = BusyMonitor() { didSet { policyChanged(busy.takeChanges()) } }
    var network = NetworkMonitor() { didSet { policyChanged(network.takeChanges()) } }
    var changes: FactChanges = []
    /// Counts the changes of what policy depends on.
    var generation = PolicyGeneration()

    private mutating func policyChanged(_ more: FactChanges) {
        changes.formUnion(more.subtracting(.policy))
        if more.contains(.policy) { generation.noteChange() }
    }

    /// Other settings hold from now on. Uploads that are being claimed now are given back.
    mutating func configurationChanged() {
        expiry.invalidate()
        generation.noteChange()
        generation.noteStop()
    }

    /// Wakes the scheduler after a change of settings: routes were found and waits ended for them, which need not have
    /// changed a fact. No change records this wake-up; who applies settings has to call it.
    mutating func wakeForConfiguration() { changes.insert(.scheduling) }

    /// The clock was set: windows are open or closed by another time.
    mutating func clockWasSet() {
        expiry.invalidate()
        changes.insert(.scheduling)
    }

    /// Records that something waits at a place that nothing may be sent to.
    mutating func close(_ account: String) {
        // A command does not run while no upload waits for it.
        if requests.close(account), busy.states.hasPolled { changes.insert(.scheduling) }
    }

    /// The uploads that a destination has refused. While another upload waits, none of them probes the destination.
    func refusedUploads(at name: String) -> Set<String> { destinations.refusedUploads(at: name).union(uploads.refused) }

    /// Uploads whose own files a destination has refused. They show even less about the destination.
    func refusedFiles(at name: String) -> Set<String> { destinations.refusedFiles(at: name).union(uploads.refused) }

    /// The times after `began` when a destination is tried or asked again.
    func checks(after began: MonotonicTime) -> [MonotonicTime] {
        (destinations.probes + destinations.capacities.values.compactMap(\.nextCheck)).filter { $0 > began }
    }

    /// The times when pauses and exceptions end, and when an upload may be too old.
    var ends: [WallTime] { pauses.ends + overrides.ends + [expiry.next].compactMap { $0 } }

    /// The work that has to end before the scheduler does.
    var tasks: [Task<Void, Never>] { transfers.all.map(\.task) + destinations.capacityQueries + busy.tasks }

    var isIdle: Bool { transfers.isEmpty && destinations.capacityQueries.isEmpty && !busy.states.isQuerying }
}
