internal import Core
internal import Store

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
    var givingUp = GiveUpTimer()
    var pauses = PauseSet() { didSet { policyChanged(pauses.takeChanges()) } }
    var overrides = OverrideSet() { didSet { policyChanged(overrides.takeChanges()) } }
    var clock = ClockMonitor() { didSet { policyChanged(clock.takeChanges()) } }
    var power = PowerMonitor() { didSet { policyChanged(power.takeChanges()) } }
    var temperature = TemperatureMonitor() { didSet { policyChanged(temperature.takeChanges()) } }
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
        givingUp.schedule(at: MonotonicTime(nanoseconds: 0))
        generation.noteChange()
        generation.noteStop()
        changes.insert(.scheduling)
    }

    /// An upload waits again after an attempt: it may be too old by now, or fail for too long before the next one.
    mutating func waitsAgain(_ upload: UploadRecord, _ context: Context) {
        expiry.invalidate()
        let retry = context.configuration.retry(folder: upload.folder, destination: upload.destination)
        guard let limit = retry.giveUpAfter else { return }
        givingUp.schedule(at: context.clocks.monotonic().advanced(by: GiveUpTimer.delay(for: limit)))
    }

    /// Waiting uploads have ended because they had been failing for too long.
    ///
    /// - Parameter next: When to search for the next ones.
    mutating func gaveUp(_ ended: [UploadRecord], next: MonotonicTime?) {
        for upload in ended {
            uploads.forget(upload.id)
            quotaWaits.ended(upload.id, lacking: nil)
            destinations.ended(upload.destination, upload.id, isOver: true, hasArrived: false)
        }
        givingUp.end(next)
    }

    /// The clock was set: windows are open or closed by another time.
    mutating func clockWasSet() {
        expiry.invalidate()
        changes.insert(.scheduling)
    }

    /// Records that something waits at a place that nothing may be sent to.
    mutating func close(_ account: String, for purpose: RequestPurpose = .removal) {
        // A command does not run while no upload waits for it.
        if requests.close(account, for: purpose), busy.states.hasPolled { changes.insert(.scheduling) }
    }

    /// Records that a program waits to start, where it is held.
    mutating func close(_ payer: ProgramPayer, by hold: Hold?) -> Hold? {
        if hold != nil { close(payer.account, for: payer.purpose) }
        return hold
    }

    /// The uploads that a destination has refused. While another upload waits, none of them probes the destination.
    func refusedUploads(at name: String) -> Set<String> { destinations.refusedUploads(at: name).union(uploads.refused) }

    /// Uploads whose own files a destination has refused. They show even less about the destination.
    func refusedFiles(at name: String) -> Set<String> { destinations.refusedFiles(at: name).union(uploads.refused) }

    /// The time until a hold may end without an event, at least 10 ms; `nil` for never.
    ///
    /// - Parameters:
    ///   - began: The start of the last cycle: what was due before it has been handled.
    ///   - queued: The end of the first wait of an upload after a failure.
    ///   - change: The next change of what the rules allow.
    ///   - checks: The times until other facts are read again.
    func nextDeadline(
        after began: MonotonicTime, queued: MonotonicTime?, change: WallTime?, checks: [Duration], now: MonotonicTime,
        wall: WallTime
    ) -> Duration? {
        // When a destination is tried or asked again.
        let probes = (destinations.probes + destinations.capacities.values.compactMap(\.nextCheck)).filter {
            $0 > began
        }
        // When pauses and exceptions end, and when an upload may be too old.
        let ends = pauses.ends + overrides.ends + [expiry.next, change].compactMap { $0 }
        var waits = (probes + [queued, givingUp.next].compactMap { $0 }).map { $0.since(now) }
        waits += ends.map { .milliseconds($0.milliseconds - wall.milliseconds) }
        waits += checks + [busy.states.nextCheck(at: now)].compactMap { $0 }
        return waits.min().map { max($0, .milliseconds(10)) }
    }

    /// The intervals at which power and temperature are read again, as far as these rules depend on them.
    func machineChecks(for rules: [PolicyRules]) -> [Duration] {
        let power = power.power != nil && rules.contains(where: \.dependsOnPower)
        let temperature = TemperatureMonitor.isNeeded(by: rules)
        return (power ? [PowerMonitor.interval] : []) + (temperature ? [TemperatureMonitor.interval] : [])
    }

    /// The location of every place that something may be sent to now.
    func sites(_ configuration: CurrentConfiguration) -> [String: DestinationSite] {
        configuration.sites.merging(requests.sites) { configured, _ in configured }
    }

    /// The work that has to end before the scheduler does.
    var tasks: [Task<Void, Never>] { transfers.all.map(\.task) + destinations.capacityQueries + busy.tasks }

    var isIdle: Bool { transfers.isEmpty && destinations.capacityQueries.isEmpty && !busy.states.isQuerying }
}
