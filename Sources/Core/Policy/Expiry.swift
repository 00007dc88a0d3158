/// The rule for uploads that have waited too long: `expires_after`.
///
/// The age counts from the moment when a file was found, by the clock of this machine. The file's own times may come
/// from a camera that was never set, or from a copy that kept them.
package struct Expiry: Hashable, Sendable {
    package let limit: Duration

    /// The shortest limit of the places; `nil` when none has one.
    package init?(_ places: PolicyRules?...) {
        guard let limit = places.compactMap({ $0?.expiresAfter }).min() else { return nil }
        self.limit = limit
    }

    /// When an upload is too old.
    ///
    /// - Parameters:
    ///   - run: How long ago this run of the daemon began, by a clock that does not jump.
    ///   - isOfRun: The file was found in this run, or at an unknown time. Then it is not older than the run,
    ///     regardless of the wall clock's value before it was set.
    package func due(found: WallTime, isOfRun: Bool, now: WallTime, run: Duration) -> WallTime {
        let due = found.advanced(by: limit)
        return isOfRun && run < limit ? max(due, now.advanced(by: limit - run)) : due
    }
}
