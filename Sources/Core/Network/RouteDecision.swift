extension Admission {
    /// The route for bytes of one class.
    package struct Route: Hashable, Sendable {
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

        package static let local = Route(
            interface: nil, cost: .unmetered, countsAsMetered: false, ledger: .local, reason: "", remedy: nil)
        /// Used where the route does not matter.
        package static let any = Route(
            interface: nil, cost: .unknown, countsAsMetered: false, ledger: .any, reason: "", remedy: nil)
    }

    package enum RouteDecision: Hashable, Sendable {
        case open(Route)
        /// Whether rules for metered networks apply to the closed route.
        case closed([Hold], countsAsMetered: Bool = false)
    }

    /// Chooses the route for bytes of a class, from the known networks and the rules of all three places.
    package func routeDecision(to remote: DestinationState, from folder: FolderState? = nil, in inputs: PolicyInputs)
        -> RouteDecision
    {
        let places = places(remote, folder)
        let depends = places.contains { $0.rules.dependsOnNetwork }
        switch remote.reachability {
        case .local:
            let holds = pauseHolds(remote, folder, over: .local, in: inputs)
            return holds.isEmpty ? .open(.local) : .closed(holds)
        case .any:
            if !depends { return .open(.any) }
            return .closed([Hold(.metered, since: remote.reachabilitySince, text: Self.notExamined)])
        case .offline(let text): return .closed([Hold(.offline, since: remote.reachabilitySince, text: text)])
        case .unseen(let text):
            if !depends { return .open(.any) }
            return .closed([
                Hold(.metered, since: remote.reachabilitySince, text: "the cost of this network is unknown: \(text)")
            ])
        case .mount(let cost, let text):
            if !depends { return .open(.any) }
            let route = route(nil, cost, "\(cost.rawValue): \(text)", nil, places)
            let holds =
                holds(on: route, remote, places, folder)
                + pauseHolds(remote, folder, over: .mount(isMetered: route.isMetered(places)), in: inputs)
            return holds.isEmpty ? .open(route) : .closed(holds, countsAsMetered: route.countsAsMetered)
        case .over(let paths):
            guard depends || inputs.network != nil else { return .open(.any) }
            guard var metering = inputs.network else {
                return .closed([Hold(.metered, since: remote.reachabilitySince, text: Self.notExamined)])
            }
            metering.rules = places.map(\.rules.networks)
            return choose(among: paths, metering, remote, places, folder, inputs, isPinned: depends)
        }
    }

    package static let notExamined = "the networks have not been examined yet"

    /// Among routes that no rule forbids, chooses the first free one, or else the first. If every route is forbidden,
    /// returns the prohibition of the first.
    ///
    /// Where no traffic is bound to an interface, the kernel uses its own route, whatever alternatives there are.
    private func choose(
        among paths: [NetworkPath], _ metering: Metering, _ remote: DestinationState, _ places: [Place],
        _ folder: FolderState?, _ inputs: PolicyInputs, isPinned: Bool
    ) -> RouteDecision {
        var first: (holds: [Hold], route: Route)?
        var open: [Route] = []
        // When a rule changes its decision about any of them.
        var soonest: WallTime?
        for path in paths {
            let judgement = metering.judgement(of: path)
            let name = metering.links[path.link]?.name
            // Bytes that stay on this machine are not bound to an interface: every kernel knows the route. Neither are
            // packets that a rule by mark may lead elsewhere, since binding would prevent that.
            let isInside = metering.links[path.link]?.medium == .loopback
            let route = route(
                isPinned && !isInside && path.others.isEmpty ? name : nil, judgement.metered, judgement.reason,
                judgement.remedy, places)
            let forbidden = judgement.forbidden.map { Hold(.metered, since: remote.reachabilitySince, text: $0) }
            var holds = holds(on: route, remote, places, folder, mayBeAllowed: forbidden == nil)
            if let forbidden { holds.insert(forbidden, at: 0) }
            holds += pauseHolds(
                remote, folder,
                over: .over(path, metering, isMetered: judgement.isAssumed ? nil : route.isMetered(places)),
                in: inputs)
            if holds.isEmpty, name != nil {
                open.append(route)
                if !isPinned || !route.countsAsMetered { break }
            }
            if first == nil, !holds.isEmpty { first = (holds, route) }
            soonest =
                holds.compactMap { $0.kind == .rule ? $0.until : nil }.min().map { min($0, soonest ?? $0) } ?? soonest
        }
        if let route = open.first(where: { !$0.countsAsMetered }) ?? open.first { return .open(route) }
        guard var first else {
            return .closed([
                Hold(.offline, since: remote.reachabilitySince, text: "there is no route to \(remote.name)")
            ])
        }
        if let soonest {
            for index in first.holds.indices where first.holds[index].kind == .rule {
                first.holds[index].until = min(first.holds[index].until ?? soonest, soonest)
            }
        }
        return .closed(first.holds, countsAsMetered: first.route.countsAsMetered)
    }

    private func route(
        _ interface: String?, _ cost: Metered, _ reason: String, _ remedy: String?, _ places: [Place]
    ) -> Route {
        let said = places.compactMap(\.rules.meteredUnknown)
        let unknownCounts = said.contains(.metered) || !said.contains(.allow)
        let counts = cost == .metered || (cost == .unknown && unknownCounts)
        let ledger: NetworkClass =
            counts ? .metered : cost == .unmetered ? .unmetered : .unknown
        return Route(
            interface: interface, cost: cost, countsAsMetered: counts, ledger: ledger, reason: reason, remedy: remedy)
    }

    /// - Parameter mayBeAllowed: No rule forbids the network; an override could not change such a rule.
    private func holds(
        on route: Route, _ remote: DestinationState, _ places: [Place], _ folder: FolderState?,
        mayBeAllowed: Bool = true
    ) -> [Hold] {
        guard route.countsAsMetered, folder?.exempt.contains(.metered) != true else { return [] }
        return places.filter { $0.rules.metered?.isPause == true }.map { place in
            let strictly = route.cost == .unknown ? ", and an unknown cost counts as metered (`metered_unknown`)" : ""
            let remedy = route.remedy.map { "; `\($0)` under `networks` would change that" } ?? ""
            // In the words of the configuration: a limit of 0 is a pause.
            let said = if case .limit = place.rules.metered { "{limit: 0}" } else { "pause" }
            return Hold(
                .metered, since: remote.reachabilitySince,
                text: "`metered` of \(place.name) says \(said); \(route.reason)\(strictly)\(remedy)"
                    + (mayBeAllowed ? "; `sluice allow --metered` makes an exception" : ""))
        }
    }

    /// The holds of rules under `pause`.
    ///
    /// - Parameter way: The route that is judged; `nil` for rules that do not ask for the network.
    func pauseHolds(
        _ remote: DestinationState, _ folder: FolderState?, over way: ConditionFacts.Way?, in inputs: PolicyInputs
    ) -> [Hold] {
        let places = places(remote, folder)
        guard places.contains(where: { !$0.rules.pauses.isEmpty }) else { return [] }
        let facts = ConditionFacts(
            now: inputs.now, zone: inputs.zone, knowsTime: inputs.clockTrouble == nil, power: inputs.power,
            folders: [folder?.name, folder?.pattern].compactMap { $0 }, destination: remote.name,
            file: folder?.file ?? .noFile, way: way ?? .unseen(Self.notExamined),
            networks: rules.networks.filter { $0.name != nil })
        return places.flatMap { place in
            place.rules.pauseHolds(
                of: place.name, facts, since: way == nil ? inputs.now : remote.reachabilitySince,
                clock: inputs.clockTrouble, judgesNetwork: way != nil, excusing: folder?.exempt ?? [])
        }
    }

    /// A place of the configuration, as it is written: `policy`, `destinations.nas`, `folder door`.
    struct Place {
        let name: String
        let rules: PolicyRules
    }

    func places(_ remote: DestinationState, _ folder: FolderState?) -> [Place] {
        [Place(name: "policy", rules: rules), Place(name: "destinations.\(remote.name)", rules: remote.rules)]
            + (folder.map { [Place(name: "folder \($0.name)", rules: $0.rules)] } ?? [])
    }
}

extension Admission.Route {
    /// Whether it is metered, for conditions; `nil` where its cost is unknown and no `metered_unknown` decides.
    fileprivate func isMetered(_ places: [Admission.Place]) -> Bool? {
        if cost != .unknown { return cost == .metered }
        return places.contains { $0.rules.meteredUnknown != nil } ? countsAsMetered : nil
    }
}
