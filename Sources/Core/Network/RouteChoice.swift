extension Admission {
    /// The route by which bytes of a class leave this machine, and the reasons for the choice.
    package struct RouteChoice: Hashable, Sendable {
        /// A route that is not used.
        package struct Refused: Hashable, Sendable {
            package var interface: String
            /// The text that follows its name in a sentence.
            package var reason: String

            package init(interface: String, reason: String) {
                self.interface = interface
                self.reason = reason
            }
        }

        /// `nil` where no route may be used, and where the kernel's route was not looked up.
        package var interface: String?
        /// The source address of the packets, where it is known.
        package var source: IPAddress?
        package var reason: String
        package var refused: [Refused] = []

        package init(interface: String?, source: IPAddress? = nil, reason: String, refused: [Refused] = []) {
            self.interface = interface
            self.source = source
            self.reason = reason
            self.refused = refused
        }
    }

    package static let kernelsChoice = "no rule depends on networks, so the kernel chooses the route"

    /// The choice of ``routeDecision(to:from:in:)``, and its reasons; `nil` where there is nothing to choose.
    package func choice(to remote: DestinationState, from folder: FolderState? = nil, in inputs: PolicyInputs)
        -> RouteChoice?
    {
        let places = places(remote, folder)
        let depends = places.contains { $0.rules.dependsOnNetwork }
        guard case .over(let paths) = remote.reachability else {
            return remote.reachability == .any && !depends
                ? RouteChoice(interface: nil, reason: Self.kernelsChoice) : nil
        }
        guard !paths.isEmpty else { return nil }
        guard let metering = inputs.network else {
            return depends ? nil : RouteChoice(interface: nil, source: paths[0].source, reason: Self.kernelsChoice)
        }
        let names = paths.map { metering.links[$0.link]?.name ?? "\($0.link)" }
        if !depends {
            return RouteChoice(interface: names[0], source: paths[0].source, reason: Self.kernelsChoice)
        }
        // Each path is judged alone: the chosen one is open then, and each of the others has its reason.
        let alone = paths.map { path in
            var one = remote
            one.reachability = .over([path])
            return routeDecision(to: one, from: folder, in: inputs)
        }
        let open = alone.map { answer -> Route? in if case .open(let route) = answer { route } else { nil } }
        let openPaths = paths.indices.filter { open[$0] != nil }
        let chosen = Route.best(of: openPaths.compactMap { open[$0] }, inputs.quotas).map { openPaths[$0] }
        let refused = paths.indices.filter { $0 != chosen }.map { number in
            RouteChoice.Refused(
                interface: names[number],
                reason: refusal(of: number, chosen, alone, paths, names, inputs.quotas))
        }
        guard let chosen, let route = open[chosen] else {
            return RouteChoice(interface: nil, reason: "no route may be used", refused: refused)
        }
        return RouteChoice(
            interface: names[chosen], source: paths[chosen].source,
            reason: reason(
                chosen, route, paths, names, passesFree: open.contains { $0.map { !$0.countsAsMetered } ?? false }),
            refused: refused)
    }

    /// - Parameter passesFree: A free route may be used, and this one has a higher limit.
    private func reason(
        _ chosen: Int, _ route: Route, _ paths: [NetworkPath], _ names: [String], passesFree: Bool
    ) -> String {
        let path = paths[chosen]
        let place =
            path.isOwn
            ? "the kernel's own route" + (path.destination.map { " to \($0)" } ?? "")
            : "equal to the kernel's own route through \(names[0]), with metric \(path.metric)"
        if !route.countsAsMetered { return "\(place), allowed and free (\(route.reason))" }
        let others =
            passesFree
            ? "the `bandwidth` of a free route is lower" : "no free route that may be used is equal to it"
        return "\(place), allowed; it counts as metered (\(route.reason)), and \(others)"
    }

    private func refusal(
        of number: Int, _ chosen: Int?, _ alone: [RouteDecision], _ paths: [NetworkPath], _ names: [String],
        _ quotas: QuotaState
    ) -> String {
        let route: Route
        switch alone[number] {
        case .closed(let holds, _): return holds.first?.text ?? "it may not be used"
        case .open(let open): route = open
        }
        let best = chosen.map { names[$0] } ?? ""
        if route.countsAsMetered, let chosen, case .open(let other) = alone[chosen], !other.countsAsMetered {
            return "it counts as metered (\(route.reason)), and \(best) is free"
        }
        if quotas.remaining(of: route.applied.quotas) == 0, !best.isEmpty {
            let names = route.applied.quotas.map { "`\($0.name)`" }.sorted().joined(separator: ", ")
            return "its quota \(names) is used up, and \(best) has room"
        }
        if let rate = route.applied.lowestRate, let chosen, case .open(let other) = alone[chosen],
            other.applied.lowestRate.map({ $0 > rate }) ?? true
        {
            return "its `bandwidth` allows \(shownBytes(rate))/s, and \(best) is faster"
        }
        return paths[number].isOwn && paths[number].destination != paths[0].destination
            ? "it leads to \(paths[number].destination.map { "\($0)" } ?? "another address"), and \(best) comes first"
            : "it is equally good, with metric \(paths[number].metric), and \(best) comes first"
    }
}
