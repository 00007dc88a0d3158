internal import Config
internal import Core
internal import Store

/// The consequences for an upload that keeps failing, and for one that wasted many bytes.
enum WasteRules {
    /// An upload that has kept failing for `retry.give_up_after` ends.
    ///
    /// - Parameter failing: How long it has been failing, without the time in which it could not be tried; `nil` where
    ///   it has not failed before, or where further bytes of it were accepted since.
    /// - Returns: Whether the upload has ended.
    static func end(_ verdict: inout UploadAttempt.Verdict, failing: Duration?, _ retry: Backoff) -> Bool {
        guard let limit = retry.giveUpAfter, let failing, let failure = verdict.failure else { return false }
        switch verdict.outcome {
        case .held(_, _, _, isFault: true), .retry: break
        default: return false
        }
        guard failing >= limit else { return false }
        verdict.outcome = .refused(giveUp(failure, after: failing, limit: limit))
        return true
    }

    /// Makes the last failure of an upload the one that ends it.
    ///
    /// - Parameters:
    ///   - failing: How long it has been failing.
    ///   - limit: `retry.give_up_after`.
    static func giveUp(_ failure: Failure, after failing: Duration, limit: Duration) -> Failure {
        var failure = failure
        failure.message +=
            "; it has failed for \(writtenTime(.seconds(failing.components.seconds))), and `retry.give_up_after` is "
            + writtenTime(limit)
        failure.retryable = false
        return failure
    }

    /// An upload waits longer the more bytes of it were wasted. The first time may be an accident.
    static func delay(
        _ verdict: inout UploadAttempt.Verdict, _ waste: Waste, of upload: UploadRecord, _ retry: Backoff,
        now: MonotonicTime
    ) {
        guard let wait = wait(waste, upload, retry) else { return }
        let latest = now.advanced(by: wait)
        let reason = "; it waits longer, because \(shownBytes(waste.total + waste.unsettled)) of it were sent in vain"
        switch verdict.outcome {
        case .held(var failure, let until, let known, isFault: true) where until < latest:
            failure.message += reason
            verdict.outcome = .held(failure, until: latest, knowing: known)
        case .retry(var failure, let until) where until < latest:
            failure.message += reason
            verdict.outcome = .retry(failure, until: latest)
        // A disk that damages each copy must not cost a transfer after the other.
        case .copyLost(let failure, let defect, nil): verdict.outcome = .copyLost(failure, defect, until: latest)
        default: break
        }
    }

    /// - Returns: `nil` where the waste delays nothing.
    private static func wait(_ waste: Waste, _ upload: UploadRecord, _ retry: Backoff) -> Duration? {
        let wasted = waste.total + waste.unsettled
        guard wasted > 0, waste.startsOver || wasted > upload.size else { return nil }
        return retry.wait(afterWasting: wasted)
    }

    /// Sets the waits again that follow from wasted bytes, at the start: stored waits were measured by a clock of the
    /// earlier run. Without this, each restart would cost one attempt at once.
    static func restoreWaits(_ context: Context) async throws {
        let (wall, monotonic) = (context.clocks.wall(), context.clocks.monotonic())
        var waits: [String: MonotonicTime] = [:]
        for (upload, waste, since) in try await context.store.read({ try $0.waste.waiting() }) {
            // The remote may have all bytes of an attempt that was broken off.
            guard waste.total > 0 || upload.isTroubled,
                let wait = wait(
                    waste, upload,
                    context.configuration.retry(folder: upload.folder, destination: upload.destination))
            else { continue }
            // If the clock was set back meanwhile, the whole wait is left.
            let left = wait - max(.zero, .milliseconds(wall.milliseconds - since.milliseconds))
            if left > .zero { waits[upload.id] = monotonic.advanced(by: left) }
        }
        if !waits.isEmpty { try await context.store.write { [waits] tx in try tx.waits.set(waits) } }
    }

    /// The waits of uploads that were wasted over a metered network twice within a day: a third time needs a person's
    /// permission.
    ///
    /// - Returns: By upload; only for those that have to wait.
    static func waits(
        of claims: [Claim], _ reservations: ReservationBatch, _ snapshot: PolicySnapshot, _ context: Context
    ) async throws -> [String: AttemptOutcome] {
        var waits: [String: AttemptOutcome] = [:]
        for claim in claims where reservations.route(for: claim.upload)?.countsAsMetered == true {
            let upload = claim.upload
            let exempt = reservations.origin(upload).exempt.union(snapshot.exemptions(of: upload.id))
            if exempt.contains(.metered) { continue }
            let waste = try await context.store.read { try $0.waste.of(upload.id) }
            guard waste.exceedsLimit(forSize: upload.size) else { continue }
            waits[upload.id] = wait(upload, waste, (context.clocks.wall(), context.clocks.monotonic()))
        }
        return waits
    }

    /// The wait of an upload that was wasted over a metered network twice within a day.
    private static func wait(
        _ upload: UploadRecord, _ waste: Waste, _ now: (wall: WallTime, monotonic: MonotonicTime)
    ) -> AttemptOutcome {
        let day = Duration.seconds(86_400)
        let end = (waste.since ?? now.wall).advanced(by: day)
        let left = min(max(.milliseconds(end.milliseconds - now.wall.milliseconds), .seconds(60)), day)
        var failure = Failure(
            .quota, code: .wastedOnMetered,
            message:
                "\(shownBytes(waste.today + waste.unsettled)) of this file of \(shownBytes(upload.size)) were sent within a day, and the "
                + "destination kept none of them: it is sent over a metered network again when the day is over, or at once with "
                + "`sluice allow \(upload.id) --metered --for 1h`",
            at: now.wall, retryable: true)
        failure.isWait = true
        return .held(failure, until: now.monotonic.advanced(by: left), isFault: false)
    }
}
