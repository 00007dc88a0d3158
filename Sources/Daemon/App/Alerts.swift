internal import Core
internal import Synchronization

/// Obstacles that concern more than one upload, by subject: shown by `status`, and logged when they come and go.
final class Alerts: Sendable {
    /// The subject of the obstacle that the state cannot be written. Loops wait for its end.
    static let state = "state"

    private let active = Mutex(ActiveAlerts())
    private let wake: @Sendable (FactChanges) -> Void

    /// - Parameter wake: Wakes the loops that wait for an obstacle to come or to end.
    init(wake: @escaping @Sendable (FactChanges) -> Void = { _ in }) { self.wake = wake }

    subscript(about: String) -> Hold? { active.withLock { $0[about]?.hold } }
    var all: [Hold] { active.withLock { $0.all } }
    var isEmpty: Bool { active.withLock(\.isEmpty) }
    var byName: [String: Hold] { active.withLock { $0.byName } }

    /// - Parameter changeKey: The part of the text whose change is worth a report; the whole text by default.
    /// - Returns: Whether this is new and deserves a line in the log.
    func set(_ about: String, _ hold: Hold, changeKey: String? = nil) -> Bool {
        change { $0.set(about, hold, changeKey: changeKey ?? hold.text) }
    }

    /// How often the obstacle was met since it came.
    func count(_ about: String) -> Int { active.withLock { $0[about]?.count ?? 0 } }

    /// Ends the obstacles with such subjects.
    func clear(where isMeant: (String) -> Bool) { change { $0.clear(where: isMeant) } }

    /// - Returns: Whether there was an obstacle.
    func clear(_ about: String) -> Bool { change { $0.clear(about) } }

    private func change<Answer>(_ body: (inout ActiveAlerts) -> Answer) -> Answer {
        let (answer, changes) = active.withLock { alerts in (body(&alerts), alerts.takeChanges()) }
        if !changes.isEmpty { wake(changes) }
        return answer
    }
}
