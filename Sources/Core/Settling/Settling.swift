/// How long a file must be quiet before it counts as finished.
package struct QuietTimes: Hashable, Sendable {
    /// A close or rename was seen, and nobody has the file open for writing.
    package var closed: Duration = .seconds(1)
    /// No close was seen, or nobody can say whether a writer has it open.
    package var unsure: Duration = .seconds(10)
    /// Found by a scan; no event told of it.
    package var unheard: Duration = .seconds(30)
    /// The wait after finding a writer; doubled each time.
    package var busyFirst: Duration = .seconds(1)
    /// The longest wait between two looks at a file that somebody has open.
    package var busyMost: Duration = .seconds(10)

    package init() {}
}

/// What is known about programs that have a file open for writing.
package enum OpenWriter: Hashable, Sendable {
    /// Nobody, at the moment of asking: the kernel says so.
    case nobody
    /// Nobody, as far as the open files of all processes tell.
    case unseen
    case somebody
    /// The kernel would not say, or was not asked.
    case unknown
}

/// What a file has to wait for besides its own rest.
package enum SettleHold: Hashable, Sendable {
    /// The marker beside it.
    case marker
    /// Its `min_age`.
    case age
    /// The answer whether its container is whole.
    case checking
    /// The rest of its container.
    case container
}

/// Decides when files have stopped changing.
///
/// Each file has its own timer, so a busy one never delays another. Every look is compared with the one before; what
/// counts is that size, both times and the inode were the same over the whole quiet time, never how old they are: those
/// clocks can be set. Time comes in as an argument.
package struct Settling<Place: Hashable> {
    /// What made a file a candidate; the strongest one counts.
    package enum Evidence: Int, Comparable, Sendable {
        /// A scan came across it.
        case found
        /// An event named it, or the folder that it is in.
        case heard
        /// It was closed after writing, or renamed into place.
        case closed

        package static func < (a: Evidence, b: Evidence) -> Bool { a.rawValue < b.rawValue }
    }

    /// Why a file has not settled, in a word.
    package enum Waiting: Hashable, Sendable {
        /// Its quiet time.
        case quiet
        /// It was seen to change.
        case change
        /// Somebody has it open for writing.
        case writer
        case marker, age, checking, container
    }

    /// A file that has not settled.
    package struct Candidate {
        package fileprivate(set) var evidence: Evidence
        /// The caller's own number for whose file it is.
        package fileprivate(set) var group: Int
        package fileprivate(set) var look: FileLook
        /// The folder's own quiet time; replaces every other.
        fileprivate var quietFor: Duration?
        /// When it was first noticed.
        package fileprivate(set) var first: MonotonicTime
        /// Since when nothing changed, as far as looks and events tell.
        package fileprivate(set) var since: MonotonicTime
        /// A later look differed from an earlier one.
        package fileprivate(set) var isGrowing = false
        /// Somebody had it open for writing at the last look.
        package fileprivate(set) var isBusy = false
        /// What it waits for although it is quiet.
        package fileprivate(set) var hold: SettleHold?
        /// Bytes a second between the last two looks; `nil` before the second.
        package fileprivate(set) var rate: Int64?
        /// The size that the rate goes on from, and when that was.
        fileprivate var measured: (size: Int64, at: MonotonicTime)
        /// What it was waiting for when it was last reported as waiting for too long.
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
        /// For how long nothing of it may change since ``since``, as far as is known so far.
        package fileprivate(set) var quietTime: Duration
        /// When it is looked at next.
        package fileprivate(set) var next: MonotonicTime
        fileprivate var busyWait: Duration = .zero
        /// The entry among the deadlines that counts for it.
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

    /// When the next file wants to be looked at; `nil` when none is waiting. May be too early, never too late.
    package var next: MonotonicTime? { deadlines.first?.at }

    /// A file that may be new, and what it looked like just now.
    ///
    /// An event starts the quiet time afresh. A scan does so only where it saw a change.
    package mutating func note(
        _ place: Place, _ evidence: Evidence, group: Int = 0, look: FileLook, quietFor: Duration? = nil,
        at now: MonotonicTime
    ) {
        guard var candidate = candidates[place] else {
            let quietTime = shortestQuiet(evidence, quietFor)
            let next = now.advanced(by: quietTime)
            let candidate = Candidate(
                evidence: evidence, group: group, look: look, quietFor: quietFor, first: now, since: now,
                measured: (look.size, now), quietTime: quietTime, next: next, scheduled: next)
            reschedule(candidate, at: place)
            return
        }
        let changed = candidate.look != look
        guard changed || evidence > .found else { return }
        candidate.isGrowing = candidate.isGrowing || changed
        measure(&candidate, look, now)
        candidate.evidence = max(candidate.evidence, evidence)
        if evidence == .closed {
            // Whoever had it open may be gone now: no need to wait out the pause between two questions.
            candidate.isBusy = false
            candidate.busyWait = .zero
        }
        restart(&candidate, look, now)
        put(candidate, at: place)
    }

    package mutating func forget(_ place: Place) { candidates[place] = nil }

    /// Whose file it is, and its folder's own quiet time. What has passed of that counts on.
    package mutating func give(_ place: Place, to group: Int, quietFor: Duration?) {
        guard var candidate = candidates[place], candidate.group != group else { return }
        (candidate.group, candidate.quietFor) = (group, quietFor)
        candidates[place] = candidate
    }

    /// Asks anew whose each file is, and what it has to be quiet for. What has passed of its quiet time counts on.
    ///
    /// - Parameter judge: From a place and its group; `nil` forgets the file.
    package mutating func revise(_ judge: (Place, Int) -> (group: Int, quietFor: Duration?)?) {
        for (place, candidate) in candidates {
            guard let (group, quietFor) = judge(place, candidate.group) else {
                candidates[place] = nil
                continue
            }
            var candidate = candidate
            candidate.group = group
            // What it was held for may not be wanted any more.
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

    /// Takes the files whose time to be looked at has come. Each must be answered with ``looked(at:_:writer:at:)``,
    /// ``postpone(_:until:)`` or ``forget(_:)``.
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

    /// Asks for a look at `time`, whatever is known.
    package mutating func postpone(_ place: Place, until time: MonotonicTime) {
        guard var candidate = candidates[place] else { return }
        candidate.next = time
        schedule(&candidate, place)
        candidates[place] = candidate
    }

    /// The answer to a look.
    ///
    /// - Parameters:
    ///   - writer: Asked at the moment of the look.
    ///   - isMarked: Whether its marker stands beside it; `nil` where none is wanted.
    ///   - hold: Asked when it is at rest, with the time that it was seen not to change: what it has to wait for
    ///     besides, and until when at most before it is looked at again.
    /// - Returns: How the file settled, in which case it is no candidate any more; `nil` when it goes on waiting.
    package mutating func looked(
        at place: Place, _ look: FileLook, writer: OpenWriter, isMarked: Bool? = nil, at now: MonotonicTime,
        hold: (Duration) -> (what: SettleHold, until: MonotonicTime)? = { _ in nil }
    ) -> SettledBy? {
        guard var candidate = candidates[place] else { return nil }
        measure(&candidate, look, now)
        candidate.hold = nil
        if look != candidate.look {
            candidate.isGrowing = true
            candidate.isBusy = writer == .somebody
            restart(&candidate, look, now)
            reschedule(candidate, at: place)
            return nil
        }
        candidate.isBusy = writer == .somebody
        if candidate.isBusy {
            candidate.busyWait = min(max(candidate.busyWait + candidate.busyWait, quiet.busyFirst), quiet.busyMost)
            candidate.next = now.advanced(by: candidate.busyWait)
            reschedule(candidate, at: place)
            return nil
        }
        // Who set the marker knew that the file is finished: its close need not have been seen.
        let quiet =
            isMarked == true
            ? quietTime(.closed, .nobody, candidate.quietFor)
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
        case .nobody: return .lease
        case .unseen: return .proc
        case .somebody, .unknown: return .closed
        }
    }

    /// Whether a file waits for longer than anybody expects, and that was not said yet of what it waits for now.
    ///
    /// Saying it again for each of a writer's pauses would help nobody: a writer that is seen and one that is only seen to
    /// have written are the same.
    package mutating func isToBeReported(_ place: Place, after limit: Duration, at now: MonotonicTime) -> Bool {
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

    /// How fast it grows. Looks that follow each other closely say nothing.
    private func measure(_ candidate: inout Candidate, _ look: FileLook, _ now: MonotonicTime) {
        let elapsed = now.since(candidate.measured.at)
        guard elapsed >= .milliseconds(250) else { return }
        candidate.rate = max(0, Int64(Double(look.size - candidate.measured.size) / elapsed.inSeconds))
        candidate.measured = (look.size, now)
    }

    /// What a file with this evidence has to be quiet for.
    private func quietTime(_ evidence: Evidence, _ writer: OpenWriter, _ quietFor: Duration?) -> Duration {
        if let quietFor { return quietFor }
        switch evidence {
        case .closed: return writer == .nobody || writer == .unseen ? quiet.closed : quiet.unsure
        case .heard: return quiet.unsure
        case .found: return quiet.unheard
        }
    }

    private func shortestQuiet(_ evidence: Evidence, _ quietFor: Duration?) -> Duration {
        quietTime(evidence, .nobody, quietFor)
    }

    private func restart(_ candidate: inout Candidate, _ look: FileLook, _ now: MonotonicTime) {
        candidate.look = look
        candidate.since = now
        candidate.quietTime = shortestQuiet(candidate.evidence, candidate.quietFor)
        candidate.next = now.advanced(by: candidate.quietTime)
    }

    /// Stores a candidate that still has its entry among the deadlines; a later time is found when that one comes up.
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
        // Entries of forgotten and hurried files stay until their time; a flood of them is cleared at once.
        if deadlines.count > 4 * candidates.count + 1024 { sweep(keeping: place, at: candidate.next) }
    }

    private mutating func sweep(keeping place: Place, at time: MonotonicTime) {
        deadlines = Deadlines()
        for (key, candidate) in candidates where key != place { deadlines.add(key, at: candidate.scheduled) }
        deadlines.add(place, at: time)
    }
}

extension QuietTimes {
    /// Why a file that was told of so has to be quiet for `time`, where its folder says nothing of that, for people.
    package func words<Place>(for evidence: Settling<Place>.Evidence, _ time: Duration) -> String {
        switch evidence {
        case .closed where time == closed: "the default after a close"
        case .closed: "the default where nobody can say whether a program has it open"
        case .heard: "the default where no close was seen"
        case .found: "the default where no event told of it"
        }
    }
}

extension Settling: Sendable where Place: Sendable {}
extension Settling.Candidate: Sendable {}
