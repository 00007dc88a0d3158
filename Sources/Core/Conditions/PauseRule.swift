/// What holds uploads: nothing that its condition describes is sent.
package struct PauseRule: Hashable, Sendable {
    /// Whether a person can make an exception.
    package enum Override: String, Hashable, Sendable, CaseIterable { case allow, never }

    /// How the configuration writes it. Apart from the words of its holds, all are alike.
    package enum Form: Hashable, Sendable {
        /// An item of `pause`.
        case item
        /// `windows`: it pauses uploads outside them.
        case windows([Window])
        /// `metered: pause`.
        case metered
        /// A `bandwidth` of 0.
        case bandwidth
    }

    package var name: String
    package var when: Condition
    package var override: Override
    /// Where the configuration has it: `sluice.yaml:12`.
    package var place: String
    package let form: Form

    /// An item of `pause`.
    package init(name: String, when: Condition, override: Override = .allow, place: String = "") {
        self.init(.item, name: name, when: when, override: override, place: place)
    }

    init(_ form: Form, name: String, when: Condition, override: Override = .allow, place: String = "") {
        self.form = form
        self.name = name
        self.when = when
        self.override = override
        self.place = place
    }

    /// The name of the rule that `windows` stands for.
    package static let windowsName = "windows"
    /// The name of the rule that `metered: pause` stands for.
    package static let meteredName = "metered"

    /// `windows: ["22:00-06:00"]`.
    package static func windows(_ windows: [Window], place: String = "") -> PauseRule {
        PauseRule(.windows(windows), name: windowsName, when: .not(.fact(.between(windows))), place: place)
    }

    /// `metered: pause`.
    package static func metered(place: String = "") -> PauseRule {
        PauseRule(.metered, name: meteredName, when: .fact(.metered(true)), place: place)
    }

    /// Those of `windows`; empty for any other form.
    package var windows: [Window] { if case .windows(let windows) = form { windows } else { [] } }

    /// Regardless of its place: a line more before it changes nothing.
    package static func == (one: PauseRule, other: PauseRule) -> Bool {
        one.form == other.form && one.name == other.name && one.when == other.when && one.override == other.override
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(form)
        hasher.combine(name)
        hasher.combine(when)
        hasher.combine(override)
    }

    fileprivate func isLifted(by exempt: Set<Exemption>) -> Bool {
        guard override == .allow else { return false }
        if exempt.contains(.rule) || exempt.contains(.ruleNamed(name)) { return true }
        return switch form {
        case .windows: exempt.contains(.window)
        case .metered: exempt.contains(.metered)
        case .item, .bandwidth: false
        }
    }

    /// The hold of this rule; `nil` while its condition is known not to hold.
    ///
    /// - Parameters:
    ///   - owner: The place of the rules, for people: `policy`, `destinations.nas`.
    ///   - since: Since when the network is as it is; `nil` where the rule does not ask for it.
    ///   - clock: The hold of a clock that is not set.
    ///   - cost: What the route costs and why, for people; `nil` where that is not known.
    func hold(of owner: String, _ facts: ConditionFacts, since: WallTime?, clock: Hold?, cost: String?) -> Hold? {
        // Since when the facts besides the time are as they are, as far as that is known.
        let power = when.dependsOnPower ? facts.power?.since : nil
        let since = min([since, power].compactMap { $0 }.max() ?? facts.now, facts.now)
        switch when.truth(facts) {
        case .no: return nil
        case .yes:
            let until = when.nextChange(facts)
            // Of what depends on the time alone, nothing else can be the beginning.
            let change = when.lastChange(facts)
            let earliest = when.dependsOnTimeOnly ? nil : since
            return Hold(
                .rule, since: [change, earliest].compactMap { $0 }.max() ?? since, until: until, rule: reference,
                isByTimeAlone: when.changingFacts.isEmpty, text: text(of: owner, facts, until: until, cost: cost))
        case .unknown(let missing):
            if let clock, missing.contains(where: \.isClock) { return clock }
            return Hold(
                .rule, since: since, until: when.nextChange(facts), rule: reference,
                text: text(of: owner, missing: missing, cost: cost))
        }
    }

    private func text(of owner: String, _ facts: ConditionFacts, until: WallTime?, cost: String?) -> String {
        if let short = shortText(of: owner, cost: cost) { return short }
        let measured = when.measurements(facts).map { "; \($0)" }.joined()
        return "\(begin(owner)) while \(when.words)\(measured)" + (until == nil ? "; \(end)" : "")
    }

    /// How a hold ends that no time ends, as a clause for people.
    private var end: String {
        let facts = when.changingFacts.map { "`\($0)`" }
        if !facts.isEmpty { return "it ends when \(listed(facts, "or")) changes" }
        return override == .allow && form == .item
            ? "it does not end by itself: `sluice allow --rule \(name)` makes an exception"
            : "it does not end by itself: change the rule"
    }

    /// Itself, as the cause of a hold.
    private var reference: HoldingRule {
        HoldingRule(
            name: name, place: place, facts: when.changingFacts, isFixed: form == .bandwidth || override == .never)
    }

    private func text(of owner: String, missing: [UnknownFact], cost: String?) -> String {
        if let short = shortText(of: owner, cost: cost) { return short }
        let asked = missing.map(\.question).joined(separator: ", and ")
        let remedies = missing.map(\.remedy).joined(separator: "; ")
        return "\(begin(owner)) while \(when.words); it is unknown \(asked), and a rule applies then: \(remedies)"
    }

    /// The text of a rule that the configuration has in a shorter form.
    private func shortText(of owner: String, cost: String?) -> String? {
        switch form {
        case .windows(let windows):
            "outside the windows of \(owner)\(line): `windows: \(Window.yaml(windows))`"
        case .metered:
            "`metered` of \(owner)\(line) says pause" + (cost.map { "; \($0)" } ?? "")
        case .bandwidth where when == .all([]):
            "the bandwidth of \(owner)\(line) is 0 now: `bandwidth: 0`"
        case .bandwidth, .item: nil
        }
    }

    private func begin(_ owner: String) -> String {
        let effect = form == .bandwidth ? "sets the bandwidth to 0" : "pauses uploads"
        return "the rule `\(name)` of \(owner)\(line) \(effect)"
    }

    private var line: String { place.isEmpty ? "" : " (\(place))" }
}

extension PolicyRules {
    /// Its rules that a person can name, and may except uploads from.
    package var namedRules: [PauseRule] { [windowRule, meteredRule].compactMap { $0 } + pauses }

    /// What holds uploads while a condition holds: those rules, and limits of the speed to 0.
    var stops: [PauseRule] { namedRules + bandwidth.compactMap(\.pause) }

    /// - Parameters:
    ///   - judgesNetwork: Those whose condition asks for the network, which is judged for each route. Otherwise the
    ///     others.
    ///   - cost: What the route costs and why, for people.
    func pauseHolds(
        of owner: String, _ facts: ConditionFacts, since: WallTime?, clock: Hold?, judgesNetwork: Bool, cost: String?,
        excusing exempt: Set<Exemption>
    ) -> [Hold] {
        stops.filter { $0.when.dependsOnNetwork == judgesNetwork && !$0.isLifted(by: exempt) }
            .compactMap { $0.hold(of: owner, facts, since: since, clock: clock, cost: cost) }
    }
}
