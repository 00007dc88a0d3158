internal import Config
internal import Core
internal import Linux
internal import Store

/// Decides what goes next, by asking `Core.Admission`, and sees each attempt through to its verdict.
///
/// It wakes when a bell rings or at the earliest deadline, and never otherwise.
actor Dispatcher {
    private let house: House
    private var health: [String: DestinationHealth] = [:]
    private var runs: [String: (destination: String, folder: String, task: Task<Void, Never>)] = [:]
    private var pauses: [PauseRecord] = []
    private var isStopping = false
    /// Uploads that were completed since the start.
    private(set) var completed = 0
    /// How often transfers were told to stop: a claim during which that happened is given back.
    private var stops = 0
    /// How often a destination changed: what an attempt says counts only for the one that it was made with.
    private var changes: [String: Int] = [:]
    /// Failures of the network or the server that an upload has met, until it is over.
    private var strikes: [String: Int] = [:]

    init(house: House) { self.house = house }

    /// Dispatches until the task is cancelled; then stops every transfer and returns when each has let go.
    func run() async throws {
        while !Task.isCancelled {
            do {
                // No byte is sent whose checkpoint could not be stored.
                if house.troubles["state"] != nil { try await house.store.prove() }
                try await pass()
                await house.dispatchBell.wait(atMost: try await nextDeadline())
            } catch let error as StoreError {
                house.stateFailed(error)
                // Not the bell, which rings for every file: the disk is asked every few seconds and not more often. Only a
                // stop ends the sleep early, and the loop with it.
                try? await Alarms.shared.sleep(for: .seconds(5))
            }
        }
        isStopping = true
        let tasks = runs.values.map(\.task)
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    /// Starts what may start.
    private func pass() async throws {
        try await expirePauses()
        // Destinations take turns, so that one with many files does not take every slot of the others.
        var open = house.settings.destinations.map(\.name)
        let isLimitedByFolder = house.settings.folders.contains { $0.policy.concurrency != nil }
        let alike = house.settings.folders.filter { $0.duplicates == .skip }.map(\.watch.name)
        while !open.isEmpty {
            var stillOpen: [String] = []
            for name in open {
                guard case .go(let free) = verdict(for: name), let destination = house.destinations[name] else {
                    continue
                }
                let passedOver = pauses.filter { $0.scope == .folder }.map(\.name) + fullFolders()
                let before = stops
                // A folder with a limit of its own is counted anew after each; else all that may go share a transaction.
                let share = isLimitedByFolder ? 1 : max(1, free / open.count)
                let claims = try await house.store.claim(
                    atMost: share, name, passingOver: passedOver, skippingDuplicatesOf: alike,
                    onRepeat: { self.tellRepeat($0) })
                if claims.isEmpty { continue }
                for claim in claims {
                    if stops == before {
                        start(claim, destination)
                    } else {
                        // Perhaps this one was meant, which was not running yet.
                        try await house.store.finish(claim.upload.id, .yielded)
                    }
                }
                stillOpen.append(name)
            }
            open = stillOpen
        }
    }

    private nonisolated func tellRepeat(_ asset: AssetRecord) {
        house.log.info(
            "not sent again: the same content was uploaded before; the source is kept",
            ["path": asset.path.display])
        house.releaseBell.ring()
    }

    private func start(_ claim: Claim, _ destination: any Destination) {
        let change = changes[claim.upload.destination]
        let run = UploadRun(house: house, claim: claim, destination: destination)
        let id = claim.upload.id
        house.log.info(
            "uploading",
            [
                "id": id, "destination": claim.upload.destination, "path": claim.asset.path.display,
                "size": "\(claim.asset.size)", "from": "\(claim.upload.acked)",
            ])
        let task = Task {
            await self.attempt(run, change)
            self.runs[id] = nil
            self.house.dispatchBell.ring()
            self.house.removalBell.ring()
        }
        runs[id] = (claim.upload.destination, claim.upload.folder, task)
    }

    private func attempt(_ run: UploadRun, _ change: Int?) async {
        let upload = run.claim.upload
        do {
            var verdict = try await run.run()
            if changes[upload.destination] == change {
                await settle(&verdict, upload)
            } else if verdict.failure != nil {
                // That was the destination as it used to be.
                (verdict.outcome, verdict.failure) = (.yielded, nil)
            }
            let day = LocalTime(house.clocks.wall()).date
            let state = try await house.store.finish(
                upload.id, verdict.outcome, spending: .init(bytes: verdict.spent, network: "any", day: day))
            if state == .completed {
                completed += 1
                CrashPoint.reached("completed")
            }
            tell(verdict, run.claim, state)
            // `nil`: ended by a cancel.
            if state?.isTerminal ?? true { strikes[upload.id] = nil }
            if state?.isTerminal == true { house.releaseBell.ring() }
            if state == .staging { house.stagerBell.ring() }
        } catch {
            // The upload stays leased to this run: it is put back when the state can be written, or at the next start.
            if let error = error as? StoreError { house.stateFailed(error) }
            house.log.error("an attempt could not be recorded", ["id": upload.id, "reason": "\(error)"])
            await putBack(upload.id)
        }
    }

    private func putBack(_ id: String) async {
        while !isStopping && !Task.isCancelled {
            do {
                try await Alarms.shared.sleep(for: .seconds(5))
                try await house.store.finish(id, .yielded)
                return
            } catch {
                house.log.debug("still not recorded", ["id": id, "reason": "\(error)"])
            }
        }
    }

    /// Keeps the destination's health, and fills in when a held upload may go again.
    private func settle(_ verdict: inout UploadRun.Verdict, _ upload: UploadRecord) async {
        let name = upload.destination
        var health = health[name] ?? DestinationHealth()
        let retry = house.retry(folder: upload.folder, destination: name)
        let (now, monotonic) = (house.clocks.wall(), house.clocks.monotonic())
        // A full destination says where an upload stands, and still takes nothing.
        let isFull = if case .noRoom? = verdict.remedy { true } else { false }
        let isUp = verdict.wasAnswered && !isFull
        if let failure = verdict.failure, let wait = ownWait(verdict, upload, health, retry) {
            verdict.outcome = .held(failure, until: monotonic.advanced(by: wait))
            house.log.warning(
                "waits alone, since others get through",
                ["id": upload.id, "destination": name, "reason": failure.message])
        } else if let remedy = verdict.remedy, let failure = verdict.failure,
            let hold = DestinationHealth.hold(
                for: remedy, failures: isUp ? 1 : (health.trouble?.failures ?? 0) + 1, backoff: retry,
                luck: Chance.luck())
        {
            if isUp { health.succeeded() }
            let isNews = health.trouble?.kind != hold.kind || health.trouble?.text != failure.message
            health.failed(hold.kind, text: failure.message, wait: hold.wait, now: now, monotonic: monotonic)
            // Behind the next probe, so that another upload makes it: this file may be the one that the server chokes on.
            verdict.outcome = .held(failure, until: monotonic.advanced(by: hold.wait + .seconds(1)))
            if isNews {
                house.log.warning(
                    "destination held",
                    [
                        "destination": name, "hold": hold.kind.rawValue, "reason": failure.message,
                        "next_try_in": "\(Int(hold.wait.inSeconds.rounded()))s",
                    ])
            }
        } else if verdict.wasAnswered {
            if health.trouble != nil { house.log.notice("destination works again", ["destination": name]) }
            health.succeeded()
        }
        self.health[name] = health
    }

    /// How long an upload waits that the destination drops again while it takes others: one file that a server chokes
    /// on must not stop the rest. `nil` when the destination is to be held, as for every first time.
    private func ownWait(
        _ verdict: UploadRun.Verdict, _ upload: UploadRecord, _ health: DestinationHealth, _ retry: Backoff
    ) -> Duration? {
        guard case .holdDestination(let after)? = verdict.remedy else { return nil }
        let before = strikes[upload.id] ?? 0
        strikes[upload.id] = before + 1
        // Told by a status, it is the server as a whole; a connection that breaks may be this file's doing.
        guard before > 0, health.trouble == nil, after == nil else { return nil }
        return retry.wait(afterFailures: before + 1, luck: Chance.luck())
    }

    private func tell(_ verdict: UploadRun.Verdict, _ claim: Claim, _ state: UploadState?) {
        let upload = claim.upload
        switch verdict.outcome {
        case .verified(let remote):
            house.log.info(
                "uploaded and verified",
                [
                    "id": upload.id, "destination": upload.destination, "path": claim.asset.path.display,
                    "size": "\(claim.asset.size)", "verified_by": remote.verifiedBy, "sent": "\(verdict.spent)",
                ])
        case .again(let failure, _):
            house.log.warning(
                "attempt failed, will be tried again",
                ["id": upload.id, "destination": upload.destination, "reason": failure.message])
        case .refused(let failure):
            house.log.error(
                "upload failed",
                [
                    "id": upload.id, "destination": upload.destination, "path": claim.asset.path.display,
                    "reason": failure.message,
                ])
        case .copyLost(let failure):
            house.log.warning("staged copy lost, staging again", ["id": upload.id, "reason": failure.message])
        case .held(let failure, _):
            house.log.debug("held", ["id": upload.id, "reason": failure.message])
        case .yielded:
            house.log.debug("stopped", ["id": upload.id])
        }
    }

    // MARK: What may go

    private func verdict(for name: String) -> Admission.Verdict { admission.verdict(for: remote(name), in: world) }

    private var admission: Admission { Admission(total: house.settings.policy.total) }

    private var world: Admission.World {
        Admission.World(
            now: house.clocks.wall(), monotonic: house.clocks.monotonic(), running: runs.count,
            everything: pause(.all, ""))
    }

    private func remote(_ name: String) -> Admission.Remote {
        Admission.Remote(
            name: name,
            slots: house.settings(ofDestination: name)?.policy.concurrency ?? house.settings.policy.perDestination,
            running: running(to: name), pause: pause(.destination, name), health: health[name] ?? DestinationHealth())
    }

    private func fullFolders() -> [String] {
        house.settings.folders.filter { folder in
            guard let most = folder.policy.concurrency else { return false }
            return runs.values.count { $0.folder == folder.watch.name } >= most
        }.map(\.watch.name)
    }

    private func pause(_ scope: PauseRecord.Scope, _ name: String) -> Admission.Pause? {
        pauses.first { $0.scope == scope && $0.name == name }.map { Admission.Pause(since: $0.since, until: $0.until) }
    }

    func nextDeadline() async throws -> Duration? {
        let (now, wall) = (house.clocks.monotonic(), house.clocks.wall())
        var waits = health.values.compactMap { $0.trouble.map { $0.probeAt.since(now) } }.filter { $0 > .zero }
        if let backoff = try await house.store.nextBackoff(), backoff > now { waits.append(backoff.since(now)) }
        waits += pauses.compactMap { $0.until }.map { .milliseconds($0.milliseconds - wall.milliseconds) }
        return waits.min().map { max($0, .milliseconds(10)) }
    }

    private func expirePauses() async throws {
        let now = house.clocks.wall()
        for pause in pauses where pause.until.map({ $0 <= now }) ?? false {
            try await house.store.clearPause(pause.scope, pause.name)
            house.removalBell.ring()
        }
        pauses = try await house.store.pauses()
    }

    // MARK: For the verbs

    /// Stops the running transfers that `isMeant` says, at once; they go back to the queue by themselves.
    func stop(where isMeant: (_ id: String, _ destination: String, _ folder: String) -> Bool) {
        stops += 1
        for (id, run) in runs where isMeant(id, run.destination, run.folder) { run.task.cancel() }
    }

    /// Stops the transfers of cancelled uploads. One that is being created is let finish that: only its answer says
    /// what there is to remove, and no byte follows it.
    func cancel(_ ids: Set<String>) {
        stops += 1
        for (id, run) in runs where ids.contains(id) { house.live.whenOpened(id) { run.task.cancel() } }
    }

    /// Stops a transfer and returns when it has let go, so that a new generation does not meet the old one.
    func end(_ id: String) async {
        runs[id]?.task.cancel()
        await runs[id]?.task.value
    }

    /// A person says that it works again: what waits for a destination is tried at once.
    ///
    /// - Parameter names: `nil` for every destination.
    func reconsider(_ names: Set<String>? = nil) async throws {
        for name in house.destinations.keys where names?.contains(name) ?? true {
            health[name]?.reconsider(monotonic: house.clocks.monotonic())
            try await house.store.forgetWaits(for: name)
        }
        house.dispatchBell.ring()
    }

    /// Puts other settings in force. Transfers to destinations in `changed` are stopped and go on by themselves, to what
    /// the destination is now; no other is touched. What was wrong with these destinations is forgotten, and one whose
    /// credential was refused is tried again: it may be a new one.
    func take(_ setup: Setup, changed: Set<String>) async {
        house.replace(setup)
        stops += 1
        for (id, run) in runs where changed.contains(run.destination) {
            run.task.cancel()
            strikes[id] = nil
        }
        for name in changed {
            changes[name, default: 0] += 1
            health[name] = nil
        }
        let refused = health.filter { $0.value.trouble?.kind == .auth }.map(\.key)
        for name in refused { health[name]?.reconsider(monotonic: house.clocks.monotonic()) }
        for name in changed.union(refused) {
            do { try await house.store.forgetWaits(for: name) } catch {
                house.log.warning("waits go on as they were", ["destination": name, "reason": "\(error)"])
            }
        }
        house.dispatchBell.ring()
    }

    var isIdle: Bool { runs.isEmpty }
    func isRunning(_ id: String) -> Bool { runs[id] != nil }
    func running(to destination: String) -> Int { runs.values.count { $0.destination == destination } }

    /// A person paused everything that goes to this destination.
    func isPaused(_ destination: String) -> Bool { pause(.all, "") != nil || pause(.destination, destination) != nil }

    /// What holds all uploads of a class, for views.
    func holds(folder: String, destination: String) -> [Hold] {
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
        return admission.holds(for: remote(destination), from: (folder, pause(.folder, folder)), in: world)
    }

    /// What is wrong with a destination; `nil` when it is up or was never tried.
    func hold(of destination: String) -> Hold? { health[destination]?.standing }

    /// Reads the pauses again: a person changed them.
    func reloadPauses() async throws {
        pauses = try await house.store.pauses()
        for bell in [house.dispatchBell, house.removalBell] { bell.ring() }
    }
}
