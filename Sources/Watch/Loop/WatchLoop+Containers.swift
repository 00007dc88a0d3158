internal import Core
internal import Linux
internal import Media

// `settle.container: check`: a quiet recording must also be complete by its own headers.

/// Results of container checks of candidates, and checks under way.
struct ContainerChecks {
    /// By the status after which the headers were read: another status needs another check. `nil` where they cannot be
    /// read.
    fileprivate var answers: [Place: (status: FileStatus, verdict: Container.Verdict?)] = [:]
    fileprivate var asked: [Int: (place: Place, status: FileStatus)] = [:]
    fileprivate var last = 0
    /// Checks at once: each may wait for a disk.
    static let most = 4
}

extension WatchLoop {
    /// Time between two checks of an incomplete file: half of the time since its last change.
    private static let containerWaits = (least: Duration.seconds(1), most: Duration.seconds(60))
    /// Time until a check slot may be free.
    private static let turn = Duration.milliseconds(50)

    /// The hold of a quiet file until its container is complete. The headers are read on another thread, once for each
    /// different status.
    func containerHold(
        _ place: Place, _ source: SourceFile, _ status: FileStatus, _ rule: WatchRule, _ unchanged: Duration,
        _ now: MonotonicTime
    ) -> (what: SettleHold, until: MonotonicTime)? {
        guard rule.container == .check else { return nil }
        guard let answer = containers.answers[place], answer.status == status else {
            let isAsked = containers.asked.values.contains { $0.place == place }
            if isAsked || containers.asked.count >= ContainerChecks.most {
                return (.checking, now.advanced(by: Self.turn))
            }
            ask(place, source, status)
            // The answer wakes it.
            return (.checking, now.advanced(by: Self.containerWaits.most))
        }
        guard case .notWhole? = answer.verdict else { return nil }
        var wait = min(max(unchanged / 2, Self.containerWaits.least), Self.containerWaits.most)
        if rule.broken == .upload {
            if unchanged >= rule.brokenAfter { return nil }
            wait = min(wait, rule.brokenAfter - unchanged)
        }
        return (.container, now.advanced(by: wait))
    }

    private func ask(_ place: Place, _ source: SourceFile, _ status: FileStatus) {
        containers.last += 1
        let (number, mailbox) = (containers.last, mailbox)
        containers.asked[number] = (place, status)
        inBackground {
            // A file that cannot be read here cannot be copied either, and that is reported then.
            let verdict = try? Container.verdict(
                of: Pieces(of: source.open(), named: source.path.shown), named: source.name)
            mailbox.post(.checked(number, verdict))
        }
    }

    func takeVerdict(_ number: Int, _ verdict: Container.Verdict?) {
        guard let (place, status) = containers.asked.removeValue(forKey: number) else { return }
        // Entries of vanished files are removed when there are many.
        if containers.answers.count > 2 * settling.count + 64 {
            containers.answers = containers.answers.filter { settling.contains($0.key) }
        }
        containers.answers[place] = (status, verdict)
        settling.postpone(place, until: now)
    }

    /// The rung that accepted a file, taking its container into account.
    func rung(_ place: Place, _ path: SourcePath, _ otherwise: SettledBy, _ rule: WatchRule) -> SettledBy {
        guard let answer = containers.answers.removeValue(forKey: place), rule.container == .check else {
            return otherwise
        }
        switch answer.verdict {
        case .whole: return .container
        case .notWhole(_, let reason):
            log(
                Remark(
                    .warning,
                    "\(path.display) has not changed for \(words(rule.brokenAfter)) and is not whole: it \(reason). It is "
                        + "taken as it is; `settle: {broken: wait}` would leave it"))
            return .broken
        case .unknownFormat, .tooLong, nil: return otherwise
        }
    }

    /// The missing part of a file, in words that follow its name.
    func flaw(of place: Place) -> String? {
        if case .notWhole(_, let reason)? = containers.answers[place]?.verdict { reason } else { nil }
    }
}
