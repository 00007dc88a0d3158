internal import Core

/// The state of each source of `busy`, and which source to ask when. A value: the dispatcher tells it of each event.
///
/// The state of a file whose changes the kernel reports is known at all times. A command, and a file without such
/// reports, are asked repeatedly while uploads wait for the answer, and an earlier answer expires.
struct BusyStates: Sendable {
    private struct Entry {
        var rule: BusyRule
        var word: BusyAnswer?
        /// When it was asked for its latest answer.
        var askedAt: MonotonicTime?
        var isAsking = false
        /// Whether something happened since it was asked.
        var isStale = false
        /// Whether uploads wait for its answer, and have waited since it was asked last.
        var isFollowed = false
        /// Why changes of a file are not reported; `nil` while the kernel reports them.
        var silence: String?
        /// A file in an unknown state is polled too: neither a permission that is granted nor a server that answers
        /// again is reported as a change of the file.
        var isPolled: Bool {
            if !rule.source.isFile || silence != nil { return true }
            if case .unknown? = word?.answer { return true }
            return false
        }
    }

    /// The interval between inspections of a file whose changes are not reported, and how long one may take.
    static let fileLook = (every: Duration.seconds(30), patience: Duration.seconds(3))

    private var entries: [BusySource: Entry] = [:]

    var files: Set<FilePath> {
        Set(entries.keys.compactMap { if case .file(let path) = $0 { path } else { nil } })
    }

    var isAsking: Bool { entries.values.contains(where: \.isAsking) }
    /// Whether some source has to be asked repeatedly.
    var hasPolled: Bool { entries.values.contains(where: \.isPolled) }

    /// Adds the sources of these rules. If two rules ask the same source, the shorter times count.
    mutating func add(_ rules: [PolicyRules]) {
        var named: [BusySource: BusyRule] = [:]
        for var rule in rules.compactMap(\.busy) {
            if rule.source.isFile { (rule.every, rule.timeout) = Self.fileLook }
            if let other = named[rule.source] {
                rule.every = min(rule.every, other.every)
                rule.timeout = min(rule.timeout, other.timeout)
            }
            named[rule.source] = rule
        }
        for (source, rule) in named { entries[source, default: Entry(rule: rule)].rule = rule }
    }

    /// Removes all sources that no rule names; a source that is being asked stays until it has answered.
    mutating func keep(_ rules: [PolicyRules]) {
        let named = Set(rules.compactMap { $0.busy?.source })
        entries = entries.filter { named.contains($0.key) || $0.value.isAsking }
    }

    /// The answers that count now.
    func words(at now: MonotonicTime) -> [BusySource: BusyAnswer] {
        entries.compactMapValues { entry in
            guard entry.isPolled else { return entry.word }
            guard let asked = entry.askedAt, let word = entry.word else { return nil }
            // The answer of a source that is asked again counts until the next answer arrives.
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
            let isOld = entry.askedAt.map { now.since($0) >= entry.rule.every } ?? true
            if isWanted, !entry.isFollowed, entry.isPolled, isOld { entries[source]?.askedAt = nil }
            let isDue = entry.isPolled ? isWanted && isOld : entry.word == nil
            if isDue, !entry.isAsking { due[source] = begin(source) }
        }
        return due
    }

    /// Files that have not been inspected yet, which are asked now.
    mutating func newFiles() -> [BusySource: Duration] {
        var new: [BusySource: Duration] = [:]
        for (source, entry) in entries where source.isFile && entry.word == nil && !entry.isAsking {
            new[source] = begin(source)
        }
        return new
    }

    /// Whether uploads wait for a source's answer.
    func isAwaited(_ source: BusySource) -> Bool {
        entries[source].map { $0.isFollowed || $0.isAsking || !$0.isPolled } ?? false
    }

    /// Handles the news that a file may have appeared at a path or disappeared from it.
    ///
    /// - Parameter unheard: The paths whose changes are not reported, with the reason.
    /// - Returns: The sources to ask, and the reasons for missing reports that are new.
    mutating func filesChanged(unheard: [FilePath: String]) -> (ask: [BusySource: Duration], news: [FilePath: String]) {
        var ask: [BusySource: Duration] = [:]
        var news: [FilePath: String] = [:]
        for (source, entry) in entries {
            guard case .file(let path) = source else { continue }
            if let reason = unheard[path], reason != entry.silence { news[path] = reason }
            entries[source]?.silence = unheard[path]
            if entry.isAsking { entries[source]?.isStale = true } else { ask[source] = begin(source) }
        }
        return (ask, news)
    }

    private mutating func begin(_ source: BusySource) -> Duration? {
        entries[source]?.isAsking = true
        return entries[source]?.rule.timeout
    }

    enum Change: Hashable { case none, another(before: BusyAnswer?) }

    /// - Parameters:
    ///   - asked: When it was asked.
    ///   - answer: `nil` when the question was cancelled.
    /// - Returns: The change, and how long the source may take when it has to be asked again at once.
    mutating func heard(
        _ answer: BusyAnswer.Answer?, of source: BusySource, asked: MonotonicTime, at now: WallTime
    ) -> (change: Change, again: Duration?) {
        guard let entry = entries[source] else { return (.none, nil) }
        entries[source]?.isAsking = false
        entries[source]?.isStale = false
        var change = Change.none
        if let answer {
            entries[source]?.askedAt = asked
            let isNews = entry.word?.answer != answer
            // An answer from before a pause in the questions says nothing about the time since.
            if isNews || entry.askedAt == nil { entries[source]?.word = BusyAnswer(answer, since: now) }
            if isNews { change = .another(before: entry.word) }
        }
        return (change, entry.isStale ? begin(source) : nil)
    }

    /// When a source has to be asked again; `nil` while no upload waits for any.
    func nextCheck(at now: MonotonicTime) -> Duration? {
        entries.values.filter { $0.isFollowed && $0.isPolled && !$0.isAsking }
            .map { entry in entry.askedAt.map { entry.rule.every - now.since($0) } ?? .zero }.min()
    }
}
