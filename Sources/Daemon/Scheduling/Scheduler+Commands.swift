internal import Config
internal import Core
internal import Credentials
internal import Linux
internal import Store

// Changes by a person or by time: settings, pauses, exceptions, expiry, and requests to try again or to stop.

extension Scheduler {
    // MARK: Configuration

    /// Uploads that wait for a destination are tried at once, since it may work again.
    ///
    /// - Parameters:
    ///   - names: `nil` for every destination.
    ///   - isWanted: Whether a command requests it. The user may have corrected a secret before, so it is read again.
    func reconsider(_ names: Set<String>? = nil, isWanted: Bool = false) async throws {
        for name in context.destinations.keys where names?.contains(name) ?? true {
            if isWanted {
                callbacks.renewSecret(name)
                facts.destinations.commanded(name)
            }
            // After the commit, so that the destination is tried with one of the uploads whose waits have ended.
            defer { facts.destinations.reconsider(name, at: context.clocks.monotonic()) }
            try await context.store.write { try $0.waits.end(for: name) }
        }
    }

    /// A command wants these uploads to be tried at once, and not others in their place: the waits of other uploads to
    /// the same destinations stay.
    func reconsider(_ uploads: [UploadRecord]) async throws {
        let groups = Dictionary(grouping: uploads, by: \.destination)
        for name in groups.keys {
            callbacks.renewSecret(name)
            facts.destinations.commanded(name)
        }
        // After the commit: before it, another upload would be tried in their place.
        defer {
            for (name, some) in groups {
                facts.destinations.request(some.map(\.id), at: name, now: context.clocks.monotonic())
            }
        }
        try await context.store.write { try $0.waits.end(of: uploads.map(\.id)) }
    }

    /// Puts a new configuration in force. Transfers to destinations in `changed` are stopped and continue by
    /// themselves, to the destination as it is now; other transfers are not touched. Recorded failures of these
    /// destinations are forgotten. A destination that refused its credential is tried again: the credential may be new.
    func apply(_ configuration: RuntimeConfiguration, changed: Set<String>) async {
        await inspectFiles(of: configuration.settings)
        let before = context.settings
        context.configuration.replace(configuration)
        facts.busy.addedRulesHold()
        facts.configurationChanged()
        for name in changed { for id in facts.transfers.uploads(to: name) { facts.uploads.forgetFailures(id) } }
        facts.transfers.cancel { changed.contains($0.destination) }
        // Transfers that wait for the answer of a program ask the program that is named now.
        let isAnother = !before.beforeUploads.elementsEqual(configuration.settings.beforeUploads) { $0 == $1 }
        if isAnother {
            attempts.pendingApprovals.forget()
            let asking = attempts.pendingApprovals.waiting
            facts.transfers.cancel { !asking.isDisjoint(with: $0.folders.keys) }
        }
        facts.destinations.apply(changed: changed, present: context.destinations.keys)
        let refused = facts.destinations.reconsiderRefused(at: context.clocks.monotonic())
        sendingLimits.ledger.apply(configuration.settings)
        await inspectNetwork()
        for name in isAnother ? Set(context.destinations.keys) : changed.union(refused) {
            await endWaits(at: name)
        }
    }

    /// Ends waits of uploads to a destination.
    ///
    /// - Parameter ids: `nil` for all uploads to it.
    func endWaits(of ids: Set<String>? = nil, at name: String) async {
        if ids?.isEmpty == true { return }
        do {
            try await context.store.write { tx in
                if let ids { try tx.waits.end(of: Array(ids)) } else { try tx.waits.end(for: name) }
            }
        } catch {
            context.log.warning(
                "cannot end the waits of uploads; they stay as they are", ["destination": name, "reason": "\(error)"])
        }
    }

    // MARK: Pauses

    /// Reads the pauses again after a person has changed them. When it returns, no connection of a program sends any more
    /// that they hold.
    func reloadPauses() async throws {
        facts.pauses.replace(try await context.store.read { try $0.pauses.all() })
        stopForbiddenRequests(snapshot)
        await facts.requests.connectionsStopped()
    }

    /// The pauses of these places, which are about to be set, cut no running transfer.
    func drain(_ places: [PauseScope]) { facts.pauses.drain(places) }

    /// The pauses of these places cut running transfers, or are over.
    func stopDraining(_ places: [PauseScope]) { facts.pauses.stopDraining(places) }

    func expirePauses() async throws {
        let over = facts.pauses.expired(at: context.clocks.wall())
        for pause in over { try await context.store.write { try $0.pauses.clear(pause.scope, pause.name) } }
        facts.pauses.replace(try await context.store.read { try $0.pauses.all() })
        if over.isEmpty { return }
        facts.pauses.stopDraining(over.map { PauseScope(scope: $0.scope, name: $0.name) })
        try await continueUnpaused()
    }

    /// Uploads that were to end after their parts, and that no pause holds any more, continue as if there had been no
    /// pause.
    func continueUnpaused() async throws {
        for id in attempts.stops.pausing {
            guard let transfer = facts.transfers.carrying(id), let folder = transfer.folders[id],
                !facts.pauses.holds(folder: folder, destination: transfer.destination)
            else { continue }
            if try await context.store.read({ try $0.uploads.find(id) })?.pausedAt == nil {
                attempts.stops.clearPause(id)
            }
        }
    }

    // MARK: Exceptions

    /// Reads the exceptions again after a person has changed them.
    func reloadOverrides() async throws {
        facts.overrides.replace(try await context.store.read { try $0.overrides.all() })
        let snapshot = snapshot
        setLimits(snapshot)
        stopForbidden(snapshot)
    }

    /// Removes exceptions that are over, and reports it.
    func expireOverrides() async throws {
        let over = facts.overrides.expired(at: context.clocks.wall())
        if !over.isEmpty {
            try await context.store.write { try $0.overrides.clear(over) }
            AttemptLog(log: context.log).reportEnded(over)
        }
        facts.overrides.replace(try await context.store.read { try $0.overrides.all() })
    }

    /// Applies the rate limits of the policy.
    func setLimits(_ snapshot: PolicySnapshot) { sendingLimits.bandwidth.apply(snapshot) }

    // MARK: Expiry

    /// Ends uploads that are too old by `expires_after`, and finds out when to look again. Running uploads are not
    /// touched, and a clock that is not trusted makes no upload too old.
    func expireUploads() async throws {
        let now = context.clocks.wall()
        let shortest = facts.clock.trouble == nil ? context.settings.allRules.compactMap(\.expiresAfter).min() : nil
        guard facts.expiry.begin(at: now, shortest: shortest), let shortest else { return }
        var next: WallTime?
        defer { facts.expiry.end(next) }
        next = try await ExpirySweep(context: context).run(now: now, shortest: shortest)
    }

    /// Ends waiting uploads that have been failing for `retry.give_up_after`.
    func giveUpUploads() async throws {
        guard facts.givingUp.begin(at: context.clocks.monotonic()) else { return }
        let (ended, next) = try await GiveUpSweep(context: context).run()
        facts.gaveUp(ended, next: next)
    }

    // MARK: Stopping

    /// Stops transfers that policy no longer allows, at once: a window has closed, a network costs something, or the
    /// clock is not trusted.
    ///
    /// - Returns: The interfaces that transfers were stopped on.
    @discardableResult
    func stopForbidden(_ snapshot: PolicySnapshot) -> Set<String> {
        // Removals and notices wait for the same rules.
        facts.requests.open { snapshot.hold(on: $1, at: $0) == nil }
        stopForbiddenRequests(snapshot)
        let cutting = snapshot.cutting
        var interfaces: Set<String> = []
        for transfer in facts.transfers.underWay where !transfer.task.isCancelled {
            let holds = cutting.blockers(on: transfer)
            let accounts = snapshot.accountsWithoutExemption(transfer)
            let isUsedUp = accounts.contains(where: snapshot.isUsedUp)
            if holds.isEmpty, !isUsedUp, snapshot.mayContinue(transfer) {
                sendingLimits.apply(snapshot.appliedRules(to: transfer), to: transfer)
                // What it reserves from now on comes out of the quotas.
                for account in accounts { account.endExemption() }
                continue
            }
            if let interface = transfer.route.interface { interfaces.insert(interface) }
            transfer.task.cancel()
            AttemptLog(log: context.log).reportStopped(transfer, holds.first, isOutOfQuota: isUsedUp)
        }
        return interfaces
    }

    /// Stops the running uploads that a commit of something else has ended.
    func stopSuperseded() async throws {
        guard superseded.take() else { return }
        var isDone = false
        // The next cycle looks again if the state cannot be read now.
        defer { if !isDone { superseded.set() } }
        for stop in try await SupersededUploads.find(among: facts.transfers.all, in: context.store) {
            AttemptLog(log: context.log).report(stop, isLive: attempts.live[stop.id] != nil)
            if stop.reason == .stagedAgain { stopTransfer(of: stop.id) } else { cancel([stop.id]) }
        }
        isDone = true
    }

    /// Stops the running transfers with an upload that matches `isMeant`, at once; they go back to the queue by
    /// themselves.
    func stop(where isMeant: (_ id: String, _ destination: String, _ folder: String) -> Bool) {
        facts.generation.noteStop()
        facts.transfers.cancel { transfer in
            transfer.folders.contains { isMeant($0.key, transfer.destination, $0.value) }
        }
    }

    /// Running uploads that match `isMeant` end after the parts that are being sent. A transfer that is not sending yet
    /// ends at once.
    func stopAfterPart(where isMeant: (_ id: String, _ destination: String, _ folder: String) -> Bool) {
        // Uploads that are being claimed now are given back.
        facts.generation.noteStop()
        for transfer in facts.transfers.all {
            let meant = transfer.folders.filter { isMeant($0.key, transfer.destination, $0.value) }
            if meant.isEmpty { continue }
            attempts.stops.pause(afterPart: meant.keys)
            if transfer.folders.keys.allSatisfy({ attempts.live[$0] == nil }) { transfer.task.cancel() }
        }
    }

    /// Stops the transfers of cancelled uploads. An upload that is being created at the destination finishes that
    /// first: only the answer shows what there is to remove, and no byte follows it.
    func cancel(_ ids: Set<String>) {
        for id in ids { stopTransfer(of: id) }
        facts.overrides.end(ofUploads: ids)
    }

    private func stopTransfer(of id: String) {
        facts.generation.noteStop()
        guard let transfer = facts.transfers.carrying(id) else { return }
        attempts.live.onOpened(id) { transfer.task.cancel() }
    }

    /// Stops a transfer and returns when it has ended, so that a new generation does not meet the old one.
    func end(_ id: String) async {
        guard let transfer = facts.transfers.carrying(id) else { return }
        transfer.task.cancel()
        await transfer.task.value
    }

    // MARK: Waits

    /// Wakes uploads that wait for a quota. The wait ends with the quota's period. It ends before that as
    /// soon as enough is left: others used less than they had reserved, or a person has changed the rules.
    func wakeQuotaWaits(_ snapshot: PolicySnapshot) async throws {
        if facts.quotaWaits.isOfEarlierRun {
            // Waits of an earlier run end: the rules may have changed, and the reservations of that run are gone.
            try await context.store.endWaits(becauseOf: .quota)
            return facts.quotaWaits.begin()
        }
        if facts.quotaWaits.all.isEmpty { return }
        let exempt = Set(snapshot.exemptUploads.filter { $0.exemptions.contains(.quota) }.map(\.id))
        let ready = facts.quotaWaits.removeReady(
            snapshot.inputs.quotas, most: context.settings.policy.total, kind: { snapshot.presentClass(of: $0, $1) },
            isFolderExempt: { snapshot.folder($0).exempt.contains(.quota) }, isExempt: { exempt.contains($0) })
        if ready.isEmpty { return }
        do { try await context.store.write { try $0.waits.end(of: ready.keys.sorted()) } } catch {
            facts.quotaWaits.restore(ready)
            throw error
        }
    }

    /// Wakes uploads that waited for an unmetered network: it is back, or a person allows a metered one.
    func wakeUnmetered(_ snapshot: PolicySnapshot) async throws {
        let free = facts.uploads.removeUnmetered { upload in
            snapshot.folder(of: upload).exempt.contains(.metered) || !snapshot.isMetered(upload)
        }
        if free.isEmpty { return }
        do { try await context.store.write { try $0.waits.end(of: free.map(\.id)) } } catch {
            facts.uploads.restoreUnmetered(free)
            throw error
        }
    }
}
