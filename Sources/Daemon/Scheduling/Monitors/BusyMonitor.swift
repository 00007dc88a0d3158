internal import Config
internal import Core
internal import Linux

/// Whether the machine is busy with something else, by the sources that `busy` names.
struct BusyMonitor: Sendable, RecordsChanges {
    var changes: FactChanges = []
    /// The state of each source, and which source to ask when.
    private(set) var states = BusyStates()
    var probe = BusyProbe()
    /// How long new settings wait for the first inspection of the files that `busy` names.
    var timeout: Duration = .milliseconds(500)
    /// Reports when files of `busy`, or of the time zone, appear and disappear; `nil` while there is none.
    private var events: FileEvents?
    private var watched: Set<FilePath> = []
    /// Rules that are about to hold: their sources are kept, also in a cycle that still has the earlier rules.
    private var upcoming: [PolicyRules] = []
    /// Questions to sources that are under way.
    private var queries: [BusySource: Task<Void, Never>] = [:]

    /// Adds the sources of these rules, and forgets those that no rule names.
    mutating func apply(_ rules: [PolicyRules]) {
        states.add(rules)
        states.keep(rules + upcoming)
    }

    /// Adds the sources of rules that are about to hold.
    mutating func add(_ rules: [PolicyRules]) {
        states.add(rules)
        upcoming = rules
    }

    /// The rules that were added hold now.
    mutating func addedRulesHold() { upcoming = [] }

    /// Watches the files of `busy`, and `others`.
    ///
    /// - Returns: The reason why files are not watched; `nil` when they are.
    mutating func watch(_ others: Set<FilePath>, onChange: @escaping @Sendable () -> Void) -> [FilePath: String]? {
        let files = states.files.union(others)
        if files == watched { return nil }
        watched = files
        do {
            let events = try events ?? FileEvents { onChange() }
            self.events = events
            events.watch(files)
            return nil
        } catch {
            let reason = "\(error)"
            return Dictionary(uniqueKeysWithValues: files.map { ($0, reason) })
        }
    }

    /// The files whose changes are not reported, each with the reason; `nil` while no files are watched.
    var unwatched: [FilePath: String]? { events?.unwatched }

    func stop() { events?.stop() }

    /// - Returns: The sources to ask, each with the time that it may take.
    mutating func filesChanged(_ unwatched: [FilePath: String], _ log: Log) -> [BusySource: Duration] {
        let (questions, failures) = states.filesChanged(unwatched: unwatched)
        // An answer about a file whose changes are not reported counts for a while only.
        if !failures.isEmpty { changes.insert(.policy) }
        for (path, reason) in failures {
            log.notice(
                "cannot watch a file that `busy` names for changes: Sluice checks it every 30 s while an upload waits",
                ["path": path.display, "reason": reason])
        }
        return questions
    }

    /// The sources to ask now, each with the time that it may take.
    mutating func due(_ wanted: Set<BusySource>, at now: MonotonicTime) -> [BusySource: Duration] {
        states.due(wanted, at: now)
    }

    /// Files that have not been checked yet, and are due now.
    mutating func newFiles() -> [BusySource: Duration] { states.newFiles() }

    /// Asks sources.
    ///
    /// - Parameters:
    ///   - sources: Each with the time that it may take.
    ///   - answered: Called with each answer, which is `nil` when the question was cancelled; it has to call
    ///     ``answered(_:by:askedAt:at:_:)``.
    mutating func startChecks(
        _ sources: [BusySource: Duration], at now: MonotonicTime,
        answered: @escaping @Sendable (BusyAnswer.Answer?, BusySource, MonotonicTime) async -> Void
    ) {
        for (source, timeout) in sources {
            queries[source] = Task { [probe] in await answered(await probe.check(source, timeout), source, now) }
        }
    }

    /// Returns when the questions about files are answered, or when `timeout` is over.
    func filesAnswered() async {
        await AsyncSignal.wait(for: queries.filter { $0.key.isFile }.map(\.value), atMost: timeout)
    }

    var tasks: [Task<Void, Never>] { Array(queries.values) }

    /// Records the answer of a source.
    ///
    /// - Returns: `isNew`: the answer is another one than before. `again`: the source with the time that it may take, if
    ///   it has to be checked again at once.
    mutating func answered(
        _ answer: BusyAnswer.Answer?, by source: BusySource, askedAt: MonotonicTime, at now: WallTime, _ log: Log
    ) -> (isNew: Bool, again: [BusySource: Duration]) {
        queries[source] = nil
        let (change, timeout) = states.record(answer, of: source, asked: askedAt, at: now)
        let again = timeout.map { [source: $0] } ?? [:]
        let isNew = change != .none
        // A file whose state is the same changes nothing, and needs no next inspection.
        if isNew || states.hasPolled { changes.insert(.scheduling) }
        if isNew { changes.insert(.policy) }
        guard let answer, case .another(let before) = change else { return (false, again) }
        report(answer, of: source, after: before?.answer, log)
        return (true, again)
    }

    private func report(
        _ answer: BusyAnswer.Answer, of source: BusySource, after before: BusyAnswer.Answer?, _ log: Log
    ) {
        switch (before, answer) {
        case (_, .unknown(let problem, let remedy)):
            log.warning(
                "cannot determine whether the machine is busy; it counts as busy",
                ["busy": source.name, "reason": problem, "remedy": remedy])
        case (.unknown?, _): log.notice("the check whether the machine is busy works again", ["busy": source.name])
        // A camera may record a thousand times a day; a transfer that is stopped for it has its own log line.
        case (_, .busy): log.debug("the machine is busy", ["busy": source.name])
        case (_, .free): log.debug("the machine is not busy", ["busy": source.name])
        }
    }
}
