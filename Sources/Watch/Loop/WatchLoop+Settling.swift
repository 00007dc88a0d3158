internal import Core
internal import Linux

// Examines candidates when they are due, and passes on those that have settled.

extension WatchLoop {
    /// Time between two tries for a file that cannot be examined now.
    private static let again = Duration.milliseconds(100)
    /// Time between two checks of a file that waits for a condition other than its own rest.
    private static let longestHold = Duration.seconds(600)

    private static let mostComplaints = 1_000

    func settle() {
        let due = settling.due(at: now, limit: max(0, pace.batch - ready.count))
        if !due.isEmpty { hasNews = true }
        for place in due { evaluate(at: place) }
    }

    private func evaluate(at place: Place) {
        let directory = place.directory
        if directory.isGone { return settling.forget(place) }
        guard let folder = directory.relative else {
            return settling.postpone(place, until: now.advanced(by: Self.again))
        }
        // Determined again, because the directory may have another name by now.
        let known = settling[place]?.status.size
        guard var index = taker(of: place.name, size: known, in: directory, at: folder) else {
            return settling.forget(place)
        }
        var rule = rules[index].settings
        let source = SourceFile(folder: directory.root.folder, relative: folder.appending(place.name))
        do {
            let top = try source.folder.open()
            let (status, writer) = try question(source.relative, top, rule)
            guard status.isRegular else { return settling.forget(place) }
            // Where folders are distinguished by size, the file may have grown into another one.
            if status.size != known, let other = taker(of: place.name, size: status.size, in: directory, at: folder),
                other != index
            {
                (index, rule) = (other, rules[other].settings)
            }
            settling.give(place, to: index, quietFor: rule.quietFor)
            if !complained.isEmpty { complained.remove(place) }
            let isMarked = rule.marker.map { self.isMarked(place, $0, folder) }
            let now = clocks.monotonic()
            let settledBy = settling.looked(at: place, status, writer: writer, isMarked: isMarked, at: now) {
                unchanged in
                hold(place, source, status, rule, isMarked, unchanged, now)
            }
            guard let settledBy else {
                quicken(directory)
                return report(place, source.path, rule, now)
            }
            if let objection = rule.limits.objection(to: status, now: clocks.wall()) {
                return log(Remark(.info, "left alone: \(source.display): \(objection)"))
            }
            let fileSystem = fileSystems.identity(of: top, at: source.relative, device: status.device)
            let file = SettledFile(
                folder: rule.name, root: rule.path, relative: source.relative, status: status,
                identity: StoredIdentity(status, folder: rule.name, relative: source.relative, on: fileSystem),
                settledBy: rung(place, source.path, settledBy, rule))
            // A file may settle twice before it is taken, when both a scan and an event reported it. The last counts:
            // within one batch, the filter cannot see that the other is known by then.
            if let index = ready.firstIndex(where: { $0.place == place }) { ready.remove(at: index) }
            ready.append((place, file))
            settled[file.folder, default: 0] += 1
        } catch {
            // A name that is gone, or is a link by now, is not worth a message.
            if error.isMissing || error.isLink { return settling.forget(place) }
            // Once for each file: it may go on for days.
            if complained.count < Self.mostComplaints, complained.insert(place).inserted {
                notice(
                    error, below: directory.root,
                    "cannot look at a file (\(error)); it is tried again and again")
            }
            settling.postpone(place, until: now.advanced(by: pace.absent))
        }
    }

    /// The file's status, and whether a program has it open for writing, as far as the folder requires that.
    private func question(
        _ relative: FilePath, _ top: borrowing OpenFolder, _ rule: WatchRule
    ) throws(SystemError) -> (FileStatus, OpenWriter) {
        if rule.writers == .skip { return (try top.status(freshAt: relative), .unknown) }
        let (status, writer) = try Lease.status(at: relative, in: top)
        guard rule.writers == .proc, writer == .unknown, status.isRegular else { return (status, writer) }
        let answer = openFiles.writer(of: status, seen: clocks.monotonic())
        if answer.closed > 0 || answer.hidesProcesses, answer.writer == .unknown, !hasSaidClosed {
            hasSaidClosed = true
            let obstacle =
                answer.closed > 0
                ? "\(answer.closed) processes of other users may not be looked into"
                : "/proc does not show every process (a container, or hidepid= of /proc, as with ProtectProc= of a unit)"
            log(
                Remark(
                    .warning,
                    "settle.writers is proc, and \(obstacle): "
                        + "files wait for the longer quiet time instead. CAP_SYS_PTRACE with CAP_DAC_READ_SEARCH would let it, CAP_LEASE would do "
                        + "without (AmbientCapabilities= of the unit)"))
        }
        return (status, answer.writer)
    }

    /// The further hold of a file that is at rest.
    private func hold(
        _ place: Place, _ source: SourceFile, _ status: FileStatus, _ rule: WatchRule, _ isMarked: Bool?,
        _ unchanged: Duration, _ now: MonotonicTime
    ) -> (what: SettleHold, until: MonotonicTime)? {
        let longest = min(Self.longestHold, rule.reportAfter)
        if isMarked == false, let marker = rule.marker {
            self.wait(for: marker, of: place)
            // If no event reports it, the directory is polled, which wakes this file.
            return (.marker, now.advanced(by: longest))
        }
        let wait = rule.limits.wait(for: status, unchanged: unchanged, now: clocks.wall())
        if wait > .zero { return (.age, now.advanced(by: min(wait, longest))) }
        return containerHold(place, source, status, rule, unchanged, now)
    }

    /// Reports once that a file does not settle, and again when the reason changes.
    private func report(_ place: Place, _ path: SourcePath, _ rule: WatchRule, _ now: MonotonicTime) {
        guard settling.isToBeReported(place, after: rule.reportAfter, at: now), let candidate = settling[place],
            candidate.waiting != .age, candidate.waiting != .checking
        else { return }
        let file = waitingFile(place, candidate, path)
        log(
            Remark(
                .warning,
                "\(path.display) has not settled for \(words(now.since(candidate.first))): \(file.fullExplanation)"))
        hasNews = true
    }

    /// The time when a file is old enough for `min_age`; `nil` where its quiet time ends later, or no age is required.
    func ofAge(_ candidate: Settling<Place>.Candidate) -> MonotonicTime? {
        let limits = rules[candidate.group].settings.limits
        guard limits.minAge != nil else { return nil }
        let wait = limits.wait(for: candidate.status, unchanged: now.since(candidate.since), now: clocks.wall())
        let ofAge = now.advanced(by: wait)
        return wait > .zero && ofAge > candidate.since.advanced(by: candidate.quietTime) ? ofAge : nil
    }

    /// The file's wait that ends last.
    private func waiting(_ candidate: Settling<Place>.Candidate) -> Settling<Place>.Waiting {
        candidate.waiting == .quiet && ofAge(candidate) != nil ? .age : candidate.waiting
    }

    func waitingFile(_ place: Place, _ candidate: Settling<Place>.Candidate, _ path: SourcePath) -> WaitingFile {
        let reason: WaitingFile.Reason =
            switch waiting(candidate) {
            case .quiet: .quiet
            case .change: .change
            case .writer: .writer
            case .age: .age
            case .checking: .checking
            case .container: .container(flaw(of: place) ?? "was not whole")
            case .marker:
                rules[candidate.group].settings.marker.map { .marker($0.marker(of: place.name)) } ?? .quiet
            }
        let (rule, until) = self.rule(of: candidate)
        return WaitingFile(
            folder: rules[candidate.group].settings.name, path: path, size: candidate.status.size,
            since: candidate.first, isGrowing: candidate.isGrowing, isBusy: candidate.isBusy, reason: reason,
            rule: rule, until: until, rate: candidate.rate,
            isOverdue: candidate.reported != nil && candidate.reported != .age, isYoung: ofAge(candidate) != nil)
    }

    /// The key that causes a candidate's wait, and the end of the wait.
    private func rule(of candidate: Settling<Place>.Candidate) -> (words: String, until: MonotonicTime?) {
        let rule = rules[candidate.group].settings
        switch waiting(candidate) {
        case .quiet, .change:
            let key = "`settle.quiet_for: \(writtenTime(candidate.quietTime))`"
            let words = pace.quiet.words(for: candidate.evidence, candidate.quietTime)
            return (
                rule.quietFor == nil ? "\(key), \(words)" : key, candidate.since.advanced(by: candidate.quietTime)
            )
        case .writer: return ("`settle.writers: \(rule.writers.rawValue)`; it is asked again", candidate.next)
        case .marker: return ("`settle.marker: \"\(rule.marker?.source ?? "")\"`", nil)
        case .age:
            let left = rule.limits.wait(
                for: candidate.status, unchanged: now.since(candidate.since), now: clocks.wall())
            return ("`min_age: \(writtenTime(rule.limits.minAge ?? .zero))`", now.advanced(by: max(.zero, left)))
        case .checking: return ("`settle.container: check`", nil)
        case .container where rule.broken == .upload:
            return (
                "`settle.container: check`; when it has not changed for `settle.broken_after: "
                    + "\(writtenTime(rule.brokenAfter))` it is taken as it is",
                candidate.since.advanced(by: rule.brokenAfter)
            )
        case .container: return ("`settle.container: check` with `settle.broken: wait`", nil)
        }
    }

    /// Passes on one delivery at a time; the next follows when that was taken.
    func passOn() {
        guard !isDelivering else { return }
        if let delivery = outbox.popFirst() {
            isDelivering = true
            deliver(delivery)
        } else if !ready.isEmpty {
            let batch = Array(ready.prefix(pace.batch))
            ready.removeFirst(batch.count)
            isDelivering = true
            deliver(.settled(batch.map(\.file)))
        }
    }
}
