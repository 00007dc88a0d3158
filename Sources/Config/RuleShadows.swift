internal import Core

/// Finds items of a list of networks that never count: the first that says something of a network does, and one before them is
/// about every network that they are about.
struct RuleShadows {
    /// One item of the list that could be read.
    struct Item {
        let rule: NetworkRule
        let place: Place
        /// `policy.networks[2]`.
        let key: String
    }

    let findings: Findings

    func check(_ items: [Item]) {
        for (number, item) in items.enumerated() {
            let earlier = items[..<number]
            let words = Word.allCases.filter { $0.isSaid(by: item.rule) }
            let shadows = words.compactMap { word in
                earlier.first { word.isSaid(by: $0.rule) && covers($0.rule, item.rule, word) }.map { (word, $0) }
            }
            guard let (word, first) = shadows.first else { continue }
            let line = "line \(first.place.line)"
            let why = "\(quoted(first.rule.yaml)) in \(line) is about every network that this is about, and comes first"
            let remedy = "put this one before it, or take it out"
            findings.warning(
                shadows.count == words.count
                    ? "never counts: \(why); \(remedy)"
                    : "its `\(word.rawValue)` never counts: \(why); \(remedy)",
                at: item.place, key: item.key)
        }
    }

    /// What an item says of a network. Of each of them the first item counts that says it.
    private enum Word: String, CaseIterable {
        case metered, allowed

        func isSaid(by rule: NetworkRule) -> Bool { value(of: rule) != nil }

        /// It forbids or costs, and so counts for a modem of which nobody knows whether it roams.
        func warns(_ rule: NetworkRule) -> Bool { value(of: rule) == (self == .metered) }

        private func value(of rule: NetworkRule) -> Bool? { self == .metered ? rule.isMetered : rule.isAllowed }
    }

    /// Whether every network that `narrow` matches is matched by `wide` too. May miss such a pair.
    private func covers(_ wide: NetworkRule, _ narrow: NetworkRule, _ word: Word) -> Bool {
        if let interface = wide.interface {
            guard covers(interface, narrow.interface) else { return false }
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
            // Of a modem that does not tell, each of the two may or may not count.
            return word.warns(wide) || !word.warns(narrow)
        }
        return true
    }

    /// As ``Core/Glob`` matches: upper and lower case are the same.
    private func covers(_ wide: String, _ narrow: String?) -> Bool {
        if !wide.isEmpty, wide.allSatisfy({ $0 == "*" }) { return true }
        guard let narrow else { return false }
        if wide.lowercased() == narrow.lowercased() { return true }
        // A set in it holds letters that no name need have.
        guard !narrow.contains(where: { "[\\".contains($0) }) else { return false }
        return Globs.covers(wide.lowercased(), narrow.lowercased())
    }
}
