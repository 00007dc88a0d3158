internal import Core

/// The directories that are polled because their events are incomplete, and the time of each next poll.
///
/// Events are incomplete on file systems that others change without this kernel's knowledge, beyond the limit on
/// watches, and if the configuration requires it.
struct PollSchedule {
    /// Polled directories of one root.
    struct Count: Equatable {
        var polled = 0
        /// Polled directories that should have a watch and have none.
        var unwatched = 0
    }

    private struct Entry {
        let directory: WatchedDirectory
        var interval: Duration
        /// `nil` while a visit is queued.
        var next: MonotonicTime?
    }

    private let pace: WatchLimits
    private var entries: [ObjectIdentifier: Entry] = [:]
    private var deadlines = Deadlines<ObjectIdentifier>()

    init(pace: WatchLimits) { self.pace = pace }

    var isEmpty: Bool { entries.isEmpty }
    /// May be too early, never too late.
    var nextDeadline: MonotonicTime? { deadlines.first?.at }

    /// Polled directories, by the root's identifier.
    var countsByRoot: [ObjectIdentifier: Count] {
        var counts: [ObjectIdentifier: Count] = [:]
        for entry in entries.values {
            let root = entry.directory.root
            counts[ObjectIdentifier(root), default: Count()].polled += 1
            if entry.directory.watch == nil && !root.isPolled {
                counts[ObjectIdentifier(root), default: Count()].unwatched += 1
            }
        }
        return counts
    }

    /// Starts polling the directory.
    mutating func add(_ directory: WatchedDirectory, at now: MonotonicTime) {
        let id = ObjectIdentifier(directory)
        guard entries[id] == nil else { return }
        entries[id] = Entry(directory: directory, interval: pace.poll)
        schedule(id, at: now)
    }

    /// Ends the polling of the directory.
    ///
    /// - Returns: Whether it was polled.
    @discardableResult
    mutating func remove(_ directory: WatchedDirectory) -> Bool {
        entries.removeValue(forKey: ObjectIdentifier(directory)) != nil
    }

    /// Ends the polling of all directories of a root.
    mutating func drop(_ root: Root) {
        if entries.isEmpty { return }
        entries = entries.filter { $0.value.directory.root !== root }
    }

    /// Records that something new was seen in a directory: after the current scan, its interval starts short again.
    func markChanged(_ directory: WatchedDirectory) { directory.noteChange() }

    /// Polls the directory often for a while, since something happens in it.
    mutating func accelerate(_ directory: WatchedDirectory, at now: MonotonicTime) {
        directory.noteChange()
        let id = ObjectIdentifier(directory)
        entries[id]?.interval = pace.poll
        if let next = entries[id]?.next, next > now.advanced(by: pace.poll) { schedule(id, at: now) }
    }

    /// Schedules the next poll after a scan of the directory; the interval doubles when the scan found nothing new.
    mutating func scanEnded(_ directory: WatchedDirectory, at now: MonotonicTime) {
        let id = ObjectIdentifier(directory)
        guard let entry = entries[id] else { return }
        let interval =
            directory.takeChange() ? pace.poll : min(entry.interval + entry.interval, longestInterval)
        entries[id]?.interval = interval
        schedule(id, at: now)
    }

    /// Removes and returns the first directory whose poll is due. It is scheduled again when its scan has ended.
    mutating func popDue(at now: MonotonicTime) -> WatchedDirectory? {
        while let first = deadlines.first, first.at <= now {
            deadlines.removeFirst()
            guard let entry = entries[first.key], entry.next == first.at else { continue }
            entries[first.key]?.next = nil
            return entry.directory
        }
        return nil
    }

    /// A hundred thousand directories are not all scanned every minute.
    private var longestInterval: Duration {
        max(pace.pollMost, min(.seconds(300), .milliseconds(6) * entries.count))
    }

    private mutating func schedule(_ id: ObjectIdentifier, at now: MonotonicTime) {
        guard let interval = entries[id]?.interval else { return }
        let time = now.advanced(by: interval)
        entries[id]?.next = time
        deadlines.add(id, at: time)
    }
}
