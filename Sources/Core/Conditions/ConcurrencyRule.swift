/// An item of `concurrency` with a condition: at most so many uploads run at once of those that it describes.
package struct ConcurrencyRule: Hashable, Sendable {
    package var atMost: Int
    package var when: Condition
    /// Where the configuration has it: `sluice.yaml:12`.
    package var place: String

    package init(atMost: Int, when: Condition, place: String = "") {
        self.atMost = atMost
        self.when = when
        self.place = place
    }

    /// Regardless of its place: a line more before it changes nothing.
    package static func == (one: ConcurrencyRule, other: ConcurrencyRule) -> Bool {
        one.atMost == other.atMost && one.when == other.when
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(atMost)
        hasher.combine(when)
    }
}

extension AppliedRules {
    /// Slots that all uploads share to which the rule applies.
    package struct Slots: Hashable, Sendable {
        package var place: RulePlace
        package var rule: ConcurrencyRule

        package init(place: RulePlace, rule: ConcurrencyRule) {
            self.place = place
            self.rule = rule
        }

        /// For people: `at most 1 at once while the network is lte (policy, sluice.yaml:12)`.
        package var words: String {
            "at most \(rule.atMost) at once while \(rule.when.words) (\(place.words)"
                + (rule.place.isEmpty ? ")" : ", \(rule.place))")
        }
    }

    /// The slots that have no room for another upload of this class.
    ///
    /// - Parameter running: The number of running transfers by the slots that they use.
    package func full(_ running: [Slots: Int]) -> Slots? {
        slots.filter { running[$0, default: 0] >= $0.rule.atMost }.min { $0.rule.atMost < $1.rule.atMost }
    }

    /// How many more of this class may begin; `nil`: no rule limits it.
    package func room(_ running: [Slots: Int]) -> Int? {
        slots.map { max(0, $0.rule.atMost - running[$0, default: 0]) }.min()
    }
}
