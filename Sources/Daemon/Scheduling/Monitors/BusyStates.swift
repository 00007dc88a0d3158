internal import Core

/// The state of each source of `busy`, and which source to check when. A value: the scheduler passes each event to it.
///
/// The state of a file whose changes the kernel reports is known at all times. A command, and a file without such
/// reports, are checked repeatedly while uploads wait for the answer, and an earlier answer expires.
struct BusyStates: Sendable {
    private struct Entry {
        var rule: BusyRule
        var answer: BusyAnswer?
        /// When the check with its latest answer started.
        var queriedAt: MonotonicTime?
        var isQuerying = false
        /// Whether an event arrived since that check started.
        var isStale = false
        /// Whether uploads wait for its answer, and have waited since its last check.
        var isFollowed = false
        /// Why changes of a file are not reported; `nil` while the kernel reports them.
        var unwatchedReason: String?
        /// A file in an unknown state is polled too: neither a permission that is granted nor a server that answers
        /// again is reported as a change of the file.
        var isPolled: Bool {
            if !rule.source.isFile || unwatchedReason != nil { return true }
            if case .unknown? = answer?.answer { return true }
            return false
        }
    }

    /// The interval between inspections of a file whose changes are not reported, and how long one may take.
    static let fileCheck = (every: Duration.seconds(30), timeout: Duration.seconds(3))

    private var entries: [BusySource: Entry] = [:]

    var files: Set<FilePath> {
        Set(entries.keys.compactMap { if case .file(let path) = $0 { path } else { nil } })
    }

    var isQuerying: Bool { entries.values.contains(where: \.isQuerying) }
    /// Whether some source has to be checked repeatedly.
    var hasPolled: Bool { entries.values.contains(where: \.isPolled) }

    /// Adds the sources of these rules. If two rules ask the same source, the shorter times count.
    mutating func add(_ rules: [PolicyRules]) {
        var named: [BusySource: BusyRule] = [:]
        for var rule in rules.compactMap(\.busy) {
            if rule.source.isFile { (rule.every, rule.timeout) = Self.fileCheck }
            if let other = named[rule.source] {
                rule.every = min(rule.every, other.every)
                rule.timeout = min(rule.timeout, other.timeout)
            }
            named[rule.source] = rule
        }
        for (source, rule) in named { entries[source, default: Entry(rule: rule)].rule = rule }
    }

    /// Removes all sources that no rule names; a source with a running check stays until the check has ended.
    mutating func keep(_ rules: [PolicyRules]) {
        let named = Set(rules.compactMap { $0.busy?.source })
        entries = entries.filter { named.contains($0.key) || $0.value.isQuerying }
    }

    /// The answers that count now.
    func answers(at now: MonotonicTime) -> [BusySource: BusyAnswer] {
        entries.compactMapValues { entry in
            guard entry.isPolled else { return entry.answer }
            guard let asked = entry.queriedAt, let word = entry.answer else { return nil }
            // The answer of a source that is checked again counts until the next answer arrives.
            let longest = entry.isFollowed ? entry.rule.every * 2 + entry.rule.timeout : entry.rule.every
            return now.since(asked) < longest ? word : nil
        }
    }

    /// The sources to ask now, and how long each may take.
    ///
    /// - Parameter wanted: The sources that uploads wait for.
    mutating func due(_ wanted: Set<BusySource>, at now: MonotonicTime) -> [BusySource: Duration] {
        var due: [BusySource: Duration] = [:]
        for (source, entry) in entries {
            let isWanted = wanted.contains(source)
            entries[source]?.isFollowed = isWanted
            // An answer from a time when nothing waited for it counts only for its usual period.
            let isOld = entry.queriedAt.map { now.since($0) >= entry.rule.every } ?? true
            if isWanted, !entry.isFollowed, entry.isPolled, isOld { entries[source]?.queriedAt = nil }
            let isDue = entry.isPolled ? isWanted && isOld : entry.answer == nil
            if isDue, !entry.isQuerying { due[source] = begin(source) }
        }
        return due
    }

    /// Files that have not been checked yet, and are due now.
    mutating func newFiles() -> [BusySource: Duration] {
        var new: [BusySource: Duration] = [:]
        for (source, entry) in entries where source.isFile && entry.answer == nil && !entry.isQuerying {
            new[source] = begin(source)
        }
        return new
    }

    /// Whether uploads wait for a source's answer.
    func isAwaited(_ source: BusySource) -> Bool {
        entries[source].map { $0.isFollowed || $0.isQuerying || !$0.isPolled } ?? false
    }

    /// Handles the report that a file may have appeared at a path or disappeared from it.
    ///
    /// - Parameter unheard: The paths whose changes are not reported, with the reason.
    /// - Returns: The sources to ask, and the reasons for missing reports that are new.
    mutating func filesChanged(unwatched: [FilePath: String]) -> (
        ask: [BusySource: Duration], failures: [FilePath: String]
    ) {
        var ask: [BusySource: Duration] = [:]
        var failures: [FilePath: String] = [:]
        for (source, entry) in entries {
            guard case .file(let path) = source else { continue }
            if let reason = unwatched[path], reason != entry.unwatchedReason { failures[path] = reason }
            entries[source]?.unwatchedReason = unwatched[path]
            if entry.isQuerying { entries[source]?.isStale = true } else { ask[source] = begin(source) }
        }
        return (ask, failures)
    }

    private mutating func begin(_ source: BusySource) -> Duration? {
        entries[source]?.isQuerying = true
        return entries[source]?.rule.timeout
    }

    enum Change: Hashable { case none, another(before: BusyAnswer?) }

    /// - Parameters:
    ///   - asked: When the check started.
    ///   - answer: `nil` when the question was cancelled.
    /// - Returns: The change, and how long the source may take if it has to be checked again at once.
    mutating func record(
        _ answer: BusyAnswer.Answer?, of source: BusySource, asked: MonotonicTime, at now: WallTime
    ) -> (change: Change, again: Duration?) {
        guard let entry = entries[source] else { return (.none, nil) }
        entries[source]?.isQuerying = false
        entries[source]?.isStale = false
        var change = Change.none
        if let answer {
            entries[source]?.queriedAt = asked
            let isNew = entry.answer?.answer != answer
            // An answer from before a pause in the questions says nothing about the time since.
            if isNew || entry.queriedAt == nil { entries[source]?.answer = BusyAnswer(answer, since: now) }
            if isNew { change = .another(before: entry.answer) }
        }
        return (change, entry.isStale ? begin(source) : nil)
    }

    /// When a source has to be checked again; `nil` while no upload waits for any.
    func nextCheck(at now: MonotonicTime) -> Duration? {
        entries.values.filter { $0.isFollowed && $0.isPolled && !$0.isQuerying }
            .map { entry in entry.queriedAt.map { entry.rule.every - now.since($0) } ?? .zero }.min()
    }
}
