/// Reports keys whose place a condition has taken, each with the line to write.
struct ReplacedKeys {
    private let findings: ProblemCollector

    init(_ findings: ProblemCollector) { self.findings = findings }

    /// `between` and `except` beside other keys of a rule.
    ///
    /// - Returns: Whether there is one, so that the rule cannot be read.
    func reportTimes(in rule: Node, path: String) -> Bool {
        report(in: rule, path: path, replacing: ["between", "except"]) { replaced in
            WrittenValue.Field(key: "when", value: .mapping(replaced))
        }
    }

    /// The network of a quota.
    ///
    /// - Returns: Whether there is one, so that the rule cannot be read.
    func reportNetwork(in quota: Node, path: String) -> Bool {
        report(in: quota, path: path, replacing: ["network"]) { replaced in
            guard replaced.first?.value.yaml == "metered" else { return nil }
            return WrittenValue.Field(
                key: "when", value: .mapping([WrittenValue.Field(key: "metered", value: .flag(true))]))
        }
    }

    /// The message about a key of a policy that a rule under `pause` replaces; `nil` for any other key.
    static func objection(to key: String, _ value: Node) -> String? {
        let word = value.scalar.flatMap { $0.isEmpty ? nil : $0 }
        switch key {
        case "on_battery" where word == "allow":
            return "is a condition now; `allow` is what holds without one: take the line out"
        case "on_battery": return insteadOfKey("on-battery", "on_battery", .flag(true))
        case "min_battery": return insteadOfKey("low-battery", "battery_below", .plain(word ?? "30%"))
        default: return nil
        }
    }

    private static func insteadOfKey(_ name: String, _ key: String, _ value: WrittenValue) -> String {
        let when = WrittenValue.mapping([WrittenValue.Field(key: key, value: value)])
        let rule = WrittenValue.mapping([
            WrittenValue.Field(key: "name", value: .text(name)), WrittenValue.Field(key: "when", value: when),
        ])
        return "is a condition now; under `pause`, write `- \(rule.yaml)`"
    }

    /// A rate under `metered`.
    func reportRate(_ rate: String, at place: ConfigLocation, path: String) {
        findings.error(
            "a limit over metered networks has a condition: under `bandwidth`, write "
                + "`- {limit: \(rate), when: {metered: true}}`", at: place, key: path)
    }

    private func report(
        in rule: Node, path: String, replacing keys: [String],
        by condition: ([WrittenValue.Field]) -> WrittenValue.Field?
    ) -> Bool {
        guard case .mapping(let entries) = rule.content,
            let first = entries.first(where: { keys.contains($0.key) })
        else { return false }
        func fields(_ entries: [Node.Entry]) -> [WrittenValue.Field] {
            entries.map { WrittenValue.Field(key: $0.key, value: $0.value.written) }
        }
        var line = fields(entries.filter { !keys.contains($0.key) })
        if let when = condition(fields(entries.filter { keys.contains($0.key) })) {
            if keys == ["network"], !line.contains(where: { $0.key == "name" }) {
                line.insert(WrittenValue.Field(key: "name", value: .text("metered")), at: 0)
            }
            line.append(when)
        }
        findings.error(
            "is a condition now; write `- \(WrittenValue.mapping(line).yaml)`", at: first.place,
            key: "\(path).\(first.key)")
        return true
    }
}

extension Node {
    /// The value as it would be written on one line.
    fileprivate var written: WrittenValue {
        switch content {
        case .scalar(let text, let isPlain): isPlain && !text.contains(":") ? .plain(text) : .text(text)
        case .list(let items): .list(items.map(\.written))
        case .mapping(let entries):
            .mapping(entries.map { WrittenValue.Field(key: $0.key, value: $0.value.written) })
        }
    }
}
