internal import Config
internal import Core
internal import Linux
internal import Transport

// How notices leave this machine: by the same rules, ways and ledger as everything else.

/// What keeps a notice here.
struct HookHeld: Error {
    let hold: Hold
}

extension Hook {
    /// In whose name the ledger counts what is sent to it. No destination has a name with a space.
    static func account(_ name: String) -> String { "hook \(name)" }
}

extension House {
    /// Where each destination is, and each hook that is an address.
    var sites: [String: DestinationSite] {
        let setup = setup
        var sites = setup.destinations.mapValues(\.site)
        for hook in setup.settings.hooks {
            guard case .web(let web) = hook.target, let site = WebAddress(web.url).site else { continue }
            sites[Hook.account(hook.name)] = site
        }
        return sites
    }
}

extension Dispatcher {
    /// How one notice goes. Its account is to be closed. Where it may not go, the hooks' bell is rung when it may.
    func laneToHook(_ name: String, _ network: WebHook.Network) -> Result<Lane, HookHeld> {
        let account = Hook.account(name)
        if let hold = hold(ofHook: name, network, in: world) {
            if network == .policy { _ = forbidsRemovals(at: account) }
            return .failure(HookHeld(hold: hold))
        }
        closedToRemovals.remove(account)
        guard case .open(let passage) = wayToHook(account, network, in: world) else {
            return .failure(HookHeld(hold: nowhere))
        }
        return .success(lane(to: account, by: passage, isExcused: network == .any))
    }

    /// What keeps notices to an address here now; `nil` when nothing does.
    func hold(ofHook name: String, _ network: WebHook.Network) async -> Hold? {
        await closing?.value
        return hold(ofHook: name, network, in: shownWorld)
    }

    private func hold(ofHook name: String, _ network: WebHook.Network, in world: Admission.World) -> Hold? {
        let account = Hook.account(name)
        if network == .policy, let hold = admission.bans(on: remote(account), in: world).binding { return hold }
        switch wayToHook(account, network, in: world) {
        case .open: return nil
        case .closed(let holds): return holds.binding ?? nowhere
        }
    }

    private func wayToHook(
        _ account: String, _ network: WebHook.Network, in world: Admission.World
    ) -> Admission.Way {
        switch network {
        case .policy: way(to: account, from: nil)
        case .any:
            admission.way(
                to: remote(account), from: Admission.Origin(name: account, excused: Set(Excuse.allCases)), in: world)
        }
    }

    private var nowhere: Hold { Hold(.offline, since: house.clocks.wall(), text: "no way is open") }

    // MARK: Under way

    /// A notice that obeys policy is about to leave: it is stopped when it may not go on, also by what has changed since its way
    /// was open.
    func noticeBegins(to name: String, stop: @escaping @Sendable () -> Void) {
        notices[name] = stop
        stopForbiddenNotices()
    }

    func noticeEnded(to name: String) { notices[name] = nil }

    /// Tells those to stop that policy does not allow any more. They are told anew when it does.
    func stopForbiddenNotices() {
        let (admission, world) = (admission, world)
        for (name, stop) in notices {
            let holds = admission.bans(on: remote(Hook.account(name)), in: world, isUnderWay: true)
            guard let hold = holds.binding else { continue }
            notices[name] = nil
            house.log.notice(
                "notice stopped, told later",
                ["hook": name, "hold": hold.kind.rawValue, "reason": hold.text, "until": hold.until?.description])
            stop()
        }
    }
}
