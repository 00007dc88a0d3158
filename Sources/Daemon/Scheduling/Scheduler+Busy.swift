internal import Config
internal import Core
internal import Linux
internal import Store

// Whether the machine is busy with something else, by the sources that `busy` names.

extension Scheduler {
    /// Asks the sources that at least one upload waits for.
    func lookAtBusy() async throws {
        let settings = house.settings
        busy.add(settings.allRules)
        busy.keep(settings.allRules)
        listenToFiles()
        let wanted = busy.hasPolled ? try await wantedSources() : []
        for (source, patience) in busy.due(wanted, at: house.clocks.monotonic()) { ask(source, patience) }
    }

    /// Inspects the files of new settings before the settings take effect, so that no transfer stops only because a
    /// file has not been inspected yet. It waits neither for a command nor for a disk that does not answer.
    func learnBusy(_ settings: Settings) async {
        busy.add(settings.allRules)
        listenToFiles()
        for (source, patience) in busy.newFiles() { ask(source, patience) }
        let asks = busyAsks.filter { $0.key.isFile }.map(\.value)
        if asks.isEmpty { return }
        let patience = AsyncSignal()
        let all = Task {
            for ask in asks { await ask.value }
            patience.signal()
        }
        await patience.wait(atMost: busyPatience)
        all.cancel()
    }

    private func listenToFiles() {
        let files = busy.files.union(zoneFiles)
        if files == listenedTo { return }
        listenedTo = files
        do {
            let news =
                try fileNews
                ?? FileEvents { [weak self] in Task { await self?.filesMayHaveChanged() } }
            fileNews = news
            news.watch(files)
        } catch {
            let reason = "\(error)"
            filesMayHaveChanged(unheard: Dictionary(uniqueKeysWithValues: files.map { ($0, reason) }))
        }
    }

    private func filesMayHaveChanged() {
        if let fileNews { filesMayHaveChanged(unheard: fileNews.unheard) }
    }

    private func filesMayHaveChanged(unheard: [FilePath: String]) {
        if ZoneSource.identity() != zoneSource { house.schedulingSignal.signal() }
        let (asks, news) = busy.filesChanged(unheard: unheard)
        for (path, reason) in news {
            house.log.notice(
                "changes of a file that `busy` names are not told: it is looked at every 30 s while something waits",
                ["path": path.display, "reason": reason])
        }
        for (source, patience) in asks { ask(source, patience) }
    }

    private func ask(_ source: BusySource, _ patience: Duration) {
        if isStopping { return }
        let (probe, asked) = (busyProbe, house.clocks.monotonic())
        busyAsks[source] = Task {
            let answer = await probe.ask(source, patience)
            self.heard(answer, of: source, asked: asked)
        }
    }

    private func heard(_ answer: BusyAnswer.Answer?, of source: BusySource, asked: MonotonicTime) {
        busyAsks[source] = nil
        let (change, again) = busy.heard(answer, of: source, asked: asked, at: house.clocks.wall())
        if let again { ask(source, again) }
        if let answer, case .another(let before) = change {
            tell(answer, of: source, after: before?.answer)
            // The stop did not reach uploads that are being claimed at this moment.
            if answer != .free { stops += 1 }
        }
        // A file whose state is the same changes nothing, and needs no next inspection.
        if change == .none, !busy.hasPolled { return }
        stopForbidden()
        house.schedulingSignal.signal()
    }

    private func tell(_ answer: BusyAnswer.Answer, of source: BusySource, after before: BusyAnswer.Answer?) {
        switch (before, answer) {
        case (_, .unknown(let problem, let remedy)):
            house.log.warning(
                "nobody knows whether the machine is busy, which counts as busy",
                ["busy": source.name, "reason": problem, "remedy": remedy])
        case (.unknown?, _): house.log.notice("whether the machine is busy is known again", ["busy": source.name])
        // A camera may record a thousand times a day; a transfer that is stopped for it is reported by itself.
        case (_, .busy): house.log.debug("the machine is busy", ["busy": source.name])
        case (_, .free): house.log.debug("the machine is not busy", ["busy": source.name])
        }
    }

    /// Busy sources that are the only thing blocking at least one upload.
    private func wantedSources() async throws -> Set<BusySource> {
        let settings = house.settings
        let exempt = excusedUploads.reduce(into: Set<Exemption>()) { $0.formUnion($1.exemptions) }
        let ready = try await house.store.readyClasses()
        let running = Set(
            transfers.values.flatMap { transfer in
                transfer.folders.values.map { UploadClass(folder: $0, destination: transfer.destination) }
            })
        var inputs = inputs
        inputs.busy = Dictionary(
            settings.busyRules.map { ($0.rule.source, BusyAnswer(.free, since: inputs.now)) }, uniquingKeysWith: { $1 })
        var wanted: Set<BusySource> = []
        for upload in Set(ready).union(running) {
            guard let destination = house.settings(ofDestination: upload.destination) else { continue }
            var origin = origin(upload.folder)
            origin.exempt.formUnion(exempt)
            if !running.contains(upload),
                case .wait = admission.verdict(for: remote(upload.destination), from: origin, in: inputs)
            {
                continue
            }
            let rules = [settings.policy.rules, destination.policy.rules, origin.rules]
            wanted.formUnion(rules.compactMap { $0.busy?.source })
        }
        for name in closedToRemovals {
            // A hook has no rules of its own.
            guard house.sites[name] != nil, admission.hardBlockers(on: remote(name), in: inputs).isEmpty else {
                continue
            }
            wanted.formUnion([settings.policy.rules, remote(name).rules].compactMap { $0.busy?.source })
        }
        return wanted
    }

    /// The inputs for views: a source that no upload waits for was not asked, and blocks nothing.
    var shownWorld: Admission.PolicyInputs { inputs { busy.isAwaited($0) } }

    /// The inputs for a plan: a source that has not answered yet is no reason to wait for ever.
    var plannedWorld: Admission.PolicyInputs { inputs { _ in false } }

    private func inputs(leavingOpen isOpen: (BusySource) -> Bool) -> Admission.PolicyInputs {
        var inputs = inputs
        for (_, rule) in house.settings.busyRules where inputs.busy[rule.source] == nil && !isOpen(rule.source) {
            inputs.busy[rule.source] = BusyAnswer(.free, since: inputs.now)
        }
        return inputs
    }

    /// For tests, which supply the answers.
    func ask(_ probe: BusyProbe) { busyProbe = probe }
}
