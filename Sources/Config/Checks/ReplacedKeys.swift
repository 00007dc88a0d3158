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
