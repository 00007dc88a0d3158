internal import Config
internal import Core
internal import Destinations
internal import Linux
internal import Transport

extension Hook {
    /// The account in the ledger for bytes that are sent to a hook. No destination has a name with a space.
    static func account(_ name: String) -> String { "hook \(name)" }

    /// The location of its address; `nil` for a program that policy does not apply to.
    var site: DestinationSite? {
        switch target {
        case .web(let web): WebAddress(web.url).site
        case .command(let command): command.network == .policy ? .anywhere : nil
        }
    }
}

extension CurrentConfiguration {
    /// The location of each destination, of each hook whose bytes policy applies to, and of such an export.
    var sites: [String: DestinationSite] {
        let runtime = value
        var sites = runtime.destinations.mapValues(\.site)
        for hook in runtime.settings.hooks { if let site = hook.site { sites[Hook.account(hook.name)] = site } }
        for folder in runtime.settings.folders where folder.export?.servers != nil {
            sites[ProgramPayer.export(folder: folder.watch.name).account] = .anywhere
        }
        return sites
    }
}

extension Settings {
    /// The folder with a name; also the one of the files that programs hand over.
    func folder(_ name: String) -> FolderSettings? {
        folder(named: name) ?? (name == FolderSettings.received.watch.name ? .received : nil)
    }

    /// The quotas of all places, in the order of the configuration.
    ///
    /// - Parameter earlier: The state that it replaces.
    func quotas(after earlier: QuotaState?) -> QuotaState {
        QuotaState(
            policy: policy.rules, destinations: destinations.map { ($0.name, $0.policy.rules) },
            folders: folders.map { ($0.watch.name, $0.policy.rules) }, least: Quota.minUsable,
            after: earlier)
    }

    /// Folders that skip files whose content was uploaded before.
    var foldersWithoutDuplicates: [String] { folders.filter { $0.duplicates == .skip }.map(\.watch.name) }

    /// The limits of the speed whose conditions tell uploads apart.
    var conditionalRates: Set<AppliedRules.Rate> {
        let places: [(place: RulePlace, rules: PolicyRules)] =
            [(.policy, policy.rules)] + destinations.map { (.destination($0.name), $0.policy.rules) }
            + folders.map { (.folder($0.watch.name), $0.policy.rules) }
        return Set(
            places.flatMap { place, rules in
                rules.bandwidth.filter { !$0.isForAll }.map { AppliedRules.Rate(place: place, rule: $0) }
            })
    }
}
