internal import Config
internal import Core
internal import Linux
internal import Store

/// Folders whose files may be sent to a destination.
struct OpenFolders {
    var all: Set<String> = []
    /// The folders whose files may only be continued, not begun.
    var begunOnly: Set<String> = []
}

// Policy: assembles the inputs that `Core.Admission` wants, and carries out its verdicts.

extension Scheduler {
    func verdict(for name: String) -> Admission.Verdict { admission.verdict(for: remote(name), in: inputs) }

    var admission: Admission {
        Admission(total: house.settings.policy.total, rules: house.settings.policy.rules)
    }

    var inputs: Admission.PolicyInputs {
        var inputs = Admission.PolicyInputs(
            now: house.clocks.wall(), monotonic: house.clocks.monotonic(), zone: .local, clockTrouble: clockTrouble,
            running: transfers.count, everything: pause(.all, ""), network: network,
            quotas: house.ledger.book, power: power,
            busy: busy.words(at: house.clocks.monotonic()))
        inputs.globalStop = globalStop
        return inputs
    }

    func remote(_ name: String) -> Admission.DestinationState {
        let policy = house.settings(ofDestination: name)?.policy
        return Admission.DestinationState(
            name: name, slots: policy?.concurrency ?? house.settings.policy.perDestination, running: running(to: name),
            pause: pause(.destination, name), health: health[name] ?? DestinationHealth(),
            rules: policy?.rules ?? PolicyRules(),
            reachability: reached[name]?.reachability ?? .unseen(Admission.notLookedAt),
            reachabilitySince: reached[name]?.since ?? house.setup.since)
    }

    func origin(_ name: String) -> Admission.FolderState {
        Admission.FolderState(
            name: name, pause: pause(.folder, name), rules: house.folder(name)?.policy.rules ?? PolicyRules(),
            exempt: exemptions(.folder, name))
    }

    /// The folders whose files may be sent now, by destination. Policy is evaluated once for each class that waits,
    /// however many uploads the class has.
    func openFolders() async throws -> [String: OpenFolders] {
        let classes = try await house.store.waitingClasses()
        let (admission, inputs) = (admission, inputs)
        var remotes: [String: Admission.DestinationState] = [:]
        var open: [String: OpenFolders] = [:]
        var holds: [UploadClass: Hold?] = [:]
        for (one, _) in classes where house.destinations[one.destination] != nil {
            let remote = remotes[one.destination] ?? remote(one.destination)
            remotes[one.destination] = remote
            evaluations += 1
            let hardBlockers = admission.hardBlockers(on: remote, from: origin(one.folder), in: inputs)
            if hardBlockers.allSatisfy(\.sparesBegun) {
                open[one.destination, default: OpenFolders()].all.insert(one.folder)
                if !hardBlockers.isEmpty { open[one.destination]?.begunOnly.insert(one.folder) }
            }
            // An untrusted clock is reported once for all of them.
            holds[one] = .some(hardBlockers.filter { $0.kind != .clock }.binding)
        }
        tell(holds)
        return open
    }

    /// Logs which holds begin, and when uploads continue.
    private func tell(_ holds: [UploadClass: Hold?]) {
        let news = holdNews.update(holds, at: house.clocks.monotonic())
        for (one, what) in news.sorted(by: { ($0.key.folder, $0.key.destination) < ($1.key.folder, $1.key.destination) }
        ) {
            switch what {
            case .held(let hold, let times):
                house.log.notice(
                    "uploads wait",
                    [
                        "folder": one.folder, "destination": one.destination, "hold": hold.kind.rawValue,
                        "reason": hold.text, "until": hold.until?.description, "times": times > 1 ? "\(times)" : nil,
                    ])
            case .free(let kind):
                house.log.notice(
                    "uploads go on",
                    ["folder": one.folder, "destination": one.destination, "hold": kind.rawValue])
            }
        }
    }

    /// Stops transfers that policy no longer allows, at once: a window has closed, a network costs something, or the
    /// clock is not trusted.
    ///
    /// - Returns: The interfaces that transfers were stopped on.
    @discardableResult
    func stopForbidden() -> Set<String> {
        let (admission, inputs, cuttingWorld) = (admission, inputs, cuttingWorld)
        // Removals at a destination wait for the same rules.
        let free = closedToRemovals.filter { admission.hardBlockers(on: remote($0), in: inputs).isEmpty }
        if !free.isEmpty { for signal in [house.removalSignal, house.hookSignal] { signal.signal() } }
        closedToRemovals.subtract(free)
        stopForbiddenErrands()
        var interfaces: Set<String> = []
        for transfer in transfers.values where !transfer.task.isCancelled {
            let remote = cutting(transfer.destination)
            let holds = origins(of: transfer).flatMap {
                admission.hardBlockers(on: remote, from: cutting($0), in: cuttingWorld, isUnderWay: true)
            }
            if holds.isEmpty, mayGoOn(transfer) { continue }
            if let interface = transfer.route.interface { interfaces.insert(interface) }
            transfer.task.cancel()
            guard let hold = holds.first else {
                house.log.notice("transfer goes on another way", ["destination": transfer.destination])
                continue
            }
            house.log.notice(
                "transfer stopped, goes on later",
                [
                    "destination": transfer.destination, "hold": hold.kind.rawValue, "reason": hold.text,
                    "until": hold.until?.description,
                ])
        }
        return interfaces
    }

    /// Applies the rate limits of the policy.
    func setLimits() {
        let (settings, inputs) = (house.settings, inputs)
        func limits(_ all: [(name: String, rules: PolicyRules)]) -> [String: Int64?] {
            Dictionary(all.map { ($0.name, $0.rules.limit(in: inputs)) }, uniquingKeysWith: { $1 })
        }
        house.bandwidth.set(
            everything: [settings.policy.rules.limit(in: inputs), personalLimit].compactMap { $0 }.min(),
            destinations: limits(settings.destinations.map { ($0.name, $0.policy.rules) }),
            folders: limits(settings.folders.map { ($0.watch.name, $0.policy.rules) }),
            metered: settings.meteredLimits)
    }

    func fullFolders() -> [String] {
        house.settings.folders.filter { folder in
            guard let most = folder.policy.concurrency else { return false }
            return transfers.values.count { $0.folders.values.contains(folder.watch.name) } >= most
        }.map(\.watch.name)
    }

    func pause(_ scope: PauseRecord.Scope, _ name: String) -> Admission.Pause? {
        pauses.first { $0.holds(scope, name) }.map { Admission.Pause(since: $0.since, until: $0.until) }
    }

    /// The time until something may become free by itself.
    func nextDeadline() async throws -> Duration? {
        // A deadline that passed since the last pass began counts too: nothing else would wake the loop for it.
        var times = health.values.compactMap { $0.trouble?.probeAt }.filter { $0 > lookedAt }
        if let backoff = try await house.store.nextBackoff(after: lookedAt) { times.append(backoff) }
        let (now, wall) = (house.clocks.monotonic(), house.clocks.wall())
        var waits = times.map { $0.since(now) }
        // So does a window that closed during a pass: transfers that the pass started meanwhile have to be stopped.
        var inputs = inputs
        if let lookedAtWall { inputs.now = min(inputs.now, lookedAtWall) }
        let change = admission.nextChange(
            house.settings.destinations.map { remote($0.name) }, house.settings.folders.map { origin($0.watch.name) },
            in: inputs)
        if let next = try await nextPowerCheck() { waits.append(next) }
        waits += rooms.values.compactMap(\.nextCheck).filter { $0 > lookedAt }.map { $0.since(now) }
        if let next = busy.nextCheck(at: now) { waits.append(next) }
        let ends = pauses.compactMap(\.until) + exceptions.map(\.until)
        waits += (ends + [change, expiryLook].compactMap { $0 }).map {
            .milliseconds($0.milliseconds - wall.milliseconds)
        }
        return waits.min().map { max($0, .milliseconds(10)) }
    }

    func expirePauses() async throws {
        let now = house.clocks.wall()
        let over = pauses.filter { $0.until.map { $0 <= now } ?? false }
        for pause in over {
            try await house.store.clearPause(pause.scope, pause.name)
            for signal in [house.removalSignal, house.hookSignal] { signal.signal() }
        }
        pauses = try await house.store.pauses()
        if over.isEmpty { return }
        spareNoMore(over.map { PausedPlace(scope: $0.scope, name: $0.name) })
        try await takeBackWishes()
    }

    // MARK: For views

    /// Whether policy or a person forbids a removal at this destination. If so, the bell rings when that is over.
    func forbidsRemovals(at destination: String) -> Bool {
        if admission.hardBlockers(on: remote(destination), in: inputs).isEmpty {
            closedToRemovals.remove(destination)
            return false
        }
        // A command is not asked while nothing waits for it.
        if closedToRemovals.insert(destination).inserted, busy.hasPolled { house.schedulingSignal.signal() }
        return true
    }

    /// The holds on all uploads of a class, for views.
    ///
    /// - Parameter upload: One of the uploads, which may have an excuse of its own.
    func holds(folder: String, destination: String, upload: String? = nil) async -> [Hold] {
        await closing?.value
        let setup = house.setup
        if setup.destinations[destination] == nil {
            return [
                Hold(
                    .destination, since: setup.since,
                    text:
                        "destination \(destination) is not in the configuration: put it back, or give these uploads up "
                        + "with `sluice cancel --destination \(destination)`")
            ]
        }
        let origin = upload.map { self.origin(folder, of: $0) } ?? self.origin(folder)
        return admission.holds(for: remote(destination), from: origin, in: shownWorld)
    }

    /// When an upload of this class without holds will be sent, in words that form a sentence of their own.
    func turn(of destination: String, folder: String) -> String {
        if fullFolders().contains(folder) { return "it waits for its turn: folder \(folder) sends as many as it may" }
        switch verdict(for: destination) {
        case .go where roomLooks[destination] != nil:
            return "it goes when \(destination) has said how much room it has"
        case .go: return "it goes next"
        case .busy:
            let remote = remote(destination)
            return remote.running >= remote.slots
                ? "it waits for its turn: \(remote.running) of \(remote.slots) transfers to \(destination) are under way"
                : "it waits for its turn: \(transfers.count) of \(house.settings.policy.total) transfers are under way"
        case .wait(let holds): return holds.first?.text ?? "it waits"
        }
    }

    /// The limit in bytes a second that slows an upload down most; `nil` where there is none.
    func slowest(of id: String, to destination: String, from folder: String) -> (what: String, rate: Int64)? {
        let (settings, inputs) = (house.settings, inputs)
        let places = [
            ("policy", settings.policy.rules),
            ("destinations.\(destination)", remote(destination).rules),
            ("folder \(folder)", origin(folder).rules),
        ]
        var limits = places.compactMap { place, rules in
            rules.limit(in: inputs).map { (what: "the bandwidth of \(place)", rate: $0) }
        }
        if let personalLimit { limits.append(("`sluice limit`", personalLimit)) }
        if transfers.values.first(where: { $0.folders[id] != nil })?.route.countsAsMetered == true {
            limits += places.compactMap { place, rules in rules.meteredLimit.map { ("`metered` of \(place)", $0) } }
        }
        return limits.min { $0.rate < $1.rate }
    }

    /// The obstacle for all uploads to a destination; `nil` when there is none.
    func hold(of destination: String) async -> Hold? {
        await closing?.value
        let inputs = shownWorld
        guard var hold = admission.holds(for: remote(destination), in: inputs).first else {
            return roomHold(of: destination)
        }
        if hold.kind.isOfDestination, let until = hold.until, until <= inputs.now {
            // Each waiting upload has a reason of its own not to be sent, so none of them tries the destination.
            hold.until = nil
            hold.text += "; the next upload that may go tries it"
        }
        return hold
    }

    /// Whether any upload may be sent to a destination. An upload that waits for space there leaves it open for smaller
    /// ones.
    func isOpen(_ destination: String) async -> Bool {
        await closing?.value
        return admission.holds(for: remote(destination), in: shownWorld).isEmpty
    }

    /// Whether a destination is a folder on a disk of this machine.
    func isFolderHere(_ name: String) -> Bool {
        house.sites[name]?.isFolder == true && reached[name]?.reachability == .local
    }

    /// The obstacle for all uploads from a folder; `nil` when there is none.
    func hold(ofFolder name: String) -> Hold? { admission.hardBlockers(on: origin(name), in: shownWorld).first }
}
