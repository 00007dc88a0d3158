internal import Core
internal import Linux

/// One opening of the database: its clocks and settings, and the facts in memory that transactions use. Used by the
/// store's thread only.
final class Session {
    let clocks: any Clocks
    /// The time zone for the ledger's hours and days.
    let zone: Zone
    let linkBytes: @Sendable (LinkQuestion) -> LinkBytes?
    /// Names this run in leases: claims of an earlier run are void, since the state folder has one daemon at a time.
    let owner: String
    let openedAt: MonotonicTime
    let runTime: RunTime
    /// The order of waiting uploads.
    var sorting: UploadSort
    /// The questions that a file is asked when it is staged.
    var questions = FileQuestions()
    /// As the open transaction sees them; the committed ones where none is open.
    var facts = TransactionFacts()
    private var committed = TransactionFacts()
    /// The last upload of earlier runs; empty when there is none.
    private(set) var lastOfEarlierRuns = ""
    private var lastUploadID: UploadID?

    init(
        clocks: any Clocks, zone: Zone, linkBytes: @escaping @Sendable (LinkQuestion) -> LinkBytes?, owner: String,
        runTime: RunTime, sorting: UploadSort
    ) {
        self.clocks = clocks
        self.zone = zone
        self.linkBytes = linkBytes
        self.owner = owner
        self.runTime = runTime
        self.sorting = sorting
        openedAt = clocks.monotonic()
    }

    /// See ``RunTime/now``.
    var currentRunTime: Int64 { runTime.now }

    /// The next id, in time order even when the clock steps back.
    func newUploadID() -> String {
        let now = clocks.wall()
        let id: UploadID =
            if let last = lastUploadID, last.milliseconds >= now.milliseconds { last.next(chance: Random.bits()) } else
            {
                UploadID(time: now, chance: Random.bits())
            }
        lastUploadID = id
        return id.text
    }

    /// Later ids come after this one, which an earlier run has made.
    func continueIDs(after last: UploadID?) {
        lastUploadID = last
        lastOfEarlierRuns = last?.text ?? ""
    }

    /// The number of the last committed event.
    var committedEvent: Int64 { committed.storedEvent }

    /// Counts of uploads that have ended since the start.
    var endingCounts: [EndingCount] { Array(committed.outcomes.sums.values) }

    /// The events that are in the database when it is opened.
    func continueEvents(after last: Int64) {
        facts.storedEvent = last
        committed.storedEvent = last
    }

    /// The transaction is committed.
    ///
    /// - Returns: What it has changed.
    func commit() -> ChangeSet {
        defer { facts.changes = [] }
        committed = facts
        committed.changes = []
        return facts.changes
    }

    /// The transaction is undone.
    func abandon() { facts = committed }

    /// The position of an upload among those of its folder to its destination.
    func sortKey(_ folder: String, _ destination: String, size: Int64, modified: Int64) -> Int64 {
        sorting.ordering(of: folder, to: destination).value(size: size, modified: modified)
    }
}
