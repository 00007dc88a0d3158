/// A network as a person describes it, in place of one that the kernel reports: for `policy test` and `plan --on`.
///
/// What the description does not state is unknown, except where it follows from what it states (``Kind``).
package struct DescribedNetwork: Hashable, Sendable {
    /// The stated facts. A pattern of interfaces stands for any one of them.
    package var facts: NetworkRule
    /// Whether destinations are in the local network; `nil` where that is not stated.
    package var isLAN: Bool?

    package init(_ facts: NetworkRule, isLAN: Bool? = nil) {
        self.facts = facts
        self.isLAN = isLAN
    }

    /// The facts that all items of a name state alike, and others.
    ///
    /// - Parameters:
    ///   - name: `nil` for a network without a name.
    ///   - other: Facts that replace those of the items.
    ///   - isLAN: Whether destinations are in the local network.
    /// - Returns: `nil` where nothing has the name.
    package init?(
        named name: String?, in networks: [NetworkRule], stating other: NetworkRule = NetworkRule(),
        isLAN: Bool? = nil
    ) {
        guard let name else {
            self.init(other, isLAN: isLAN)
            return
        }
        let items = networks.filter { $0.name == name }
        guard var facts = items.first else { return nil }
        for item in items.dropFirst() {
            if item.interface != facts.interface { facts.interface = nil }
            if item.ssid != facts.ssid { facts.ssid = nil }
            if item.gateway != facts.gateway { facts.gateway = nil }
            if item.subnet != facts.subnet { facts.subnet = nil }
            if item.isRoaming != facts.isRoaming { facts.isRoaming = nil }
            if item.isMetered != facts.isMetered { facts.isMetered = nil }
            if item.isAllowed != facts.isAllowed { facts.isAllowed = nil }
        }
        facts.interface = other.interface ?? facts.interface
        facts.ssid = other.ssid ?? facts.ssid
        facts.gateway = other.gateway ?? facts.gateway
        facts.isRoaming = other.isRoaming ?? facts.isRoaming
        facts.isMetered = other.isMetered ?? facts.isMetered
        self.init(facts, isLAN: isLAN)
    }

    /// For people: `lte: interface wwan*, metered`.
    package var factWords: String {
        var stated: [String] = []
        if let name = facts.interface { stated.append("interface \(name)") }
        if let name = facts.ssid { stated.append("Wi-Fi \(name)") }
        if let address = facts.gateway { stated.append("gateway \(address)") }
        if let subnet = facts.subnet { stated.append("addresses in \(subnet)") }
        if let isMetered = facts.isMetered { stated.append(isMetered ? "metered" : "not metered") }
        if let isRoaming = facts.isRoaming { stated.append(isRoaming ? "roaming" : "not roaming") }
        if let isLAN { stated.append("destination \(isLAN ? "" : "not ")in the local network") }
        return (facts.name.map { "\($0): " } ?? "")
            + (stated.isEmpty ? "nothing is known about it" : stated.joined(separator: ", "))
    }

    /// Why there is no network of a name.
    package static func missing(_ name: String, in networks: [NetworkRule]) -> (problem: String, remedy: String) {
        let names = Set(networks.compactMap(\.name)).sorted().map { printable($0) }
        return (
            "no network is called `\(printable(name))`",
            names.isEmpty
                ? "Name one under `policy.networks`, like `{name: lte, interface: \"wwan*\"}`."
                : "There are: \(names.joined(separator: ", "))."
        )
    }

    /// The kind of its interface. Names that begin with these letters have it: systemd.net-naming-scheme(7), and the
    /// kernel's own names.
    package enum Kind: String, Sendable {
        case cable = "a cable"
        case wiFi = "a Wi-Fi"
        case modem = "a modem"
    }

    /// `nil` where the description does not tell it.
    package var kind: Kind? {
        if facts.ssid != nil { return .wiFi }
        if facts.isRoaming == true { return .modem }
        guard let name = facts.interface?.loweredInASCII else { return nil }
        if name.hasPrefix("wl") { return .wiFi }
        if name.hasPrefix("ww") || name.hasPrefix("ppp") { return .modem }
        return name.hasPrefix("en") || name.hasPrefix("eth") ? .cable : nil
    }

    /// For people: `lte`, `wwan0`, `a network that is not named`.
    package var words: String { facts.name ?? facts.interface ?? facts.ssid ?? "a network that is not named" }

    // MARK: Conditions

    /// - Parameters:
    ///   - predicate: About networks, besides ``Condition/Predicate/metered(_:)``.
    ///   - networks: The named ones.
    func truth(of predicate: Condition.Predicate, _ networks: [NetworkRule]) -> Truth {
        switch predicate {
        case .interface(let globs): interface(globs)
        case .ssid(let names): ssid(names)
        case .gateway(let addresses): gateway(addresses)
        case .roaming(let isWanted): roaming(isWanted)
        case .lan(let isWanted):
            isLAN.map { Truth($0 == isWanted) }
                ?? unknown("whether the destination is in the local network", "--lan yes|no")
        case .network(let names):
            if let name = facts.name, names.contains(name) {
                .yes
            } else {
                .any(networks.filter { $0.name.map(names.contains) ?? false }.map(truth(of:)))
            }
        case .metered, .between, .onBattery, .batteryBelow, .hotterThan, .folder, .destination, .file:
            preconditionFailure("\(predicate) is not about a described network")
        }
    }

    /// Whether an item of `networks` means this network: all of its conditions hold.
    private func truth(of rule: NetworkRule) -> Truth {
        if rule.name != nil, rule.name == facts.name { return .yes }
        var parts: [Truth] = []
        if let name = rule.interface { parts.append(interface([name])) }
        if let name = rule.ssid { parts.append(ssid([name])) }
        if let address = rule.gateway { parts.append(gateway([address])) }
        if let subnet = rule.subnet { parts.append(self.subnet(subnet)) }
        if let isRoaming = rule.isRoaming { parts.append(roaming(isRoaming)) }
        return .all(parts)
    }

    private func interface(_ globs: [String]) -> Truth {
        guard let stated = facts.interface else {
            let others = globs.map { DescribedNetwork(NetworkRule(interface: $0)).kind }
            if let kind, others.allSatisfy({ $0 != nil && $0 != kind }) { return .no }
            return unknown("which interface \(words) is", "--interface NAME")
        }
        if globs.contains(where: { GlobComparison.coversInterfaces($0, stated) }) { return .yes }
        let mayBe = globs.contains { GlobComparison.mayOverlap($0.loweredInASCII, stated.loweredInASCII) }
        // Of others it is not known that no interface carries them, as one carries a tunnel.
        if !mayBe, kind != nil { return .no }
        return unknown(
            mayBe ? "which of \(stated) the interface is" : "which interface carries \(stated)", "--interface NAME")
    }

    private func ssid(_ names: [String]) -> Truth {
        if let stated = facts.ssid { return Truth(names.contains(stated)) }
        if kind == .cable || kind == .modem { return .no }
        return unknown("which Wi-Fi \(words) is", "--ssid NAME")
    }

    private func gateway(_ addresses: [HardwareAddress]) -> Truth {
        if let stated = facts.gateway { return Truth(addresses.contains(stated)) }
        return unknown("which gateway \(words) has", "--gateway ADDRESS")
    }

    private func subnet(_ subnet: IPSubnet) -> Truth {
        if facts.subnet == subnet { return .yes }
        return unknown("which addresses \(words) has", "--on NAME")
    }

    private func roaming(_ isWanted: Bool) -> Truth {
        if let stated = facts.isRoaming { return Truth(stated == isWanted) }
        if kind == .cable || kind == .wiFi { return Truth(!isWanted) }
        return unknown("whether \(words) roams", "--roaming yes|no")
    }

    private func unknown(_ question: String, _ option: String) -> Truth {
        .unknown([UnknownFact(question, remedy: "`\(option)` states it")])
    }

    // MARK: Cost

    /// Whether bytes over it cost money, by what it states and by the `networks` of every place: in each list the first
    /// item that says something about it decides, and of the lists the strictest. Otherwise a modem costs.
    func cost(_ lists: [[NetworkRule]]) -> Metered {
        let said = lists.map { opinions(\.isMetered, $0) }
        if facts.isMetered == true || said.contains([true]) { return .metered }
        if said.contains(where: { $0.contains(true) }) { return .unknown }
        if facts.isMetered == false || said.contains([false]) { return .unmetered }
        return facts.isMetered == nil && kind == .modem ? .metered : .unknown
    }

    /// The items of `networks` that forbid it, or may do so.
    func prohibition(_ lists: [[NetworkRule]]) -> String? {
        for list in lists {
            for rule in list where rule.isAllowed != nil {
                switch truth(of: rule) {
                case .no: continue
                case .yes:
                    if rule.isAllowed == false { return "the rule \(rule.yaml) forbids \(words)" }
                case .unknown(let missing):
                    if rule.isAllowed == true { continue }
                    return "the rule \(rule.yaml) may forbid \(words): it is unknown "
                        + missing.map(\.question).joined(separator: ", and ") + "; "
                        + missing.map(\.remedy).joined(separator: "; ")
                }
                break
            }
        }
        return nil
    }

    /// What a list may say; `nil` in it: nothing.
    private func opinions(_ word: KeyPath<NetworkRule, Bool?>, _ list: [NetworkRule]) -> Set<Bool?> {
        var possible: Set<Bool?> = []
        for rule in list {
            guard let opinion = rule[keyPath: word] else { continue }
            switch truth(of: rule) {
            case .no: continue
            case .yes: return possible.union([opinion])
            case .unknown: possible.insert(opinion)
            }
        }
        return possible.union([nil])
    }
}
