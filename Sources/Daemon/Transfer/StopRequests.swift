internal import Synchronization

/// How running attempts are to end, besides the cancellation of their tasks. The scheduler requests it, and attempts ask
/// for it on threads of their own.
final class StopRequests: Sendable {
    /// Uploads that end after the parts in flight.
    private let afterPart = Mutex<Set<String>>([])
    private let isEnding = Atomic(false)

    /// Lets the parts of these uploads that are in flight arrive, and stops after them.
    func pause(afterPart ids: some Sequence<String>) { afterPart.withLock { $0.formUnion(ids) } }

    /// The pause was taken back, or has happened.
    func clearPause(_ id: String) { afterPart.withLock { _ = $0.remove(id) } }

    func shouldPause(_ id: String) -> Bool { afterPart.withLock { $0.contains(id) } }

    /// The uploads for which ``shouldPause(_:)`` is true.
    var pausing: Set<String> { afterPart.withLock { $0 } }

    /// All attempts end, because the scheduler does. They were allowed until now, and end for no other reason. A stop of
    /// the daemon alone does not say that: until the scheduler ends, it may stop transfers that policy forbids.
    func endAll() { isEnding.store(true, ordering: .releasing) }

    /// Whether the scheduler has ended all attempts.
    var endsAll: Bool { isEnding.load(ordering: .acquiring) }
}
