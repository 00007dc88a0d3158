internal import Core

/// Reads the conditions of the rules of one section, and `pause`.
struct ConditionReading {
    private let reading: SettingsReading
    private var findings: ProblemCollector { reading.findings }
    /// The section that has the rules.
    private let owner: Section

    init(_ reading: SettingsReading, in owner: Section) {
        self.reading = reading
        self.owner = owner
    }

    /// Each different question about files may double the number of classes that policy is decided for.
    static func checkFileQuestions(of settings: Settings, _ main: MappingReader, _ findings: ProblemCollector) {
        let count = settings.fileQuestions.count
        guard count > FileQuestions.limit else { return }
        var known: Set<FilePredicate> = []
        var rule: (owner: String, place: String)?
        for (owner, rules) in settings.rulesByPlace where rule == nil {
            for (condition, place) in rules.placedConditions where rule == nil {
                known.formUnion(condition.fileQuestions)
                if known.count > FileQuestions.limit { rule = (owner, place) }
            }
        }
        findings.error(
            "all conditions together ask \(count) different questions about files (`larger_than`, `smaller_than`, "
                + "`kind`, `longer_than`); at most \(FileQuestions.limit) are possible, and this rule asks one more: "
                + "use the same values in several rules",
            at: rule.flatMap { findings.location(of: $0.place) } ?? main.node("policy")?.start ?? main.start,
            key: rule?.owner ?? "policy")
    }

    func pauses(_ fields: MappingReader) -> [PauseRule] {
        let expected = "a list of rules, like `[{name: roaming, when: {roaming: true}}]`"
        var rules: [PauseRule] = []
        for (index, item) in (fields.items("pause", expected: expected) ?? []).enumerated() {
            let key = "\(fields.path(of: "pause"))[\(index)]"
            let inner = MappingReader(item, .pause, path: key, start: item.start, findings: findings)
            guard let rule = pause(inner) else { continue }
            if rule.name == PauseRule.windowsName || rule.name == PauseRule.meteredName {
                inner.error(
                    "is the name of the rule that the key \(quoted(rule.name)) stands for; give this one another",
                    "name")
            }
            if rules.contains(where: { $0.name == rule.name }) {
                inner.error("another rule of this list is called \(quoted(rule.name))", "name")
            }
            rules.append(rule)
        }
        return rules
    }

    private func pause(_ fields: MappingReader) -> PauseRule? {
        fields.require("name", "messages name the rule, like `name: roaming`")
        fields.require("when", "say what is not sent, like `when: {roaming: true}`; for nothing at all: `sluice pause`")
        var rule = PauseRule(name: "", when: .all([]), place: reading.place(of: fields))
        let readable = PauseRule.keys.read(fields, into: &rule, reading)
        guard let when = condition(of: fields) else { return nil }
        rule.when = when
        return readable.contains("name") ? rule : nil
    }

    /// A condition about files alone.
    func fileCondition(_ fields: MappingReader, _ key: String) -> Condition? {
        guard let node = fields.node(key),
            let condition = condition(node, path: fields.path(of: key), depth: 1)
        else { return nil }
        if condition.predicates.allSatisfy(\.isAboutFile) {
            ConditionCheck(reading, concernsFiles: true).check(condition, node, key: fields.path(of: key))
            return condition
        }
        fields.error(
            "asks for more than the file: here are `larger_than`, `smaller_than`, `kind`, `longer_than` and `not`; "
                + "what depends on time or network belongs under `pause`", key)
        return nil
    }

    /// The value of `when` in a rule.
    ///
    /// - Returns: `nil` where it is not set, or where a part could not be read, which has been reported.
    func condition(of rule: MappingReader) -> Condition? {
        guard let node = rule.node("when"), let condition = condition(node, path: rule.path(of: "when"), depth: 1)
        else { return nil }
        ConditionCheck(reading).check(condition, node, key: rule.path(of: "when"))
        return condition
    }

    /// A mapping: all of its lines. A list: any of its items.
    ///
    /// - Returns: `nil` where a part could not be read, which has been reported.
    private func condition(_ node: Node, path: String, depth: Int) -> Condition? {
        guard depth <= Condition.maxDepth else {
            findings.error(
                "is more than \(Condition.maxDepth) levels deep: `not` stands in `not` in `not`; write several rules in its place",
                at: node.start,
                key: path)
            return nil
        }
        guard case .list(let items) = node.content else { return part(node, path: path, depth: depth) }
        if items.isEmpty {
            let effect = path.hasSuffix(".not") ? "always" : "never"
            findings.error("lists nothing, so it would \(effect) hold", at: node.start, key: path)
            return nil
        }
        let parts = items.enumerated().map { index, item in
            part(item, path: "\(path)[\(index)]", depth: depth)
        }
        let known = parts.compactMap { $0 }
        guard known.count == parts.count else { return nil }
        return known.count == 1 ? known[0] : .any(known)
    }

    private func part(_ node: Node, path: String, depth: Int) -> Condition? {
        guard case .mapping(let entries) = node.content else {
            findings.error(
                "takes a condition, like `{network: lte, not: {between: \"22:00-06:00\"}}`, not \(node.kindName)",
                at: node.start, key: path)
            return nil
        }
        let fields = MappingReader(node, .condition, path: path, start: node.start, findings: findings)
        if entries.isEmpty { findings.error("is empty, so it would always hold", at: node.start, key: path) }
        for (section, key) in [(Section.folder, "folder"), (.destination, "destination")]
        where section.path == owner.path && fields.has(key) {
            fields.error("is the \(key) that has this rule; take the line out", key)
        }
        var draft = ConditionDraft()
        let readable = ConditionDraft.keys.read(fields, into: &draft, reading)
        if fields.has("except"), !fields.has("between") {
            fields.error("belongs to `between`; add that, or take this out", "except")
        }
        if let inner = fields.node("not") {
            draft.not = condition(inner, path: fields.path(of: "not"), depth: depth + 1)
        }
        // Without a part that cannot be read, the rule would describe something else.
        let isWhole = entries.allSatisfy { $0.key == "not" ? draft.not != nil : readable.contains($0.key) }
        return isWhole && !entries.isEmpty ? draft.condition : nil
    }
}

extension MappingReader {
    /// A value, or a list of values. `nil` where none can be read, which is reported.
    fileprivate func oneOrMore<Value>(_ key: String, as reader: Reader<Value>) -> [Found<Value>]? {
        guard let found = list(key, as: reader, orOne: true) else { return nil }
        if case .list(let items)? = node(key)?.content, items.isEmpty {
            error("lists nothing, so it would never hold", key)
        }
        return found.isEmpty ? nil : found
    }

    /// Names of what exists.
    ///
    /// - Parameter remedy: What to do where there is none at all.
    fileprivate func names(
        _ key: String, of what: String, among known: Set<String>, _ reading: SettingsReading, remedy: String? = nil
    ) -> [String]? {
        guard let found = oneOrMore(key, as: .name) else { return nil }
        let isKnown = found.map { reading.isKnown($0, what, known, remedy: remedy) }
        return isKnown.allSatisfy { $0 } ? found.map(\.value) : nil
    }
}

extension PauseRule: SettingsValue {
    static let keys: [Key<Self>] = [
        Key("name", \.name, .name),
        Key("when", of: \.when) { when, _ in .value(when.inFile) }.takes(.oneOrList(.section("when"))),
        Key("override", \.override).printed { $0.override != .allow },
    ]

    var inFile: WrittenValue { Self.keys.inFile(of: self) }
}

/// The lines of one mapping of a condition.
struct ConditionDraft: Equatable, Sendable {
    var between: [Window]?
    var except: Set<CivilDay>?
    var network: [String]?
    var metered: Bool?
    var interface: [String]?
    var ssid: [String]?
    var gateway: [HardwareAddress]?
    var roaming: Bool?
    var lan: Bool?
    var onBattery: Bool?
    var batteryBelow: Int?
    var hotterThan: Int?
    var folder: [String]?
    var destination: [String]?
    var largerThan: Int64?
    var smallerThan: Int64?
    var kind: [FileKind]?
    var longerThan: Duration?
    var not: Condition?

    static let keys: [Key<Self>] = [
        Key(
            "between", optional: \.between, { $1.oneOrMore("between", as: .window).map { $0.map(\.value) } },
            { windows, _ in .value(oneOrList(windows.map { .text($0.words) })) }
        ).takes(.oneOrList(.window)),
        Key(
            "except", optional: \.except, { $1.list("except", as: .day).map { Set($0.map(\.value)) } },
            { days, _ in .value(.list(days.sorted().map { .text("\($0)") })) }
        ).takes(.list(.day)),
        names("network", \.network) {
            $1.names(
                "network", of: "network", among: $0.networkNames, $0,
                remedy: "give one a name under `policy.networks`, like `{name: lte, interface: \"wwan*\"}`")
        },
        Key("metered", \.metered, .flag),
        several("interface", \.interface, .interface),
        several("ssid", \.ssid, .ssid),
        several("gateway", \.gateway, .hardware),
        Key("roaming", \.roaming, .flag),
        Key("lan", \.lan, .flag),
        Key("on_battery", \.onBattery, .flag),
        Key("battery_below", \.batteryBelow, .percent) { .plain("\($0)%") },
        Key("hotter_than", \.hotterThan, .whole(1...150)),
        names("folder", \.folder) { $1.names("folder", of: "folder", among: $0.folderNames, $0) },
        names("destination", \.destination) {
            $1.names("destination", of: "destination", among: $0.destinationNames, $0)
        },
        Key("larger_than", \.largerThan, .bytes) { .plain(writtenBytes($0)) },
        Key("smaller_than", \.smallerThan, .bytes) { .plain(writtenBytes($0)) },
        several("kind", \.kind, .choice),
        Key("longer_than", \.longerThan, .duration(.zero ... .seconds(366 * 86_400))),
        Key("not", of: \.not) { part, _ in .value(part.inFile) }.takes(.oneOrList(.section("when"))),
    ]

    /// A key with one value, or several of which one is enough.
    private static func several<Value: SettingsValue>(
        _ name: String, _ path: Property<Self, [Value]?>, _ reader: Reader<Value>
    ) -> Key<Self> {
        Key(
            name, optional: path,
            { $1.oneOrMore(name, as: reader).map { $0.map(\.value) } },
            { values, _ in .value(oneOrList(values.map(\.inFile))) }
        ).takes(.oneOrList(reader.kind))
    }

    private static func names(
        _ name: String, _ path: Property<Self, [String]?>,
        _ take: @escaping @Sendable (SettingsReading, MappingReader) -> [String]?
    ) -> Key<Self> {
        Key(name, optional: path, take, { names, _ in .value(oneOrList(names.map { .text($0) })) })
            .takes(.oneOrList(.name))
    }

    private static func oneOrList(_ values: [WrittenValue]) -> WrittenValue {
        values.count == 1 ? values[0] : .list(values)
    }

    /// All lines together.
    var condition: Condition {
        let windows = between?.map { window in
            var window = window
            window.except = except ?? []
            return window
        }
        let predicates: [Condition.Predicate?] = [
            windows.map { .between($0) }, network.map { .network($0) }, metered.map { .metered($0) },
            interface.map { .interface($0) }, ssid.map { .ssid($0) }, gateway.map { .gateway($0) },
            roaming.map { .roaming($0) }, lan.map { .lan($0) }, onBattery.map { .onBattery($0) },
            batteryBelow.map { .batteryBelow($0) },
            hotterThan.map { .hotterThan($0) },
            folder.map { .folder($0) }, destination.map { .destination($0) },
            largerThan.map { .file(.largerThan($0)) }, smallerThan.map { .file(.smallerThan($0)) },
            kind.map { .file(.kind(Set($0))) }, longerThan.map { .file(.longerThan($0.inMilliseconds)) },
        ]
        let parts = predicates.compactMap { $0.map { Condition.fact($0) } } + (not.map { [.not($0)] } ?? [])
        return parts.count == 1 ? parts[0] : .all(parts)
    }

    /// The lines of a condition that was read from one mapping.
    init(_ parts: [Condition]) {
        for part in parts {
            switch part {
            case .fact(let predicate): set(predicate)
            case .not(let inner): not = inner
            case .all, .any: assertionFailure("a mapping has no list in it: \(part.words)")
            }
        }
    }

    init() {}

    private mutating func set(_ predicate: Condition.Predicate) {
        switch predicate {
        case .between(let windows):
            between = windows
            except = windows.first.flatMap { $0.except.isEmpty ? nil : $0.except }
        case .network(let names): network = names
        case .metered(let flag): metered = flag
        case .interface(let names): interface = names
        case .ssid(let names): ssid = names
        case .gateway(let addresses): gateway = addresses
        case .roaming(let flag): roaming = flag
        case .lan(let flag): lan = flag
        case .onBattery(let flag): onBattery = flag
        case .batteryBelow(let percent): batteryBelow = percent
        case .hotterThan(let degrees): hotterThan = degrees
        case .folder(let names): folder = names
        case .destination(let names): destination = names
        case .file(.largerThan(let bytes)): largerThan = bytes
        case .file(.smallerThan(let bytes)): smallerThan = bytes
        case .file(.kind(let kinds)): kind = FileKind.allCases.filter(kinds.contains)
        case .file(.longerThan(let length)): longerThan = .milliseconds(length)
        }
    }
}

extension FileKind: SettingsValue { var inFile: WrittenValue { .plain(rawValue) } }

extension Condition: SettingsValue {
    var inFile: WrittenValue {
        switch self {
        case .any(let items): .list(items.map(\.inFile))
        case .all(let parts): ConditionDraft.keys.inFile(of: ConditionDraft(parts))
        case .fact, .not: ConditionDraft.keys.inFile(of: ConditionDraft([self]))
        }
    }
}
