internal import Config
internal import Core
internal import Destinations
internal import Linux
internal import Names
internal import Store

/// The scheduler: decides which uploads are sent next, by asking `Core.Admission`, and runs each attempt to its
/// verdict.
///
/// It wakes when it is signalled or at the earliest deadline, and never otherwise. It owns the components that policy
/// depends on; ``snapshot`` is their combined state at one moment.
actor Scheduler {
    var transfers = RunningTransfers()
    var destinations = DestinationTracker()
    var uploads = UploadTracker()
    var quotaWaits = QuotaWaitlist()
    var pauseSet = PauseSet() { didSet { generation.noteChange() } }
    var overrideSet = OverrideSet() { didSet { generation.noteChange() } }
    var clock = ClockMonitor() { didSet { generation.noteChange() } }
    var power = PowerMonitor() { didSet { generation.noteChange() } }
    var busy = BusyMonitor() { didSet { generation.noteChange() } }
    var network = NetworkMonitor() { didSet { generation.noteChange() } }
    /// Counts the changes of what policy depends on.
    var generation = PolicyGeneration()
    var requests = BackgroundRequests()
    /// The holds that were logged.
    var holdLog = HoldLog<UploadClass>()
    /// No upload gets too old before this time; `nil`: not determined yet, or no longer valid.
    var nextExpiry: WallTime?
    var cycles = Cycles()
    /// The values that its attempts use, among them the database, the clocks, the log and the configuration.
    let attempts: AttemptContext
    let sendingLimits: SendingLimits
    let stateHealth: StateHealth
    let signals: Signals
    let networks: Networks
    let callbacks: Callbacks

    /// The scheduler's counters since the start, with times.
    struct Cycles: Sendable {
        var count = 0
        /// How many evaluations of policy for a class there were.
        var evaluations = 0
        /// When the last cycle began, by both clocks.
        var began = MonotonicTime(nanoseconds: 0)
        var beganWall: WallTime?
        /// Uploads that were completed.
        var completed = 0
        /// The destination that something was started to last.
        var lastServed = ""
    }

    /// Calls to other parts of the daemon.
    struct Callbacks: Sendable {
        /// Ends all transfers over an interface, and returns when nothing is sent there any more.
        var closeInterface: @Sendable (String) async -> Void = { _ in }
        /// Ends all connections from addresses that the machine has lost.
        var loseAddresses: @Sendable (Set<IPAddress>) -> Void = { _ in }
        /// Requests from `Watch` that a file settles again.
        var reconsiderSource: @Sendable (_ folder: String, _ relative: FilePath) -> Void = { _, _ in }
        /// Lets the next request to a destination read its secret again.
        var renewSecret: @Sendable (_ destination: String) -> Void = { _ in }
    }

    init(
        attempts: AttemptContext, sendingLimits: SendingLimits, stateHealth: StateHealth, signals: Signals,
        addresses: AddressCache, busAddress: String = NetworkManagerEvents.systemBus, callbacks: Callbacks = Callbacks()
    ) {
        (self.attempts, self.sendingLimits, self.stateHealth) = (attempts, sendingLimits, stateHealth)
        (self.signals, self.callbacks) = (signals, callbacks)
        networks = Networks(clocks: attempts.context.clocks, names: addresses, busAddress: busAddress)
    }

    nonisolated var context: Context { attempts.context }

    /// The records of how attempts end.
    ///
    /// - Parameter accounts: The accounts of a transfer, by upload.
    func records(_ accounts: [String: QuotaAccount] = [:]) -> AttemptRecords {
        AttemptRecords(
            context: context, live: attempts.live, ledger: sendingLimits.ledger, stateHealth: stateHealth,
            accounts: accounts)
    }

    /// What policy depends on, as it is known now.
    var snapshot: PolicySnapshot {
        PolicySnapshot(
            context.configuration.value, clocks: context.clocks, quotas: sendingLimits.ledger.book,
            clockTrouble: clock.trouble,
            power: power.power, busy: busy.states, pauses: pauseSet, overrides: overrideSet,
            destinations: destinations, transfers: transfers, network: network, quotaWaits: quotaWaits,
            generation: generation)
    }

    // MARK: The loop

    /// Schedules until the task is cancelled; then stops every transfer and returns when each has ended.
    func run() async throws {
        let clockListener = listenToClock()
        await beginNetwork()
        defer {
            if let clockListener { ClockEvents.shared.forget(clockListener) }
            networks.stop()
            busy.stop()
            power.stop()
        }
        while !Task.isCancelled {
            do {
                // No byte is sent unless its checkpoint can be stored.
                if stateHealth.isFailing { try await context.store.prove() }
                try await runCycle()
                await signals.scheduling.wait(atMost: try await nextDeadline())
            } catch let error as StoreError {
                stateHealth.failed(error)
                // Not the signal, which comes with every file: the disk is tried every few seconds and not more often.
                // Only a stop ends the sleep early, and the loop with it.
                try? await Alarms.shared.sleep(for: .seconds(5))
            }
        }
        attempts.live.isStopping = true
        let tasks = transfers.all.map(\.task) + destinations.capacityQueries + busy.tasks
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    /// Starts the uploads that may start.
    private func runCycle() async throws {
        (cycles.began, cycles.beganWall) = (context.clocks.monotonic(), context.clocks.wall())
        cycles.count += 1
        try await expirePauses()
        try await expireOverrides()
        refreshClock()
        await refreshPower()
        try await refreshBusy()
        try await expireUploads()
        try await stopSuperseded()
        try await sendingLimits.ledger.refresh()
        try await wakeQuotaWaits()
        try await wakeUnmetered()
        setLimits()
        stopForbidden()
        try await tryKeysWithOthers()
        try await startExempt()
        // Destinations take turns, so that one with many files does not use all slots: the last one served is tried
        // last.
        let folders = try await openFolders()
        var open = context.settings.destinations.map(\.name)
        if let served = open.firstIndex(of: cycles.lastServed) { open = Array(open[(served + 1)...] + open[...served]) }
        open.removeAll { folders[$0] == nil }
        while !open.isEmpty {
            var stillOpen: [String] = []
            for name in open {
                if try await startNext(to: name, from: folders[name] ?? OpenFolders(), sharing: open.count) {
                    stillOpen.append(name)
                }
            }
            open = stillOpen
        }
    }

    /// The time until a hold may end without an event.
    func nextDeadline() async throws -> Duration? {
        // A deadline that passed since the last cycle began counts too: nothing else would wake the loop for it.
        var times = destinations.probes.filter { $0 > cycles.began }
        if let backoff = try await context.store.read({ [cycles] tx in try tx.waits.next(after: cycles.began) }) {
            times.append(backoff)
        }
        let (now, wall) = (context.clocks.monotonic(), context.clocks.wall())
        var waits = times.map { $0.since(now) }
        // So does a window that closed during a cycle: transfers that it started meanwhile have to be stopped.
        var snapshot = snapshot
        if let began = cycles.beganWall { snapshot.inputs.now = min(snapshot.inputs.now, began) }
        let change = snapshot.admission.nextChange(
            context.settings.destinations.map { snapshot.destination($0.name) },
            context.settings.folders.map { snapshot.folder($0.watch.name) }, in: snapshot.inputs)
        if let next = try await nextPowerCheck() { waits.append(next) }
        waits += destinations.capacities.values.compactMap(\.nextCheck).filter { $0 > cycles.began }
            .map { $0.since(now) }
        if let next = busy.states.nextCheck(at: now) { waits.append(next) }
        waits += (pauseSet.ends + overrideSet.ends + [change, nextExpiry].compactMap { $0 }).map {
            .milliseconds($0.milliseconds - wall.milliseconds)
        }
        return waits.min().map { max($0, .milliseconds(10)) }
    }

    // MARK: Starting uploads

    /// The folders whose files may be sent now, by destination. Policy is evaluated once for each class that waits,
    /// however many uploads the class has.
    private func openFolders() async throws -> [String: OpenFolders] {
        let classes = try await context.store.read { try $0.lists.waitingClasses() }
        let snapshot = snapshot
        var states: [String: Admission.DestinationState] = [:]
        var open: [String: OpenFolders] = [:]
        var holds: [UploadClass: Hold?] = [:]
        for (one, _) in classes where context.destinations[one.destination] != nil {
            let state = states[one.destination] ?? snapshot.destination(one.destination)
            states[one.destination] = state
            cycles.evaluations += 1
            let blockers = snapshot.admission.hardBlockers(
                on: state, from: snapshot.folder(one.folder), in: snapshot.inputs)
            if blockers.allSatisfy(\.sparesBegun) {
                open[one.destination, default: OpenFolders()].all.insert(one.folder)
                if !blockers.isEmpty { open[one.destination]?.begunOnly.insert(one.folder) }
            }
            // An untrusted clock is reported once for all of them.
            holds[one] = .some(blockers.filter { $0.kind != .clock }.binding)
        }
        AttemptLog(log: context.log).report(holdLog.update(holds, at: context.clocks.monotonic()))
        return open
    }

    /// - Parameters:
    ///   - folders: The folders whose files may be sent there.
    ///   - count: Destinations that share the free slots.
    /// - Returns: Whether anything was started, so that more may follow.
    private func startNext(to name: String, from folders: OpenFolders, sharing count: Int) async throws -> Bool {
        let snapshot = snapshot
        guard let destination = context.destinations[name], case .go(let free) = snapshot.slots(at: name) else {
            return false
        }
        let open = folders.all.subtracting(snapshot.fullFolders)
        guard case .known(let left) = try await capacityForNew(at: name, destination, from: open) else { return false }
        let isAsked =
            context.settings.policy.beforeUpload != nil
            || context.configuration.settings(ofDestination: name)?.policy.beforeUpload != nil
        let goesTogether = destinations.trouble(of: name) == nil && !isAsked
        // All uploads that may start share a transaction. A probe of a destination is one file.
        let limits = BatchLimits(
            slots: max(1, free / count), bundling: goesTogether ? destination.bundling : nil,
            counted: Set(context.settings.folders.filter(\.policy.goesAlone).map(\.watch.name)))
        let reservations = ReservationBatch(self.snapshot, to: name, exempting: [], ledger: sendingLimits.ledger)
        var claims: [Claim] = []
        do {
            defer { reservations.took(claims) }
            claims = try await context.store.claim(
                filling: limits, name, from: { open.contains($0) }, begunOnly: folders.begunOnly, within: left,
                skippingDuplicatesOf: context.settings.foldersWithoutDuplicates,
                reserving: { reservations.reserve($0) }, onRepeat: { self.reportDuplicate($0) })
        }
        claims = try await passOverRefused(claims, at: name)
        claims = try await passOverWasted(claims, reservations)
        if claims.isEmpty {
            try await noteCapacityWait(name, from: open.subtracting(folders.begunOnly))
            // The reported space is newer than the last refusal, and no upload would probe the destination.
            if destinations.capacity(of: name)?.waiting != nil, destinations.trouble(of: name)?.kind == .quota {
                destinations.succeeded(name)
            }
            return false
        }
        let going = try await giveBackRefused(of: claims, reservations)
        let isSmall: (Claim) -> Bool = {
            let goesAlone = $0.checkpoint != nil || $0.asset.stagingMode == .inPlace
            return limits.isBundled(size: $0.asset.stagedSize, isBegun: goesAlone, of: $0.upload.folder)
        }
        var (started, late): ([Claim], [Claim]) = ([], [])
        for share in limits.shared(going, isBundled: isSmall) {
            if start(share, isBundle: share.allSatisfy(isSmall), name, destination, reservations) {
                started += share
            } else {
                late += share
            }
        }
        destinations.begun(name, missing: started.map(\.upload.missing))
        if !started.isEmpty { cycles.lastServed = name }
        // After the start: no stop may come between the decision and the start of what it was made for.
        if !late.isEmpty {
            try await giveBack(late)
        }
        try await noteCapacityWait(name, from: open.subtracting(folders.begunOnly))
        return !started.isEmpty
    }

    /// Starts single uploads whose holds a person waived.
    private func startExempt() async throws {
        for (id, exemptions) in snapshot.exemptUploads {
            guard transfers.carrying(id) == nil, let upload = try await context.store.read({ try $0.uploads.find(id) }),
                let destination = context.destinations[upload.destination]
            else { continue }
            let snapshot = snapshot
            guard !snapshot.fullFolders.contains(upload.folder),
                !goesInTurn(upload, without: exemptions, snapshot),
                case .go = snapshot.verdict(
                    for: upload.destination, from: snapshot.folder(upload.folder, exempting: exemptions))
            else { continue }
            let reservations = ReservationBatch(
                snapshot, to: upload.destination, exempting: exemptions, ledger: sendingLimits.ledger)
            var claims: [Claim] = []
            do {
                defer { reservations.took(claims) }
                claims =
                    try await context.store.claim(
                        only: id, skippingDuplicatesOf: context.settings.foldersWithoutDuplicates,
                        reserving: { reservations.reserve($0) }
                    ).map { [$0] } ?? []
            }
            claims = try await passOverWasted(claims, reservations)
            for claim in try await giveBackRefused(of: claims, reservations)
            where !start([claim], isBundle: false, upload.destination, destination, reservations) {
                try await giveBack([claim])
            }
        }
    }

    /// Whether the upload may be sent without its own exemption, and so in its turn.
    private func goesInTurn(
        _ upload: UploadRecord, without exemptions: Set<Exemption>, _ snapshot: PolicySnapshot
    ) -> Bool {
        if exemptions.contains(.quota), snapshot.lacksQuota(upload) { return false }
        if case .go = snapshot.verdict(for: upload.destination, from: snapshot.folder(upload.folder)) { return true }
        return false
    }

    /// Returns the claims that may start, and gives the others back.
    private func giveBackRefused(of claims: [Claim], _ reservations: ReservationBatch) async throws -> [Claim] {
        var left = claims
        await recallRequestSize(of: reservations.destination)
        while true {
            let refused = snapshot.refused(left, reservations)
            if refused.isEmpty { return left }
            // The stop may have been meant for other uploads, and no event may follow that makes these start.
            if reservations.generation.stops != generation.stops { signals.scheduling.signal() }
            let ids = Set(refused.map(\.upload.id))
            left.removeAll { ids.contains($0.upload.id) }
            // That waits for the disk: a stop or a change of policy may come meanwhile.
            try await records().giveBack(refused)
        }
    }

    /// Opens a transfer, if policy allows it at this moment. Nothing here suspends: no change of policy comes between
    /// the decision and the transfer that it was made for.
    ///
    /// - Returns: Whether the transfer was opened.
    private func start(
        _ claims: [Claim], isBundle: Bool, _ name: String, _ destination: any Destination, _ paid: ReservationBatch
    ) -> Bool {
        let number = transfers.nextNumber()
        let addressLost: @Sendable () -> Void = { [weak self] in Task { await self?.addressLost(number) } }
        // The claims were allowed by an earlier snapshot.
        guard
            let (permit, route) = snapshot.permit(
                for: claims, paid, sendingLimits.bandwidth, onAddressLost: addressLost),
            permit.isCurrent(in: generation)
        else { return false }
        for claim in claims { AttemptLog(log: context.log).reportStart(claim) }
        network.use(permit.interface)
        let runner = TransferRunner(
            attempts: attempts, scheduler: self, destination: destination, permit: permit,
            generation: destinations.generation(of: name),
            records: records(permit.accounts))
        let task = Task {
            await runner.run(claims, isBundle: isBundle)
            self.transferEnded(number, claims)
        }
        for account in permit.accounts.values {
            account.whenOver { [stateHealth, context] error in
                if let error { stateHealth.noteFailure(error) }
                if error == nil {
                    context.log.notice(
                        "transfer stopped; it will resume",
                        ["destination": name, "hold": "quota", "reason": "its quotas are used up"])
                }
                task.cancel()
            }
        }
        transfers.add(
            RunningTransfers.Transfer(
                destination: name, route: route,
                folders: Dictionary(
                    claims.map { ($0.upload.id, $0.upload.folder) }, uniquingKeysWith: { first, _ in first }),
                inPlace: Set(claims.filter { $0.asset.stagingMode == .inPlace }.map(\.upload.id)), task: task),
            number)
        return true
    }

    private func transferEnded(_ number: Int, _ claims: [Claim]) {
        transfers.remove(number)
        for claim in claims { attempts.live.goOn(claim.upload.id) }
        signals.scheduling.signal()
        signals.removal.signal()
    }

    nonisolated private func reportDuplicate(_ asset: AssetRecord) {
        AttemptLog(log: context.log).reportDuplicate(asset)
    }
}

/// Folders whose files may be sent to a destination.
struct OpenFolders {
    var all: Set<String> = []
    /// The folders whose files may only be continued, not begun.
    var begunOnly: Set<String> = []
}
