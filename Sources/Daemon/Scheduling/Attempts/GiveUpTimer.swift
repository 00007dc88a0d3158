internal import Core

/// When to search for waiting uploads that have been failing for `retry.give_up_after`.
struct GiveUpTimer: Sendable {
    /// No upload has to end before this time; `nil`: none, unless another attempt fails.
    private(set) var next: MonotonicTime?
    /// Scheduled since the search began, which may have missed the reason.
    private var later: MonotonicTime?

    /// How long after a failure to search, so that many failures in a row cost one search.
    ///
    /// - Parameter limit: The time after which an upload ends.
    static func delay(for limit: Duration) -> Duration { min(max(limit / 60, .seconds(1)), .seconds(60)) }

    mutating func schedule(at time: MonotonicTime) {
        next = min(next ?? time, time)
        later = min(later ?? time, time)
    }

    /// - Returns: Whether to search now, followed by ``end(_:)``. Without that, the next cycle searches again.
    mutating func begin(at now: MonotonicTime) -> Bool {
        guard let next, now >= next else { return false }
        later = nil
        return true
    }

    /// - Parameter found: When the next upload is due; `nil` for none.
    mutating func end(_ found: MonotonicTime?) { next = [found, later].compactMap { $0 }.min() }
}
