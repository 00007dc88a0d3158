/// An item of `pause`: nothing that its condition describes is sent.
package struct PauseRule: Hashable, Sendable {
    /// Whether a person can make an exception.
    package enum Override: String, Hashable, Sendable, CaseIterable { case allow, never }

    package var name: String
    package var when: Condition
    package var override: Override
    /// Where the configuration has it: `sluice.yaml:12`.
    package var place: String
    /// What it does while its condition holds, in a message.
    var effect = Effect.pauses

    enum Effect: String, Sendable {
        case pauses = "pauses uploads"
        /// A `bandwidth` of 0.
        case stopsBandwidth = "sets the bandwidth to 0"
    }

    package init(name: String, when: Condition, override: Override = .allow, place: String = "") {
        self.name = name
        self.when = when
        self.override = override
        self.place = place
    }

    init(name: String, when: Condition, override: Override, place: String, effect: Effect) {
        self.init(name: name, when: when, override: override, place: place)
        self.effect = effect
    }

    /// Regardless of its place: a line more before it changes nothing.
    package static func == (one: PauseRule, other: PauseRule) -> Bool {
        one.name == other.name && one.when == other.when && one.override == other.override
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(when)
        hasher.combine(override)
    }

    fileprivate func isLifted(by exempt: Set<Exemption>) -> Bool {
        override == .allow && (exempt.contains(.rule) || exempt.contains(.ruleNamed(name)))
    }

    /// The hold of this rule; `nil` while its condition is known not to hold.
    ///
    /// - Parameters:
    ///   - owner: The place of the rules, for people: `policy`, `destinations.nas`.
    ///   - since: Since when the facts besides the time are as they are.
    ///   - clock: The hold of a clock that is not set.
    func hold(of owner: String, _ facts: ConditionFacts, since: WallTime, clock: Hold?) -> Hold? {
        let begin = "the rule `\(name)` of \(owner)" + (place.isEmpty ? "" : " (\(place))")
        switch when.truth(facts) {
        case .no: return nil
        case .yes:
            var text = "\(begin) \(effect.rawValue) while \(when.words)"
            let until = when.nextChange(facts)
            if until == nil { text += "; it ends when that changes" }
            // Of what depends on the time alone, nothing else can be the beginning.
            let change = when.lastChange(facts)
            let earliest = when.dependsOnTimeOnly ? nil : min(since, facts.now)
            return Hold(
                .rule, since: [change, earliest].compactMap { $0 }.max() ?? since, until: until, rule: name, text: text)
        case .unknown(let missing):
            if let clock, missing.contains(where: \.isClock) { return clock }
            let asked = missing.map(\.question).joined(separator: ", and ")
            let remedies = missing.map(\.remedy).joined(separator: "; ")
            return Hold(
                .rule, since: since, until: when.nextChange(facts), rule: name,
                text:
                    "\(begin) \(effect.rawValue) while \(when.words); it is unknown \(asked), and a rule applies then: "
                    + remedies)
        }
    }
}

extension PolicyRules {
    /// - Parameter judgesNetwork: Those whose condition asks for the network, which is judged for each route. Otherwise
    ///   the others.
    func pauseHolds(
        of owner: String, _ facts: ConditionFacts, since: WallTime, clock: Hold?, judgesNetwork: Bool,
        excusing exempt: Set<Exemption>
    ) -> [Hold] {
        stops.filter { $0.when.dependsOnNetwork == judgesNetwork && !$0.isLifted(by: exempt) }
            .compactMap { $0.hold(of: owner, facts, since: since, clock: clock) }
    }
}
