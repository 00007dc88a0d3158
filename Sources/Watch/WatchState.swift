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
    /// Files that are younger than `min_age`, and will be when they have been quiet for long enough.
    package struct Young: Hashable, Sendable {
        package var files = 0
        /// When the first of them is old enough.
        package var next: MonotonicTime?

        mutating func add(_ ofAge: MonotonicTime) {
            files += 1
            next = min(next ?? ofAge, ofAge)
        }
    }

    /// Files seen that have not settled.
    package var settling = 0
    /// Those of them that nothing but time makes old enough.
    package var young = Young()
    /// Since when the oldest of them has been waiting.
    package var oldest: MonotonicTime?
    /// Directories without a watch although one was wanted; they are looked through from time to time.
    package var unwatched = 0
    /// Directories that are looked through from time to time, those among them.
    package var polled = 0
    /// What somebody has to mend about directories in it: some of it in words, and how many more there are.
    package var troubles: [String] = []
    package var moreTroubles = 0
    /// Files that have settled since the start.
    package var settled = 0
    /// When the last look through all of it began that is over; `nil` before the first, and of one that cannot be looked at
    /// the last try.
    package var lookedSince: MonotonicTime?
    /// Files that this look came across and that did not settle already, and the new ones among them.
    package var found = 0
    package var fresh = 0
    /// There and scanned, and nothing that was seen in it is still on its way to whoever takes the files.
    package var isQuiet = false
    /// How often something was mounted or unmounted, anywhere.
    package var mounts = 0
    /// Of the file system that this was seen on.
    package var device: UInt64 = 0
    /// Its file system does not answer.
    package var isStuck = false
}

/// A file that has not settled, for display.
package struct WaitingFile: Hashable, Sendable {
    package var folder: String
    package var path: SourcePath
    /// Bytes at the last look.
    package var size: Int64
    /// Since when it has been a candidate.
    package var since: MonotonicTime
    /// It was seen to change since it was first noticed.
    package var isGrowing: Bool
    /// Somebody has it open for writing.
    package var isBusy: Bool
    package var reason: Reason
    /// The key of its folder that makes it wait, with what that says, for people.
    package var rule: String
    /// When its wait is over, or it is looked at again; `nil` where no time ends it.
    package var until: MonotonicTime?
    /// Bytes a second, as far as two looks tell.
    package var rate: Int64?
    /// It has waited for longer than its folder expects.
    package var isOverdue: Bool
    /// It is younger than `min_age`, and will be when it has been quiet for long enough.
    package var isYoung: Bool

    package enum Reason: Hashable, Sendable {
        /// It has not been quiet for long enough.
        case quiet
        case change
        case writer
        /// The marker of this name is not there.
        case marker(FilePath)
        /// It is younger than `min_age`.
        case age
        /// Its headers are being read.
        case checking
        /// Its headers say that something is missing: what, in words that follow the file's name.
        case container(String)
    }

    /// In words, for people.
    package var explanation: String {
        let what =
            switch reason {
            case .quiet: "it has not been quiet for long enough"
            case .change: "it was seen to change"
            case .writer: "somebody has it open for writing"
            case .marker(let name): "\(name.display) is not there yet"
            case .age: "it is too young"
            case .checking: "its container is being looked at"
            case .container(let flaw): "it is not whole: it \(flaw)"
            }
        return "\(what): \(rule)"
    }

    /// With how fast it grows, where it is not at rest.
    package var fullExplanation: String {
        guard [.quiet, .change, .writer].contains(reason), let rate, rate > 0 else { return explanation }
        return explanation + ", and it grows by \(shownBytes(rate))/s"
    }
}

/// One sentence for the log.
package struct Remark: Hashable, Sendable {
    package enum Level: Hashable, Sendable { case info, notice, warning }

    package var level: Level
    package var text: String

    package init(_ level: Level, _ text: String) {
        self.level = level
        self.text = text
    }
}

/// How often the watcher looks by itself, and how much it takes on.
package struct WatchPace: Hashable, Sendable {
    package var quiet = QuietTimes()
    /// Between two full scans of a folder that events are seen from.
    package var reconcile: Duration = .seconds(3600)
    /// Between two looks through a directory that events do not tell everything of, while something happens in it.
    package var poll: Duration = .seconds(2)
    /// The same while nothing does: twice as long each time, up to this, or longer for very many directories.
    package var pollMost: Duration = .seconds(60)
    /// A file system that takes longer than this for one answer is said not to answer.
    package var patience: Duration = .seconds(15)
    /// Between two looks for a folder that is not there.
    package var absent: Duration = .seconds(10)
    /// Candidates at once. A scan leaves a fifth of them to events.
    package var candidates = 10_000
    /// Files handed on at once.
    package var batch = 512
    /// The most directories to watch; the others are polled.
    package var watches = Int.max

    package init() {}
}
