internal import Core

/// Whether a watched folder is there, how far it is scanned, and when it is examined next.
///
/// A value: the watching thread passes each event to it, with the time.
struct RootState {
    enum Condition: Equatable {
        /// Not examined yet.
        case unknown
        case present
        case absent(String)
        case failed(String)

        var isAway: Bool {
            switch self {
            case .absent, .failed: true
            case .unknown, .present: false
            }
        }
    }

    private(set) var condition = Condition.unknown
    /// Whether the first scan has not ended.
    private(set) var isFirstScan = true
    /// When it is scanned next from the top, or looked for.
    private(set) var nextCheck: MonotonicTime
    /// Visits that are queued or under way.
    private(set) var visits = 0
    /// Whether its disk has failed since the last full scan began.
    private var hasFailed = false
    /// Whether it was reported that its disk fails, instead of for each file on it.
    private var hasLostDisk = false

    init(nextCheck: MonotonicTime) { self.nextCheck = nextCheck }

    /// Whether a visit is queued or under way.
    var isVisited: Bool { visits > 0 }

    /// Whether everything in it has been scanned, and no further scan is due by then.
    func isScanned(at time: MonotonicTime) -> Bool {
        condition == .present && !isFirstScan && !isVisited && nextCheck > time
    }

    // MARK: - Scans

    /// Requests a scan from the top at this time, unless one is due before.
    mutating func requestCheck(at time: MonotonicTime) { nextCheck = min(nextCheck, time) }

    /// A scan from the top begins.
    ///
    /// - Parameter next: When the scan after it is due.
    /// - Returns: The reason for the visit of the top.
    mutating func beginScan(next: MonotonicTime) -> VisitReason {
        nextCheck = next
        hasFailed = false
        return isFirstScan ? .first : .reconcile
    }

    mutating func visitQueued() { visits += 1 }

    mutating func visitEnded() {
        visits -= 1
        if visits == 0, !hasFailed { hasLostDisk = false }
    }

    /// - Returns: Whether this ends the first scan.
    mutating func endFirstScan() -> Bool {
        guard isFirstScan, condition == .present, !isVisited else { return false }
        isFirstScan = false
        return true
    }

    /// Other files are taken from it: it is scanned as if for the first time.
    mutating func matchesChanged(at now: MonotonicTime) {
        isFirstScan = true
        requestCheck(at: now)
    }

    // MARK: - The folder

    /// The folder was opened, and is the intended one.
    ///
    /// - Returns: Whether it was away before.
    mutating func found() -> Bool {
        defer { condition = .present }
        return condition.isAway
    }

    /// The folder is not there, or cannot be watched.
    ///
    /// - Parameter again: When it is looked for again.
    /// - Returns: Whether that differs from before.
    mutating func lost(_ condition: Condition, again: MonotonicTime) -> Bool {
        defer { self.condition = condition }
        requestCheck(at: again)
        return self.condition != condition
    }

    /// A file on it could not be read because its disk fails.
    ///
    /// - Parameter again: When it is scanned again.
    /// - Returns: Whether that has to be reported: for the first such file only.
    mutating func diskFailed(again: MonotonicTime) -> Bool {
        hasFailed = true
        if hasLostDisk { return false }
        hasLostDisk = true
        requestCheck(at: again)
        return true
    }
}
