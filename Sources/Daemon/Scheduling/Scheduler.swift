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
    var facts = SchedulerFacts() { didSet { if !facts.changes.isEmpty { signals.wake(for: facts.takeChanges()) } } }
    /// The holds that were logged.
    private var holdLog = HoldLog<UploadClass>()
    var cycles = Cycles()
    let superseded = SupersededUploads()
    /// The values that its attempts use, among them the database, the clocks, the log and the configuration.
    let attempts: AttemptContext
    let sendingLimits: SendingLimits
    let stateHealth: StateHealth
    let signals: WakeUps
    let networks: NetworkInspector
    let callbacks: SchedulerCallbacks
    let turns = TurnProbe()

    init(
        attempts: AttemptContext, sendingLimits: SendingLimits, stateHealth: StateHealth, signals: WakeUps,
        addresses: AddressCache, busAddress: String = NetworkManagerEvents.systemBus,
        callbacks: SchedulerCallbacks = SchedulerCallbacks()
    ) {
        (self.attempts, self.sendingLimits, self.stateHealth) = (attempts, sendingLimits, stateHealth)
        (self.signals, self.callbacks) = (signals, callbacks)
        networks = NetworkInspector(clocks: attempts.context.clocks, names: addresses, busAddress: busAddress)
    }

    nonisolated var context: Context { attempts.context }

    /// The records of how attempts end.
    ///
    /// - Parameter accounts: The accounts of a transfer, by upload.
    func records(_ accounts: [String: QuotaAccount] = [:]) -> AttemptRecorder {
        attempts.recorder(sendingLimits.ledger, stateHealth, accounts)
    }

    /// The facts that policy depends on, as they are known now.
    var snapshot: PolicySnapshot {
        cycles.madeSnapshot()
        return PolicySnapshot(
            context.configuration.value, clocks: context.clocks, quotas: sendingLimits.ledger.quotas, facts: facts)
    }

    // MARK: The loop

    /// Schedules until the task is cancelled; then stops every transfer and returns when each has ended.
    func run() async throws {
        facts.clock.listen(context.log) { [weak self] in Task { await self?.clockWasSet() } }
        await beginNetwork()
        defer {
            facts.clock.stop()
            networks.stop()
            facts.busy.stop()
            facts.power.stop()
        }
        while !Task.isCancelled {
            turns.beginTurn()
            do {
                // No byte is sent unless its checkpoint can be stored.
                if stateHealth.isFailing { try await context.store.testWrite() }
                try await runCycle()
                if cycles.takeRepeat() { continue }
                await signals.scheduling.wait(atMost: try await nextDeadline())
            } catch let error as StoreError {
                stateHealth.failed(error)
                // Not the signal, which comes with every file: the disk is tried every few seconds and not more often.
                // Only a stop ends the sleep early, and the loop with it.
                try? await Alarms.shared.sleep(for: .seconds(5))
            }
        }
        attempts.stops.endAll()
        let tasks = facts.tasks
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    /// Starts the uploads that may start.
    private func runCycle() async throws {
        cycles.begin(at: context.clocks.monotonic(), context.clocks.wall())
        try await expirePauses()
        try await expireOverrides()
        refreshClock()
        await refreshMachine()
        try await refreshBusy()
        try await expireUploads()
        try await giveUpUploads()
        try await TakeOvers(context: context).run()
        try await stopSuperseded()
        try await sendingLimits.ledger.refresh()
        let classes = try await context.store.read { try $0.lists.waitingClasses() }.map(\.upload)
        // Limits, stops, ended waits and open folders are about one state. `refreshBusy` has asked an earlier one, because
        // its questions lead to this one. Each start takes others, before its claim and after it: earlier starts have
        // used slots, and the disk was waited for.
        let snapshot = snapshot
        setLimits(snapshot)
        stopForbidden(snapshot)
        let files = openFiles(classes, snapshot)
        try await wakeQuotaWaits(snapshot)
        try await wakeUnmetered(snapshot)
        try await tryKeysWithOthers()
        try await startRequested()
        try await startExempt(snapshot)
        var open = cycles.inTurn(context.settings.destinations.map(\.name))
        open.removeAll { files[$0] == nil }
        while !open.isEmpty {
            var stillOpen: [String] = []
            for name in open {
                if try await startNext(to: name, from: files[name] ?? UnblockedFiles(), sharing: open.count) {
                    stillOpen.append(name)
                }
            }
            open = stillOpen
        }
    }

    /// The time until a hold may end without an event.
    func nextDeadline() async throws -> Duration? {
        // A deadline that passed since the last cycle began counts too: nothing else would wake the loop for it. So does
        // a window that closed during a cycle: transfers that it started meanwhile have to be stopped.
        let backoff = try await context.store.read { [cycles] tx in try tx.waits.next(after: cycles.began) }
        return facts.nextDeadline(
            after: cycles.began, queued: backoff, change: snapshot.nextChange(since: cycles.beganWall),
            checks: try await nextMachineChecks() + TakeOvers(context: context).nextWait(),
            now: context.clocks.monotonic(), wall: context.clocks.wall())
    }

    // MARK: Starting uploads

    /// The files that may be sent now, by destination. Logs the holds of the others.
    private func openFiles(_ classes: [UploadClass], _ snapshot: PolicySnapshot) -> [String: UnblockedFiles] {
        let (open, holds) = snapshot.openFiles(classes)
        cycles.evaluated(classes: holds.count)
        AttemptLog(log: context.log).report(holdLog.update(holds.withoutRepeats, at: context.clocks.monotonic()))
        return open
    }

    /// - Parameters:
    ///   - files: Those that may be sent there.
    ///   - count: Destinations that share the free slots.
    /// - Returns: Whether anything was started, so that more may follow.
    private func startNext(to name: String, from files: UnblockedFiles, sharing count: Int) async throws -> Bool {
        let snapshot = snapshot
        guard let destination = context.destinations[name], case .go(let free) = snapshot.slots(at: name) else {
            return false
        }
        let slots = ConditionalSlots(to: name, from: files.all, snapshot)
        let open = files.all.subtracting(slots.full)
        guard case .known(let left) = try await capacityForNew(at: name, destination, from: open) else { return false }
        let limits = snapshot.batchLimits(to: name, slots: max(1, min(free / count, slots.room)), destination.bundling)
        let reservations = ReservationBatch(snapshot, to: name, exempting: [], ledger: sendingLimits.ledger)
        var claims = try await claimPreferred(at: name) { passed in
            var claims: [Claim] = []
            defer { reservations.recordStored(claims) }
            claims = try await context.store.claim(
                filling: limits, name, from: { open.contains($0) }, begunOnly: files.begunOnly, besides: passed,
                within: left, skippingDuplicatesOf: context.settings.foldersWithoutDuplicates,
                reserving: { reservations.reserve($0) }, onRepeat: AttemptLog(log: context.log).reportDuplicate)
            return claims
        }
        claims = try await passOverWasted(claims, reservations, snapshot)
        if claims.isEmpty {
            try await noteCapacityWait(name, from: open.subtracting(files.begunOnly))
            facts.destinations.endRefusalForSpace(name)
            return false
        }
        let (going, decided) = try await returnRefused(of: claims, reservations)
        var (started, late): ([Claim], [Claim]) = ([], [])
        for share in limits.groupedByTransfer(going, isBundled: limits.isBundled) {
            let isBundle = share.allSatisfy(limits.isBundled)
            if startTransfer(share, isBundle: isBundle, destination, reservations, by: decided) {
                started += share
            } else {
                late += share
            }
        }
        facts.destinations.reserveCapacity(name, missing: started.map(\.upload.missing))
        if !started.isEmpty { cycles.served(name) }
        // After the start: no stop may come between the decision and the start of what it was made for.
        if !late.isEmpty { try await returnClaims(late) }
        try await noteCapacityWait(name, from: open.subtracting(files.begunOnly))
        return !started.isEmpty
    }

    /// Tries held destinations with the uploads that a person wants to be tried.
    private func startRequested() async throws {
        for (name, id) in facts.destinations.requested {
            if let upload = try await context.store.read({ try $0.uploads.find(id) }), upload.state == .queued {
                guard try await startAlone(upload, exempting: snapshot.exemptions(of: id)) else { continue }
            }
            facts.destinations.endRequest(for: id, at: name)
        }
    }

    /// Starts single uploads whose holds a person waived.
    private func startExempt(_ snapshot: PolicySnapshot) async throws {
        for (id, exemptions) in snapshot.exemptUploads {
            guard let upload = try await context.store.read({ try $0.uploads.find(id) }),
                !snapshot.goesInTurn(upload, without: exemptions)
            else { continue }
            _ = try await startAlone(upload, exempting: exemptions)
        }
    }

    /// - Returns: Whether it was ready, so that it was started or waits again.
    private func startAlone(_ upload: UploadRecord, exempting exemptions: Set<Exemption>) async throws -> Bool {
        let (snapshot, name) = (snapshot, upload.destination)
        guard facts.transfers.carrying(upload.id) == nil, let destination = context.destinations[name],
            snapshot.mayBegin(upload, exempting: exemptions)
        else { return false }
        let reservations = ReservationBatch(snapshot, to: name, exempting: exemptions, ledger: sendingLimits.ledger)
        var claims: [Claim] = []
        do {
            defer { reservations.recordStored(claims) }
            claims =
                try await context.store.claim(
                    only: upload.id, skippingDuplicatesOf: context.settings.foldersWithoutDuplicates,
                    reserving: { reservations.reserve($0) }
                ).map { [$0] } ?? []
        }
        let isReady = !claims.isEmpty
        claims = try await passOverWasted(claims, reservations, snapshot)
        let (going, decided) = try await returnRefused(of: claims, reservations)
        for claim in going where !startTransfer([claim], isBundle: false, destination, reservations, by: decided) {
            try await returnClaims([claim])
        }
        return isReady
    }

    /// Returns the claims that may start, with the state of policy that allows it, and gives the others back.
    private func returnRefused(
        of claims: [Claim], _ reservations: ReservationBatch
    ) async throws -> (going: [Claim], decided: PolicySnapshot) {
        var left = claims
        let name = reservations.destination
        await attempts.learned.recall(name, generation: facts.destinations.generation(of: name))
        while true {
            let snapshot = snapshot
            let refused = snapshot.refused(left, reservations)
            if refused.isEmpty { return (left, snapshot) }
            // The stop may have been meant for other uploads, and no event may follow that makes these start.
            if reservations.generation.stops != facts.generation.stops { cycles.repeatSoon() }
            let ids = Set(refused.map(\.upload.id))
            left.removeAll { ids.contains($0.upload.id) }
            // That waits for the disk: a stop or a change of policy may come meanwhile.
            try await records().returnClaims(refused)
        }
    }

    /// Opens a transfer, if policy allows it. Nothing here suspends: no change of policy comes between the check that
    /// the permit is current and the record by which each later change finds the transfer.
    ///
    /// - Parameter snapshot: The state of policy that decides. If policy has changed since, nothing is started.
    /// - Returns: Whether the transfer was opened.
    func startTransfer(
        _ claims: [Claim], isBundle: Bool, _ destination: any Destination, _ reservations: ReservationBatch,
        by snapshot: PolicySnapshot
    ) -> Bool {
        let name = reservations.destination
        let number = facts.transfers.nextNumber()
        let addressLost: @Sendable () -> Void = { [weak self] in Task { await self?.addressLost(number) } }
        guard
            let (permit, route) = snapshot.permit(
                for: claims, reservations, sendingLimits.bandwidth, onAddressLost: addressLost),
            permit.isCurrent(in: facts.generation)
        else { return false }
        for claim in claims { AttemptLog(log: context.log).reportStart(claim) }
        facts.network.recordUse(permit.interface)
        let runner = TransferRunner(
            attempts: attempts, scheduler: self, destination: destination, permit: permit,
            generation: facts.destinations.generation(of: name),
            records: records(permit.accounts), commandCount: facts.destinations.commandCount(of: name))
        let task = Task {
            await runner.run(claims, isBundle: isBundle)
            self.transferEnded(number, claims)
        }
        permit.whenOver { [stateHealth, context] error in
            if let error {
                stateHealth.noteFailure(error)
            } else {
                AttemptLog(log: context.log).reportOutOfQuota(name)
            }
            task.cancel()
        }
        facts.transfers.add(RunningTransfers.Transfer(claims, to: name, over: route, permit, by: task), number)
        return true
    }

    private func transferEnded(_ number: Int, _ claims: [Claim]) {
        facts.transfers.remove(number)
        for claim in claims { attempts.stops.clearPause(claim.upload.id) }
    }
}
