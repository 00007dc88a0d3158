internal import API
internal import Core
internal import Synchronization

/// The phase of the daemon: it starts, runs, and stops.
final class DaemonPhase: Sendable {
    let startedAt: WallTime
    private let isReady = Atomic(false)
    private let isStopped = Atomic(false)

    init(startedAt: WallTime) { self.startedAt = startedAt }

    /// Whether start-up is still under way. Verbs that change something are accepted only after it.
    var isStarting: Bool { !isReady.load(ordering: .acquiring) }

    /// Whether the daemon stops or has stopped.
    var isStopping: Bool { isStopped.load(ordering: .acquiring) }

    func finishStart() { isReady.store(true, ordering: .releasing) }
    func beginStop() { isStopped.store(true, ordering: .releasing) }

    /// - Throws: ``Refusal`` during start-up.
    func requireReady() throws {
        if isStarting { throw Refusal(.unavailable, "the daemon is starting: try again in a moment") }
    }
}
