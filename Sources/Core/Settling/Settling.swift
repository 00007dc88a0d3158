/// How long a file must be quiet before it counts as finished.
package struct QuietTimes: Hashable, Sendable {
    /// A close or rename was seen, and no process has the file open for writing.
    package var closed: Duration = .seconds(1)
    /// No close was seen, or it is unknown whether a process has it open for writing.
    package var unsure: Duration = .seconds(10)
    /// A scan found it; no event reported it.
    package var withoutEvents: Duration = .seconds(30)
    /// The wait after finding a writer; doubled each time.
    package var busyFirst: Duration = .seconds(1)
    /// The longest wait between two checks of a file that a process has open.
    package var busyMost: Duration = .seconds(10)

    package init() {}
}

/// The known facts about programs that have a file open for writing.
package enum OpenWriter: Hashable, Sendable {
    /// None at the moment of the check, according to the kernel.
    case absent
    /// None, according to the open files of all processes.
    case unseen
    case present
    /// Unknown to the kernel, or not determined.
    case unknown
}

/// A reason why a file has to wait although it is quiet.
package enum SettleCondition: Hashable, Sendable {
    /// The marker beside it is missing.
    case marker
    /// Its `min_age`.
    case age
    /// The check whether its container is complete is running.
    case checking
    /// Its container is incomplete.
    case container
}

/// Decides when files have stopped changing.
///
/// Each file has its own timer, so a busy file never delays another. Every status is compared with the one before. A
/// file settles when size, both times and the inode stay the same over the whole quiet time. The age of the times never
/// counts, since their clocks can be set. Time is passed as an argument.
package struct Settling<Place: Hashable> {
    /// How a file became a candidate; the strongest evidence counts.
    package enum Evidence: Int, Comparable, Sendable {
        /// A scan found it.
        case found
        /// An event named it, or its folder.
        case event
        /// It was closed after writing, or renamed into place.
        case closed

        package static func < (a: Evidence, b: Evidence) -> Bool { a.rawValue < b.rawValue }
    }

    /// The state of a file that has not settled.
    package enum Waiting: Hashable, Sendable {
        /// Its quiet time is not over.
        case quiet
        /// It was seen to change.
        case change
        /// A process has it open for writing.
        case writer
        case marker, age, checking, container
    }

    /// A file that has not settled.
    package struct Candidate {
        package fileprivate(set) var evidence: Evidence
        /// The caller's number for the owner of the file.
        package fileprivate(set) var group: Int
        package fileprivate(set) var status: FileStatus
        /// The folder's own quiet time; replaces every other.
        fileprivate var quietFor: Duration?
        /// When it was first noticed.
        package fileprivate(set) var first: MonotonicTime
        /// Since when nothing changed, as far as checks and events show.
        package fileprivate(set) var since: MonotonicTime
        /// A later status differed from an earlier one.
        package fileprivate(set) var isGrowing = false
        /// A process had it open for writing at the last check.
        package fileprivate(set) var isBusy = false
        /// Why it waits although it is quiet.
        package fileprivate(set) var hold: SettleCondition?
        /// Bytes a second between the last two checks; `nil` before the second.
        package fileprivate(set) var rate: Int64?
        /// The size and time from which the rate is measured.
        fileprivate var measured: (size: Int64, at: MonotonicTime)
        /// The state in which it was last reported as waiting for too long.
        package fileprivate(set) var reported: Waiting?

        package var waiting: Waiting {
            if isBusy { return .writer }
            switch hold {
            case .marker: return .marker
            case .age: return .age
            case .checking: return .checking
            case .container: return .container
            case nil: return isGrowing ? .change : .quiet
            }
        }
        /// How long it has to stay unchanged after ``since``, as far as is known so far.
        package fileprivate(set) var quietTime: Duration
        /// When it is checked next.
        package fileprivate(set) var next: MonotonicTime
        fileprivate var busyWait: Duration = .zero
        /// Its valid entry among the deadlines.
        fileprivate var scheduled: MonotonicTime
    }

    private let quiet: QuietTimes
    private var candidates: [Place: Candidate] = [:]
    private var deadlines = Deadlines<Place>()

    package init(quiet: QuietTimes = QuietTimes()) { self.quiet = quiet }

    package var count: Int { candidates.count }
    package var all: [Place: Candidate] { candidates }
    package subscript(place: Place) -> Candidate? { candidates[place] }
    package func contains(_ place: Place) -> Bool { candidates[place] != nil }

    /// When the next file has to be checked; `nil` when none is waiting. May be too early, never too late.
    package var next: MonotonicTime? { deadlines.first?.at }

    /// Adds a file that may be new, with its present status.
    ///
    /// An event restarts the quiet time. A scan does so only where it saw a change.
    package mutating func note(
        _ place: Place, _ evidence: Evidence, group: Int = 0, status: FileStatus, quietFor: Duration? = nil,
        at now: MonotonicTime
    ) {
        guard var candidate = candidates[place] else {
            let quietTime = shortestQuiet(evidence, quietFor)
            let next = now.advanced(by: quietTime)
            let candidate = Candidate(
                evidence: evidence, group: group, status: status, quietFor: quietFor, first: now, since: now,
                measured: (status.size, now), quietTime: quietTime, next: next, scheduled: next)
            reschedule(candidate, at: place)
            return
        }
        let changed = candidate.status != status
        guard changed || evidence > .found else { return }
        candidate.isGrowing = candidate.isGrowing || changed
        measure(&candidate, status, now)
        candidate.evidence = max(candidate.evidence, evidence)
        if evidence == .closed {
            // The writer may have closed it now: no need to wait out the pause between two checks.
            candidate.isBusy = false
            candidate.busyWait = .zero
        }
        restart(&candidate, status, now)
        put(candidate, at: place)
    }

    package mutating func forget(_ place: Place) { candidates[place] = nil }

    /// Changes the owner of a file and its folder's own quiet time. The elapsed quiet time still counts.
    package mutating func assign(_ place: Place, to group: Int, quietFor: Duration?) {
        guard var candidate = candidates[place], candidate.group != group else { return }
        (candidate.group, candidate.quietFor) = (group, quietFor)
        candidates[place] = candidate
    }

    /// Determines again the owner and the quiet time of each file. The elapsed quiet time still counts.
    ///
    /// - Parameter judge: Called with a place and its group; `nil` forgets the file.
    package mutating func revise(_ judge: (Place, Int) -> (group: Int, quietFor: Duration?)?) {
        for (place, candidate) in candidates {
            guard let (group, quietFor) = judge(place, candidate.group) else {
                candidates[place] = nil
                continue
            }
            var candidate = candidate
            candidate.group = group
            // Its hold may not be required any more.
            if candidate.quietFor != quietFor || candidate.hold != nil {
                candidate.quietFor = quietFor
                candidate.quietTime = shortestQuiet(candidate.evidence, quietFor)
                candidate.next = candidate.since.advanced(by: candidate.quietTime)
                put(candidate, at: place)
            } else {
                candidates[place] = candidate
            }
        }
    }

    /// Takes the files that are due for a check. Each must be answered with
    /// ``evaluated(at:_:writer:isMarked:at:hold:)``, ``postpone(_:until:)`` or ``forget(_:)``.
    package mutating func due(at now: MonotonicTime, limit: Int = .max) -> [Place] {
        var due: [Place] = []
        while due.count < limit, let first = deadlines.first, first.at <= now {
            deadlines.removeFirst()
            guard var candidate = candidates[first.key], candidate.scheduled == first.at else { continue }
            if candidate.next <= now {
                due.append(first.key)
            } else {
                candidate.scheduled = candidate.next
                candidates[first.key] = candidate
                deadlines.add(first.key, at: candidate.next)
            }
        }
        return due
    }

    /// Schedules a check at `time`, regardless of the file's state.
    package mutating func postpone(_ place: Place, until time: MonotonicTime) {
        guard var candidate = candidates[place] else { return }
        candidate.next = time
        schedule(&candidate, place)
        candidates[place] = candidate
    }

    /// Records the result of a check.
    ///
    /// - Parameters:
    ///   - writer: The state at the moment of the check.
    ///   - isMarked: Whether its marker stands beside it; `nil` where none is required.
    ///   - hold: Called when the file is at rest, with the time that it was seen not to change. Returns a further
    ///     reason to wait, and the latest time of the next check.
    /// - Returns: How the file settled, in which case it is no longer a candidate; `nil` when it continues to wait.
    package mutating func evaluated(
        at place: Place, _ status: FileStatus, writer: OpenWriter, isMarked: Bool? = nil, at now: MonotonicTime,
        hold: (Duration) -> (what: SettleCondition, until: MonotonicTime)? = { _ in nil }
    ) -> SettleProof? {
        guard var candidate = candidates[place] else { return nil }
        measure(&candidate, status, now)
        candidate.hold = nil
        if status != candidate.status {
            candidate.isGrowing = true
            candidate.isBusy = writer == .present
            restart(&candidate, status, now)
            reschedule(candidate, at: place)
            return nil
        }
        candidate.isBusy = writer == .present
        if candidate.isBusy {
            candidate.busyWait = min(max(candidate.busyWait + candidate.busyWait, quiet.busyFirst), quiet.busyMost)
            candidate.next = now.advanced(by: candidate.busyWait)
            reschedule(candidate, at: place)
            return nil
        }
        // The author of the marker knew that the file is finished: its close need not have been seen.
        let quiet =
            isMarked == true
            ? quietTime(.closed, .absent, candidate.quietFor)
            : quietTime(candidate.evidence, writer, candidate.quietFor)
        candidate.quietTime = quiet
        let settled = candidate.since.advanced(by: quiet)
        guard now >= settled else {
            candidate.next = settled
            reschedule(candidate, at: place)
            return nil
        }
        if let hold = hold(now.since(candidate.since)) {
            candidate.hold = hold.what
            candidate.next = max(hold.until, now)
            reschedule(candidate, at: place)
            return nil
        }
        candidates[place] = nil
        if isMarked == true { return .marker }
        guard candidate.evidence == .closed else { return .quiet }
        switch writer {
        case .absent: return .lease
        case .unseen: return .proc
        case .present, .unknown: return .closed
        }
    }

    /// Whether a file waits for longer than expected, and its present state was not reported yet.
    ///
    /// A report for each pause of a writer would not help: a writer that is seen and one whose writes are seen count as
    /// the same state.
    package mutating func shouldReport(_ place: Place, after limit: Duration, at now: MonotonicTime) -> Bool {
        guard var candidate = candidates[place], now.since(candidate.first) >= limit else { return false }
        let waiting = candidate.waiting
        let isSame: Bool =
            switch (candidate.reported, waiting) {
            case (nil, _): false
            case (.writer, .writer), (.writer, .change), (.writer, .quiet), (.change, .writer), (.change, .change),
                (.change, .quiet), (.quiet, .quiet), (.quiet, .change), (.quiet, .writer):
                true
            case (let before?, _): before == waiting
            }
        if isSame { return false }
        candidate.reported = waiting
        candidates[place] = candidate
        return true
    }

    /// Measures how fast it grows. Checks in quick succession are ignored.
    private func measure(_ candidate: inout Candidate, _ status: FileStatus, _ now: MonotonicTime) {
        let elapsed = now.since(candidate.measured.at)
        guard elapsed >= .milliseconds(250) else { return }
        candidate.rate = max(0, Int64(Double(status.size - candidate.measured.size) / elapsed.inSeconds))
        candidate.measured = (status.size, now)
    }

    /// How long a file with this evidence has to be quiet.
    private func quietTime(_ evidence: Evidence, _ writer: OpenWriter, _ quietFor: Duration?) -> Duration {
        if let quietFor { return quietFor }
        switch evidence {
        case .closed: return writer == .absent || writer == .unseen ? quiet.closed : quiet.unsure
        case .event: return quiet.unsure
        case .found: return quiet.withoutEvents
        }
    }

    private func shortestQuiet(_ evidence: Evidence, _ quietFor: Duration?) -> Duration {
        quietTime(evidence, .absent, quietFor)
    }

    private func restart(_ candidate: inout Candidate, _ status: FileStatus, _ now: MonotonicTime) {
        candidate.status = status
        candidate.since = now
        candidate.quietTime = shortestQuiet(candidate.evidence, candidate.quietFor)
        candidate.next = now.advanced(by: candidate.quietTime)
    }

    /// Stores a candidate that still has its entry among the deadlines; a later time is handled when that entry is due.
    private mutating func put(_ candidate: Candidate, at place: Place) {
        var candidate = candidate
        if candidate.next < candidate.scheduled { schedule(&candidate, place) }
        candidates[place] = candidate
    }

    /// Stores a candidate that has no entry among the deadlines: a new one, or one taken out by ``due(at:limit:)``.
    private mutating func reschedule(_ candidate: Candidate, at place: Place) {
        var candidate = candidate
        schedule(&candidate, place)
        candidates[place] = candidate
    }

    private mutating func schedule(_ candidate: inout Candidate, _ place: Place) {
        candidate.scheduled = candidate.next
        deadlines.add(place, at: candidate.next)
        // Entries of forgotten and of moved-up files stay until their time; very many of them are cleared at once.
        if deadlines.count > 4 * candidates.count + 1024 { sweep(keeping: place, at: candidate.next) }
    }

    private mutating func sweep(keeping place: Place, at time: MonotonicTime) {
        deadlines = Deadlines()
        for (key, candidate) in candidates where key != place { deadlines.add(key, at: candidate.scheduled) }
        deadlines.add(place, at: time)
    }
}

extension QuietTimes {
    /// The reason why a file with this evidence has to be quiet for `time`, where its folder sets none, for people.
    package func words<Place>(for evidence: Settling<Place>.Evidence, _ time: Duration) -> String {
        switch evidence {
        case .closed where time == closed: "the default after a close"
        case .closed: "the default if it is unknown whether a program has it open"
        case .event: "the default if no close was seen"
        case .found: "the default if no event reported it"
        }
    }
}

extension Settling: Sendable where Place: Sendable {}
extension Settling.Candidate: Sendable {}
