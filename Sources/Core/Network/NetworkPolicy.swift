/// What a place of the configuration says about metered networks.
package enum MeteredRule: Hashable, Sendable {
    case allow
    case pause
    /// Bytes a second; 0 is a pause.
    case limit(Int64)

    var isPause: Bool { self == .pause || self == .limit(0) }
}

/// What a network counts as of which nobody knows what it costs.
package enum UnknownNetwork: String, Hashable, Sendable, CaseIterable {
    case allow, metered
}

extension PolicyRules {
    /// What bytes cost somewhere, or where they may go, matters to it.
    package var dependsOnNetwork: Bool {
        if !networks.isEmpty || quotas.contains(where: { $0.network == .metered }) { return true }
        return metered.map { $0 != .allow } ?? false
    }

    /// Bytes a second over metered networks; `nil` for no limit of its own. A pause is none: who is let off it goes as fast as
    /// anybody.
    package var meteredLimit: Int64? {
        if case .limit(let rate) = metered, rate > 0 { return rate }
        return nil
    }
}

extension PolicyRules {
    /// Which of a destination's own rules have no effect there, and why, for people.
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

/// Where a destination is, as far as the network matters.
package enum DestinationSite: Hashable, Sendable {
    /// On this machine, whatever its address says.
    case here
    /// The first machine that bytes are sent to: the server, or the proxy before it.
    case server(host: String, port: UInt16)
    /// A folder, which may be another machine's; what a person says that bytes cost there.
    case folder(FilePath, cost: Metered?)
}

extension DestinationSite {
    /// What is sent there is told, and no socket counts it.
    package var isFolder: Bool { if case .folder = self { true } else { false } }
}

/// How bytes to a destination would leave this machine now.
package enum Reach: Hashable, Sendable {
    /// They do not.
    case local
    /// By some way, and nobody asked which: no rule depends on it.
    case any
    /// By one of these. First what the kernel would choose by itself, best first; then by what else there is.
    case over([NetworkPath])
    /// Through a folder of another machine: by ways that nobody can see. `text` says which folder.
    case mount(Metered, text: String)
    /// There is no way there.
    case offline(String)
    /// Nobody could look; why.
    case unseen(String)
}

extension Admission {
    /// The way that bytes of one class take.
    package struct Passage: Hashable, Sendable {
        /// The name of the interface that they have to leave by; `nil` where any may be used.
        package var interface: String?
        /// What they cost there.
        package var cost: Metered
        /// Rules for metered networks count for it.
        package var countsAsMetered: Bool
        /// What the ledger calls it.
        package var ledger: NetworkClass
        /// Why it is judged so.
        package var reason: String
        /// The line of YAML that would judge it otherwise, under `networks`.
        package var remedy: String?

        package static let local = Passage(
            interface: nil, cost: .unmetered, countsAsMetered: false, ledger: .local, reason: "", remedy: nil)
        /// Nobody needs to know which way it is.
        package static let any = Passage(
            interface: nil, cost: .unknown, countsAsMetered: false, ledger: .any, reason: "", remedy: nil)
    }

    package enum Way: Hashable, Sendable {
        case open(Passage)
        /// Whether rules for metered networks count for the way that is closed.
        case closed([Hold], countsAsMetered: Bool = false)
    }

    /// Which way bytes of a class may take, by what is known of the networks and what all three places say of them.
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

    /// Of those that nothing forbids the first that is free, else the first; what forbids the first of all, where there is none.
    ///
    /// Where nothing is held to an interface the kernel goes its way, whatever else there is.
    private func choose(
        among paths: [NetworkPath], _ metering: Metering, _ remote: Remote, _ places: [Place], _ folder: Origin?,
        isPinned: Bool
    ) -> Way {
        var first: (holds: [Hold], passage: Passage)?
        var open: [Passage] = []
        for path in paths {
            let judgement = metering.judgement(of: path)
            let name = metering.links[path.link]?.name
            // What does not leave this machine is not held to an interface: every kernel knows the way. Nor is what a rule by mark may
            // lead elsewhere, which that would take from there.
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

    /// - Parameter mayBeAllowed: No rule forbids the network, which no person's word would change.
    private func holds(
        on passage: Passage, _ remote: Remote, _ places: [Place], _ folder: Origin?, mayBeAllowed: Bool = true
    ) -> [Hold] {
        guard passage.countsAsMetered, folder?.excused.contains(.metered) != true else { return [] }
        return places.filter { $0.rules.metered?.isPause == true }.map { place in
            let strictly = passage.cost == .unknown ? ", and what is unknown counts as metered (`metered_unknown`)" : ""
            let remedy = passage.remedy.map { "; `\($0)` under `networks` would change that" } ?? ""
            // As it is written: a limit of nothing is a pause.
            let said = if case .limit = place.rules.metered { "{limit: 0}" } else { "pause" }
            return Hold(
                .metered, since: remote.reachSince,
                text: "`metered` of \(place.name) says \(said); \(passage.reason)\(strictly)\(remedy)"
                    + (mayBeAllowed ? "; `sluice allow --metered` lets an upload go all the same" : ""))
        }
    }

    /// A place of the configuration, as people know it: `policy`, `destinations.nas`, `folder door`.
    struct Place {
        let name: String
        let rules: PolicyRules
    }

    func places(_ remote: Remote, _ folder: Origin?) -> [Place] {
        [Place(name: "policy", rules: rules), Place(name: "destinations.\(remote.name)", rules: remote.rules)]
            + (folder.map { [Place(name: "folder \($0.name)", rules: $0.rules)] } ?? [])
    }
}
