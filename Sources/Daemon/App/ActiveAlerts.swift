internal import Core

/// The present obstacles by subject. It records the changes for which loops wait.
struct ActiveAlerts: Sendable, RecordsChanges {
    struct Alert: Sendable {
        var hold: Hold
        var changeKey: String
        /// How often it was met.
        var count: Int
    }

    /// What changes when an obstacle comes, and when it ends.
    private static let concerns: [String: (came: FactChanges, ended: FactChanges)] = [
        Alerts.state: (.stateFailing, .stateWritable)
    ]

    var changes: FactChanges = []
    private var active: [String: Alert] = [:]

    subscript(about: String) -> Alert? { active[about] }
    var all: [Hold] { active.values.map(\.hold) }
    var isEmpty: Bool { active.isEmpty }
    var byName: [String: Hold] { active.mapValues(\.hold) }

    /// - Parameter changeKey: The part of the text whose change is worth a report.
    /// - Returns: Whether the obstacle or this part of its text is new.
    mutating func set(_ about: String, _ hold: Hold, changeKey: String) -> Bool {
        let before = active[about]
        // The obstacle keeps its first time, however often it is found again.
        active[about] = Alert(
            hold: Hold(hold.kind, since: before?.hold.since ?? hold.since, until: hold.until, text: hold.text),
            changeKey: changeKey, count: (before?.count ?? 0) + 1)
        if before?.changeKey == changeKey { return false }
        if let concern = Self.concerns[about] { changes.formUnion(concern.came) }
        return true
    }

    mutating func clear(where isMeant: (String) -> Bool) {
        for about in active.keys where isMeant(about) { _ = clear(about) }
    }

    /// - Returns: Whether there was an obstacle.
    mutating func clear(_ about: String) -> Bool {
        if active.removeValue(forKey: about) == nil { return false }
        if let concern = Self.concerns[about] { changes.formUnion(concern.ended) }
        return true
    }
}
