internal import Core

/// Finds uploads that never go: each place that has windows for them opens, but never all at once.
struct WindowMeetings {
    let findings: Findings
    let policy: PolicySettings
    let destinations: [DestinationSettings]
    private var known: [[[Window]]: Bool] = [:]

    init(findings: Findings, policy: PolicySettings, destinations: [DestinationSettings]) {
        self.findings = findings
        self.policy = policy
        self.destinations = destinations
    }

    mutating func check(_ folder: SettingsReading.ReadFolder) {
        for destination in destinations where folder.settings.uploadTo.contains(destination.name) {
            let places = [
                ("`policy`", policy.rules.windows),
                ("`destinations.\(destination.name)`", destination.policy.rules.windows),
                ("this folder", folder.settings.policy.rules.windows),
            ].filter { !$0.1.isEmpty }
            if places.count < 2 || meet(places.map(\.1)) { continue }
            let names = places.map(\.0)
            findings.warning(
                "nothing of this folder is ever sent to `\(destination.name)`: the windows of "
                    + names.dropLast().joined(separator: ", ")
                    + " and \(names.last ?? "") are never open at the same time",
                at: folder.place, key: folder.key)
        }
    }

    private mutating func meet(_ places: [[Window]]) -> Bool {
        if let answer = known[places] { return answer }
        let answer = Window.meet(places)
        known[places] = answer
        return answer
    }
}
