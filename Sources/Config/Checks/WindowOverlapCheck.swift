internal import Core

/// Finds uploads that are never sent: the windows of their places are never open at the same time, or a `bandwidth` of
/// 0 covers the common time.
///
/// A problem that exists without a folder, or without a destination, is reported once, and not for each of them.
struct WindowOverlapCheck {
    private let findings: ProblemCollector
    private let policy: Rules
    private let destinations: [String: Rules]
    private var results: [Question: Bool] = [:]
    /// Nothing is sent at all. That has been reported.
    private var isPolicyShut = false

    /// The rules of one place, with its name in messages.
    private struct Rules {
        let name: String
        let windows: [Window]
        /// The times when its `bandwidth` is 0.
        let still: [Window]

        init(_ name: String, _ rules: PolicyRules) {
            self.name = name
            windows = rules.windows
            still = rules.bandwidth.flatMap { rule -> [Window] in
                guard rule.limit == 0 else { return [] }
                guard let when = rule.when else { return [Window(from: 0, to: 1440)] }
                guard case .fact(.between(let windows)) = when else { return [] }
                // On an excluded day uploads are sent.
                return windows.filter(\.except.isEmpty)
            }
        }
    }

    private struct Question: Hashable {
        let windows: [[Window]]
        let still: [Window]
    }

    init(findings: ProblemCollector, policy: PolicySettings, destinations: [SettingsReading.ReadDestination]) {
        self.findings = findings
        self.policy = Rules("`policy`", policy.rules)
        self.destinations = Dictionary(
            destinations.map(\.settings).map {
                ($0.name, Rules("`destinations.\($0.name)`", $0.policy.rules))
            }, uniquingKeysWith: { first, _ in first })
    }

    /// - Parameter place: The place of its `bandwidth`.
    mutating func check(policyAt place: ConfigLocation) {
        guard let problem = problem([policy]) else { return }
        isPolicyShut = true
        findings.warning("nothing is ever sent: \(problem)", at: place, key: "policy.bandwidth")
    }

    mutating func check(_ folder: SettingsReading.ReadFolder) {
        if isPolicyShut { return }
        let own = Rules("this folder", folder.settings.policy.rules)
        for name in folder.settings.uploadTo {
            guard let destination = destinations[name], let problem = problem([policy, destination, own]) else {
                continue
            }
            findings.warning(
                "nothing of this folder is ever sent to `\(name)`: \(problem)", at: folder.place, key: folder.key)
        }
    }

    /// Why nothing is sent under the rules of these places; `nil` when something may be.
    private mutating func problem(_ places: [Rules]) -> String? {
        let timed = places.filter { !$0.windows.isEmpty }
        let names = listed(timed.map(\.name))
        if !meet(timed.map(\.windows), []) {
            return "the windows of \(names) are never open at the same time; let them overlap, or take those of one out"
        }
        let still = places.filter { !$0.still.isEmpty }
        if still.isEmpty || meet(timed.map(\.windows), still.flatMap(\.still)) { return nil }
        let when =
            timed.isEmpty
            ? "at all times"
            : "at all times at which the windows of \(names) are open"
        return
            "`bandwidth` of \(listed(still.map(\.name))) is 0 \(when), and 0 sends nothing; write `unlimited` for no limit, or "
            + "leave a time without 0"
    }

    private mutating func meet(_ windows: [[Window]], _ still: [Window]) -> Bool {
        let question = Question(windows: windows, still: still)
        if let answer = results[question] { return answer }
        let answer = Window.overlap(windows, outside: still)
        results[question] = answer
        return answer
    }
}
