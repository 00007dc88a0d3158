internal import Core

/// Finds network rules that never apply: the first rule with an opinion counts, and the rules before them match every
/// network that they match.
struct ShadowedRuleCheck {
    /// A rule of the list that could be read.
    struct Item {
        let rule: NetworkRule
        let place: ConfigLocation
        /// `policy.networks[2]`.
        let key: String
    }

    let findings: ProblemCollector

    func check(_ items: [Item]) {
        for (number, item) in items.enumerated() {
            let earlier = items[..<number]
            let words = Word.allCases.filter { $0.isSet(by: item.rule) }
            let shadows = words.compactMap { word -> (Word, Set<Int>)? in
                let saying = earlier.indices.filter { word.isSet(by: earlier[$0].rule) }.map { ($0, earlier[$0].rule) }
                var comparisonsLeft = Self.maxComparisons
                return cover(item.rule, word, by: saying, &comparisonsLeft).map { (word, $0) }
            }
            guard let word = shadows.first?.0 else { continue }
            let firsts = shadows.reduce(into: Set<Int>()) { $0.formUnion($1.1) }.sorted().map { items[$0] }
            let (isOne, them) = (firsts.count == 1, firsts.count == 1 ? "it" : "them")
            let named = firsts.map { "\(quoted($0.rule.yaml)) in line \($0.place.line)" }.joined(separator: " and ")
            let why =
                "\(named) \(isOne ? "is" : "together are") about every network that this rule is about, and "
                + (isOne ? "comes first" : "come first")
            let remedy = "put this rule before \(them), or remove it"
            findings.warning(
                shadows.count == words.count
                    ? "never applies: \(why); \(remedy)"
                    : "its `\(word.rawValue)` never applies: \(why); \(remedy)",
                at: item.place, key: item.key)
        }
    }

    /// After this many comparisons the check gives up without a result.
    private static let maxComparisons = 1000

    /// The rules that together match every network that `narrow` matches; `nil` where they leave one. May miss such
    /// rules.
    ///
    /// A rule with `roaming: true` and one with `roaming: false` leave the networks without a modem, so they never
    /// cover all.
    private func cover(
        _ narrow: NetworkRule, _ word: Word, by earlier: [(number: Int, rule: NetworkRule)],
        _ comparisonsLeft: inout Int
    ) -> Set<Int>? {
        comparisonsLeft -= 1
        if let one = earlier.first(where: { covers($0.rule, narrow, word) }) { return [one.number] }
        let parts = parts(of: narrow, by: earlier.map(\.rule))
        if parts.isEmpty { return nil }
        var found: Set<Int> = []
        for part in parts {
            guard comparisonsLeft > 0, let some = cover(part, word, by: earlier, &comparisonsLeft) else { return nil }
            found.formUnion(some)
        }
        return found
    }

    /// Rules that together match exactly the networks of `rule`; empty where it cannot be split, or that would not
    /// help.
    private func parts(of rule: NetworkRule, by others: [NetworkRule]) -> [NetworkRule] {
        if let interface = rule.interface, let names = GlobComparison.alternatives(of: interface) {
            return names.map { name in
                var part = rule
                part.interface = name
                return part
            }
        }
        guard let subnet = rule.subnet,
            others.contains(where: {
                $0.subnet.map { $0.prefix > subnet.prefix && subnet.contains($0.address) } ?? false
            })
        else { return [] }
        return subnet.halves.map { half in
            var part = rule
            part.subnet = half
            return part
        }
    }

    /// The opinion of a rule about a network. For each kind, the first rule with such an opinion counts.
    private enum Word: String, CaseIterable {
        case metered, allowed

        func isSet(by rule: NetworkRule) -> Bool { value(of: rule) != nil }

        /// The rule forbids or makes it cost, and so applies to a modem whose roaming state is unknown.
        func warns(_ rule: NetworkRule) -> Bool { value(of: rule) == (self == .metered) }

        private func value(of rule: NetworkRule) -> Bool? { self == .metered ? rule.isMetered : rule.isAllowed }
    }

    /// Whether `wide` matches every network that `narrow` matches. May miss such a pair.
    private func covers(_ wide: NetworkRule, _ narrow: NetworkRule, _ word: Word) -> Bool {
        if let interface = wide.interface {
            guard GlobComparison.coversInterfaces(interface, narrow.interface) else { return false }
        }
        if let ssid = wide.ssid, ssid != narrow.ssid { return false }
        if let gateway = wide.gateway, gateway != narrow.gateway { return false }
        if let subnet = wide.subnet {
            guard let inner = narrow.subnet, subnet.prefix <= inner.prefix, subnet.contains(inner.address) else {
                return false
            }
        }
        if let isRoaming = wide.isRoaming {
            guard isRoaming == narrow.isRoaming else { return false }
            // For a modem that does not tell, either of the two may apply.
            return word.warns(wide) || !word.warns(narrow)
        }
        return true
    }
}
