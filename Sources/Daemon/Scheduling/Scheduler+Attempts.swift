internal import Config
internal import Core
internal import Linux
internal import Store

// A transfer from its start to the verdict of each of its uploads.

extension Scheduler {
    /// Runs a transfer until each of its uploads has a verdict.
    func attempt(_ claims: [Claim], isBundle: Bool, _ destination: any Destination, _ generation: Int) async {
        var left = claims
        if isBundle { left = await together(claims, destination, generation) }
        var isHeld = false
        var yielded: [(Claim, UploadAttempt.Verdict)] = []
        for claim in left {
            if isHeld || Task.isCancelled || house.live.isToPause(claim.upload.id) {
                yielded.append((claim, UploadAttempt.Verdict(outcome: .yielded, wasAnswered: false)))
            } else {
                // An obstacle of the destination that stops one upload stops the rest too.
                isHeld = await !alone(claim, destination, generation)
            }
        }
        await conclude(yielded, generation)
    }

    /// - Returns: Whether the next upload has a chance.
    private func alone(_ claim: Claim, _ destination: any Destination, _ generation: Int) async -> Bool {
        do {
            let verdict = try await UploadAttempt(house: house, claim: claim, destination: destination).run()
            await conclude([(claim, verdict)], generation)
            return verdict.failure == nil || verdict.wasAnswered
        } catch {
            await unrecorded([await ending(claim.upload, .yielded)], error)
            return false
        }
    }

    /// - Returns: The uploads that have to be sent one by one.
    private func together(_ claims: [Claim], _ destination: any Destination, _ generation: Int) async -> [Claim] {
        let began = house.clocks.monotonic()
        do {
            let result = try await BundleAttempt(house: house, claims: claims, destination: destination).run()
            let took = house.clocks.monotonic().since(began)
            let done = claims.compactMap { claim -> (Claim, UploadAttempt.Verdict)? in
                guard let remote = result.verified[claim.upload.id] else { return nil }
                return (claim, UploadAttempt.Verdict(outcome: .verified(remote), wasAnswered: true, took: took))
            }
            await conclude(done, generation)
            return result.left
        } catch {
            var endings: [Store.Ending] = []
            for claim in claims { endings.append(await ending(claim.upload, .yielded)) }
            await unrecorded(endings, error)
            return []
        }
    }

    /// Records how attempts ended, and reports it.
    private func conclude(_ ends: [(claim: Claim, verdict: UploadAttempt.Verdict)], _ generation: Int) async {
        if ends.isEmpty { return }
        var verdicts: [UploadAttempt.Verdict] = []
        var endings: [Store.Ending] = []
        for (claim, verdict) in ends {
            var verdict = verdict
            if destinations.generation(of: claim.upload.destination) == generation {
                await settle(&verdict, claim.upload)
                await limitFailing(&verdict, claim.upload)
            } else if verdict.failure != nil {
                // The verdict is about the destination as it was before.
                (verdict.outcome, verdict.failure) = (.yielded, nil)
            }
            verdicts.append(verdict)
            endings.append(await ending(claim.upload, verdict.outcome))
        }
        do {
            let states = try await house.store.finish(endings)
            paid(endings)
            for ((end, verdict), state) in zip(zip(ends, verdicts), states) { ended(end.claim, verdict, state) }
        } catch {
            for index in endings.indices { endings[index].outcome = .yielded }
            return await unrecorded(endings, error)
        }
        for name in Set(ends.map(\.claim.upload.destination)) {
            await storeSpeed(to: name)
            await storeRequestSize(of: name)
        }
    }

    /// The ending of an upload, with its cost.
    private func ending(_ upload: UploadRecord, _ outcome: AttemptOutcome) async -> Store.Ending {
        let hasArrived = if case .verified = outcome { true } else { false }
        let payment = await TransferPermit.current?.accounts[upload.id]?.closing(hasArrived: hasArrived)
        return Store.Ending(
            upload.id, outcome, payments: payment.map { [$0] } ?? [], sent: house.live.takeLeft(upload.id))
    }

    /// Called when the costs of the endings are on disk.
    private func paid(_ endings: [Store.Ending]) {
        for ending in endings {
            guard let account = TransferPermit.current?.accounts[ending.id] else { continue }
            for payment in ending.payments { house.ledger.entered(payment, for: account) }
        }
    }

    private func ended(_ claim: Claim, _ verdict: UploadAttempt.Verdict, _ state: UploadState?) {
        let (id, name) = (claim.upload.id, claim.upload.destination)
        let account = TransferPermit.current?.accounts[id]
        if state == .completed {
            completed += 1
            if let took = verdict.took { house.counters.took(took, to: name) }
            CrashPoint.reached("completed")
        }
        quotaWaits.ended(id, lacking: verdict.isShortOfQuota ? account?.quotaWait : nil)
        if let failure = verdict.failure { count(failure, at: name) }
        house.log.report(
            verdict, of: claim, state, sent: account?.total ?? 0,
            isFirstShortOfQuota: quotaWaits.count(at: name) == 1)
        signal(verdict.outcome, claim.asset)
        // `nil`: ended by a cancel.
        let isOver = state?.isTerminal ?? true
        if isOver { uploads.forget(id) }
        destinations.ended(name, id, isOver: isOver, hasArrived: state == .completed)
        if state?.isTerminal == true { house.releaseSignal.signal() }
        if state == .staging { house.stagingSignal.signal() }
        // The upload waits again, and may be too old by now.
        if state?.isTerminal == false { nextExpiry = nil }
    }

    /// Wakes the loops that go on with an asset after such an outcome.
    private func signal(_ outcome: AttemptOutcome, _ asset: AssetRecord) {
        switch outcome {
        case .sourceChanged:
            reconsiderSource(asset.folder, asset.identity.relative)
            house.removalSignal.signal()
        case .skipped: for signal in [house.removalSignal, house.stagingSignal] { signal.signal() }
        default: break
        }
    }

    private func count(_ failure: Failure, at destination: String) {
        house.counters.add(.failures, [destination, failure.kind.rawValue])
        if failure.isOfVerification { house.counters.add(.verifyFailures, [destination]) }
    }

    /// The uploads stay leased to this run: they are put back when the state can be written, or at the next start.
    func unrecorded(_ endings: [Store.Ending], _ error: any Error) async {
        let ids = endings.map(\.id).joined(separator: ",")
        if let error = error as? StoreError {
            house.stateFailed(error)
            house.log.debug("attempts not recorded", ["ids": ids, "reason": "\(error)"])
        } else {
            house.log.error("attempts could not be recorded", ["ids": ids, "reason": "\(error)"])
        }
        await putBack(endings)
    }

    /// Puts back uploads that were claimed and did not begin.
    func giveBack(_ claims: [Claim], as outcome: (Claim) async throws -> AttemptOutcome = { _ in .yielded })
        async throws
    {
        if claims.isEmpty { return }
        var endings: [Store.Ending] = []
        for claim in claims {
            let payments = claim.step.map { [Payment(settling: $0, .none)] } ?? []
            endings.append(Store.Ending(claim.upload.id, try await outcome(claim), payments: payments))
        }
        try await house.store.finish(endings)
        for payment in endings.flatMap(\.payments) { house.ledger.settled(payment) }
    }

    private func putBack(_ endings: [Store.Ending]) async {
        while !isStopping && !Task.isCancelled {
            do {
                try await Alarms.shared.sleep(for: .seconds(5))
                try await house.store.finish(endings)
                paid(endings)
                return
            } catch {
                house.log.debug(
                    "still not recorded", ["ids": endings.map(\.id).joined(separator: " "), "reason": "\(error)"])
            }
        }
        // Only the transfer was told to stop: without this its uploads would stay leased until the next start.
        if !isStopping { await Task { await self.putBack(endings) }.value }
    }

    // MARK: The verdict

    /// Updates what is known of the destination, and fills in when a held upload may be sent again.
    private func settle(_ verdict: inout UploadAttempt.Verdict, _ upload: UploadRecord) async {
        house.refused(verdict.remedy, by: upload.destination)
        if await isForItself(&verdict, upload) { return }
        let name = upload.destination
        let trouble = destinations.trouble(of: name)
        let retry = house.retry(folder: upload.folder, destination: name)
        let monotonic = house.clocks.monotonic()
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
            house.log.warning(
                "waits alone, since others get through",
                [
                    "id": upload.id, "destination": name, "reason": failure.message,
                    "next_try_in": "\(Int(wait.inSeconds.rounded(.up)))s",
                ])
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
        } else if verdict.wasAnswered {
            if case .verified = verdict.outcome { destinations.accepted(name) }
            if trouble != nil { house.log.notice("destination works again", ["destination": name]) }
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
        case .unknown: (text, times) = ("refused; the next upload shows whether its key or the file is at fault", 1)
        case .file(let count): (text, times) = ("waits alone, since others are taken with the same key", count)
        }
        let retry = house.retry(folder: upload.folder, destination: name)
        let wait = retry.wait(afterFailures: times, jitter: Random.jitter())
        verdict.outcome = .held(failure, until: house.clocks.monotonic().advanced(by: wait))
        house.log.warning(
            text,
            [
                "id": upload.id, "destination": name, "reason": failure.message,
                "next_try_in": "\(Int(wait.inSeconds.rounded(.up)))s",
            ])
        return true
    }

    // MARK: Uploads that keep failing

    /// An upload that keeps failing waits longer the more of it was sent in vain, and ends after `retry.give_up_after`.
    func limitFailing(_ verdict: inout UploadAttempt.Verdict, _ upload: UploadRecord) async {
        guard verdict.failure != nil else { return }
        let waste: Waste
        let failingSince: Int64?
        do {
            guard let now = try await house.store.upload(upload.id) else { return }
            waste = try await house.store.waste(of: upload.id)
            failingSince = now.failingSince
        } catch {
            return house.log.debug("what was sent in vain is not known", ["id": upload.id, "reason": "\(error)"])
        }
        let retry = house.retry(folder: upload.folder, destination: upload.destination)
        if end(&verdict, failing: failingSince, retry) { return }
        // The first time may be an accident.
        let wasted = waste.total + waste.unsettled
        guard wasted > 0 else { return }
        let isRepeated = waste.beginsAnew || wasted > upload.size
        let latest = house.clocks.monotonic().advanced(by: retry.wait(afterWasting: wasted))
        switch verdict.outcome {
        case .held(let failure, let until, let known, isFault: true) where isRepeated && until < latest:
            verdict.outcome = .held(failure, until: latest, knowing: known)
        case .again(let failure, let until) where isRepeated && until < latest:
            verdict.outcome = .again(failure, until: latest)
        default: break
        }
        guard uploads.isToLog(waste: wasted, of: upload.id) else { return }
        house.log.warning(
            "sent in vain",
            [
                "id": upload.id, "destination": upload.destination, "bytes": "\(wasted)", "size": "\(upload.size)",
            ])
    }

    /// - Parameter since: ``Store/ran`` when it failed first; `nil` where it has not failed before, or where bytes of
    ///   it were accepted since.
    /// - Returns: Whether the upload has ended.
    private func end(_ verdict: inout UploadAttempt.Verdict, failing since: Int64?, _ retry: Backoff) -> Bool {
        guard let limit = retry.giveUpAfter, let since, var failure = verdict.failure else { return false }
        switch verdict.outcome {
        case .held(_, _, _, isFault: true), .again: break
        default: return false
        }
        let failing = Duration.milliseconds(house.store.ran - since)
        guard failing >= limit else { return false }
        failure.message +=
            "; it has failed for \(writtenTime(.seconds(failing.components.seconds))), and `retry.give_up_after` is \(writtenTime(limit))"
        failure.retryable = false
        verdict.outcome = .refused(failure)
        return true
    }

    /// Gives back uploads that were sent in vain over a metered network twice within a day: a third time needs a
    /// person's permission.
    func passOverWasted(_ claims: [Claim], _ reservations: ReservationBatch) async throws -> [Claim] {
        var back: [(claim: Claim, waste: Waste)] = []
        let snapshot = snapshot
        for claim in claims where reservations.route(for: claim.upload.folder)?.countsAsMetered == true {
            let exempt = reservations.origin(claim.upload.folder).exempt.union(
                snapshot.overrides.exemptions(.upload, claim.upload.id, at: snapshot.inputs.now))
            if exempt.contains(.metered) { continue }
            let waste = try await house.store.waste(of: claim.upload.id)
            if waste.isMuch(forSize: claim.upload.size) { back.append((claim, waste)) }
        }
        if back.isEmpty { return claims }
        let now = (wall: house.clocks.wall(), monotonic: house.clocks.monotonic())
        let waits = Dictionary(
            back.map { ($0.claim.upload.id, self.wait($0.claim.upload, $0.waste, now)) }, uniquingKeysWith: { $1 })
        try await giveBack(back.map(\.claim)) { waits[$0.upload.id] ?? .yielded }
        // Other uploads may be sent in their place.
        house.schedulingSignal.signal()
        for (claim, _) in back where uploads.waitForUnmetered(claim.upload) {
            guard case .held(let failure, _, _, _)? = waits[claim.upload.id] else { continue }
            house.log.notice(
                "waits for a network that costs nothing",
                [
                    "id": claim.upload.id, "destination": reservations.destination, "hold": "metered",
                    "reason": failure.message,
                ])
        }
        return claims.filter { waits[$0.upload.id] == nil }
    }

    private func wait(
        _ upload: UploadRecord, _ waste: Waste, _ now: (wall: WallTime, monotonic: MonotonicTime)
    ) -> AttemptOutcome {
        let day = Duration.seconds(86_400)
        let end = (waste.since ?? now.wall).advanced(by: day)
        let left = min(max(.milliseconds(end.milliseconds - now.wall.milliseconds), .seconds(60)), day)
        var failure = Failure(
            .quota, code: Failure.wastedOnMetered,
            message:
                "within a day \(shownBytes(waste.today + waste.unsettled)) were sent of this file of \(shownBytes(upload.size)), and the "
                + "destination kept none of them: over a metered network it goes again when the day is over, or at once with "
                + "`sluice allow \(upload.id) --metered --for 1h`",
            at: now.wall, retryable: true)
        failure.isWait = true
        return .held(failure, until: now.monotonic.advanced(by: left), isFault: false)
    }
}

extension UploadAttempt.Verdict {
    /// Whether the attempt ended because its quotas leave too little for the next piece.
    fileprivate var isShortOfQuota: Bool {
        if case .held(let failure, _, _, _) = outcome { failure.code == Failure.shortOfQuota } else { false }
    }
}

extension QuotaAccount {
    /// What the work lacked at its end; `nil` for nothing.
    fileprivate var quotaWait: QuotaWait? { lacked.map { QuotaWait(kind: kind, bytes: $0) } }
}
