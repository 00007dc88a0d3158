internal import Config
internal import Core
internal import Linux
internal import Store

// Whether the machine is busy with something else, by those whom `busy` names.

extension Dispatcher {
    /// Sees to it that all are known for whose word something waits.
    func lookAtBusy() async throws {
        let settings = house.settings
        busy.add(settings.allRules)
        busy.keep(settings.allRules)
        listenToFiles()
        let wanted = busy.hasPolled ? try await wantedSources() : []
        for (source, patience) in busy.due(wanted, at: house.clocks.monotonic()) { ask(source, patience) }
    }

    /// Looks at the files of new settings before these count, so that nothing stops because nobody has looked yet. Nobody
    /// waits here for a command, nor for a disk that does not answer.
    func learnBusy(_ settings: Settings) async {
        busy.add(settings.allRules)
        listenToFiles()
        for (source, patience) in busy.newFiles() { ask(source, patience) }
        let asks = busyAsks.filter { $0.key.isFile }.map(\.value)
        if asks.isEmpty { return }
        let patience = Nudge()
        let all = Task {
            for ask in asks { await ask.value }
            patience.ring()
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
                ?? FileNews { [weak self] in Task { await self?.filesMayHaveChanged() } }
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
        if ZoneSource.identity() != zoneSource { house.dispatchBell.ring() }
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
        let (look, asked) = (busyLook, house.clocks.monotonic())
        busyAsks[source] = Task {
            let answer = await look.ask(source, patience)
            self.heard(answer, of: source, asked: asked)
        }
    }

    private func heard(_ answer: BusyWord.Answer?, of source: BusySource, asked: MonotonicTime) {
        busyAsks[source] = nil
        let (change, again) = busy.heard(answer, of: source, asked: asked, at: house.clocks.wall())
        if let again { ask(source, again) }
        if let answer, case .another(let before) = change {
            tell(answer, of: source, after: before?.answer)
            // What is being claimed at this moment was not stopped.
            if answer != .free { stops += 1 }
        }
        // A file that is as it was changes nothing, and needs no next look.
        if change == .none, !busy.hasPolled { return }
        stopForbidden()
        house.dispatchBell.ring()
    }

    private func tell(_ answer: BusyWord.Answer, of source: BusySource, after before: BusyWord.Answer?) {
        switch (before, answer) {
        case (_, .unknown(let problem, let remedy)):
            house.log.warning(
                "nobody knows whether the machine is busy, which counts as busy",
                ["busy": source.name, "reason": problem, "remedy": remedy])
        case (.unknown?, _): house.log.notice("whether the machine is busy is known again", ["busy": source.name])
        // A camera may record a thousand times a day; what is stopped for it is said by itself.
        case (_, .busy): house.log.debug("the machine is busy", ["busy": source.name])
        case (_, .free): house.log.debug("the machine is not busy", ["busy": source.name])
        }
    }

    /// Those for whose word something waits that would go otherwise.
    private func wantedSources() async throws -> Set<BusySource> {
        let settings = house.settings
        let excused = excusedUploads.reduce(into: Set<Excuse>()) { $0.formUnion($1.excuses) }
        let ready = try await house.store.readyClasses()
        let running = Set(
            transfers.values.flatMap { transfer in
                transfer.folders.values.map { UploadClass(folder: $0, destination: transfer.destination) }
            })
        var world = world
        world.busy = Dictionary(
            settings.busyRules.map { ($0.rule.source, BusyWord(.free, since: world.now)) }, uniquingKeysWith: { $1 })
        var wanted: Set<BusySource> = []
        for upload in Set(ready).union(running) {
            guard let destination = house.settings(ofDestination: upload.destination) else { continue }
            var origin = origin(upload.folder)
            origin.excused.formUnion(excused)
            if !running.contains(upload),
                case .wait = admission.verdict(for: remote(upload.destination), from: origin, in: world)
            {
                continue
            }
            let rules = [settings.policy.rules, destination.policy.rules, origin.rules]
            wanted.formUnion(rules.compactMap { $0.busy?.source })
        }
        for name in closedToRemovals {
            // A hook has no rules of its own.
            guard house.sites[name] != nil, admission.bans(on: remote(name), in: world).isEmpty else { continue }
            wanted.formUnion([settings.policy.rules, remote(name).rules].compactMap { $0.busy?.source })
        }
        return wanted
    }

    /// What people are shown: a source for whose word nothing waits was not asked, and is in nobody's way.
    var shownWorld: Admission.World { world { busy.isAwaited($0) } }

    /// What a plan goes by: what was not said yet is no reason to wait for ever.
    var plannedWorld: Admission.World { world { _ in false } }

    private func world(leavingOpen isOpen: (BusySource) -> Bool) -> Admission.World {
        var world = world
        for (_, rule) in house.settings.busyRules where world.busy[rule.source] == nil && !isOpen(rule.source) {
            world.busy[rule.source] = BusyWord(.free, since: world.now)
        }
        return world
    }

    /// For tests, which make up the answers.
    func ask(_ look: BusyLook) { busyLook = look }
}
