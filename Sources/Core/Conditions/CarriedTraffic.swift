/// The interfaces whose whole traffic a quota with `count: interface` counts.
extension Metering {
    /// - Parameters:
    ///   - condition: Asks nothing about folder, destination or file.
    ///   - facts: Those that do not depend on the way.
    ///   - gateways: By interface, where they are known.
    /// - Returns: The numbers of the interfaces of which the condition holds, or is unknown. A tunnel's packets are
    ///   those of the interface that carries it, and are counted there.
    package func links(
        described condition: Condition, _ facts: ConditionFacts, gateways: [Int32: HardwareAddress]
    ) -> Set<Int32> {
        func path(_ link: NetworkLink) -> NetworkPath { NetworkPath(link: link.index, gateway: gateways[link.index]) }
        let meant = Set(
            links.values.filter { link in
                if link.medium == .loopback { return false }
                var facts = facts
                let metered = judgement(of: path(link)).metered
                facts.way = .over(path(link), self, isMetered: metered == .unknown ? nil : metered == .metered)
                return condition.truth(facts).mayHold
            }.map(\.index))
        return meant.filter { index in
            links[index].map { link in
                !walk(path(link)) { _ in false }.dropFirst().contains { meant.contains($0.link.index) }
            } ?? false
        }
    }
}
