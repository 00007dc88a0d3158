internal import Config
internal import Core
internal import Linux
internal import Store

// A transfer from its start to the verdict of each of its uploads.

extension Scheduler {
    /// Runs a transfer until each of its uploads has a verdict.
    func attempt(_ claims: [Claim], isBundle: Bool, _ destination: any Destination, _ change: Int?) async {
        var left = claims
        if isBundle { left = await together(claims, destination, change) }
        var isHeld = false
        var yielded: [(Claim, UploadAttempt.Verdict)] = []
        for claim in left {
            if isHeld || Task.isCancelled || house.live.isToPause(claim.upload.id) {
                yielded.append((claim, UploadAttempt.Verdict(outcome: .yielded, wasAnswered: false)))
            } else {
                // An obstacle of the destination that stops one upload stops the rest too.
                isHeld = await !alone(claim, destination, change)
            }
        }
        await conclude(yielded, change)
    }

    /// - Returns: Whether the next upload has a chance.
    private func alone(_ claim: Claim, _ destination: any Destination, _ change: Int?) async -> Bool {
        do {
            let verdict = try await UploadAttempt(house: house, claim: claim, destination: destination).run()
            await conclude([(claim, verdict)], change)
            return verdict.failure == nil || verdict.wasAnswered
        } catch {
            await unrecorded([await ending(claim.upload, .yielded)], error)
            return false
        }
    }

    /// - Returns: The uploads that have to be sent one by one.
    private func together(_ claims: [Claim], _ destination: any Destination, _ change: Int?) async -> [Claim] {
        let began = house.clocks.monotonic()
        do {
            let result = try await BundleAttempt(house: house, claims: claims, destination: destination).run()
            let took = house.clocks.monotonic().since(began)
            let done = claims.compactMap { claim -> (Claim, UploadAttempt.Verdict)? in
                guard let remote = result.verified[claim.upload.id] else { return nil }
                return (claim, UploadAttempt.Verdict(outcome: .verified(remote), wasAnswered: true, took: took))
            }
            await conclude(done, change)
            return result.left
        } catch {
            var endings: [Store.Ending] = []
            for claim in claims { endings.append(await ending(claim.upload, .yielded)) }
            await unrecorded(endings, error)
            return []
        }
    }

    /// Records how attempts ended, and reports it.
    private func conclude(_ ends: [(claim: Claim, verdict: UploadAttempt.Verdict)], _ change: Int?) async {
        if ends.isEmpty { return }
        var verdicts: [UploadAttempt.Verdict] = []
        var endings: [Store.Ending] = []
        for (claim, verdict) in ends {
            var verdict = verdict
            if changes[claim.upload.destination] == change {
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
            await keepSpeed(to: name)
            await keepRequestSize(of: name)
        }
    }

    /// Stores the speed for the plans of a later run; at most once a minute.
    private func keepSpeed(to destination: String) async {
        guard let speed = house.live.speed(to: destination) else { return }
        let now = house.clocks.monotonic()
        if let kept = keptSpeeds[destination] {
            guard now.since(kept.at) > .seconds(60), abs(kept.speed - speed) > kept.speed / 10 else { return }
        }
        keptSpeeds[destination] = (speed, now)
        do { try await house.store.keep(speed: speed, to: destination) } catch let error as StoreError {
            house.stateFailed(error)
        } catch {
            house.log.debug("the speed is not kept", ["destination": destination, "reason": "\(error)"])
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
        if state == .completed {
            completed += 1
            if let took = verdict.took { house.counters.took(took, to: claim.upload.destination) }
            CrashPoint.reached("completed")
        }
        noteShortfall(verdict.outcome, claim.upload)
        if let failure = verdict.failure { count(failure, at: claim.upload.destination) }
        tell(verdict, claim, state)
        // `nil`: ended by a cancel.
        if state?.isTerminal ?? true {
            consecutiveFailures[claim.upload.id] = nil
            setbacks[claim.upload.id] = nil
            wastedOnMetered[claim.upload.id] = nil
            saidWaste[claim.upload.id] = nil
            refusedForRoom[claim.upload.id] = nil
            keyRefusals[claim.upload.destination]?.forget(claim.upload.id)
        }
        rooms[claim.upload.destination]?.ended(hasArrived: state == .completed)
        if state?.isTerminal == true { house.releaseSignal.signal() }
        if state == .staging { house.stagingSignal.signal() }
        // The upload waits again, and may be too old by now.
        if state?.isTerminal == false { expiryLook = nil }
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

    /// Updates the destination's health, and fills in when a held upload may be sent again.
    private func settle(_ verdict: inout UploadAttempt.Verdict, _ upload: UploadRecord) async {
        house.refused(verdict.remedy, by: upload.destination)
        if await isForItself(&verdict, upload) { return }
        let name = upload.destination
        let health = health[name] ?? DestinationHealth()
        let retry = house.retry(folder: upload.folder, destination: name)
        let monotonic = house.clocks.monotonic()
        // A full destination still answers where an upload stands, but accepts nothing.
        let isFull = if case .noRoom? = verdict.remedy { true } else { false }
        let isUp = verdict.wasAnswered && !isFull
        if case .again(let after)? = verdict.remedy, let failure = verdict.failure {
            let times = verdict.wasAnswered ? 1 : setbacks[upload.id, default: 0] + 1
            setbacks[upload.id] = times
            let wait = max(after ?? .zero, retry.wait(afterFailures: times, jitter: Random.jitter()))
            verdict.outcome = .held(failure, until: monotonic.advanced(by: wait))
        }
        if let failure = verdict.failure, let wait = ownWait(verdict, upload, health, retry) {
            verdict.outcome = .held(failure, until: monotonic.advanced(by: wait))
            house.log.warning(
                "waits alone, since others get through",
                [
                    "id": upload.id, "destination": name, "reason": failure.message,
                    "next_try_in": "\(Int(wait.inSeconds.rounded(.up)))s",
                ])
        } else if let remedy = verdict.remedy, let failure = verdict.failure,
            let wait = hold(
                name, for: remedy, failure, isUp: isUp, retry: retry, atMost: await timeToTryKey(of: name, remedy))
        {
            // After the next probe, so that another upload makes it: this file may be the one that makes the server
            // fail.
            verdict.outcome = .held(failure, until: monotonic.advanced(by: wait + .seconds(1)))
        } else if verdict.wasAnswered {
            if case .verified = verdict.outcome {
                took[name, default: 0] += 1
                keyRefusals[name]?.accept()
            }
            if health.trouble != nil { house.log.notice("destination works again", ["destination": name]) }
            self.health[name]?.succeeded()
        }
    }

    /// Records why no upload is sent to a destination.
    ///
    /// - Parameters:
    ///   - isUp: Whether it has answered, and is not full.
    ///   - most: An upper limit for the wait, where other facts allow an earlier try.
    /// - Returns: How long the destination is left alone; `nil` when only the upload is at fault.
    func hold(
        _ name: String, for remedy: Remedy, _ failure: Failure, isUp: Bool, retry: Backoff, atMost most: Duration? = nil
    ) -> Duration? {
        var health = health[name] ?? DestinationHealth()
        let isFull = if case .noRoom = remedy { true } else { false }
        guard
            var hold = DestinationHealth.hold(
                for: remedy, failures: isUp ? 1 : health.failures(isFull: isFull), backoff: retry,
                jitter: Random.jitter())
        else { return nil }
        if let most { hold.wait = min(hold.wait, most) }
        if isFull { rooms[name]?.changed() }
        if isUp { health.succeeded() }
        // Compared by code: the text may name another file each time.
        let isNews = health.trouble?.kind != hold.kind || said[name] != failure.code
        said[name] = failure.code
        health.failed(
            hold.kind, text: failure.message, by: rule(of: name, for: remedy, retry), wait: hold.wait,
            now: house.clocks.wall(), monotonic: house.clocks.monotonic())
        self.health[name] = health
        if hold.kind == .destination { doubtNetwork() }
        if isNews {
            house.log.warning(
                "destination held",
                [
                    "destination": name, "hold": hold.kind.rawValue, "reason": failure.message,
                    "next_try_in": "\(Int(hold.wait.inSeconds.rounded(.up)))s",
                ])
        }
        return hold.wait
    }

    /// The configuration key that determines when a held destination is tried again, for people.
    private func rule(of name: String, for remedy: Remedy, _ retry: Backoff) -> String? {
        switch remedy {
        case .holdDestination(nil):
            let most = DestinationHealth.longestSilence
            let longest = retry.ceiling > most ? ", \(writtenTime(most)) apart at most" : ""
            return "the next try waits by `\(retry.written)`\(longest)"
        case .noRoom(nil):
            let patience = DestinationHealth.patience(retry)
            return
                "the next try waits for \(writtenTime(patience.first)) at first, \(writtenTime(patience.ceiling)) at most "
                + "(`\(retry.written)`)"
        case .rateLimit(nil), .misconfigured: return "the next try waits by `\(retry.written)`"
        case .holdDestination, .noRoom, .rateLimit: return "the destination named the time of the next try"
        case .authenticate:
            let again = "every \(writtenTime(DestinationHealth.betweenCredentials))"
            let keys = house.settings(ofDestination: name)?.credentialKeys ?? []
            if keys.isEmpty { return "it is tried again \(again)" }
            let named = keys.map { "`\($0)`" }.joined(separator: ", ")
            return "\(named) of destinations.\(name) \(keys.count == 1 ? "is" : "are") read again \(again)"
        case .again, .refused, .pending, .restage, .giveUp: return nil
        }
    }

    /// How long an upload waits that the destination refuses again while it accepts others: one file that makes a
    /// server fail must not stop the rest. `nil` when the destination is to be held, as after every first failure.
    private func ownWait(
        _ verdict: UploadAttempt.Verdict, _ upload: UploadRecord, _ health: DestinationHealth, _ retry: Backoff
    ) -> Duration? {
        if case .noRoom(let after)? = verdict.remedy {
            let before = refusedForRoom.updateValue(took[upload.destination, default: 0], forKey: upload.id)
            consecutiveFailures[upload.id, default: 0] += 1
            // The destination has accepted others since it last refused this one: it has space, but less than this
            // upload needs.
            guard let before, before < took[upload.destination, default: 0], health.trouble == nil else { return nil }
            return after
                ?? DestinationHealth.patience(retry).wait(
                    afterFailures: consecutiveFailures[upload.id] ?? 1, jitter: Random.jitter())
        }
        let after: Duration?
        switch verdict.remedy {
        case .holdDestination(let time): after = time
        // The method or address works for other uploads.
        case .misconfigured: after = nil
        default: return nil
        }
        let before = consecutiveFailures[upload.id] ?? 0
        consecutiveFailures[upload.id] = before + 1
        // A status concerns the server as a whole; a broken connection may be caused by this file.
        guard before > 0, health.trouble == nil, after == nil else { return nil }
        return retry.wait(afterFailures: before + 1, jitter: Random.jitter())
    }

    private func tell(_ verdict: UploadAttempt.Verdict, _ claim: Claim, _ state: UploadState?) {
        let upload = claim.upload
        switch verdict.outcome {
        case .verified(let remote) where state == nil:
            house.log.info(
                "cancelled when it was uploaded already",
                [
                    "id": upload.id, "destination": upload.destination, "path": claim.asset.path.display,
                    "at": remote.url,
                ])
        case .verified(let remote):
            house.log.info(
                "uploaded and verified",
                [
                    "id": upload.id, "destination": upload.destination, "path": claim.asset.path.display,
                    "size": "\(claim.asset.stagedSize)", "verified_by": remote.verifiedBy,
                    "sent": "\(TransferPermit.current?.accounts[upload.id]?.total ?? 0)",
                ])
        case .again(let failure, _):
            tellAgain(failure, upload)
        case .refused(let failure):
            house.log.error(
                "upload failed",
                [
                    "id": upload.id, "destination": upload.destination, "path": claim.asset.path.display,
                    "reason": failure.message,
                ])
        case .copyLost(let failure):
            let what =
                claim.asset.stagingMode == .inPlace
                ? "source lost, looked for again" : "staged copy lost, staging again"
            house.log.warning(what, ["id": upload.id, "reason": failure.message])
        case .sourceChanged(let failure, _):
            house.log.warning("given up", ["id": upload.id, "reason": failure.message])
            reconsiderSource(claim.asset.folder, claim.asset.identity.relative)
            house.removalSignal.signal()
        case .skipped(let failure):
            house.log.notice(
                "skipped, not sent",
                [
                    "id": upload.id, "destination": upload.destination, "path": claim.asset.path.display,
                    "reason": failure.message,
                ])
            for signal in [house.removalSignal, house.stagingSignal] { signal.signal() }
        case .held(let failure, _, _, _) where failure.code == Failure.shortOfQuota:
            // Reported for the first of many.
            if short?.values.filter({ $0.kind.destination == upload.destination }).count != 1 { break }
            house.log.notice(
                "waits for more of a quota",
                ["id": upload.id, "destination": upload.destination, "hold": "quota", "reason": failure.message])
        case .held(let failure, _, _, _):
            if case .again? = verdict.remedy { return tellAgain(failure, upload) }
            house.log.debug("held", ["id": upload.id, "reason": failure.message])
        case .yielded:
            house.log.debug("stopped", ["id": upload.id])
        }
    }

    private func tellAgain(_ failure: Failure, _ upload: UploadRecord) {
        house.log.warning(
            "attempt failed, will be tried again",
            ["id": upload.id, "destination": upload.destination, "reason": failure.message])
    }
}
