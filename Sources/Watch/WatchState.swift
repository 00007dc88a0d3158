package import Core

/// How a configured folder is doing.
package struct WatchState: Hashable, Sendable {
    package enum Condition: Hashable, Sendable {
        case watching
        /// A scan is on its way; events are seen already.
        case scanning
        /// Not there. Looked for again and again; never taken for empty.
        case absent(String)
        case failed(String)
    }

    package var folder: String
    package var path: FilePath
    package var condition: Condition
    /// Files seen that have not settled.
    package var settling: Int
    /// Since when the oldest of them has been waiting.
    package var oldest: MonotonicTime?
    /// Directories without a watch; they are scanned from time to time.
    package var unwatched: Int
}

/// A file that has not settled, for display.
package struct WaitingFile: Hashable, Sendable {
    package var folder: String
    package var path: FilePath
    /// Bytes at the last look.
    package var size: Int64
    /// Since when it has been a candidate.
    package var since: MonotonicTime
    /// It was seen to change since it was first noticed.
    package var isGrowing: Bool
    /// Somebody has it open for writing.
    package var isBusy: Bool
}

/// How often the watcher looks by itself, and how much it takes on.
package struct WatchPace: Hashable, Sendable {
    package var quiet = QuietTimes()
    /// Between two full scans of a folder that events are seen from.
    package var reconcile: Duration = .seconds(3600)
    /// Between two scans of directories that have no watch.
    package var poll: Duration = .seconds(30)
    /// Between two looks for a folder that is not there.
    package var absent: Duration = .seconds(10)
    /// Candidates at once. A scan leaves a fifth of them to events.
    package var candidates = 10_000
    /// Files handed on at once.
    package var batch = 512
    /// The most directories to watch; the others are scanned every ``poll``.
    package var watches = Int.max

    package init() {}
}
