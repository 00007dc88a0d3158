internal import Core
internal import Linux
internal import Media

/// The files that have not settled, and the conditions that they wait for.
///
/// A class, because the checks of one file use several of its parts at once. Used by the watching thread only.
final class SettleTracker {
    /// The result of a check.
    enum Evaluation {
        /// It is no candidate any more.
        case dropped
        /// It continues to wait; it was seen to be there.
        case waiting
        /// It cannot be checked now.
        case postponed
        case settled(SettledFile)
    }

    /// Time between two tries for a file that cannot be examined now.
    private static let retryTime = Duration.milliseconds(100)
    /// Time between two checks of a file that waits for a condition other than its own rest.
    private static let longestHold = Duration.seconds(600)
    private static let maxReportedFiles = 1_000

    private let pace: WatchLimits
    private let clocks: any Clocks
    private let log: WatchLog
    private let fileSystems: FileSystems
    private let openFiles: ProcDescriptorSearch
    /// Reads the headers of a file on another thread; the result comes as ``finishCheck(_:_:at:)``.
    private let startCheck: (_ number: Int, _ source: SourceFile) -> Void

    private var settling: Settling<WatchedFile>
    private var checks = ContainerChecks()
    private var markers = MarkerWaits()
    /// Files that were reported as unreadable.
    private var unreadable: Set<WatchedFile> = []
    /// Whether it was reported that `/proc` does not show everything.
    private var hasReportedHidden = false

    init(
        pace: WatchLimits, clocks: any Clocks, log: WatchLog, fileSystems: FileSystems,
        startCheck: @escaping (Int, SourceFile) -> Void
    ) {
        self.pace = pace
        self.clocks = clocks
        self.log = log
        self.fileSystems = fileSystems
        self.startCheck = startCheck
        openFiles = ProcDescriptorSearch(clocks: clocks)
        settling = Settling(quiet: pace.quiet)
    }

    // MARK: - Candidates

    var isEmpty: Bool { settling.count == 0 }
    var isFull: Bool { settling.count >= pace.candidates }
    /// The number of files that scans may still add: a fifth of the places is left to events.
    var freeSlotsForScans: Int { pace.candidates - pace.candidates / 5 - settling.count }
    /// May be too early, never too late.
    var nextDeadline: MonotonicTime? { settling.next }

    func contains(_ place: WatchedFile) -> Bool { settling.contains(place) }

    /// Adds a file that may be new, or records its present status.
    func note(
        _ place: WatchedFile, _ evidence: Settling<WatchedFile>.Evidence, rule: Int, of rules: [CompiledRule],
        _ status: FileStatus,
        at time: MonotonicTime
    ) {
        settling.note(
            place, evidence, group: rule, status: status, quietFor: rules[rule].settings.quietFor, at: time)
    }

    func forget(_ place: WatchedFile) { settling.forget(place) }

    /// Forgets the candidates of a root whose folder is absent: they are found again when it is back.
    func forgetFiles(of root: Root) {
        for place in settling.all.keys where place.directory.root === root { settling.forget(place) }
    }

    /// Forgets everything about a root.
    func drop(_ root: Root) {
        forgetFiles(of: root)
        checks.drop(root)
        markers.drop(root)
        unreadable = unreadable.filter { $0.directory.root !== root }
    }

    /// Determines the rules of all candidates again.
    ///
    /// - Parameters:
    ///   - oldFolders: The folders of the rules before, by their index.
    func reassign(_ rules: [CompiledRule], oldFolders: [String]) {
        let candidates = settling.all
        settling.revise { place, group in
            // It is between two names: its folder is determined again when its time comes.
            if !place.directory.isGone, place.directory.relative == nil {
                return rules.firstIndex { $0.settings.name == oldFolders[group] }.map {
                    ($0, rules[$0].settings.quietFor)
                }
            }
            guard !place.directory.isGone, let relative = place.directory.relative,
                let rule = place.directory.rule(
                    for: place.name, size: candidates[place]?.status.size, at: relative, among: rules)
            else { return nil }
            return (rule, rules[rule].settings.quietFor)
        }
    }

    // MARK: - Markers

    /// Whether a file waits for its marker.
    var awaitsMarkers: Bool { !markers.isEmpty }

    /// Checks the files that wait for a marker of this name.
    func noteMarker(_ name: FilePath, in directory: WatchedDirectory, at now: MonotonicTime) {
        if markers.isEmpty { return }
        for file in markers.remove(marker: WatchedFile(directory: directory, name: name)) {
            settling.postpone(file, until: now)
        }
    }

    /// Whether a file should become a candidate now. The number of files without their markers is limited: otherwise
    /// they would take the places of files that can settle.
    ///
    /// - Parameter relative: The path of its directory.
    func accepts(_ place: WatchedFile, rule: CompiledRule, at relative: FilePath, at now: MonotonicTime) -> Bool {
        guard let marker = rule.settings.marker, !settling.contains(place), !isMarked(place, marker, relative) else {
            return true
        }
        let isFull = markers.isFull(limit: max(1, pace.candidates / 4), at: now) { settling.contains($0) }
        if isFull {
            place.directory.noteUnmarkedFile()
            return false
        }
        markers.add(place, marker: marker.marker(of: place.name))
        return true
    }

    private func isMarked(_ place: WatchedFile, _ marker: MarkerName, _ relative: FilePath) -> Bool {
        let name = marker.marker(of: place.name)
        // A marker that cannot be examined counts as missing.
        return (try? place.directory.root.folder.open().statusIfPresent(at: relative.appending(name))) != nil
    }

    // MARK: - Checks

    /// Removes and returns the files that are due for a check, each of which must be evaluated.
    func due(at now: MonotonicTime, limit: Int) -> [WatchedFile] { settling.due(at: now, limit: limit) }

    /// Checks a file that is due.
    func evaluate(_ place: WatchedFile, rules: [CompiledRule], at now: MonotonicTime) -> Evaluation {
        let directory = place.directory
        if directory.isGone { return drop(place) }
        guard let folder = directory.relative else {
            settling.postpone(place, until: now.advanced(by: Self.retryTime))
            return .postponed
        }
        // Determined again, because the directory may have another name by now.
        let known = settling[place]?.status.size
        guard let rule = directory.rule(for: place.name, size: known, at: folder, among: rules) else {
            return drop(place)
        }
        let source = SourceFile(folder: directory.root.folder, relative: folder.appending(place.name))
        do {
            return try evaluate(place, source, in: folder, rule: rule, knownSize: known, rules)
        } catch {
            // A name that is gone, or is a link by now, is not worth a message.
            if error.isMissing || error.isLink { return drop(place) }
            // Once for each file: the error may last for days.
            if unreadable.count < Self.maxReportedFiles, unreadable.insert(place).inserted {
                log.notice(
                    error, below: directory.root, at: now,
                    "cannot read the status of a file (\(error)); will retry")
            }
            settling.postpone(place, until: now.advanced(by: pace.absent))
            return .postponed
        }
    }

    private func drop(_ place: WatchedFile) -> Evaluation {
        settling.forget(place)
        return .dropped
    }

    private func evaluate(
        _ place: WatchedFile, _ source: SourceFile, in folder: FilePath, rule index: Int, knownSize: Int64?,
        _ rules: [CompiledRule]
    ) throws(SystemError) -> Evaluation {
        var index = index
        let top = try source.folder.open()
        let (status, writer) = try status(source.relative, top, rules[index].settings)
        guard status.isRegular else { return drop(place) }
        // Where folders are distinguished by size, the file may have grown into another one.
        if status.size != knownSize,
            let other = place.directory.rule(for: place.name, size: status.size, at: folder, among: rules)
        {
            index = other
        }
        let rule = rules[index].settings
        settling.assign(place, to: index, quietFor: rule.quietFor)
        if !unreadable.isEmpty { unreadable.remove(place) }
        let isMarked = rule.marker.map { self.isMarked(place, $0, folder) }
        let now = clocks.monotonic()
        let settledBy = settling.evaluated(at: place, status, writer: writer, isMarked: isMarked, at: now) {
            unchanged in
            hold(place, source, status, rule, isMarked, unchanged, now)
        }
        guard let settledBy else {
            reportWait(of: place, source.path, rules, rule.reportAfter, now)
            return .waiting
        }
        if let objection = rule.limits.objection(to: status, now: clocks.wall()) {
            log.info("skipped: \(source.display): \(objection)")
            return .dropped
        }
        let fileSystem = fileSystems.identity(of: top, at: source.relative, device: status.device)
        return .settled(
            SettledFile(
                folder: rule.name, root: rule.path, relative: source.relative, status: status,
                identity: FileIdentity(status, folder: rule.name, relative: source.relative, on: fileSystem),
                settledBy: settleProof(place, source.path, settledBy, rule)))
    }

    /// The file's status, and whether a program has it open for writing, as far as the folder requires that.
    private func status(
        _ relative: FilePath, _ top: borrowing OpenFolder, _ rule: WatchRule
    ) throws(SystemError) -> (FileStatus, OpenWriter) {
        if rule.writers == .skip { return (try top.status(freshAt: relative), .unknown) }
        let (status, writer) = try Lease.status(at: relative, in: top)
        guard rule.writers == .proc, writer == .unknown, status.isRegular else { return (status, writer) }
        let answer = openFiles.writer(of: status, seen: clocks.monotonic())
        if answer.closed > 0 || answer.hidesProcesses, answer.writer == .unknown, !hasReportedHidden {
            hasReportedHidden = true
            let obstacle =
                answer.closed > 0
                ? "\(answer.closed) processes of other users cannot be inspected"
                : "/proc does not show every process (a container, or hidepid= of /proc, as with ProtectProc= of a unit)"
            log.warning(
                "settle.writers is proc, and \(obstacle): "
                    + "files wait for the longer quiet time instead. CAP_SYS_PTRACE with CAP_DAC_READ_SEARCH would allow it; CAP_LEASE works "
                    + "without them (AmbientCapabilities= of the unit)")
        }
        return (status, answer.writer)
    }

    /// The further hold of a file that is at rest.
    private func hold(
        _ place: WatchedFile, _ source: SourceFile, _ status: FileStatus, _ rule: WatchRule, _ isMarked: Bool?,
        _ unchanged: Duration, _ now: MonotonicTime
    ) -> (what: SettleCondition, until: MonotonicTime)? {
        let longest = min(Self.longestHold, rule.reportAfter)
        if isMarked == false, let marker = rule.marker {
            markers.add(place, marker: marker.marker(of: place.name))
            // If no event reports it, the directory is polled, which wakes this file.
            return (.marker, now.advanced(by: longest))
        }
        let wait = rule.limits.wait(for: status, unchanged: unchanged, now: clocks.wall())
        if wait > .zero { return (.age, now.advanced(by: min(wait, longest))) }
        switch checks.decide(place, status, rule, unchanged: unchanged, at: now) {
        case .passed: return nil
        case .checking(let until): return (.checking, until)
        case .start(let number, let until):
            startCheck(number, source)
            return (.checking, until)
        case .incomplete(let until): return (.container, until)
        }
    }

    /// Applies the result of a check that was started; `nil` when the headers cannot be read.
    func finishCheck(_ number: Int, _ verdict: Container.Verdict?, at now: MonotonicTime) {
        let place = checks.finish(number, verdict, candidates: settling.count) { settling.contains($0) }
        if let place { settling.postpone(place, until: now) }
    }

    /// The rung that accepted a file, taking its container into account.
    private func settleProof(_ place: WatchedFile, _ path: SourcePath, _ otherwise: SettleProof, _ rule: WatchRule)
        -> SettleProof
    {
        guard let verdict = checks.removeResult(of: place), rule.container == .check else { return otherwise }
        switch verdict {
        case .complete: return .container
        case .incomplete(_, let reason):
            log.warning(
                "\(path.display) has not changed for \(words(rule.brokenAfter)) and is incomplete: it \(reason). It is "
                    + "uploaded as it is; `settle: {broken: wait}` would make it wait")
            return .broken
        case .unknownFormat, .tooLong, nil: return otherwise
        }
    }

    // MARK: - Reports

    /// Reports once that a file does not settle, and again when the reason changes.
    private func reportWait(
        of place: WatchedFile, _ path: SourcePath, _ rules: [CompiledRule], _ limit: Duration, _ now: MonotonicTime
    ) {
        guard settling.shouldReport(place, after: limit, at: now), let candidate = settling[place],
            candidate.waiting != .age, candidate.waiting != .checking
        else { return }
        let file = explainer(rules, at: now).waitingFile(place, candidate, path, flaw: checks.flaw(of: place))
        log.warning("\(path.display) has not settled for \(words(now.since(candidate.first))): \(file.fullExplanation)")
    }

    private func explainer(_ rules: [CompiledRule], at now: MonotonicTime) -> WaitExplainer {
        WaitExplainer(rules: rules, quiet: pace.quiet, now: now, wall: clocks.wall())
    }

    /// Whether the end of each candidate's wait cannot be predicted, or is a matter of its age.
    func isAtRest(_ rules: [CompiledRule], at now: MonotonicTime) -> Bool {
        let explainer = explainer(rules, at: now)
        return settling.all.values.allSatisfy { candidate in
            candidate.isGrowing || candidate.isBusy || candidate.hold == .container || candidate.hold == .marker
                || explainer.ageDeadline(of: candidate) != nil
        }
    }

    /// A summary of the candidates of one rule.
    struct Summary {
        var count = 0
        /// The time since when the oldest of them has been waiting.
        var oldest: MonotonicTime?
        var young = WatchState.Young()
    }

    /// Summaries by rule, and the files that have been waiting longest, at most `limit`.
    func summary(_ rules: [CompiledRule], limit: Int, at now: MonotonicTime) -> (
        rules: [Summary], waiting: [WaitingFile]
    ) {
        let explainer = explainer(rules, at: now)
        var summaries = [Summary](repeating: Summary(), count: rules.count)
        var waiting: [(place: WatchedFile, candidate: Settling<WatchedFile>.Candidate)] = []
        for (place, candidate) in settling.all {
            let group = candidate.group
            summaries[group].count += 1
            summaries[group].oldest = min(summaries[group].oldest ?? candidate.first, candidate.first)
            if let deadline = explainer.ageDeadline(of: candidate) { summaries[group].young.add(deadline) }
            waiting.append((place, candidate))
        }
        waiting.sort { $0.candidate.first < $1.candidate.first }
        let files = waiting.prefix(limit).compactMap { place, candidate -> WaitingFile? in
            guard let relative = place.directory.relative else { return nil }
            let path = SourcePath(root: place.directory.root.path, relative: relative.appending(place.name))
            return explainer.waitingFile(place, candidate, path, flaw: checks.flaw(of: place))
        }
        return (summaries, files)
    }
}
