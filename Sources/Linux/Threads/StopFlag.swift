internal import Synchronization

/// A flag that is set and read from any thread.
package final class StopFlag: Sendable {
    private let flag = Atomic(false)

    package init() {}

    package var isSet: Bool { flag.load(ordering: .relaxed) }
    /// - Returns: Whether it was not set before: of several callers, one gets this answer.
    @discardableResult
    package func set() -> Bool { !flag.exchange(true, ordering: .acquiringAndReleasing) }
    package func clear() { flag.store(false, ordering: .releasing) }
}
