package import Core

/// The state of a configured folder.
package struct WatchState: Hashable, Sendable {
    package enum Condition: Hashable, Sendable {
        case watching
        /// A scan is running; events are handled already.
        case scanning
        /// The folder is absent. It is checked repeatedly, and never treated as empty.
        case absent(String)
        case failed(String)
    }

    package var folder: String
    package var path: FilePath
    package var condition: Condition
    /// Files that are younger than `min_age`, and still will be when they have been quiet for long enough.
    package struct Young: Hashable, Sendable {
        package var files = 0
        /// The time when the first of them is old enough.
        package var next: MonotonicTime?

        mutating func add(_ ofAge: MonotonicTime) {
            files += 1
            next = min(next ?? ofAge, ofAge)
        }
    }

    /// Seen files that have not settled.
    package var settling = 0
    /// Unsettled files that wait only for their age.
    package var belowMinAge = Young()
    /// The time since when the oldest of them has been waiting.
    package var oldest: MonotonicTime?
    /// Directories that should have a watch and have none; they are polled.
    package var unwatched = 0
    /// Polled directories, including those.
    package var polled = 0
    /// Problems of directories in it for a person to fix: some in words, and the number of others.
    package var troubles: [String] = []
    package var moreTroubles = 0
    /// Files that have settled since the start.
    package var settled = 0
    /// The start of the last finished full scan; `nil` before the first. For a folder that cannot be examined, the last
    /// try.
    package var scannedSince: MonotonicTime?
    /// Files that this scan met and that had not settled already, and the new ones among them.
    package var found = 0
    package var fresh = 0
    /// Whether it exists and is scanned, and no found file still waits for delivery.
    package var isQuiet = false
    /// The number of mounts and unmounts, anywhere.
    package var mounts = 0
    /// Device of the file system in which this was seen.
    package var device: UInt64 = 0
    /// Whether its file system does not answer.
    package var isStuck = false
}

/// A file that has not settled, for display.
package struct WaitingFile: Hashable, Sendable {
    package var folder: String
    package var path: SourcePath
    /// Bytes at the last check.
    package var size: Int64
    /// The time since when it has been a candidate.
    package var since: MonotonicTime
    /// Whether it was seen to change since it was first noticed.
    package var isGrowing: Bool
    /// Whether a program has it open for writing.
    package var isBusy: Bool
    package var reason: Reason
    /// The key of its folder that makes it wait, with its value, for people.
    package var rule: String
    /// The time when its wait ends, or it is checked again; `nil` where no time ends it.
    package var until: MonotonicTime?
    /// Bytes a second, as measured by two checks.
    package var rate: Int64?
    /// Whether it has waited for longer than its folder expects.
    package var isOverdue: Bool
    /// Whether it is younger than `min_age`, and still will be when it has been quiet for long enough.
    package var isYoung: Bool

    package enum Reason: Hashable, Sendable {
        /// It has not been quiet for long enough.
        case quiet
        case change
        case writer
        /// The marker of this name is missing.
        case marker(FilePath)
        /// It is younger than `min_age`.
        case age
        /// Its headers are being read.
        case checking
        /// A part is missing according to its headers, in words that follow the file's name.
        case container(String)
    }

    /// In words, for people.
    package var explanation: String {
        let what =
            switch reason {
            case .quiet: "it changed too recently"
            case .change: "it has just changed"
            case .writer: "another process has it open for writing"
            case .marker(let name): "its marker \(name.display) does not exist yet"
            case .age: "it is too recent"
            case .checking: "its container is being checked"
            case .container(let flaw): "it is incomplete: it \(flaw)"
            }
        return "\(what): \(rule)"
    }

    /// With its rate of growth, where it is not at rest.
    package var fullExplanation: String {
        guard [.quiet, .change, .writer].contains(reason), let rate, rate > 0 else { return explanation }
        return explanation + "; it grows by \(shownBytes(rate))/s"
    }
}

/// One sentence for the log.
package struct WatchLogEntry: Hashable, Sendable {
    package enum Level: Hashable, Sendable { case info, notice, warning }

    package var level: Level
    package var text: String

    package init(_ level: Level, _ text: String) {
        self.level = level
        self.text = text
    }
}

/// The intervals and limits of the watcher.
package struct WatchLimits: Hashable, Sendable {
    package var quiet = QuietTimes()
    /// Between two full scans of a folder with events.
    package var reconcile: Duration = .seconds(3600)
    /// Between two polls of a directory with incomplete events, while something happens in it.
    package var poll: Duration = .seconds(2)
    /// The same while nothing happens: twice as long each time, up to this, or longer for very many directories.
    package var pollMost: Duration = .seconds(60)
    /// A file system that takes longer than this for one answer is reported as not answering.
    package var timeout: Duration = .seconds(15)
    /// Between two checks for an absent folder.
    package var absent: Duration = .seconds(10)
    /// Candidates at once. A scan leaves a fifth of them to events.
    package var candidates = 10_000
    /// Files passed on at once.
    package var batch = 512
    /// Limit of watched directories; the others are polled.
    package var watches = Int.max

    package init() {}
}
