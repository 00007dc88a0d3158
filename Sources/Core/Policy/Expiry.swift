/// Uploads that have waited for too long: `expires_after`.
///
/// The age counts from when a file was found, by the clock of this machine. The times that a file brings along may be
/// those of a camera that was never set, or of a copy that kept them.
package struct Expiry: Hashable, Sendable {
    /// The code of the failure that says why such an upload has ended.
    package static let code = "expired"

    package let limit: Duration

    /// The shortest of what the places say; `nil` when none does.
    package init?(_ places: PolicyRules?...) {
        guard let limit = places.compactMap({ $0?.expiresAfter }).min() else { return nil }
        self.limit = limit
    }

    /// When an upload is too old.
    ///
    /// - Parameters:
    ///   - run: How long ago this run began, by a clock that does not jump.
    ///   - isOfRun: It was found in this run, or nobody knows when: then it is not older than the run, whatever the
    ///     clock on the wall showed before somebody set it.
    package func due(found: WallTime, isOfRun: Bool, now: WallTime, run: Duration) -> WallTime {
        let due = found.advanced(by: limit)
        return isOfRun && run < limit ? max(due, now.advanced(by: limit - run)) : due
    }
}
