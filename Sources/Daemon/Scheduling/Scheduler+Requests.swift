internal import Config
internal import Core
internal import Linux

// Requests besides transfers, and questions about what waits.

extension Scheduler {
    // MARK: Requests besides transfers

    nonisolated var requests: RequestRunner { RequestRunner(scheduler: self) }

    /// Starts a request, if policy allows it at this moment. Nothing here suspends: no change of policy comes between
    /// the decision and the record by which each later change finds the request and stops it.
    ///
    /// - Parameters:
    ///   - account: The destination, hook or folder that pays for it.
    ///   - site: The server of a connection of a program.
    ///   - answers: Further answers of sources of `busy`.
    ///   - send: Sends it, with the permission that it is given.
    /// - Returns: The request, which ``RequestRunner/finish(_:)`` has to end; or the hold. If a loop waits to send it, it
    ///   is signalled when the hold is over.
    func start<Answer: Sendable>(
        _ purpose: RequestPurpose, at account: String, site: DestinationSite? = nil,
        answering answers: [BusySource: BusyAnswer] = [:],
        _ send: @escaping @Sendable (TransferPermit) async -> Answer
    ) -> Result<RunningRequest<Answer>, RequestHeldError> {
        let decision = snapshot.answering(answers).permit(
            for: purpose, at: account, sendingLimits.bandwidth, sendingLimits.ledger)
        switch decision {
        case .failure(let held):
            if purpose.isAwaited { facts.close(account, for: purpose) }
            return .failure(held)
        case .success(let (permit, route)):
            facts.network.recordUse(permit.interface)
            let task = Task { await send(permit) }
            let number = facts.requests.begin(
                BackgroundRequests.BackgroundRequest(
                    account: account, purpose: purpose, route: route, site: site, permit: permit,
                    stop: { task.cancel() }, ended: { _ = await task.value }))
            return .success(RunningRequest(number: number, task: task, permit: permit))
        }
    }

    /// Starts to carry a connection of a program, if policy allows it at this moment, as ``start(_:at:site:answering:_:)``
    /// does.
    ///
    /// - Parameter evenIfChanged: Whether the routes also serve where policy or the networks have changed since.
    /// - Returns: `nil` where they have changed.
    func connect<Answer: Sendable>(
        to server: ProgramConnections.Server, for payer: ProgramPayer, evenIfChanged: Bool,
        _ send: @escaping @Sendable (TransferPermit) async -> Answer
    ) -> Result<RunningRequest<Answer>, RequestHeldError>? {
        if facts.generation != server.generation, !evenIfChanged { return nil }
        facts.network.add(server.place(of: payer), server.reachability, at: context.clocks.wall())
        return start(server.purpose(for: payer), at: payer.account, site: server.site, send)
    }

    /// The hold on a program whose bytes obey policy; `nil` when it may start. The loop that waits to start it is
    /// signalled when the hold is over.
    func hold(on payer: ProgramPayer) -> Hold? {
        facts.close(payer, by: snapshot.hold(on: payer.purpose, at: payer.account))
    }

    func requestEnded(_ number: Int) -> Hold? { facts.requests.end(number) }

    /// Stops the requests that policy no longer allows. The rules that apply now hold for the others.
    func stopForbiddenRequests(_ snapshot: PolicySnapshot) {
        // A request that has begun was allowed by all sources of `busy` that count.
        let planned = snapshot.planned
        for request in facts.requests.forbid({ planned.presentRules(of: $0) }, sendingLimits.apply) {
            AttemptLog(log: context.log).reportStopped(request)
            request.stop()
        }
    }

    /// Finds out the facts for a person's request that are unknown because no upload waits for them.
    ///
    /// - Returns: The answers of sources of `busy`; or the hold, if the usage of the quotas cannot be read.
    func findFacts(
        forCommandAt account: String, _ network: HookNetwork
    ) async -> Result<[BusySource: BusyAnswer], RequestHeldError> {
        var answers: [BusySource: BusyAnswer] = [:]
        if network == .policy {
            do { try await sendingLimits.ledger.refresh() } catch {
                return .failure(RequestHeldError(unreadQuotas: error, at: context.clocks.wall()))
            }
            await refreshMachine()
            let rules = [context.settings.policy.rules, snapshot.destination(account).rules].compactMap(\.busy)
            for rule in rules where snapshot.inputs.busy[rule.source] == nil && answers[rule.source] == nil {
                guard let answer = await facts.busy.probe.check(rule.source, rule.timeout) else { continue }
                answers[rule.source] = BusyAnswer(answer, since: context.clocks.wall())
            }
        }
        await facts.network.closing?.value
        return .success(answers)
    }

    // MARK: For views

    /// The decisions of policy, for people. Waits until nothing is sent any more over an interface that was forbidden.
    func shown() async -> PolicySnapshot {
        await facts.network.closing?.value
        await facts.requests.connectionsStopped()
        return snapshot.shown
    }

    var isIdle: Bool { facts.isIdle }
    func isRunning(_ id: String) -> Bool { facts.transfers.carrying(id) != nil }
}
