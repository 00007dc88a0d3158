internal import Config
internal import Core
internal import Linux
internal import Store

// Permits for requests that belong to no transfer, and questions about what waits.

extension Scheduler {
    // MARK: Permits of requests that belong to no transfer

    /// Whether policy or a person forbids a removal at this destination. If so, removals are signalled when that is
    /// over.
    func forbidsRemovals(at destination: String) -> Bool {
        if snapshot.blockers(at: destination).isEmpty {
            facts.requests.open(destination)
            return false
        }
        facts.close(destination)
        return true
    }

    /// The permission for requests that belong to no file; `nil` where no route is open. Its account has to be closed.
    func permit(to destination: String) -> TransferPermit? {
        guard let permit = snapshot.permit(to: destination, sendingLimits.bandwidth, sendingLimits.ledger) else {
            return nil
        }
        facts.network.recordUse(permit.interface)
        return permit
    }

    /// The permission to send one notice. Its account has to be closed. Where the notice may not be sent, the hooks
    /// are signalled once it may.
    func permit(toHook name: String, _ network: WebHook.Network) -> Result<TransferPermit, Held> {
        let account = Hook.account(name)
        let permit = permit(to: account, network, snapshot)
        if case .success = permit {
            facts.requests.open(account)
        } else if network == .policy {
            _ = forbidsRemovals(at: account)
        }
        return permit
    }

    private func permit(
        to account: String, _ network: WebHook.Network, _ snapshot: PolicySnapshot
    ) -> Result<TransferPermit, Held> {
        let decision = snapshot.permit(toHook: account, network, sendingLimits.bandwidth, sendingLimits.ledger)
        if case .success(let permit) = decision { facts.network.recordUse(permit.interface) }
        return decision
    }

    /// The permission for a request of a command. Its account has to be closed. Facts that are unknown
    /// because no upload waits for them are found out first.
    func permit(byHand account: String, _ network: WebHook.Network) async -> Result<TransferPermit, Held> {
        var answers: [BusySource: BusyAnswer] = [:]
        if network == .policy {
            do { try await sendingLimits.ledger.refresh() } catch {
                return .failure(
                    Held(
                        hold: Hold(
                            .quota, since: context.clocks.wall(), text: "cannot read the usage of the quota: \(error)"))
                )
            }
            await refreshPower()
            let rules = [context.settings.policy.rules, snapshot.destination(account).rules].compactMap(\.busy)
            for rule in rules where snapshot.inputs.busy[rule.source] == nil && answers[rule.source] == nil {
                guard let answer = await facts.busy.probe.check(rule.source, rule.timeout) else { continue }
                answers[rule.source] = BusyAnswer(answer, since: context.clocks.wall())
            }
        }
        await self.facts.network.closing?.value
        var snapshot = snapshot
        snapshot.inputs.busy.merge(answers) { known, _ in known }
        return permit(to: account, network, snapshot)
    }

    /// Registers a request that is about to be sent. It is stopped when policy forbids it, also because of a change
    /// since its permission was given.
    ///
    /// - Returns: A number for ``requestEnded(_:)``; `nil` for a request that policy does not apply to.
    func requestBegins(_ account: String, _ network: WebHook.Network, stop: @escaping @Sendable () -> Void) -> Int? {
        if network == .any { return nil }
        let number = facts.requests.begin(account, stop: stop)
        stopForbiddenRequests(snapshot)
        return number
    }

    /// - Returns: The reason why it was stopped, if it was.
    @discardableResult
    func requestEnded(_ number: Int?) -> Hold? { number.flatMap { facts.requests.end($0) } }

    // MARK: For views

    /// What policy decides, for people. Waits until nothing is sent any more over an interface that was forbidden.
    func shown() async -> PolicySnapshot {
        await facts.network.closing?.value
        return snapshot.shown
    }

    var isIdle: Bool { facts.isIdle }
    func isRunning(_ id: String) -> Bool { facts.transfers.carrying(id) != nil }
    func running(to destination: String) -> Int { facts.transfers.count(to: destination) }
}
