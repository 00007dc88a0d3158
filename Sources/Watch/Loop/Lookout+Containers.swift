internal import Core
internal import Linux
internal import Media

// `settle.container: check`: a recording that is quiet has to be whole by its own headers too.

/// What is known of the containers of candidates, and what is being asked.
struct ContainerChecks {
    /// By the look that the headers were read after: another look is another question. `nil` where they cannot be read.
    fileprivate var answers: [Place: (look: FileLook, verdict: Container.Verdict?)] = [:]
    fileprivate var asked: [Int: (place: Place, look: FileLook)] = [:]
    fileprivate var last = 0
    /// Questions at once: each may wait for a disk.
    static let most = 4
}

extension Lookout {
    /// Between two looks at a file that is not whole: half of the time that nothing has happened to it.
    private static let containerWaits = (least: Duration.seconds(1), most: Duration.seconds(60))
    /// Until there is a free place for a question.
    private static let turn = Duration.milliseconds(50)

    /// What a file at rest has to wait for until its container is whole. The headers are read on another thread, once for
    /// each look that differs.
    func containerHold(
        _ place: Place, _ source: SourceFile, _ look: FileLook, _ rule: WatchRule, _ unchanged: Duration,
        _ now: MonotonicTime
    ) -> (what: SettleHold, until: MonotonicTime)? {
        guard rule.container == .check else { return nil }
        guard let answer = containers.answers[place], answer.look == look else {
            let isAsked = containers.asked.values.contains { $0.place == place }
            if isAsked || containers.asked.count >= ContainerChecks.most {
                return (.checking, now.advanced(by: Self.turn))
            }
            ask(place, source, look)
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

    private func ask(_ place: Place, _ source: SourceFile, _ look: FileLook) {
        containers.last += 1
        let (number, mailbox) = (containers.last, mailbox)
        containers.asked[number] = (place, look)
        inBackground {
            // What cannot be read here cannot be copied either, and then somebody is told.
            let verdict = try? Container.verdict(
                of: Pieces(of: source.open(), named: source.path.shown), named: source.name)
            mailbox.post(.checked(number, verdict))
        }
    }

    func takeVerdict(_ number: Int, _ verdict: Container.Verdict?) {
        guard let (place, look) = containers.asked.removeValue(forKey: number) else { return }
        // Those of files that went away are cleared when they are many.
        if containers.answers.count > 2 * settling.count + 64 {
            containers.answers = containers.answers.filter { settling.contains($0.key) }
        }
        containers.answers[place] = (look, verdict)
        settling.postpone(place, until: now)
    }

    /// The rung that accepted a file, its container taken into account.
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

    /// What is missing of a file, in words that follow its name.
    func flaw(of place: Place) -> String? {
        if case .notWhole(_, let reason)? = containers.answers[place]?.verdict { reason } else { nil }
    }
}
