internal import Config
internal import Core
internal import Linux
internal import Names
internal import Store

// The outside world: network, power, clock, and the sources of `busy`. Each monitor holds the known state; here it is
// refreshed, and its consequences follow.

extension Scheduler {
    // MARK: Network

    /// Listens to the networks until ``NetworkInspector/stop()``, and inspects them for the first time.
    func beginNetwork() async {
        do {
            try networks.listen { [weak self] kind in
                Task { await self?.networkChanged(kind) }
            }
        } catch {
            context.log.warning(
                "cannot watch the network for changes; they will not be noticed", ["reason": "\(error)"])
        }
        await inspectNetwork()
    }

    /// Handles a change of the networks.
    private func networkChanged(_ kind: NetworkEvents.Kind) async {
        if kind == .mayForbid { return await inspectNetwork() }
        // An improvement arrives in many pieces: a link, its addresses, its routes.
        if facts.network.noteImprovement() { inspectNetworkLater(.milliseconds(250)) }
    }

    /// A destination could not be reached. If its interface is fixed, it may be reachable by another one by now.
    func doubtNetwork() {
        if facts.network.metering == nil { return }
        networks.expireNames()
        inspectNetworkLater(.milliseconds(250))
    }

    /// - Parameter before: Run just before the inspection.
    private func inspectNetworkLater(_ wait: Duration, before: (@Sendable (isolated Scheduler) -> Void)? = nil) {
        _ = Alarms.shared.set(after: wait) { [weak self] in
            Task {
                guard let self else { return }
                await before?(self)
                await self.inspectNetwork()
            }
        }
    }

    /// Inspects the networks, stops transfers that may not continue, and wakes uploads that may be sent now.
    func inspectNetwork() async {
        guard facts.network.beginInspection() else { return }
        repeat {
            facts.network.beginRound()
            let depends = context.settings.allRules.contains(where: \.dependsOnNetwork)
            networks.listenToManagers(depends)
            let networkState = await networks.inspect(
                at: facts.sites(context.configuration), depends: depends,
                gatewaysMatter: context.settings.allRules.contains(where: \.namesGateways),
                mayAsk: snapshot.allowsNameQueries)
            await apply(networkState)
        } while facts.network.endRound()
    }

    private func apply(_ networkState: NetworkState) async {
        facts.network.set(
            networkState.metering,
            isForFolders: context.settings.writtenFolders.contains { !$0.policy.rules.networks.isEmpty })
        if let nameServers = networkState.nameServers { sendingLimits.bandwidth.set(nameServers: nameServers) }
        if let addresses = networkState.addresses {
            let lost = facts.network.set(addresses: addresses)
            if !lost.isEmpty { callbacks.loseAddresses(lost) }
        }
        // Before the call: the snapshot reads the state that the call changes.
        let snapshot = snapshot
        let changed = facts.network.apply(
            networkState, at: facts.sites(context.configuration).keys, now: snapshot.inputs.now, context.log
        ) { snapshot.routeDecision(to: $0, reached: $1) }
        let decided = self.snapshot
        setLimits(decided)
        // An interface that is no longer approved loses its idle connections, and requests that belong to no transfer.
        await close(interfaces: stopForbidden(decided).union(facts.network.unapproved))
        let next = facts.network.finished(networkState)
        if next.soon { inspectNetworkLater(.milliseconds(100)) }
        if next.later {
            inspectNetworkLater(NetworkMonitor.nameServerPause) { $0.facts.network.nameServerPauseEnded() }
        }
        if changed.isEmpty { return }
        do { try await reconsider(changed) } catch {
            context.log.debug("cannot end the waits of uploads; they stay as they are", ["reason": "\(error)"])
        }
    }

    /// Closes the connections over interfaces that nothing uses any more. Queries about holds wait for it, so that no
    /// byte is sent after a hold was reported.
    private func close(interfaces: Set<String>) async {
        let idle = interfaces.subtracting(facts.transfers.interfaces)
        if idle.isEmpty { return }
        let closeInterface = callbacks.closeInterface
        let task = Task { for interface in idle { await closeInterface(interface) } }
        facts.network.close(idle, by: task)
        await task.value
    }

    /// The transfer's connections have lost their local address. The transfer has not failed, and starts again from its
    /// checkpoint.
    func addressLost(_ number: Int) {
        guard let transfer = facts.transfers[number], !transfer.task.isCancelled else { return }
        context.log.notice(
            "this machine's address has changed; the transfer starts again from its checkpoint",
            ["destination": transfer.destination])
        transfer.task.cancel()
    }

    // MARK: Clock

    func refreshClock() {
        // The clock is not checked where no rule depends on it.
        if context.settings.allRules.allSatisfy(\.isTimeless) { return facts.clock.reset() }
        if facts.clock.refreshZone(at: context.clocks.wall(), context.log) {
            // In another zone, days and windows begin at another moment.
            sendingLimits.ledger.zoneChanged()
            facts.expiry.invalidate()
        }
        facts.clock.evaluate(context.clocks, context.log)
    }

    /// The clock was set: windows are evaluated again, and a destination that was refused for its certificate is tried
    /// again.
    func clockWasSet() async {
        facts.clockWasSet()
        do { try await reconsider() } catch {
            context.log.debug("cannot end the waits of uploads; they stay as they are", ["reason": "\(error)"])
        }
    }

    // MARK: Power and temperature

    func refreshMachine() async {
        facts.temperature.record(await facts.temperature.reading(for: context.settings.allRules), context.log)
        guard context.settings.allRules.contains(where: \.dependsOnPower) else { return facts.power.reset() }
        facts.power.listen(context.log) { [weak self] in Task { await self?.powerSupplyChanged() } }
        let supplies = facts.power.supplies
        let reading: Result<[Power.Supply], any Error>
        do { reading = .success(try await blocking { try supplies.all() }) } catch { reading = .failure(error) }
        facts.power.record(reading, at: context.clocks.wall(), context.log)
    }

    private func powerSupplyChanged() { facts.power.wakeForReading() }

    /// When to read power and temperature again; empty when nothing would follow from it.
    func nextMachineChecks() async throws -> [Duration] {
        let checks = facts.machineChecks(for: context.settings.allRules)
        if checks.isEmpty || !facts.transfers.isEmpty { return checks }
        return try await context.store.read { try $0.lists.classes() }.contains { !$0.state.isTerminal } ? checks : []
    }

    // MARK: Busy

    /// Checks the sources that at least one upload waits for.
    func refreshBusy() async throws {
        facts.busy.apply(context.settings.allRules)
        watchFiles()
        var wanted: Set<BusySource> = []
        if facts.busy.states.hasPolled {
            let ready = try await context.store.read { try $0.lists.readyClasses() }
            wanted = snapshot.wantedSources(ready, facts.requests.closed.intersection(context.configuration.sites.keys))
        }
        queryBusy(facts.busy.due(wanted, at: context.clocks.monotonic()))
    }

    /// Inspects the files of new settings before the settings take effect, so that no transfer stops only because a
    /// file has not been inspected yet. It waits neither for a command nor for a disk that does not answer.
    func inspectFiles(of settings: Settings) async {
        facts.busy.add(settings.allRules)
        watchFiles()
        queryBusy(facts.busy.newFiles())
        await facts.busy.filesAnswered()
        // A new rule would find the temperature unknown, and stop transfers for a moment.
        facts.temperature.record(await facts.temperature.reading(for: settings.allRules), context.log)
    }

    private func watchFiles() {
        // A change of these may mean another time zone.
        let dependsOnZone = !context.settings.allRules.allSatisfy(\.isTimeless) && ZoneSource.identity() != nil
        let unwatched = facts.busy.watch(dependsOnZone ? [ZoneSource.file] : []) { [weak self] in
            Task { await self?.filesChanged() }
        }
        if let unwatched { filesChanged(unwatched) }
    }

    private func filesChanged() { if let unwatched = facts.busy.unwatched { filesChanged(unwatched) } }

    private func filesChanged(_ unwatched: [FilePath: String]) {
        facts.clock.filesChanged()
        queryBusy(facts.busy.filesChanged(unwatched, context.log))
    }

    private func queryBusy(_ questions: [BusySource: Duration]) {
        if attempts.stops.endsAll { return }
        facts.busy.startChecks(questions, at: context.clocks.monotonic()) {
            await self.answered($0, by: $1, askedAt: $2)
        }
    }

    private func answered(_ answer: BusyAnswer.Answer?, by source: BusySource, askedAt: MonotonicTime) {
        let (isNew, again) = facts.busy.answered(
            answer, by: source, askedAt: askedAt, at: context.clocks.wall(), context.log)
        queryBusy(again)
        // A stop does not reach uploads that are being claimed at this moment.
        if isNew, answer != .free { facts.generation.noteStop() }
        if isNew || facts.busy.states.hasPolled { stopForbidden(snapshot) }
    }
}
