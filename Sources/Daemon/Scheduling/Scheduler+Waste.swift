internal import Config
internal import Core
internal import Linux
internal import Store

// Uploads that keep failing for long, and uploads with many bytes sent in vain.

extension Scheduler {
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
        let isAnew = waste.beginsAnew || wasted > upload.size
        let latest = house.clocks.monotonic().advanced(by: retry.wait(afterWasting: wasted))
        switch verdict.outcome {
        case .held(let failure, let until, let known, isFault: true) where isAnew && until < latest:
            verdict.outcome = .held(failure, until: latest, knowing: known)
        case .again(let failure, let until) where isAnew && until < latest:
            verdict.outcome = .again(failure, until: latest)
        default: break
        }
        guard wasted > saidWaste[upload.id] ?? 0 else { return }
        saidWaste[upload.id] = wasted
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
        for claim in claims where reservations.route(for: claim.upload.folder)?.countsAsMetered == true {
            let exempt = reservations.origin(claim.upload.folder).exempt.union(exemptions(.upload, claim.upload.id))
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
        for (claim, _) in back where wastedOnMetered.updateValue(claim.upload, forKey: claim.upload.id) == nil {
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

    /// Wakes uploads that may be sent again: an unmetered network is back, or a person allows it.
    func wakeWhatWasWasted() async throws {
        let free = wastedOnMetered.filter { id, upload in
            origin(upload.folder, of: id).exempt.contains(.metered) || !isMetered(upload)
        }
        if free.isEmpty { return }
        for id in free.keys { wastedOnMetered[id] = nil }
        try await house.store.forgetWaits(of: free.keys.sorted())
    }

    private func isMetered(_ upload: UploadRecord) -> Bool {
        switch admission.way(to: remote(upload.destination), from: origin(upload.folder, of: upload.id), in: inputs) {
        case .open(let route): route.countsAsMetered
        case .closed: true
        }
    }
}
