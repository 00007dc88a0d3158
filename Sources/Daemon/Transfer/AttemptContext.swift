internal import Core
internal import Linux
internal import Store

/// The values that every attempt of an upload uses, whatever its destination.
struct AttemptContext: Sendable {
    let context: Context
    let live: LiveUploads
    /// How the scheduler wants attempts to end.
    let stops: StopRequests
    let locator: SourceLocator
    /// Reasons why single assets wait for their source, by asset number.
    let stagingHolds: Alerts
    /// The programs of `before_upload` share it with hooks.
    let hookSlots: AsyncSemaphore
    let pendingApprovals: PendingApprovals
    let counters: Counters
    let learned: LearnedFacts
}
