/// The facts in memory that transactions change. A transaction or a piece of it that is undone takes all its changes of
/// them with it: ``Session`` keeps and restores this value as a whole.
struct TransactionFacts {
    /// The number of the last stored event.
    var storedEvent: Int64 = 0
    /// What the open transaction has changed.
    var changes: ChangeSet = []
    /// Counts of ended uploads since the start.
    var outcomes = OutcomeCounters()
    /// Uploads whose running attempt has stored how far it has sent.
    var uploadsWithNotedProgress: Set<String> = []
    /// Uploads that waited after a failure when the last run ended, and have sent bytes that were not acknowledged.
    var waitedBefore: [String] = []
    /// For how long uploads have been failing in this run.
    var failingTimes = FailureDurations()
}
