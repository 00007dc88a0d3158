/// Whether bytes over a network cost money.
package enum Metered: String, Hashable, Sendable, Codable, CaseIterable, Comparable {
    case unmetered, unknown, metered

    /// The stricter one is greater.
    package static func < (one: Metered, other: Metered) -> Bool { one.strictness < other.strictness }
    private var strictness: Int {
        switch self {
        case .unmetered: 0
        case .unknown: 1
        case .metered: 2
        }
    }
}

/// NetworkManager's value for a device (`NMMetered`).
package enum NetworkManagerMetered: UInt32, Hashable, Sendable, CaseIterable {
    /// No opinion, or the device is not connected.
    case unknown = 0
    /// Set in the connection's profile.
    case yes, no
    case guessYes, guessNo
}

/// ModemManager's data about an interface of a modem.
package struct ModemBearer: Hashable, Sendable {
    /// `nil` if the modem does not report it.
    package var isRoaming: Bool?

    package init(isRoaming: Bool?) { self.isRoaming = isRoaming }
}

/// The known facts about networks, and the judgement whether bytes over one of them cost money. Total: every question
/// has an answer, even with missing or contradicting facts, and the same question always has the same answer.
///
/// The first source that has an opinion decides: a person's rules in their order, NetworkManager, ModemManager, the
/// properties of the interface (`guess`). For an interface that stands on others, the worst of those decides.
package struct Metering: Hashable, Sendable {
    package var links: [Int32: NetworkLink]
    /// The list of each place that has one. In each list the first rule that has an opinion counts, and of those the
    /// strictest.
    package var rules: [[NetworkRule]]
    /// By name of the interface.
    package var managed: [String: NetworkManagerMetered]
    /// By name of the interface.
    package var modems: [String: ModemBearer]
    /// The routes to a tunnel's peers, which carry it, where they are known.
    package var carriers: [Int32: [NetworkPath]]

    package init(
        links: [NetworkLink], rules: [NetworkRule] = [], managed: [String: NetworkManagerMetered] = [:],
        modems: [String: ModemBearer] = [:], carriers: [Int32: [NetworkPath]] = [:]
    ) {
        self.links = Dictionary(links.map { ($0.index, $0) }, uniquingKeysWith: { _, last in last })
        self.rules = [rules]
        self.managed = managed
        self.modems = modems
        self.carriers = carriers
    }

    /// The source that decided about an interface.
    package enum Source: String, Hashable, Sendable, Codable {
        case rule
        case networkManager = "network-manager"
        case modemManager = "modem-manager"
        case guess
    }

    package struct Judgement: Hashable, Sendable {
        package var metered: Metered
        package var source: Source
        /// A sentence for people: `metered: NetworkManager guessed it (device wwan0)`.
        package var reason: String
        /// The line of YAML for the list of networks that would change it: `- {interface: "wwan0", metered: false}`.
        /// Where a rule decided, this line replaces it. `nil` when there is no interface for which one could be
        /// written.
        package var remedy: String?
        /// The rule that forbids it, as a sentence; `nil` when bytes may be sent.
        package var forbidden: String?
        /// The modem is in another provider's network.
        package var isRoaming: Bool
        /// The interfaces that carry it, beginning with itself.
        package var links: [Int32]
        /// The cost is that of an interface which may carry it, and need not.
        package var isAssumed = false
    }

    package func judgement(of path: NetworkPath) -> Judgement {
        guard let link = links[path.link] else {
            return Judgement(
                metered: .unknown, source: .guess, reason: "unknown: interface number \(path.link) is not there",
                remedy: nil, forbidden: nil, isRoaming: false, links: [path.link])
        }
        let carrying = walk(path) { _ in false }
        // The interfaces below a decided one are not considered.
        let verdicts = walk(path) { self.opinion(on: $0) != nil }.compactMap { step in
            self.opinion(on: step).map { (step, $0) }
        }
        // The first of the worst, so that the same facts always name the same one.
        var worst: (step: Step, opinion: Opinion)?
        for (step, opinion) in verdicts where worst.map({ opinion.metered > $0.opinion.metered }) ?? true {
            worst = (step, opinion)
        }
        let forbidden = prohibition(in: carrying)
        if let step = verdicts.map(\.0).first(where: { $0.isAssumed && !$0.isHere }),
            worst?.opinion.metered == .unmetered
        {
            // The route that carries it may be invisible here, or not known yet.
            return Judgement(
                metered: .unknown, source: .guess,
                reason:
                    "unknown: the carrier of \(step.carried) is not known, although every visible route is free",
                remedy: remedy(for: Step(link: link), not: .unknown), forbidden: forbidden, isRoaming: false,
                links: carrying.map(\.link.index))
        }
        let isRoaming = carrying.contains { modems[$0.link.name]?.isRoaming == true }
        guard let worst else {
            // Only interfaces that stand on each other in a circle have no end.
            return Judgement(
                metered: .unknown, source: .guess, reason: "unknown: \(link.name) runs only over itself",
                remedy: remedy(for: Step(link: link, gateway: path.gateway), not: .unknown), forbidden: forbidden,
                isRoaming: isRoaming, links: carrying.map(\.link.index))
        }
        let prefix = worst.step.pathText(from: link)
        return Judgement(
            metered: worst.opinion.metered, source: worst.opinion.source,
            reason: "\(worst.opinion.metered.rawValue): \(prefix)\(worst.opinion.text)",
            // It is unknown which of several interfaces carries a tunnel, so a rule about one of them might not help.
            remedy: worst.opinion.rule.map { "- \(flipped($0).yaml)" }
                ?? (worst.step.isHere
                    ? nil
                    : remedy(for: worst.step.isAssumed ? Step(link: link) : worst.step, not: worst.opinion.metered)),
            forbidden: forbidden, isRoaming: isRoaming, links: carrying.map(\.link.index),
            isAssumed: worst.step.isAssumed)
    }

    // MARK: - The interfaces below

    /// An interface on the way down from the requested one.
    struct Step {
        var link: NetworkLink
        /// The gateway to which packets go there.
        var gateway: HardwareAddress?
        /// Assumed to carry a tunnel, because the real carrier is unknown.
        var isAssumed = false
        /// The assumed load: `the tunnel wg0`.
        var carried = ""
        /// The load leaves by one of the visible interfaces.
        var isHere = false
        /// A rule allows the tunnel for which this was assumed.
        var isExempt = false

        /// A step to an interface below, with the same assumptions.
        func on(_ link: NetworkLink, gateway: HardwareAddress?) -> Step {
            var below = self
            (below.link, below.gateway) = (link, gateway)
            return below
        }

        func pathText(from asked: NetworkLink) -> String {
            if link.index == asked.index { return "" }
            if isHere { return "\(carried) may leave through \(link.name), and " }
            return "\(asked.name) \(isAssumed ? "may run over" : "runs over") \(link.name), and "
        }
    }

    /// The interface and all interfaces that it stands on, each once: so a circle has an end.
    func walk(_ path: NetworkPath, until isEnd: (Step) -> Bool) -> [Step] {
        guard let link = links[path.link] else { return [] }
        var steps = [Step(link: link, gateway: path.gateway)]
        steps += path.others.compactMap { links[$0] }.map {
            Step(
                link: $0, isAssumed: true,
                carried: "traffic that a rule (`ip rule`) by mark or port takes from \(link.name)",
                isHere: true)
        }
        if path.isEncapsulated {
            // Only root may ask where its packets go. So they are assumed to leave by any route, including this one.
            steps += ends(besides: link).map {
                Step(
                    link: $0, isAssumed: true, carried: "IPsec traffic of \(link.name)", isHere: true)
            }
        }
        var seen: Set<NetworkPath> = [NetworkPath(link: path.link, gateway: path.gateway)]
        var next = 0
        while next < steps.count {
            let step = steps[next]
            next += 1
            if isEnd(step) { continue }
            for below in self.below(step)
            where seen.insert(NetworkPath(link: below.link.index, gateway: below.gateway)).inserted {
                steps.append(below)
            }
        }
        return steps
    }

    /// The interfaces that carry this one, ascending; empty for the last one.
    private func below(_ step: Step) -> [Step] {
        let link = step.link
        if let known = carriers[link.index], !known.isEmpty {
            return known.compactMap { path in links[path.link].map { step.on($0, gateway: path.gateway) } }
        }
        // The next hop of packets through a bridge or a VLAN is the same below it.
        var below = link.lower.sorted().compactMap { links[$0] }.map { step.on($0, gateway: step.gateway) }
        // The guests of a bridge send over it, and do not carry it; but where there are only guests, one of them may.
        if link.kind == "bridge", below.contains(where: { !$0.link.isGuest }) { below.removeAll { $0.link.isGuest } }
        // A vxlan with a link of its own uses it only for destinations that name no other (bridge-fdb(8)).
        if !below.isEmpty && link.kind != "vxlan" || !link.isTunnel { return below }
        let isExempt = step.isExempt || ruleOnSending(over: step)?.isAllowed == true
        return ends(besides: link).map {
            Step(link: $0, gateway: nil, isAssumed: true, carried: "the tunnel \(link.name)", isExempt: isExempt)
        }
    }

    /// Interfaces by which packets leave this machine, including those of a tunnel. An interface that leads no further,
    /// but costs money, is among them: the tunnel's other end may be on that link.
    private func ends(besides tunnel: NetworkLink) -> [NetworkLink] {
        links.values.filter {
            $0.index != tunnel.index && $0.isUsable && !$0.isTunnel && $0.medium != .loopback
                && ($0.leadsOut || !$0.addresses.isEmpty && opinion(on: Step(link: $0))?.metered == .metered)
        }.sorted { $0.index < $1.index }
    }

    // MARK: - Opinions about one interface

    struct Opinion: Hashable {
        var metered: Metered
        var source: Source
        /// The text after `metered: `.
        var text: String
        var rule: NetworkRule?
    }

    /// The opinion about the interface itself; `nil` for one that costs as much as those below it.
    private func opinion(on step: Step) -> Opinion? {
        let link = step.link
        if let rule = ruleOnCost(of: step) {
            return Opinion(
                metered: rule.isMetered == true ? .metered : .unmetered, source: .rule,
                text: "the rule \(rule.yaml) says so about \(link.name)", rule: rule)
        }
        let isCarried = !below(step).isEmpty
        switch managed[link.name] ?? .unknown {
        case .yes: return managerOpinion(.metered, "NetworkManager says so", link)
        case .no: return managerOpinion(.unmetered, "NetworkManager says so", link)
        case .guessYes: return managerOpinion(.metered, "NetworkManager guessed it", link)
        // NetworkManager guesses “no” for every device that it knows nothing about, including each VPN and bridge over
        // a modem.
        case .guessNo where !link.isTunnel && !isCarried:
            return managerOpinion(.unmetered, "NetworkManager guessed it", link)
        case .guessNo, .unknown: break
        }
        if let modem = modems[link.name] {
            let roaming = modem.isRoaming == true ? ", which is roaming" : ""
            return Opinion(
                metered: .metered, source: .modemManager,
                text: "ModemManager says that \(link.name) belongs to a modem\(roaming)")
        }
        return guess(link, isCarried: isCarried)
    }

    private func managerOpinion(_ metered: Metered, _ text: String, _ link: NetworkLink) -> Opinion {
        Opinion(metered: metered, source: .networkManager, text: "\(text) (device \(link.name))")
    }

    /// The rule about the cost of bytes over it; `nil` when there is none.
    private func ruleOnCost(of step: Step) -> NetworkRule? {
        let said = rules.compactMap {
            $0.first { $0.isMetered != nil && matches($0, step, warns: $0.isMetered == true) }
        }
        return said.first { $0.isMetered == true } ?? said.first
    }

    /// The rule whether bytes may be sent over it; `nil` when there is none.
    private func ruleOnSending(over step: Step) -> NetworkRule? {
        let said = rules.compactMap {
            $0.first { $0.isAllowed != nil && matches($0, step, warns: $0.isAllowed == false) }
        }
        return said.first { $0.isAllowed == false } ?? said.first
    }

    /// - Parameter warns: The rule forbids or makes it cost, and so applies to a modem whose roaming state is unknown.
    private func matches(_ rule: NetworkRule, _ step: Step, warns: Bool) -> Bool {
        rule.matches(
            step.link, gateway: step.gateway, isRoaming: modems[step.link.name]?.isRoaming,
            mayRoam: warns && isModem(step.link))
    }

    func isModem(_ link: NetworkLink) -> Bool { modems[link.name] != nil || link.signOfModem != nil }

    /// A rule that forbids any interface on the way forbids the route. For an interface that is only assumed to carry a
    /// tunnel, a rule that allows the tunnel overrides this.
    private func prohibition(in carrying: [Step]) -> String? {
        for step in carrying where !step.isExempt {
            guard let rule = ruleOnSending(over: step), rule.isAllowed == false else { continue }
            let prefix = carrying.first.map { step.pathText(from: $0.link) } ?? ""
            let isUnknown = rule.isRoaming != nil && modems[step.link.name]?.isRoaming == nil
            return "\(prefix)the rule \(rule.yaml) forbids \(step.link.name)"
                + (isUnknown ? ", and it is unknown whether it roams" : "")
        }
        return nil
    }

    // MARK: - Changing the judgement

    private func flipped(_ rule: NetworkRule) -> NetworkRule {
        var rule = rule
        rule.isMetered = rule.isMetered.map { !$0 }
        return rule
    }

    /// A Wi-Fi is identified by its name: a rule about its interface would apply to every network that the interface is
    /// ever in.
    private func remedy(for step: Step, not verdict: Metered) -> String? {
        let isMetered = verdict == .unmetered
        let link = step.link
        if !link.isWireless { return "- \(NetworkRule(interface: link.name, isMetered: isMetered).yaml)" }
        if let ssid = link.writableSSID { return "- \(NetworkRule(ssid: ssid, isMetered: isMetered).yaml)" }
        return step.gateway.map { "- \(NetworkRule(gateway: $0, isMetered: isMetered).yaml)" }
    }
}

extension NetworkLink {
    /// The name of its Wi-Fi, if a configuration can contain it: text, without characters that act on a line or a
    /// terminal.
    package var writableSSID: String? { ssid.flatMap(Self.writable) }

    /// The same for any name.
    package static func writable(_ ssid: [UInt8]) -> String? {
        guard !ssid.isEmpty, let text = String(validating: ssid, as: UTF8.self), printable(text) == text else {
            return nil
        }
        return text
    }
}
