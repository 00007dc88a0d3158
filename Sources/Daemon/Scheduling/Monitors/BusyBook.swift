internal import Core

/// What is known of each source of `busy`, and which is to be asked when. A value: the dispatcher tells it what happened.
///
/// A file of which the kernel tells is known at any time. A command, and a file that nobody tells of, are asked again and
/// again while somebody waits for their word, and what they said before counts for nothing later.
struct BusyBook: Sendable {
    private struct Entry {
        var rule: BusyRule
        var word: BusyWord?
        /// When it was asked for its last word.
        var askedAt: MonotonicTime?
        var isAsking = false
        /// Something happened since it was asked.
        var isStale = false
        /// Somebody waits for its word, and has since it was asked last.
        var isFollowed = false
        /// Why nothing is heard of a file; `nil` while the kernel tells.
        var silence: String?
        /// A right that is given, or a server that answers again, is no news of a file either.
        var isPolled: Bool {
            if !rule.source.isFile || silence != nil { return true }
            if case .unknown? = word?.answer { return true }
            return false
        }
    }

    /// Between two looks at a file that nobody tells of, and how long one may take.
    static let fileLook = (every: Duration.seconds(30), patience: Duration.seconds(3))

    private var entries: [BusySource: Entry] = [:]

    var files: Set<FilePath> {
        Set(entries.keys.compactMap { if case .file(let path) = $0 { path } else { nil } })
    }

    var isAsking: Bool { entries.values.contains(where: \.isAsking) }
    /// Some source has to be asked again and again.
    var hasPolled: Bool { entries.values.contains(where: \.isPolled) }

    /// Adds the sources of these rules. Of two that ask the same the shorter times count.
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

    /// Forgets all sources that no rule names; one that is being asked stays until it has answered.
    mutating func keep(_ rules: [PolicyRules]) {
        let named = Set(rules.compactMap { $0.busy?.source })
        entries = entries.filter { named.contains($0.key) || $0.value.isAsking }
    }

    /// What counts now.
    func words(at now: MonotonicTime) -> [BusySource: BusyWord] {
        entries.compactMapValues { entry in
            guard entry.isPolled else { return entry.word }
            guard let asked = entry.askedAt, let word = entry.word else { return nil }
            // Who is asked again has said it until the answer comes.
            let longest = entry.isFollowed ? entry.rule.every * 2 + entry.rule.timeout : entry.rule.every
            return now.since(asked) < longest ? word : nil
        }
    }

    /// What to ask now, and how long each may take.
    ///
    /// - Parameter wanted: For whose word something waits.
    mutating func due(_ wanted: Set<BusySource>, at now: MonotonicTime) -> [BusySource: Duration] {
        var due: [BusySource: Duration] = [:]
        for (source, entry) in entries {
            let isWanted = wanted.contains(source)
            entries[source]?.isFollowed = isWanted
            // What was said when nobody waited counts for as long as it would otherwise, and not for longer.
            let isOld = entry.askedAt.map { now.since($0) >= entry.rule.every } ?? true
            if isWanted, !entry.isFollowed, entry.isPolled, isOld { entries[source]?.askedAt = nil }
            let isDue = entry.isPolled ? isWanted && isOld : entry.word == nil
            if isDue, !entry.isAsking { due[source] = begin(source) }
        }
        return due
    }

    /// Files that nobody has looked at, which are asked now.
    mutating func newFiles() -> [BusySource: Duration] {
        var new: [BusySource: Duration] = [:]
        for (source, entry) in entries where source.isFile && entry.word == nil && !entry.isAsking {
            new[source] = begin(source)
        }
        return new
    }

    /// Whether something waits for a source's word.
    func isAwaited(_ source: BusySource) -> Bool {
        entries[source].map { $0.isFollowed || $0.isAsking || !$0.isPolled } ?? false
    }

    /// What to ask when something may have come to a file's path, or gone from there.
    ///
    /// - Parameter unheard: Of which of them nothing is heard, and why.
    /// - Returns: What to ask, and why nothing is heard of a path, as far as that is news.
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

    enum Change: Hashable { case none, another(before: BusyWord?) }

    /// - Parameters:
    ///   - asked: When it was asked.
    ///   - answer: `nil` when nobody waited for the answer.
    /// - Returns: What changed, and how long the source may take when it is to be asked again at once.
    mutating func heard(
        _ answer: BusyWord.Answer?, of source: BusySource, asked: MonotonicTime, at now: WallTime
    ) -> (change: Change, again: Duration?) {
        guard let entry = entries[source] else { return (.none, nil) }
        entries[source]?.isAsking = false
        entries[source]?.isStale = false
        var change = Change.none
        if let answer {
            entries[source]?.askedAt = asked
            let isNews = entry.word?.answer != answer
            // What it said before it was left alone for a while says nothing about the time since.
            if isNews || entry.askedAt == nil { entries[source]?.word = BusyWord(answer, since: now) }
            if isNews { change = .another(before: entry.word) }
        }
        return (change, entry.isStale ? begin(source) : nil)
    }

    /// When a source is to be asked again; `nil` while nobody waits for any.
    func nextLook(at now: MonotonicTime) -> Duration? {
        entries.values.filter { $0.isFollowed && $0.isPolled && !$0.isAsking }
            .map { entry in entry.askedAt.map { entry.rule.every - now.since($0) } ?? .zero }.min()
    }
}
