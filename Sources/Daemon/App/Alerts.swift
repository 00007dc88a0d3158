internal import Core
internal import Synchronization

/// Obstacles that concern more than one upload, by subject: shown by `status`, and logged when they come and go.
final class Alerts: Sendable {
    private let active = Mutex<[String: (hold: Hold, changeKey: String, count: Int)]>([:])

    subscript(about: String) -> Hold? { active.withLock { $0[about]?.hold } }
    var all: [Hold] { active.withLock { $0.values.map(\.hold) } }
    var byName: [String: Hold] { active.withLock { $0.mapValues(\.hold) } }

    /// - Parameter changeKey: The part of the text whose change is worth a report; the whole text by default.
    /// - Returns: Whether this is new and deserves a line in the log.
    func set(_ about: String, _ hold: Hold, changeKey: String? = nil) -> Bool {
        let changeKey = changeKey ?? hold.text
        return active.withLock { alerts in
            let isNew = alerts[about]?.changeKey != changeKey
            // The obstacle keeps its first time, however often it is found again.
            let since = alerts[about]?.hold.since ?? hold.since
            let count = (alerts[about]?.count ?? 0) + 1
            alerts[about] = (Hold(hold.kind, since: since, until: hold.until, text: hold.text), changeKey, count)
            return isNew
        }
    }

    /// How often the obstacle was met since it came.
    func count(_ about: String) -> Int { active.withLock { $0[about]?.count ?? 0 } }

    /// - Returns: Whether there was an obstacle.
    func clear(_ about: String) -> Bool { active.withLock { $0.removeValue(forKey: about) != nil } }
}
