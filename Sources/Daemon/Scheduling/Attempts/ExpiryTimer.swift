internal import Core

/// When to search for uploads that are too old by `expires_after`.
struct ExpiryTimer: Sendable {
    /// No upload gets too old before this time; `nil`: not determined yet, or no longer valid.
    private(set) var next: WallTime?

    /// Uploads may be too old now: a rule, the clock or the queue is another one.
    mutating func invalidate() { next = nil }

    /// - Parameter shortest: The shortest `expires_after`; `nil` while no upload can be too old.
    /// - Returns: Whether to search now, followed by ``end(_:)``.
    mutating func begin(at now: WallTime, shortest: Duration?) -> Bool {
        guard let shortest else {
            next = nil
            return false
        }
        if let next, now < next { return false }
        // Set before the search, so that ``invalidate()`` during the search leads to another one.
        next = now.advanced(by: shortest)
        return true
    }

    /// Records the result of a search.
    ///
    /// - Parameter found: No upload gets too old before this time; `nil` where the search failed.
    mutating func end(_ found: WallTime?) { if next != nil { next = found } }
}
