internal import Core

// `concurrency` of `policy`, and of each destination and each folder: a number, or a list with conditions.

extension PolicySettings {
    /// The values of `concurrency`.
    struct Concurrency: Hashable, Sendable {
        var total = PolicySettings().total
        var perDestination = PolicySettings().perDestination
        var rules: [ConcurrencyRule] = []

        static let keys: [Key<Self>] = [
            Key("total", \.total, .whole(1...64)), Key("per_destination", \.perDestination, .whole(1...64)),
        ]
    }

    var concurrency: Concurrency {
        get { Concurrency(total: total, perDestination: perDestination, rules: rules.concurrency) }
        set { (total, perDestination, rules.concurrency) = (newValue.total, newValue.perDestination, newValue.rules) }
    }

    static let concurrencyKey: Key<Self> = Key(
        "concurrency", \.concurrency, { ConcurrencyReading(reading: $0).total($1) },
        { value, pieces in
            value.rules.isEmpty
                ? section(.concurrency, Concurrency.keys)(value, pieces)
                : .value(.list(ConcurrencyRule.inFile(atMost: value.total, value.rules)))
        }
    ).takes(.either([.section("policy.concurrency"), .list(.section("concurrency[]"))]))
}

extension PolicyOverrides {
    /// The values of `concurrency`.
    struct Concurrency: Hashable, Sendable {
        var atMost: Int?
        var rules: [ConcurrencyRule] = []
    }

    var limits: Concurrency {
        get { Concurrency(atMost: concurrency, rules: rules.concurrency) }
        set { (concurrency, rules.concurrency) = (newValue.atMost, newValue.rules) }
    }

    static let concurrencyKey: Key<Self> = Key(
        "concurrency", \.limits, { ConcurrencyReading(reading: $0).limits($1) },
        { value, _ in
            if !value.rules.isEmpty { return .value(.list(ConcurrencyRule.inFile(atMost: value.atMost, value.rules))) }
            return value.atMost.map { .value(.number(Int64($0))) }
        }
    ).takes(.either([.whole(1...64), .list(.section("concurrency[]"))]))
}

/// Reads `concurrency` at any place.
private struct ConcurrencyReading {
    let reading: SettingsReading

    /// A mapping, or a list of limits.
    func total(_ fields: MappingReader) -> PolicySettings.Concurrency? {
        guard let node = fields.node("concurrency") else { return nil }
        var value = PolicySettings.Concurrency()
        if case .list = node.content {
            let read = limits(in: fields)
            value.total = read.atMost ?? value.total
            value.perDestination = min(value.perDestination, value.total)
            value.rules = read.rules
            return value
        }
        let inner = fields.fields("concurrency", .concurrency)
        let readable = PolicySettings.Concurrency.keys.read(inner, into: &value, reading)
        if !readable.contains("per_destination") { value.perDestination = min(2, value.total) }
        return value
    }

    /// A number, or a list of limits.
    func limits(_ fields: MappingReader) -> PolicyOverrides.Concurrency? {
        guard let node = fields.node("concurrency") else { return nil }
        if case .list = node.content { return limits(in: fields) }
        return fields.read("concurrency", as: .whole(1...64)).map { PolicyOverrides.Concurrency(atMost: $0.value) }
    }

    private func limits(in fields: MappingReader) -> PolicyOverrides.Concurrency {
        var value = PolicyOverrides.Concurrency()
        let expected = "a list of limits, like `[{at_most: 2}, {at_most: 1, when: {metered: true}}]`"
        for (index, item) in (fields.items("concurrency", expected: expected) ?? []).enumerated() {
            let key = "\(fields.path(of: "concurrency"))[\(index)]"
            let inner = MappingReader(item, .slots, path: key, start: item.start, findings: reading.findings)
            inner.require("at_most", "say how many may run at once, like `at_most: 2`")
            var draft = ConcurrencyRule.Draft()
            ConcurrencyRule.Draft.keys.read(inner, into: &draft, reading)
            let when = ConditionReading(reading, in: fields.section).condition(of: inner)
            guard let most = draft.atMost else { continue }
            if let when {
                value.rules.append(ConcurrencyRule(atMost: most, when: when, place: reading.place(of: inner)))
            } else if !inner.has("when") {
                value.atMost = min(value.atMost ?? most, most)
            }
        }
        return value
    }
}

extension ConcurrencyRule {
    /// The lines of one item.
    struct Draft: Hashable, Sendable {
        var atMost: Int?
        var when: Condition?

        static let keys: [Key<Self>] = [
            Key("at_most", \.atMost, .whole(1...64)),
            Key("when", of: \.when) { when, _ in .value(when.inFile) }.takes(.oneOrList(.section("when"))),
        ]
    }

    /// - Parameter most: The limit without a condition.
    fileprivate static func inFile(atMost most: Int?, _ rules: [ConcurrencyRule]) -> [WrittenValue] {
        let drafts = (most.map { [Draft(atMost: $0)] } ?? []) + rules.map { Draft(atMost: $0.atMost, when: $0.when) }
        return drafts.map { Draft.keys.inFile(of: $0) }
    }
}
