internal import Config
internal import Core
internal import Linux
internal import Store

// A transfer from its start to the verdict of each of its uploads.

extension Scheduler {
    /// What follows from how attempts ended, for their destinations and for themselves.
    ///
    /// - Parameter generation: The generation of the destination's settings that the attempts used.
    func settle(
        _ ends: [(claim: Claim, verdict: UploadAttempt.Verdict)], _ generation: Int
    ) async -> [UploadAttempt.Verdict] {
        var verdicts: [UploadAttempt.Verdict] = []
        for (claim, verdict) in ends {
            var verdict = verdict
            if destinations.generation(of: claim.upload.destination) == generation {
                await settle(&verdict, claim.upload)
            } else if verdict.failure != nil {
                // The verdict is about the destination as it was before.
                (verdict.outcome, verdict.failure) = (.yielded, nil)
            }
            verdicts.append(verdict)
        }
        return verdicts
    }

    /// Called when the end of an attempt is on disk.
    ///
    /// - Parameters:
    ///   - state: The state of the upload now; `nil` for one that was cancelled meanwhile.
    ///   - account: The cost of the attempt.
    func ended(
        _ claim: Claim, _ verdict: UploadAttempt.Verdict, _ state: UploadState?, _ account: QuotaAccount?
    ) {
        let (id, name) = (claim.upload.id, claim.upload.destination)
        if state == .completed {
            cycles.completed += 1
            if let took = verdict.took { attempts.counters.took(took, to: name) }
            CrashPoint.reached("completed")
        }
        quotaWaits.ended(id, lacking: verdict.isShortOfQuota ? account?.quotaWait : nil)
        if let failure = verdict.failure { attempts.counters.add(failure, at: name) }
        AttemptLog(log: context.log).report(
            verdict, of: claim, state, sent: account?.total ?? 0,
            isFirstShortOfQuota: quotaWaits.count(at: name) == 1)
        if case .sourceChanged = verdict.outcome {
            callbacks.reconsiderSource(claim.asset.folder, claim.asset.identity.relative)
        }
        // `nil`: ended by a cancel.
        let isOver = state?.isTerminal ?? true
        if isOver { uploads.forget(id) }
        destinations.ended(name, id, isOver: isOver, hasArrived: state == .completed)
        // The upload waits again, and may be too old by now.
        if state?.isTerminal == false { nextExpiry = nil }
    }

    /// Gives back claims that did not begin, and schedules again: other uploads may be sent in their place.
    func giveBack(
        _ claims: [Claim], as outcome: (Claim) async throws -> AttemptOutcome = { _ in .yielded }
    ) async throws {
        try await records().giveBack(claims, as: outcome)
        signals.scheduling.signal()
    }

    // MARK: The verdict

    /// Updates the facts about the destination, and fills in when a held upload may be sent again.
    private func settle(_ verdict: inout UploadAttempt.Verdict, _ upload: UploadRecord) async {
        if verdict.remedy?.mayConcernSecret == true { callbacks.renewSecret(upload.destination) }
        if await isForItself(&verdict, upload) { return }
        let name = upload.destination
        let trouble = destinations.trouble(of: name)
        let retry = context.configuration.retry(folder: upload.folder, destination: name)
        let monotonic = context.clocks.monotonic()
        // A full destination still answers where an upload stands, but accepts nothing.
        let isFull = if case .noRoom? = verdict.remedy { true } else { false }
        let isUp = verdict.wasAnswered && !isFull
        if case .again(let after)? = verdict.remedy, let failure = verdict.failure {
            let times = uploads.setBack(upload.id, wasAnswered: verdict.wasAnswered)
            let wait = max(after ?? .zero, retry.wait(afterFailures: times, jitter: Random.jitter()))
            verdict.outcome = .held(failure, until: monotonic.advanced(by: wait))
        }
        if let failure = verdict.failure,
            let wait = uploads.ownWait(
                upload.id, verdict.remedy, accepted: destinations.completedCount(of: name), isHeld: trouble != nil,
                retry: retry, jitter: Random.jitter())
        {
            verdict.outcome = .held(failure, until: monotonic.advanced(by: wait))
            AttemptLog(log: context.log).reportAlone(
                "upload waits; other uploads to its destination succeed", upload, failure, wait: wait)
        } else if let remedy = verdict.remedy, let failure = verdict.failure,
            let wait = hold(
                name,
                DestinationTracker.Fault(
                    failure: failure, remedy: remedy, isUp: isUp, retry: retry,
                    longestWait: await timeToTryKey(of: name, remedy)))
        {
            // After the next probe, so that another upload makes it: this file may be the one that makes the server
            // fail.
            verdict.outcome = .held(failure, until: monotonic.advanced(by: wait + .seconds(1)))
            if case .authenticate = remedy { destinations.waitsForKey(upload.id, of: name) }
        } else if verdict.wasAnswered {
            if case .verified = verdict.outcome {
                destinations.accepted(name)
                await endWaitsForKey(of: name)
            }
            if trouble != nil { context.log.notice("destination works again", ["destination": name]) }
            destinations.succeeded(name)
        }
    }

    /// Whether a refusal of a key leaves its destination alone; in that case only the upload waits.
    private func isForItself(_ verdict: inout UploadAttempt.Verdict, _ upload: UploadRecord) async -> Bool {
        guard case .authenticate? = verdict.remedy, let failure = verdict.failure,
            failure.http == 401 || failure.http == 403
        else { return false }
        let name = upload.destination
        let text: String
        let times: Int
        let othersWait = await othersWait(at: name)
        switch destinations.refuseKey(of: name, for: upload.id, othersWait: othersWait) {
        case .key: return false
        case .unknown:
            (text, times) = ("upload refused; the next upload shows whether the key or the file is at fault", 1)
        case .file(let count): (text, times) = ("upload waits; other uploads with the same key are accepted", count)
        }
        let retry = context.configuration.retry(folder: upload.folder, destination: name)
        let wait = retry.wait(afterFailures: times, jitter: Random.jitter())
        verdict.outcome = .held(failure, until: context.clocks.monotonic().advanced(by: wait))
        AttemptLog(log: context.log).reportAlone(text, upload, failure, wait: wait)
        return true
    }

    // MARK: Uploads that keep failing

    /// Whether this number of wasted bytes has to be logged for an upload.
    func isToLog(waste: Int64, of id: String) -> Bool { uploads.isToLog(waste: waste, of: id) }

    /// Gives back uploads that were wasted over a metered network twice within a day: a third time needs a
    /// person's permission.
    func passOverWasted(_ claims: [Claim], _ reservations: ReservationBatch) async throws -> [Claim] {
        var back: [(claim: Claim, waste: Waste)] = []
        let snapshot = snapshot
        for claim in claims where reservations.route(for: claim.upload.folder)?.countsAsMetered == true {
            let exempt = reservations.origin(claim.upload.folder).exempt.union(
                snapshot.overrides.exemptions(.upload, claim.upload.id, at: snapshot.inputs.now))
            if exempt.contains(.metered) { continue }
            let waste = try await context.store.read { try $0.waste.of(claim.upload.id) }
            if waste.isMuch(forSize: claim.upload.size) { back.append((claim, waste)) }
        }
        if back.isEmpty { return claims }
        let now = (wall: context.clocks.wall(), monotonic: context.clocks.monotonic())
        let waits = Dictionary(
            back.map { ($0.claim.upload.id, WasteRules.wait($0.claim.upload, $0.waste, now)) }, uniquingKeysWith: { $1 }
        )
        try await giveBack(back.map(\.claim)) { waits[$0.upload.id] ?? .yielded }
        for (claim, _) in back where uploads.waitForUnmetered(claim.upload) {
            guard case .held(let failure, _, _, _)? = waits[claim.upload.id] else { continue }
            context.log.notice(
                "upload waits for an unmetered network",
                [
                    "id": claim.upload.id, "destination": reservations.destination, "hold": "metered",
                    "reason": failure.message,
                ])
        }
        return claims.filter { waits[$0.upload.id] == nil }
    }
}

extension UploadAttempt.Verdict {
    /// Whether the attempt ended because its quotas leave too little for the next piece.
    fileprivate var isShortOfQuota: Bool {
        if case .held(let failure, _, _, _) = outcome { failure.code == Failure.shortOfQuota } else { false }
    }
}

extension QuotaAccount {
    /// The amount that the work lacked at its end; `nil` for none.
    fileprivate var quotaWait: QuotaWait? { lacked.map { QuotaWait(kind: kind, bytes: $0) } }
}
