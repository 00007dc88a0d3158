extension Admission {
    /// The route by which bytes of a class leave this machine, and the reasons for the choice.
    package struct WayChoice: Hashable, Sendable {
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

    package static let kernelsChoice = "no rule depends on networks, so the kernel's own choice stands"

    /// The choice of ``way(to:from:in:)``, and its reasons; `nil` where there is nothing to choose.
    package func choice(to remote: Remote, from folder: Origin? = nil, in world: World) -> WayChoice? {
        let places = places(remote, folder)
        let depends = places.contains { $0.rules.dependsOnNetwork }
        guard case .over(let paths) = remote.reach else {
            return remote.reach == .any && !depends ? WayChoice(interface: nil, reason: Self.kernelsChoice) : nil
        }
        guard !paths.isEmpty else { return nil }
        guard let metering = world.network else {
            return depends ? nil : WayChoice(interface: nil, source: paths[0].source, reason: Self.kernelsChoice)
        }
        let names = paths.map { metering.links[$0.link]?.name ?? "\($0.link)" }
        if !depends {
            return WayChoice(interface: names[0], source: paths[0].source, reason: Self.kernelsChoice)
        }
        // Each path is judged alone: the chosen one is open then, and each of the others has its reason.
        let alone = paths.map { path in
            var one = remote
            one.reach = .over([path])
            return way(to: one, from: folder, in: world)
        }
        let open = alone.map { way -> Passage? in if case .open(let passage) = way { passage } else { nil } }
        let chosen = open.firstIndex { $0.map { !$0.countsAsMetered } ?? false } ?? open.firstIndex { $0 != nil }
        let refused = paths.indices.filter { $0 != chosen }.map { number in
            WayChoice.Refused(
                interface: names[number],
                reason: refusal(of: number, chosen, alone, paths, names))
        }
        guard let chosen, let passage = open[chosen] else {
            return WayChoice(interface: nil, reason: "no way may be taken", refused: refused)
        }
        return WayChoice(
            interface: names[chosen], source: paths[chosen].source, reason: reason(chosen, passage, paths, names),
            refused: refused)
    }

    private func reason(_ chosen: Int, _ passage: Passage, _ paths: [NetworkPath], _ names: [String]) -> String {
        let path = paths[chosen]
        let place =
            path.isOwn
            ? "the kernel's own way" + (path.destination.map { " to \($0)" } ?? "")
            : "equal to the kernel's own way by \(names[0]), of metric \(path.metric)"
        if !passage.countsAsMetered { return "\(place), allowed and free (\(passage.reason))" }
        return "\(place), allowed; it counts as metered (\(passage.reason)), and no free way is equal to it"
    }

    private func refusal(
        of number: Int, _ chosen: Int?, _ alone: [Way], _ paths: [NetworkPath], _ names: [String]
    ) -> String {
        let passage: Passage
        switch alone[number] {
        case .closed(let holds, _): return holds.first?.text ?? "it may not be used"
        case .open(let open): passage = open
        }
        let best = chosen.map { names[$0] } ?? ""
        if passage.countsAsMetered, let chosen, case .open(let other) = alone[chosen], !other.countsAsMetered {
            return "it counts as metered (\(passage.reason)), and \(best) is free"
        }
        return paths[number].isOwn && paths[number].destination != paths[0].destination
            ? "it leads to \(paths[number].destination.map { "\($0)" } ?? "another address"), and \(best) comes first"
            : "it is as good, of metric \(paths[number].metric), and \(best) comes first"
    }
}
