internal import Core
internal import Linux

/// The state of the folders for display, beside the other components' own state, and when it is published.
struct StatusBoard {
    /// Files that scans met.
    struct ScanCount: Equatable {
        var files = 0
        /// Files that were not known.
        var new = 0

        static func - (a: ScanCount, b: ScanCount) -> ScanCount {
            ScanCount(files: a.files - b.files, new: a.new - b.new)
        }
    }

    /// The full scans of a root.
    private struct RootScan {
        /// The start of the last one.
        var began: MonotonicTime
        /// The counts of its folders at that time.
        var counts: [String: ScanCount]
        /// The start of the last finished one.
        var lastFinished: MonotonicTime?
    }

    /// A problem that keeps the files of a directory from being taken, or from being noticed at once.
    private struct Problem {
        let directory: WatchedDirectory
        let text: String
        /// The last visit that met it.
        let visit: Int
    }

    /// Time between two publications.
    private static let interval = Duration.milliseconds(200)
    private static let maxProblems = 3
    private static let maxWaiting = 100

    /// Whether a visible value has changed since the last publication.
    private var hasChanged = true
    private var lastPublished: MonotonicTime?
    private var lastStates: [WatchState] = []
    /// Problems for a person to fix, by directory.
    private var problems: [ObjectIdentifier: Problem] = [:]
    private var rootScans: [ObjectIdentifier: RootScan] = [:]
    /// Files that scans have met so far, by folder.
    private var counts: [String: ScanCount] = [:]
    /// Files that the last finished scan of each folder met.
    private var lastCounts: [String: ScanCount] = [:]
    /// The number of mount changes.
    private var mountChanges = 0

    // MARK: - Publication

    /// When the next publication is due; `nil` when there is nothing to publish, or it is due now.
    var nextDeadline: MonotonicTime? { hasChanged ? lastPublished?.advanced(by: Self.interval) : nil }

    /// Requests a publication.
    mutating func markChanged() { hasChanged = true }

    /// Makes changes visible at once.
    mutating func publishWithoutDelay() { lastPublished = nil }

    /// Whether a publication is due, which the caller makes then.
    mutating func beginPublication(at now: MonotonicTime) -> Bool {
        guard hasChanged else { return false }
        if let lastPublished, now.since(lastPublished) < Self.interval { return false }
        hasChanged = false
        lastPublished = now
        return true
    }

    /// Stores the published states.
    ///
    /// - Returns: Whether they differ from those before.
    mutating func replaceStates(_ states: [WatchState]) -> Bool {
        defer { lastStates = states }
        return states != lastStates
    }

    // MARK: - Scans

    /// Records the start of a full scan.
    ///
    /// - Parameter start: Not before any request that led to it.
    mutating func scanBegan(_ root: Root, at start: MonotonicTime) {
        let lastFinished = rootScans[ObjectIdentifier(root)]?.lastFinished
        rootScans[ObjectIdentifier(root)] = RootScan(began: start, counts: counts, lastFinished: lastFinished)
    }

    mutating func addFound(_ files: Int, in folder: String) { counts[folder, default: ScanCount()].files += files }
    mutating func addNew(in folder: String) { counts[folder, default: ScanCount()].new += 1 }

    /// Records finished scans. Must be called when the files that they met are known, or settle.
    mutating func recordFinishedScans(_ roots: WatchRoots) {
        for root in roots.watched where !root.state.isVisited {
            let id = ObjectIdentifier(root)
            guard let scan = rootScans[id], scan.lastFinished != scan.began else { continue }
            rootScans[id]?.lastFinished = scan.began
            for rule in root.rules {
                let name = roots.name(of: rule)
                lastCounts[name] = (counts[name] ?? ScanCount()) - (scan.counts[name] ?? ScanCount())
            }
        }
    }

    mutating func countMountChange() {
        mountChanges += 1
        hasChanged = true
    }

    // MARK: - Problems

    /// Records a problem of a directory, which is shown for as long as visits find it.
    ///
    /// - Returns: Whether it is new.
    mutating func addProblem(_ text: String, of directory: WatchedDirectory, visit: Int) -> Bool {
        let problem = Problem(directory: directory, text: text, visit: visit)
        let old = problems.updateValue(problem, forKey: ObjectIdentifier(directory))
        if old?.text == text { return false }
        hasChanged = true
        return true
    }

    /// Removes the problem of a directory after a visit without one.
    mutating func clearProblem(of directory: WatchedDirectory, visit: Int) {
        guard let problem = problems[ObjectIdentifier(directory)], problem.visit != visit else { return }
        problems[ObjectIdentifier(directory)] = nil
        hasChanged = true
    }

    /// Forgets a directory that left the tree.
    mutating func remove(_ directory: WatchedDirectory) {
        if !problems.isEmpty { problems[ObjectIdentifier(directory)] = nil }
    }

    /// Forgets everything about a root.
    mutating func drop(_ root: Root) {
        problems = problems.filter { $0.value.directory.root !== root }
        rootScans[ObjectIdentifier(root)] = nil
    }

    /// The first texts of each root, by its identifier, and the number of others.
    private var shownProblems: [ObjectIdentifier: (texts: [String], more: Int)] {
        Dictionary(grouping: problems.values) { ObjectIdentifier($0.directory.root) }.mapValues { problems in
            let texts = problems.map(\.text).sorted()
            return (Array(texts.prefix(Self.maxProblems)), max(0, texts.count - Self.maxProblems))
        }
    }

    // MARK: - Content

    /// The state of every folder, and the files that have been waiting longest.
    ///
    /// - Parameter isQuiet: Whether a root is scanned, and no file of it waits for delivery; settling files do not
    ///   count.
    func content(
        _ roots: WatchRoots, _ tracker: SettleTracker, _ polls: PollSchedule, _ deliveries: DeliveryQueue,
        overflows: Int, at now: MonotonicTime, isQuiet: (Root) -> Bool
    ) -> Mailbox.Board {
        let (summaries, waiting) = tracker.summary(roots.rules, limit: Self.maxWaiting, at: now)
        let polled = polls.countsByRoot
        let problems = shownProblems
        var rootsByRule = [Root?](repeating: nil, count: roots.rules.count)
        for root in roots.watched { for rule in root.rules { rootsByRule[rule] = root } }
        var states: [WatchState] = []
        for (index, rule) in roots.rules.enumerated() {
            guard let root = rootsByRule[index] else { continue }
            let id = ObjectIdentifier(root)
            let name = rule.settings.name
            states.append(
                WatchState(
                    folder: name, path: rule.settings.path, condition: root.shownCondition,
                    settling: summaries[index].count, belowMinAge: summaries[index].young,
                    oldest: summaries[index].oldest,
                    unwatched: polled[id]?.unwatched ?? 0, polled: polled[id]?.polled ?? 0,
                    troubles: problems[id]?.texts ?? [], moreTroubles: problems[id]?.more ?? 0,
                    settled: deliveries.settledCount(of: name), scannedSince: rootScans[id]?.lastFinished,
                    found: lastCounts[name]?.files ?? 0, fresh: lastCounts[name]?.new ?? 0,
                    isQuiet: isQuiet(root) && summaries[index].count == 0, mounts: mountChanges,
                    device: root.top.device))
        }
        return Mailbox.Board(states: states, waiting: waiting, overflows: overflows)
    }
}

extension Root {
    fileprivate var shownCondition: WatchState.Condition {
        switch state.condition {
        case .absent(let reason): .absent(reason)
        case .failed(let reason): .failed(reason)
        case .unknown: .scanning
        case .present: state.isVisited ? .scanning : .watching
        }
    }
}
