internal import Core

/// Finds uploads that never go: each place that has windows for them opens, but never all at once, or a `bandwidth` of 0 covers
/// what is left of them.
///
/// What is so without a folder, or without a destination, is told once, and not of each of them.
struct WindowMeetings {
    private let findings: Findings
    private let policy: Rules
    private let destinations: [String: Rules]
    private var known: [Question: Bool] = [:]
    /// Nothing goes at all, which is told.
    private var isPolicyShut = false

    /// What one place says, and how messages name it.
    private struct Rules {
        let name: String
        let windows: [Window]
        /// When its `bandwidth` is 0.
        let still: [Window]

        init(_ name: String, _ rules: PolicyRules) {
            self.name = name
            windows = rules.windows
            still = rules.bandwidth.compactMap { rule in
                guard rule.limit == 0 else { return nil }
                guard let window = rule.window else { return Window(from: 0, to: 1440) }
                // On a day that is left out something goes.
                return window.except.isEmpty ? window : nil
            }
        }
    }

    private struct Question: Hashable {
        let windows: [[Window]]
        let still: [Window]
    }

    init(findings: Findings, policy: PolicySettings, destinations: [SettingsReading.ReadDestination]) {
        self.findings = findings
        self.policy = Rules("`policy`", policy.rules)
        self.destinations = Dictionary(
            destinations.map(\.settings).map {
                ($0.name, Rules("`destinations.\($0.name)`", $0.policy.rules))
            }, uniquingKeysWith: { first, _ in first })
    }

    /// - Parameter place: Of its `bandwidth`.
    mutating func check(policyAt place: Place) {
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

    /// Why nothing goes by what these places say; `nil` when something may.
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

    private func listed(_ names: [String]) -> String {
        names.count < 2 ? names.joined() : "\(names.dropLast().joined(separator: ", ")) and \(names.last ?? "")"
    }

    private mutating func meet(_ windows: [[Window]], _ still: [Window]) -> Bool {
        let question = Question(windows: windows, still: still)
        if let answer = known[question] { return answer }
        let answer = Window.meet(windows, outside: still)
        known[question] = answer
        return answer
    }
}
