internal import Core

/// The scheduler's knowledge besides the configuration and the database: a component for each subject.
struct SchedulerFacts: Sendable {
    var transfers = RunningTransfers()
    var destinations = DestinationTracker()
    var uploads = UploadTracker()
    var quotaWaits = QuotaWaitlist()
    var requests = BackgroundRequests()
    var expiry = ExpiryTimer()
    var pauses = PauseSet() { didSet { generation.noteChange() } }
    var overrides = OverrideSet() { didSet { generation.noteChange() } }
    var clock = ClockMonitor() { didSet { generation.noteChange() } }
    var power = PowerMonitor() { didSet { generation.noteChange() } }
    var busy = BusyMonitor() { didSet { generation.noteChange() } }
    var network = NetworkMonitor() { didSet { generation.noteChange() } }
    /// Counts the changes of what policy depends on.
    var generation = PolicyGeneration()

    /// Other settings hold from now on. Uploads that are being claimed now are given back.
    mutating func configurationChanged() {
        expiry.invalidate()
        generation.noteChange()
        generation.noteStop()
    }

    /// The times after `began` when a destination is tried or asked again.
    func checks(after began: MonotonicTime) -> [MonotonicTime] {
        (destinations.probes + destinations.capacities.values.compactMap(\.nextCheck)).filter { $0 > began }
    }

    /// The times when pauses and exceptions end, and when an upload may be too old.
    var ends: [WallTime] { pauses.ends + overrides.ends + [expiry.next].compactMap { $0 } }

    /// The work that has to end before the scheduler does.
    var tasks: [Task<Void, Never>] { transfers.all.map(\.task) + destinations.capacityQueries + busy.tasks }

    var isIdle: Bool { transfers.isEmpty && destinations.capacityQueries.isEmpty && !busy.states.isAsking }
}
