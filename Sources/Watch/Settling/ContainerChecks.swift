internal import Core
internal import Media

/// The checks whether quiet recordings are complete by their own headers (`settle.container: check`): those under way,
/// and their results.
struct ContainerChecks {
    enum Decision: Equatable {
        /// Nothing is required, or the file may settle.
        case passed
        /// A check is under way, or too many others are.
        case checking(until: MonotonicTime)
        /// The caller must check the file now, under this number.
        case start(number: Int, until: MonotonicTime)
        /// A part of the file is missing.
        case incomplete(until: MonotonicTime)
    }

    /// Checks at once: each may wait for a disk.
    static let limit = 4
    /// Time between two checks of an incomplete file: half of the time since its last change.
    private static let interval = (least: Duration.seconds(1), most: Duration.seconds(60))
    /// Time until a check slot may be free.
    private static let slotWait = Duration.milliseconds(50)

    /// By the status after which the headers were read: another status needs another check. `nil` where they cannot be
    /// read.
    private var results: [WatchedFile: (status: FileStatus, verdict: Container.Verdict?)] = [:]
    private var running: [Int: (place: WatchedFile, status: FileStatus)] = [:]
    private var lastNumber = 0

    /// Decides about a quiet file. The headers are read once for each different status.
    mutating func decide(
        _ place: WatchedFile, _ status: FileStatus, _ rule: WatchRule, unchanged: Duration, at now: MonotonicTime
    ) -> Decision {
        guard rule.container == .check else { return .passed }
        guard let result = results[place], result.status == status else {
            let isRunning = running.values.contains { $0.place == place }
            if isRunning || running.count >= Self.limit { return .checking(until: now.advanced(by: Self.slotWait)) }
            lastNumber += 1
            running[lastNumber] = (place, status)
            // The result wakes it.
            return .start(number: lastNumber, until: now.advanced(by: Self.interval.most))
        }
        guard case .incomplete? = result.verdict else { return .passed }
        var wait = min(max(unchanged / 2, Self.interval.least), Self.interval.most)
        if rule.broken == .upload {
            if unchanged >= rule.brokenAfter { return .passed }
            wait = min(wait, rule.brokenAfter - unchanged)
        }
        return .incomplete(until: now.advanced(by: wait))
    }

    /// Stores the result of a check.
    ///
    /// - Parameters:
    ///   - candidates: The number of files that have not settled.
    ///   - isCandidate: Whether a file is one of them. Results of vanished files are removed when there are many.
    /// - Returns: The file; `nil` for an unknown number.
    mutating func finish(
        _ number: Int, _ verdict: Container.Verdict?, candidates: Int, isCandidate: (WatchedFile) -> Bool
    ) -> WatchedFile? {
        guard let (place, status) = running.removeValue(forKey: number) else { return nil }
        if results.count > 2 * candidates + 64 { results = results.filter { isCandidate($0.key) } }
        results[place] = (status, verdict)
        return place
    }

    /// Removes and returns the result of a file that has settled. The outer value is `nil` where there is none, the
    /// inner one where the headers could not be read.
    mutating func removeResult(of place: WatchedFile) -> Container.Verdict?? {
        results.removeValue(forKey: place)?.verdict
    }

    /// The missing part of a file, in words that follow its name.
    func flaw(of place: WatchedFile) -> String? {
        if case .incomplete(_, let reason)? = results[place]?.verdict { reason } else { nil }
    }

    /// Forgets the results of a root. Checks under way count until they end.
    mutating func drop(_ root: Root) {
        if !results.isEmpty { results = results.filter { $0.key.directory.root !== root } }
    }
}
