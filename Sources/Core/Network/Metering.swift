/// What bytes over some network cost.
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

/// What NetworkManager says of a device (`NMMetered`).
package enum NetworkManagerMetered: UInt32, Hashable, Sendable, CaseIterable {
    /// No opinion, or the device is not connected.
    case unknown = 0
    /// Set in the connection's profile.
    case yes, no
    case guessYes, guessNo
}

/// What ModemManager says of an interface that belongs to a modem.
package struct ModemBearer: Hashable, Sendable {
    /// `nil` when the modem does not tell.
    package var isRoaming: Bool?

    package init(isRoaming: Bool?) { self.isRoaming = isRoaming }
}

/// What is known of the networks, and the judgement what bytes over one of them cost. Total: every question has an answer,
/// whatever is missing or contradicts itself, and the same question has the same one.
///
/// The first of these that says something decides: a person's rules in their order, NetworkManager, ModemManager, what the
/// interface itself is (`guess`), and of an interface that stands on others the worst of those.
package struct Metering: Hashable, Sendable {
    package var links: [Int32: NetworkLink]
    /// The list of each place that has one. Of each the first rule that says something counts; of those the strictest.
    package var rules: [[NetworkRule]]
    /// By the name of the interface.
    package var managed: [String: NetworkManagerMetered]
    /// By the name of the interface.
    package var modems: [String: ModemBearer]
    /// What carries a tunnel, where that is known: the routes to its peers.
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

    /// What decided about an interface.
    package enum Source: String, Hashable, Sendable, Codable {
        case rule
        case networkManager = "network-manager"
        case modemManager = "modem-manager"
        case guess
    }

    package struct Judgement: Hashable, Sendable {
        package var metered: Metered
        package var source: Source
        /// One sentence for people: `metered: NetworkManager guessed it (device wwan0)`.
        package var reason: String
        /// The line of YAML that would change it, for the list of networks: `- {interface: "wwan0", metered: false}`. Where a
        /// rule decided, this takes its place. `nil` when there is no interface to write one for.
        package var remedy: String?
        /// The rule that forbids it, as a sentence; `nil` when bytes may go.
        package var forbidden: String?
        /// The modem behind it is in somebody else's network.
        package var isRoaming: Bool
        /// The interfaces that carry it, itself first.
        package var links: [Int32]
    }

    package func judgement(of path: NetworkPath) -> Judgement {
        guard let link = links[path.link] else {
            return Judgement(
                metered: .unknown, source: .guess, reason: "unknown: interface number \(path.link) is not there",
                remedy: nil, forbidden: nil, isRoaming: false, links: [path.link])
        }
        let carrying = walk(path) { _ in false }
        // What stands below an interface that is decided is not asked.
        let verdicts = walk(path) { self.opinion(on: $0) != nil }.compactMap { step in
            self.opinion(on: step).map { (step, $0) }
        }
        // The first of the worst, so that the same world always names the same one.
        var worst: (step: Step, opinion: Opinion)?
        for (step, opinion) in verdicts where worst.map({ opinion.metered > $0.opinion.metered }) ?? true {
            worst = (step, opinion)
        }
        let forbidden = prohibition(in: carrying)
        if let step = verdicts.map(\.0).first(where: { $0.isSupposed && !$0.isHere }),
            worst?.opinion.metered == .unmetered
        {
            // What carries it may be a way that is not seen here, or not yet.
            return Judgement(
                metered: .unknown, source: .guess,
                reason:
                    "unknown: nothing tells what carries \(step.carried), though every way out that is seen is free",
                remedy: remedy(for: Step(link: link), not: .unknown), forbidden: forbidden, isRoaming: false,
                links: carrying.map(\.link.index))
        }
        let isRoaming = carrying.contains { modems[$0.link.name]?.isRoaming == true }
        guard let worst else {
            // Only what stands on nothing else than itself has no end.
            return Judgement(
                metered: .unknown, source: .guess, reason: "unknown: \(link.name) stands on itself alone",
                remedy: remedy(for: Step(link: link, gateway: path.gateway), not: .unknown), forbidden: forbidden,
                isRoaming: isRoaming, links: carrying.map(\.link.index))
        }
        let way = worst.step.way(from: link)
        return Judgement(
            metered: worst.opinion.metered, source: worst.opinion.source,
            reason: "\(worst.opinion.metered.rawValue): \(way)\(worst.opinion.text)",
            // Which of several carries a tunnel is not known, so a word about one of them might not help.
            remedy: worst.opinion.rule.map { "- \(flipped($0).yaml)" }
                ?? (worst.step.isHere
                    ? nil
                    : remedy(for: worst.step.isSupposed ? Step(link: link) : worst.step, not: worst.opinion.metered)),
            forbidden: forbidden, isRoaming: isRoaming, links: carrying.map(\.link.index))
    }

    // MARK: - The interfaces below

    /// An interface on the way down from the one that was asked about.
    struct Step {
        var link: NetworkLink
        /// Of the gateway that packets go to there.
        var gateway: HardwareAddress?
        /// Supposed to carry a tunnel, since nobody knows what does.
        var isSupposed = false
        /// What is supposed to be carried: `the tunnel wg0`.
        var carried = ""
        /// What is carried leaves by one of the interfaces that are seen, whichever that is.
        var isHere = false
        /// The tunnel for which that was supposed has a rule that allows it.
        var isExcused = false

        /// What it stands on, of which the same is supposed.
        func on(_ link: NetworkLink, gateway: HardwareAddress?) -> Step {
            var below = self
            (below.link, below.gateway) = (link, gateway)
            return below
        }

        func way(from asked: NetworkLink) -> String {
            if link.index == asked.index { return "" }
            if isHere { return "\(carried) may leave by \(link.name), and " }
            return "\(asked.name) \(isSupposed ? "may be carried by" : "stands on") \(link.name), and "
        }
    }

    /// The interface and all that it stands on, each once: so interfaces that stand on each other in a circle have an end.
    private func walk(_ path: NetworkPath, until isEnd: (Step) -> Bool) -> [Step] {
        guard let link = links[path.link] else { return [] }
        var steps = [Step(link: link, gateway: path.gateway)]
        steps += path.others.compactMap { links[$0] }.map {
            Step(
                link: $0, isSupposed: true, carried: "what a rule (`ip rule`) by mark or port takes from \(link.name)",
                isHere: true)
        }
        if path.isEncapsulated {
            // Only root may ask where its packets go: by any way out of here, this one among them.
            steps += ends(besides: link).map {
                Step(
                    link: $0, isSupposed: true, carried: "what IPsec makes of packets for \(link.name)", isHere: true)
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

    /// What carries an interface, ascending; nothing for what is an end of its own.
    private func below(_ step: Step) -> [Step] {
        let link = step.link
        if let known = carriers[link.index], !known.isEmpty {
            return known.compactMap { path in links[path.link].map { step.on($0, gateway: path.gateway) } }
        }
        // The next hop of what goes through a bridge or a VLAN is the same below it.
        var below = link.lower.sorted().compactMap { links[$0] }.map { step.on($0, gateway: step.gateway) }
        // The guests of a bridge send over it, and do not carry it; but where there are only guests, one of them may.
        if link.kind == "bridge", below.contains(where: { !$0.link.isGuest }) { below.removeAll { $0.link.isGuest } }
        // A vxlan that has a link of its own sends by it only what names no other (bridge-fdb(8)).
        if !below.isEmpty && link.kind != "vxlan" || !link.isTunnel { return below }
        let isExcused = step.isExcused || ruleOnSending(over: step)?.isAllowed == true
        return ends(besides: link).map {
            Step(link: $0, gateway: nil, isSupposed: true, carried: "the tunnel \(link.name)", isExcused: isExcused)
        }
    }

    /// Those by which packets leave this machine, whatever put them into a tunnel before. One that leads nowhere further, but
    /// costs something, is among them: the tunnel's other end may be on that link.
    private func ends(besides tunnel: NetworkLink) -> [NetworkLink] {
        links.values.filter {
            $0.index != tunnel.index && $0.isUsable && !$0.isTunnel && $0.medium != .loopback
                && ($0.leadsOut || !$0.addresses.isEmpty && opinion(on: Step(link: $0))?.metered == .metered)
        }.sorted { $0.index < $1.index }
    }

    // MARK: - What is said of one interface

    struct Opinion: Hashable {
        var metered: Metered
        var source: Source
        /// What stands behind `metered: `.
        var text: String
        var rule: NetworkRule?
    }

    /// What is said of the interface itself; `nil` for one that costs what those below it cost.
    private func opinion(on step: Step) -> Opinion? {
        let link = step.link
        if let rule = ruleOnCost(of: step) {
            return Opinion(
                metered: rule.isMetered == true ? .metered : .unmetered, source: .rule,
                text: "the rule \(rule.yaml) says so of \(link.name)", rule: rule)
        }
        let isCarried = !below(step).isEmpty
        switch managed[link.name] ?? .unknown {
        case .yes: return saidByManager(.metered, "NetworkManager says so", link)
        case .no: return saidByManager(.unmetered, "NetworkManager says so", link)
        case .guessYes: return saidByManager(.metered, "NetworkManager guessed it", link)
        // It guesses “no” of everything that it knows nothing about, and so of each VPN and bridge over a modem.
        case .guessNo where !link.isTunnel && !isCarried:
            return saidByManager(.unmetered, "NetworkManager guessed it", link)
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

    private func saidByManager(_ metered: Metered, _ text: String, _ link: NetworkLink) -> Opinion {
        Opinion(metered: metered, source: .networkManager, text: "\(text) (device \(link.name))")
    }

    /// The rule that says what bytes over it cost; `nil` when none does.
    private func ruleOnCost(of step: Step) -> NetworkRule? {
        let said = rules.compactMap {
            $0.first { $0.isMetered != nil && matches($0, step, warns: $0.isMetered == true) }
        }
        return said.first { $0.isMetered == true } ?? said.first
    }

    /// The rule that says whether bytes may go over it; `nil` when none does.
    private func ruleOnSending(over step: Step) -> NetworkRule? {
        let said = rules.compactMap {
            $0.first { $0.isAllowed != nil && matches($0, step, warns: $0.isAllowed == false) }
        }
        return said.first { $0.isAllowed == false } ?? said.first
    }

    /// - Parameter warns: The rule forbids or costs, and so counts for a modem of which nobody knows whether it roams.
    private func matches(_ rule: NetworkRule, _ step: Step, warns: Bool) -> Bool {
        rule.matches(
            step.link, gateway: step.gateway, isRoaming: modems[step.link.name]?.isRoaming,
            mayRoam: warns && isModem(step.link))
    }

    private func isModem(_ link: NetworkLink) -> Bool { modems[link.name] != nil || link.signOfModem != nil }

    /// A rule that forbids any interface on the way forbids the way. What is only supposed to carry a tunnel is
    /// excused by a rule that allows the tunnel.
    private func prohibition(in carrying: [Step]) -> String? {
        for step in carrying where !step.isExcused {
            guard let rule = ruleOnSending(over: step), rule.isAllowed == false else { continue }
            let way = carrying.first.map { step.way(from: $0.link) } ?? ""
            let isUnknown = rule.isRoaming != nil && modems[step.link.name]?.isRoaming == nil
            return "\(way)the rule \(rule.yaml) forbids \(step.link.name)"
                + (isUnknown ? ", and nobody tells whether it roams" : "")
        }
        return nil
    }

    // MARK: - What would change it

    private func flipped(_ rule: NetworkRule) -> NetworkRule {
        var rule = rule
        rule.isMetered = rule.isMetered.map { !$0 }
        return rule
    }

    /// A Wi-Fi is named by what tells it from others: a rule about its interface would be about each network that the
    /// interface is ever in.
    private func remedy(for step: Step, not verdict: Metered) -> String? {
        let isMetered = verdict == .unmetered
        let link = step.link
        if !link.isWireless { return "- \(NetworkRule(interface: link.name, isMetered: isMetered).yaml)" }
        if let ssid = link.writableSSID { return "- \(NetworkRule(ssid: ssid, isMetered: isMetered).yaml)" }
        return step.gateway.map { "- \(NetworkRule(gateway: $0, isMetered: isMetered).yaml)" }
    }
}

extension NetworkLink {
    /// Its name of a Wi-Fi, where a configuration can have that: text, without what acts on a line or a terminal.
    package var writableSSID: String? { ssid.flatMap(Self.writable) }

    /// The same of any name.
    package static func writable(_ ssid: [UInt8]) -> String? {
        guard !ssid.isEmpty, let text = String(validating: ssid, as: UTF8.self), printable(text) == text else {
            return nil
        }
        return text
    }
}
