internal import Config
internal import Core
internal import Linux
internal import Transport

// How notices leave this machine: by the same rules, interfaces and ledger as everything else.

extension Hook {
    /// The account in the ledger for bytes that are sent to a hook. No destination has a name with a space.
    static func account(_ name: String) -> String { "hook \(name)" }

    /// The location of its address; `nil` for a program.
    var site: DestinationSite? { if case .web(let web) = target { WebAddress(web.url).site } else { nil } }
}

extension House {
    /// The location of each destination, and of each hook that is an address.
    var sites: [String: DestinationSite] {
        let setup = setup
        var sites = setup.destinations.mapValues(\.site)
        for hook in setup.settings.hooks { if let site = hook.site { sites[Hook.account(hook.name)] = site } }
        return sites
    }
}

extension Scheduler {
    /// The permission to send one notice. Its account has to be closed. Where the notice may not be sent, the hooks'
    /// bell is rung once it may.
    func laneToHook(_ name: String, _ network: WebHook.Network) -> Result<TransferPermit, Held> {
        let account = Hook.account(name)
        let permit = permit(to: account, network, in: inputs)
        if case .success = permit {
            closedToRemovals.remove(account)
        } else if network == .policy {
            _ = forbidsRemovals(at: account)
        }
        return permit
    }

    /// The hold on notices to an address here; `nil` when there is none.
    func hold(ofHook name: String, _ network: WebHook.Network) async -> Hold? {
        await closing?.value
        switch way(to: Hook.account(name), network, in: shownWorld) {
        case .success: return nil
        case .failure(let held): return held.hold
        }
    }

    private func permit(
        to account: String, _ network: WebHook.Network, in inputs: Admission.PolicyInputs
    ) -> Result<TransferPermit, Held> {
        way(to: account, network, in: inputs).map { permit(to: account, by: $0, isExempt: network == .any) }
    }

    private func way(
        to account: String, _ network: WebHook.Network, in inputs: Admission.PolicyInputs
    ) -> Result<Admission.Route, Held> {
        let remote = remote(account)
        if network == .policy, let hold = admission.hardBlockers(on: remote, in: inputs).binding {
            return .failure(Held(hold: hold))
        }
        let exempt: Set<Exemption> = network == .any ? Set(Exemption.allCases) : []
        switch admission.way(to: remote, from: Admission.FolderState(name: account, exempt: exempt), in: inputs) {
        case .open(let route): return .success(route)
        case .closed(let holds, _):
            let nowhere = Hold(.offline, since: house.clocks.wall(), text: "no way is open")
            return .failure(Held(hold: holds.binding ?? nowhere))
        }
    }

    // MARK: By hand

    /// The permission for a request that a person asks for now. Its account has to be closed. Facts that are unknown
    /// because no upload waits for them are found out first.
    func laneByHand(to account: String, _ network: WebHook.Network) async -> Result<TransferPermit, Held> {
        var heard: [BusySource: BusyAnswer] = [:]
        if network == .policy {
            do { try await house.ledger.refresh() } catch {
                return .failure(
                    Held(
                        hold: Hold(
                            .quota, since: house.clocks.wall(), text: "what was spent cannot be read: \(error)")))
            }
            await lookAtPower()
            for rule in [house.settings.policy.rules, remote(account).rules].compactMap(\.busy)
            where inputs.busy[rule.source] == nil && heard[rule.source] == nil {
                guard let answer = await busyProbe.ask(rule.source, rule.timeout) else { continue }
                heard[rule.source] = BusyAnswer(answer, since: house.clocks.wall())
            }
        }
        await closing?.value
        var inputs = inputs
        inputs.busy.merge(heard) { known, _ in known }
        return permit(to: account, network, in: inputs)
    }

    // MARK: Under way

    /// A question or a notice: not a transfer, but policy applies to it.
    struct BackgroundRequest {
        let account: String
        let stop: @Sendable () -> Void
        /// The reason why it was stopped.
        var hold: Hold?
    }

    /// Registers a request that is about to be sent. It is stopped when policy forbids it, also because of a change
    /// since its permission was given.
    ///
    /// - Returns: A number for ``isOver(_:)``; `nil` for a request that policy does not apply to.
    func watchOver(_ account: String, _ network: WebHook.Network, stop: @escaping @Sendable () -> Void) -> Int? {
        if network == .any { return nil }
        lastErrand += 1
        errands[lastErrand] = BackgroundRequest(account: account, stop: stop)
        stopForbiddenErrands()
        return lastErrand
    }

    /// - Returns: The reason why it was stopped, if it was.
    @discardableResult
    func isOver(_ errand: Int?) -> Hold? { errand.flatMap { errands.removeValue(forKey: $0)?.hold } }

    /// Stops the requests that policy no longer allows.
    func stopForbiddenErrands() {
        // A request that has begun was allowed by all sources of `busy` that count.
        let (admission, inputs) = (admission, plannedWorld)
        for (number, errand) in errands where errand.hold == nil {
            let holds = admission.hardBlockers(on: remote(errand.account), in: inputs, isUnderWay: true)
            guard let hold = holds.binding else { continue }
            errands[number]?.hold = hold
            house.log.notice(
                "stopped before its end",
                [
                    "to": errand.account, "hold": hold.kind.rawValue, "reason": hold.text,
                    "until": hold.until?.description,
                ])
            errand.stop()
        }
    }
}
