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
        /// The rules that apply there, besides those that hold uploads.
        package var applied = AppliedRules()

        package static let local = Route(
            interface: nil, cost: .unmetered, countsAsMetered: false, ledger: .local, reason: "", remedy: nil)
        /// Used where the route does not matter.
        package static let any = Route(
            interface: nil, cost: .unknown, countsAsMetered: false, ledger: .any, reason: "", remedy: nil)
    }

    package enum RouteDecision: Hashable, Sendable {
        case open(Route)
        /// With the rules that apply to the closed route.
        case closed([Hold], applied: AppliedRules = AppliedRules())
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
            return holds.isEmpty ? open(.local, remote, folder, over: .local, in: inputs) : .closed(holds)
        case .any:
            if !depends { return open(.any, remote, folder, in: inputs) }
            return .closed([Hold(.metered, since: remote.reachabilitySince, text: Self.notExamined)])
        case .offline(let text): return .closed([Hold(.offline, since: remote.reachabilitySince, text: text)])
        case .unseen(let text):
            if !depends { return open(.any, remote, folder, in: inputs) }
            return .closed([
                Hold(.metered, since: remote.reachabilitySince, text: "the cost of this network is unknown: \(text)")
            ])
        case .mount(let cost, let text):
            if !depends { return open(.any, remote, folder, in: inputs) }
            let route = route(nil, cost, "\(cost.rawValue): \(text)", nil, places)
            let way = ConditionFacts.Way.mount(isMetered: route.isMetered(places))
            let holds = pauseHolds(remote, folder, over: way, cost: route.costWords(mayBeAllowed: true), in: inputs)
            return holds.isEmpty
                ? open(route, remote, folder, over: way, in: inputs)
                : .closed(holds, applied: appliedRules(remote, folder, over: way, in: inputs))
        case .described(let network):
            if !depends { return open(.any, remote, folder, in: inputs) }
            return decide(on: network, remote, places, folder, inputs)
        case .over(let paths):
            guard depends || inputs.network != nil else { return open(.any, remote, folder, in: inputs) }
            guard var metering = inputs.network else {
                return .closed([Hold(.metered, since: remote.reachabilitySince, text: Self.notExamined)])
            }
            metering.rules = places.map(\.rules.networks)
            return choose(among: paths, metering, remote, places, folder, inputs, isPinned: depends)
        }
    }

    package static let notExamined = "the networks have not been examined yet"

    /// An open route, with the rules that apply there.
    private func open(
        _ route: Route, _ remote: DestinationState, _ folder: FolderState?,
        over way: ConditionFacts.Way = .unseen(notExamined), in inputs: PolicyInputs
    ) -> RouteDecision {
        var route = route
        route.applied = appliedRules(remote, folder, over: way, in: inputs)
        return .open(route)
    }

    /// Among routes that no rule forbids, chooses one whose quotas with conditions have room, of these the one with the
    /// highest limit of the speed by conditions, of these a free one, and of these the first. If every route is
    /// forbidden, returns the prohibition that the time ends first; where it ends none, that of the first route.
    ///
    /// Where no traffic is bound to an interface, the kernel uses its own route, whatever alternatives there are.
    private func choose(
        among paths: [NetworkPath], _ metering: Metering, _ remote: DestinationState, _ places: [Place],
        _ folder: FolderState?, _ inputs: PolicyInputs, isPinned: Bool
    ) -> RouteDecision {
        var closed: (holds: [Hold], route: Route)?
        var open: [Route] = []
        for path in paths {
            let judgement = metering.judgement(of: path)
            let name = metering.links[path.link]?.name
            // Bytes that stay on this machine are not bound to an interface: every kernel knows the route. Neither are
            // packets that a rule by mark may lead elsewhere, since binding would prevent that.
            let isInside = metering.links[path.link]?.medium == .loopback
            var route = route(
                isPinned && !isInside && path.others.isEmpty ? name : nil, judgement.metered, judgement.reason,
                judgement.remedy, places)
            let forbidden = judgement.forbidden.map { Hold(.metered, since: remote.reachabilitySince, text: $0) }
            // What is assumed to carry a tunnel may cost, and need not; an unknown cost is what `metered_unknown` says.
            let isGuessed = judgement.isAssumed && judgement.metered != .unknown
            let way = ConditionFacts.Way.over(path, metering, isMetered: isGuessed ? nil : route.isMetered(places))
            let cost = route.costWords(mayBeAllowed: forbidden == nil)
            let holds =
                [forbidden].compactMap { $0 } + pauseHolds(remote, folder, over: way, cost: cost, in: inputs)
            route.applied = appliedRules(remote, folder, over: way, in: inputs)
            if holds.isEmpty, name != nil {
                open.append(route)
                if !isPinned || !route.countsAsMetered && route.applied.isEmpty { break }
            }
            if holds.isEmpty { continue }
            let isSooner = holds.lastEnd.map { end in closed?.holds.lastEnd.map { end < $0 } ?? true } ?? false
            if closed == nil || isSooner { closed = (holds, route) }
        }
        if let best = Route.best(of: open, inputs.quotas) { return .open(open[best]) }
        guard let closed else {
            return .closed([
                Hold(.offline, since: remote.reachabilitySince, text: "there is no route to \(remote.name)")
            ])
        }
        return .closed(closed.holds, applied: closed.route.applied)
    }

    /// The decision about a network that a person describes.
    private func decide(
        on network: DescribedNetwork, _ remote: DestinationState, _ places: [Place], _ folder: FolderState?,
        _ inputs: PolicyInputs
    ) -> RouteDecision {
        let lists = places.map(\.rules.networks)
        let cost = network.cost(lists)
        let reason =
            cost == .unknown
            ? "nothing states whether \(network.words) is metered (`--metered yes|no` does)"
            : "\(cost.rawValue): \(network.words)"
        var route = route(nil, cost, reason, nil, places)
        // It may be known to the machine that has the network, so `metered_unknown` does not decide.
        if cost == .unknown { (route.countsAsMetered, route.ledger) = (true, .metered) }
        let way = ConditionFacts.Way.described(network, isMetered: cost == .unknown ? nil : cost == .metered)
        let forbidden = network.prohibition(lists).map { Hold(.metered, since: remote.reachabilitySince, text: $0) }
        let holds =
            [forbidden].compactMap { $0 }
            + pauseHolds(
                remote, folder, over: way, cost: route.costWords(mayBeAllowed: forbidden == nil), in: inputs)
        return holds.isEmpty
            ? open(route, remote, folder, over: way, in: inputs)
            : .closed(holds, applied: appliedRules(remote, folder, over: way, in: inputs))
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

    /// The holds of rules.
    ///
    /// - Parameters:
    ///   - way: The route that is judged; `nil` for rules that do not ask for the network.
    ///   - cost: What it costs and why, for people.
    func pauseHolds(
        _ remote: DestinationState, _ folder: FolderState?, over way: ConditionFacts.Way?, cost: String? = nil,
        in inputs: PolicyInputs
    ) -> [Hold] {
        let places = places(remote, folder)
        guard places.contains(where: { !$0.rules.stops.isEmpty }) else { return [] }
        let facts = facts(remote, folder, over: way ?? .unseen(Self.notExamined), in: inputs)
        return places.flatMap { place in
            place.rules.pauseHolds(
                of: place.name, facts, since: way == nil ? nil : remote.reachabilitySince,
                clock: inputs.clockTrouble, judgesNetwork: way != nil, cost: cost,
                excusing: folder?.exempt ?? [])
        }
    }

    /// A place of the configuration, as it is written: `policy`, `destinations.nas`, `folder door`.
    struct Place {
        let place: RulePlace
        let rules: PolicyRules
        var name: String { place.words }
    }

    func places(_ remote: DestinationState, _ folder: FolderState?) -> [Place] {
        [Place(place: .policy, rules: rules), Place(place: .destination(remote.name), rules: remote.rules)]
            + (folder.map { [Place(place: .folder($0.name), rules: $0.rules)] } ?? [])
    }
}

extension Admission.Route {
    /// What it costs and why, and what would change that.
    ///
    /// - Parameter mayBeAllowed: No rule forbids the network; an exception could not change such a rule.
    fileprivate func costWords(mayBeAllowed: Bool) -> String {
        let strictly =
            cost == .unknown && countsAsMetered ? ", and an unknown cost counts as metered (`metered_unknown`)" : ""
        let remedy = remedy.map { "; `\($0)` under `networks` would change that" } ?? ""
        return reason + strictly + remedy + (mayBeAllowed ? "; `sluice allow --metered` makes an exception" : "")
    }

    /// The index of the best of these routes, in the order of the kernel: with room in the quotas with conditions, then
    /// with the highest limit of the speed by conditions, then free, then the first.
    static func best(of routes: [Self], _ quotas: QuotaState) -> Int? {
        let isUsedUp = routes.map { quotas.remaining(of: $0.applied.quotas) == 0 }
        return routes.indices.min { one, other in
            let (a, b) = (routes[one], routes[other])
            if isUsedUp[one] != isUsedUp[other] { return !isUsedUp[one] }
            let rates = (a.applied.lowestRate ?? .max, b.applied.lowestRate ?? .max)
            if rates.0 != rates.1 { return rates.0 > rates.1 }
            if a.countsAsMetered != b.countsAsMetered { return !a.countsAsMetered }
            return one < other
        }
    }

    /// Whether it is metered, for conditions; `nil` where its cost is unknown and no `metered_unknown` decides.
    fileprivate func isMetered(_ places: [Admission.Place]) -> Bool? {
        if cost != .unknown { return cost == .metered }
        return places.contains { $0.rules.meteredUnknown != nil } ? countsAsMetered : nil
    }
}
