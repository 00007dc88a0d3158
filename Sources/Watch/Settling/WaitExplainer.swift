internal import Core

/// Explains why candidates wait, by the rules and at one time.
struct WaitExplainer {
    typealias Candidate = Settling<WatchedFile>.Candidate

    let rules: [CompiledRule]
    let quiet: QuietTimes
    let now: MonotonicTime
    let wall: WallTime

    /// The time when a file is old enough for `min_age`; `nil` where its quiet time ends later, or no age is required.
    func ageDeadline(of candidate: Candidate) -> MonotonicTime? {
        let limits = rules[candidate.group].settings.limits
        guard limits.minAge != nil else { return nil }
        let wait = limits.wait(for: candidate.status, unchanged: now.since(candidate.since), now: wall)
        let deadline = now.advanced(by: wait)
        return wait > .zero && deadline > candidate.since.advanced(by: candidate.quietTime) ? deadline : nil
    }

    /// - Parameter flaw: The missing part according to its headers, where those were read.
    func waitingFile(
        _ place: WatchedFile, _ candidate: Candidate, _ path: SourcePath, flaw: @autoclosure () -> String?
    ) -> WaitingFile {
        let settings = rules[candidate.group].settings
        let lastWait = lastWait(of: candidate)
        let reason: WaitingFile.Reason =
            switch lastWait {
            case .quiet: .quiet
            case .change: .change
            case .writer: .writer
            case .age: .age
            case .checking: .checking
            case .container: .container(flaw() ?? "failed the last check")
            case .marker: settings.marker.map { .marker($0.marker(of: place.name)) } ?? .quiet
            }
        let (rule, until) = cause(of: candidate, lastWait, settings)
        return WaitingFile(
            folder: settings.name, path: path, size: candidate.status.size, since: candidate.first,
            isGrowing: candidate.isGrowing, isBusy: candidate.isBusy, reason: reason, rule: rule, until: until,
            rate: candidate.rate, isOverdue: candidate.reported != nil && candidate.reported != .age,
            isYoung: ageDeadline(of: candidate) != nil)
    }

    /// The file's wait that ends last.
    private func lastWait(of candidate: Candidate) -> Settling<WatchedFile>.Waiting {
        candidate.waiting == .quiet && ageDeadline(of: candidate) != nil ? .age : candidate.waiting
    }

    /// The key that causes a candidate's wait, with its value, and the end of the wait.
    private func cause(
        of candidate: Candidate, _ wait: Settling<WatchedFile>.Waiting, _ rule: WatchRule
    ) -> (words: String, until: MonotonicTime?) {
        switch wait {
        case .quiet, .change:
            let key = "`settle.quiet_for: \(writtenTime(candidate.quietTime))`"
            let words = quiet.words(for: candidate.evidence, candidate.quietTime)
            return (
                rule.quietFor == nil ? "\(key), \(words)" : key, candidate.since.advanced(by: candidate.quietTime)
            )
        case .writer: return ("`settle.writers: \(rule.writers.rawValue)`; the check is repeated", candidate.next)
        case .marker: return ("`settle.marker: \"\(rule.marker?.source ?? "")\"`", nil)
        case .age:
            let left = rule.limits.wait(
                for: candidate.status, unchanged: now.since(candidate.since), now: wall)
            return ("`min_age: \(writtenTime(rule.limits.minAge ?? .zero))`", now.advanced(by: max(.zero, left)))
        case .checking: return ("`settle.container: check`", nil)
        case .container where rule.broken == .upload:
            return (
                "`settle.container: check`; if it has not changed for `settle.broken_after: "
                    + "\(writtenTime(rule.brokenAfter))`, it is uploaded as it is",
                candidate.since.advanced(by: rule.brokenAfter)
            )
        case .container: return ("`settle.container: check` with `settle.broken: wait`", nil)
        }
    }
}
