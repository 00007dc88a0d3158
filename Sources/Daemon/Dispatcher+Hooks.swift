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
        let remote = remote(account)
        switch network {
        case .policy:
            if let hold = admission.bans(on: remote, in: world).binding {
                _ = forbidsRemovals(at: account)
                return .failure(HookHeld(hold: hold))
            }
            closedToRemovals.remove(account)
            guard let lane = lane(to: account) else { return .failure(HookHeld(hold: nowhere)) }
            return .success(lane)
        case .any:
            let anybody = Admission.Origin(name: account, excused: Set(Excuse.allCases))
            switch admission.way(to: remote, from: anybody, in: world) {
            case .open(let passage): return .success(lane(to: account, by: passage, isExcused: true))
            case .closed(let holds): return .failure(HookHeld(hold: holds.binding ?? nowhere))
            }
        }
    }

    private var nowhere: Hold { Hold(.offline, since: house.clocks.wall(), text: "no way is open") }
}
