internal import Core

/// Warns of conditions that never hold, or always.
struct ConditionCheck {
    private let findings: ProblemCollector
    private let logic: ConditionLogic
    /// The interfaces of the items with each name under `policy.networks`; `nil` for an item without.
    private let networks: [String: [String?]]

    /// - Parameter concernsFiles: The condition is asked of files alone.
    init(_ reading: SettingsReading, concernsFiles: Bool = false) {
        findings = reading.findings
        networks = reading.networkInterfaces
        logic = ConditionLogic(patterns: reading.patternNames, concernsFiles: concernsFiles)
    }

    /// - Parameter key: The key path in messages: `policy.pause[0].when`.
    func check(_ condition: Condition, _ node: Node, key: String) {
        if let conflict = logic.conflict(in: condition) {
            return findings.warning("can never be true: \(Self.words(conflict))", at: node.start, key: key)
        }
        if logic.isAlwaysTrue(condition) {
            return findings.warning(
                "is always true, so it distinguishes nothing: state when it is not, or take it out", at: node.start,
                key: key)
        }
        if let pair = logic.separateInterfaces(in: condition, networks: networks) {
            return findings.warning(
                "is true only on a route that runs over two interfaces, as a tunnel may: \(pair.one.words), and "
                    + "\(pair.other.words)", at: node.start, key: key)
        }
        guard case .any(let parts) = condition, case .list(let items) = node.content, parts.count == items.count else {
            return
        }
        for (index, (part, item)) in zip(parts, items).enumerated() {
            guard let conflict = logic.conflict(in: part) else { continue }
            findings.warning("can never be true: \(Self.words(conflict))", at: item.start, key: "\(key)[\(index)]")
        }
    }

    private static func words(_ conflict: ConditionLogic.Conflict) -> String {
        switch conflict {
        case .lines(let lines) where lines.count == 1: "it is never so that \(lines[0].words)"
        case .lines(let lines): "it is never so that \(lines.map(\.words).joined(separator: ", and "))"
        case .everywhere: "none of its parts can"
        }
    }
}
