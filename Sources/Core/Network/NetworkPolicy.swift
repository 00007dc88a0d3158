/// The rule for metered networks at one place of the configuration.
package enum MeteredRule: Hashable, Sendable {
    case allow
    case pause
    /// Bytes a second; 0 is a pause.
    case limit(Int64)

    var isPause: Bool { self == .pause || self == .limit(0) }
}

/// How a network counts whose cost is unknown.
package enum UnknownNetwork: String, Hashable, Sendable, CaseIterable {
    case allow, metered
}

extension PolicyRules {
    /// Whether it contains a rule about networks or their cost.
    package var dependsOnNetwork: Bool {
        if !networks.isEmpty || quotas.contains(where: { $0.network == .metered }) { return true }
        return metered.map { $0 != .allow } ?? false
    }

    /// Bytes a second over metered networks; `nil` for no limit of its own. A pause is no limit: an upload that is
    /// exempt from the pause is not slowed down.
    package var meteredLimit: Int64? {
        if case .limit(let rate) = metered, rate > 0 { return rate }
        return nil
    }
}

extension PolicyRules {
    /// The rules of a destination that have no effect there, and why, for people.
    package func withoutEffect(at site: DestinationSite, _ reach: Reach) -> [String] {
        guard site.isFolder else { return [] }
        var words: [String] = []
        if !quotas.isEmpty, reach == .local {
            words.append("its quotas count nothing: what is copied to a disk of this machine is not sent anywhere")
        }
        if bandwidth.contains(where: { $0.limit.map { $0 > 0 } ?? false }) {
            words.append("its bandwidth slows nothing down: what is copied to a folder has no limit but 0")
        }
        return words
    }
}

/// The location of a destination, as far as the network matters.
package enum DestinationSite: Hashable, Sendable {
    /// On this machine, whatever its address.
    case here
    /// The first machine to which bytes are sent: the server, or the proxy before it.
    case server(host: String, port: UInt16)
    /// A folder, which may be on another machine, and the configured cost of bytes to it.
    case folder(FilePath, cost: Metered?)
}

extension DestinationSite {
    /// Bytes to it are reported, because no socket counts them.
    package var isFolder: Bool { if case .folder = self { true } else { false } }
}

/// How bytes to a destination would leave this machine now.
package enum Reach: Hashable, Sendable {
    /// They stay on this machine.
    case local
    /// By some route. It was not looked up, because no rule depends on it.
    case any
    /// By one of these. First the kernel's own choice, best first; then the alternatives.
    case over([NetworkPath])
    /// Through a folder of another machine, by routes that cannot be seen. `text` says which folder.
    case mount(Metered, text: String)
    /// There is no route.
    case offline(String)
    /// The routes could not be looked up; contains the reason.
    case unseen(String)
}

extension Admission {
    /// The route for bytes of one class.
    package struct Passage: Hashable, Sendable {
        /// The name of the interface by which they have to leave; `nil` where any may be used.
        package var interface: String?
        /// The cost of bytes there.
        package var cost: Metered
        /// Rules for metered networks apply to it.
        package var countsAsMetered: Bool
        /// The network class in the ledger.
        package var ledger: NetworkClass
        /// The reason for the judgement.
        package var reason: String
        /// The line of YAML under `networks` that would change the judgement.
        package var remedy: String?

        package static let local = Passage(
            interface: nil, cost: .unmetered, countsAsMetered: false, ledger: .local, reason: "", remedy: nil)
        /// Used where the route does not matter.
        package static let any = Passage(
            interface: nil, cost: .unknown, countsAsMetered: false, ledger: .any, reason: "", remedy: nil)
    }

    package enum Way: Hashable, Sendable {
        case open(Passage)
        /// Whether rules for metered networks apply to the closed route.
        case closed([Hold], countsAsMetered: Bool = false)
    }

    /// Chooses the route for bytes of a class, from the known networks and the rules of all three places.
    package func way(to remote: Remote, from folder: Origin? = nil, in world: World) -> Way {
        let places = places(remote, folder)
        let depends = places.contains { $0.rules.dependsOnNetwork }
        switch remote.reach {
        case .local: return .open(.local)
        case .any:
            if !depends { return .open(.any) }
            return .closed([Hold(.metered, since: remote.reachSince, text: Self.notLookedAt)])
        case .offline(let text): return .closed([Hold(.offline, since: remote.reachSince, text: text)])
        case .unseen(let text):
            if !depends { return .open(.any) }
            return .closed([Hold(.metered, since: remote.reachSince, text: "nobody can say what bytes cost: \(text)")])
        case .mount(let cost, let text):
            if !depends { return .open(.any) }
            let passage = passage(nil, cost, "\(cost.rawValue): \(text)", nil, places)
            let holds = holds(on: passage, remote, places, folder)
            return holds.isEmpty ? .open(passage) : .closed(holds, countsAsMetered: passage.countsAsMetered)
        case .over(let paths):
            guard depends || world.network != nil else { return .open(.any) }
            guard var metering = world.network else {
                return .closed([Hold(.metered, since: remote.reachSince, text: Self.notLookedAt)])
            }
            metering.rules = places.map(\.rules.networks)
            return choose(among: paths, metering, remote, places, folder, isPinned: depends)
        }
    }

    package static let notLookedAt = "the networks were not looked at yet"

    /// Among routes that no rule forbids, chooses the first free one, or else the first. If every route is forbidden,
    /// returns the prohibition of the first.
    ///
    /// Where no traffic is bound to an interface, the kernel uses its own route, whatever alternatives there are.
    private func choose(
        among paths: [NetworkPath], _ metering: Metering, _ remote: Remote, _ places: [Place], _ folder: Origin?,
        isPinned: Bool
    ) -> Way {
        var first: (holds: [Hold], passage: Passage)?
        var open: [Passage] = []
        for path in paths {
            let judgement = metering.judgement(of: path)
            let name = metering.links[path.link]?.name
            // Bytes that stay on this machine are not bound to an interface: every kernel knows the route. Neither are
            // packets that a rule by mark may lead elsewhere, since binding would prevent that.
            let isInside = metering.links[path.link]?.medium == .loopback
            let passage = passage(
                isPinned && !isInside && path.others.isEmpty ? name : nil, judgement.metered, judgement.reason,
                judgement.remedy, places)
            let forbidden = judgement.forbidden.map { Hold(.metered, since: remote.reachSince, text: $0) }
            var holds = holds(on: passage, remote, places, folder, mayBeAllowed: forbidden == nil)
            if let forbidden { holds.insert(forbidden, at: 0) }
            if holds.isEmpty, name != nil {
                open.append(passage)
                if !isPinned || !passage.countsAsMetered { break }
            }
            if first == nil, !holds.isEmpty { first = (holds, passage) }
        }
        if let passage = open.first(where: { !$0.countsAsMetered }) ?? open.first { return .open(passage) }
        guard let first else {
            return .closed([Hold(.offline, since: remote.reachSince, text: "there is no way to \(remote.name)")])
        }
        return .closed(first.holds, countsAsMetered: first.passage.countsAsMetered)
    }

    private func passage(
        _ interface: String?, _ cost: Metered, _ reason: String, _ remedy: String?, _ places: [Place]
    ) -> Passage {
        let said = places.compactMap(\.rules.meteredUnknown)
        let unknownCounts = said.contains(.metered) || !said.contains(.allow)
        let counts = cost == .metered || (cost == .unknown && unknownCounts)
        let ledger: NetworkClass =
            counts ? .metered : cost == .unmetered ? .unmetered : .unknown
        return Passage(
            interface: interface, cost: cost, countsAsMetered: counts, ledger: ledger, reason: reason, remedy: remedy)
    }

    /// - Parameter mayBeAllowed: No rule forbids the network; an override could not change such a rule.
    private func holds(
        on passage: Passage, _ remote: Remote, _ places: [Place], _ folder: Origin?, mayBeAllowed: Bool = true
    ) -> [Hold] {
        guard passage.countsAsMetered, folder?.excused.contains(.metered) != true else { return [] }
        return places.filter { $0.rules.metered?.isPause == true }.map { place in
            let strictly = passage.cost == .unknown ? ", and what is unknown counts as metered (`metered_unknown`)" : ""
            let remedy = passage.remedy.map { "; `\($0)` under `networks` would change that" } ?? ""
            // In the words of the configuration: a limit of 0 is a pause.
            let said = if case .limit = place.rules.metered { "{limit: 0}" } else { "pause" }
            return Hold(
                .metered, since: remote.reachSince,
                text: "`metered` of \(place.name) says \(said); \(passage.reason)\(strictly)\(remedy)"
                    + (mayBeAllowed ? "; `sluice allow --metered` lets an upload go all the same" : ""))
        }
    }

    /// A place of the configuration, in its own words: `policy`, `destinations.nas`, `folder door`.
    struct Place {
        let name: String
        let rules: PolicyRules
    }

    func places(_ remote: Remote, _ folder: Origin?) -> [Place] {
        [Place(name: "policy", rules: rules), Place(name: "destinations.\(remote.name)", rules: remote.rules)]
            + (folder.map { [Place(name: "folder \($0.name)", rules: $0.rules)] } ?? [])
    }
}
