internal import Config
internal import Core
internal import Destinations
internal import Linux
internal import Staging
internal import Store
internal import Transport

/// One attempt of one upload, from the claim to its verdict. Contains nothing about single dialects.
struct UploadAttempt: Sendable {
    let shared: AttemptContext
    var claim: Claim
    let destination: any Destination
    /// The permit of the transfer, which has an account for the upload.
    let permit: TransferPermit

    /// How the attempt ended, and what that shows about the destination.
    struct Verdict: Sendable {
        var outcome: AttemptOutcome
        /// The remedy for the destination; `nil` after a success or a stop.
        var remedy: Remedy?
        var failure: Failure?
        /// Whether the destination is up: it accepted bytes, or refused this one file for its own sake.
        var wasAnswered: Bool
        /// Whether its quotas leave too little for the next piece.
        var lacksQuota = false
        /// The duration of a verified upload.
        var took: Duration?

        /// Uses an attempt, because the destination refuses this file: the upload is tried again later, or has ended.
        ///
        /// - Parameters:
        ///   - attempt: The number of attempts that the destination has refused, with this one.
        ///   - after: The least time until the next attempt.
        mutating func refuse(
            _ failure: Failure, attempt: Int, _ retry: Backoff, after: Duration? = nil, now: MonotonicTime
        ) {
            if let most = retry.attempts, attempt >= most {
                var last = failure
                last.message += " (attempt \(attempt) of \(most))"
                outcome = .refused(last, usesAttempt: true)
            } else {
                let wait = max(after ?? .zero, retry.wait(afterFailures: attempt, jitter: Random.jitter()))
                outcome = .retry(failure, until: now.advanced(by: wait))
            }
        }
    }

    var context: Context { shared.context }
    var live: LiveUploads { shared.live }

    /// - Throws: `StoreError` when the state cannot be written.
    func run() async throws -> Verdict {
        var approved = self
        if let verdict = try await approved.requestApproval() { return verdict }
        // Nothing has been sent yet.
        if shared.stops.shouldPause(claim.upload.id) { return Verdict(outcome: .yielded, wasAnswered: false) }
        return try await approved.send()
    }

    private func send() async throws -> Verdict {
        let upload = claim.upload
        let began = context.clocks.monotonic()
        live.begin(
            upload.id, to: upload.destination, acked: upload.acked, size: claim.asset.stagedSize)
        defer { live.end(upload.id) }
        let source = SourceVerifier(claim.asset, shared.locator.source(of: claim.asset))
        let reporter = AttemptReporter(
            context: context, live: live, stops: shared.stops, upload, size: claim.asset.stagedSize,
            account: permit.accounts[upload.id], source)
        let verdict = try await send(source, reporter, since: began)
        await reporter.finishMarking()
        return verdict
    }

    private func send(
        _ source: SourceVerifier?, _ reporter: AttemptReporter, since began: MonotonicTime
    ) async throws -> Verdict {
        let upload = claim.upload
        var sent: StagedFile?
        do {
            guard let sha256 = claim.asset.sha256 else { return copyLost() }
            var file: SharedSourceFile?
            defer { withExtendedLifetime(file) {} }
            if let source {
                do { file = try await source.open() } catch {
                    return await verdict(on: source, reporter) ?? unreadable("\(error)", reporter)
                }
                if let verdict = await verdict(on: source, reporter) { return verdict }
            } else if let verdict = try await checkCopy() {
                return verdict
            }
            CrashPoint.reached("claimed")
            let parts = try await shared.parts(of: claim.asset, for: destination)
            if upload.isTroubled { try await context.store.write { try $0.failures.beginAttempts([upload.id]) } }
            // Also for an upload that was left out of a bundle, whose transfer has no single account.
            let order = shared.order(claim, sha256, parts, from: file?.place)
            sent = order.file
            let request = RequestContext(permit: permit.charging(upload: upload.id), headers: upload.headers)
            var remote = try await destination.upload(order, reporter: reporter, context: request)
            if let source, let verdict = await verdict(on: source, reporter, sent: &remote) { return verdict }
            CrashPoint.reached("verified")
            return Verdict(
                outcome: .verified(remote), wasAnswered: true, took: context.clocks.monotonic().since(began))
        } catch let error as UploadError {
            if Task.isCancelled { return Verdict(outcome: .yielded, wasAnswered: false) }
            if let source, let verdict = await verdict(on: source, reporter, after: error) { return verdict }
            return judge(await attributeToCopy(source == nil ? sent : nil, for: error), reporter)
        } catch is SourceVerifier.SourceMovedError {
            if let source, let verdict = await verdict(on: source, reporter) { return verdict }
            return Verdict(outcome: .yielded, wasAnswered: reporter.wasAnswered)
        } catch  where error is CancellationError || error is LeaseLostError {
            return Verdict(outcome: .yielded, wasAnswered: reporter.wasAnswered)
        }
    }

    /// The remote has other bytes than were announced. If the copy has changed by now, that is the failure.
    private func attributeToCopy(_ copy: StagedFile?, for reported: UploadError) async -> UploadError {
        guard let copy, reported.failure.isOfVerification else { return reported }
        let (name, now) = (claim.upload.destination, context.clocks.wall())
        do {
            try await copy.checkContent { kind, code, message, retryable in
                Failure(kind, code: code, message: "\(name): \(message)", at: now, retryable: retryable)
            }
            return reported
        } catch {
            return error as? UploadError ?? reported
        }
    }

    /// The copy is checked when its upload is claimed: a name without `.part` means complete, so its size is enough.
    ///
    /// - Returns: `nil` when it is there with its size.
    private func checkCopy() async throws -> Verdict? {
        let (staging, name, size) = (context.staging, claim.asset.stagedName, claim.asset.stagedSize)
        guard let found = try await blocking({ try staging.size(of: name) }) else { return copyLost() }
        if found == size { return nil }
        return copyLost(
            .changed, .stagedChanged,
            "the staged copy \(staging.path(name).display) has \(found) bytes, and \(size) were staged")
    }

    func copyLost() -> Verdict {
        copyLost(
            .missing, .copyLost,
            claim.asset.stagingMode == .inPlace
                ? "\(claim.asset.path.display), which is uploaded in place, is missing"
                : "the staged copy \(context.staging.path(claim.asset.stagedName).display) is missing")
    }

    private func copyLost(_ defect: CopyDefect, _ code: Failure.Code, _ message: String) -> Verdict {
        let failure = Failure(.local, code: code, message: message, at: context.clocks.wall(), retryable: true)
        return Verdict(outcome: .copyLost(failure, defect), failure: failure, wasAnswered: false)
    }

    private func judge(_ error: UploadError, _ reporter: AttemptReporter) -> Verdict {
        var (failure, remedy) = (error.failure, error.remedy)
        if concernsOwnAddressOrHeaders(error) {
            remedy = .failUpload
            failure.retryable = false
            failure.message += "; it was added with its own address or headers, so other uploads do not wait for it"
        }
        let retry = context.configuration.retry(folder: claim.upload.folder, destination: claim.upload.destination)
        var verdict = Verdict(
            outcome: .yielded, remedy: remedy, failure: failure, wasAnswered: reporter.wasAnswered)
        switch remedy {
        case .failUpload:
            verdict.outcome = .refused(failure)
            // The destination answered with a refusal of this one file.
            verdict.wasAnswered = true
        case .restage(let defect):
            verdict.outcome = .copyLost(failure, defect)
        case .refused(let after):
            let used = (reporter.hasAdvanced ? 0 : claim.upload.attempt) + 1
            verdict.refuse(failure, attempt: used, retry, after: after, now: context.clocks.monotonic())
        case .pending(let after): return tooEarly(failure, after, reporter, wasAnswered: true)
        case .lackQuota(let after):
            // The destination was not contacted for the piece that the quota refused.
            var verdict = tooEarly(failure, after, reporter, wasAnswered: reporter.wasAnswered)
            verdict.lacksQuota = true
            return verdict
        case .retry, .holdDestination, .outOfSpace, .rateLimit, .authenticate, .misconfigured:
            // The scheduler fills in the time of the next attempt: it knows the number of failures, and the
            // destination.
            verdict.outcome = .held(failure, until: context.clocks.monotonic())
        }
        return verdict
    }

    /// Nothing has failed, and the upload continues after a wait.
    private func tooEarly(
        _ failure: Failure, _ after: Duration, _ reporter: AttemptReporter, wasAnswered: Bool
    ) -> Verdict {
        Verdict(
            outcome: .held(
                failure, until: context.clocks.monotonic().advanced(by: after), knowing: reporter.known,
                isFault: false), wasAnswered: wasAnswered)
    }

    /// Whether an answer concerns only values that a person gave for this upload, and not its destination.
    private func concernsOwnAddressOrHeaders(_ error: UploadError) -> Bool {
        // Its address has the scheme, host and port of the destination: a certificate or a portal concerns both.
        guard !claim.upload.headers.isEmpty || claim.upload.url != nil, !error.isOfPath, error.contact == .made
        else { return false }
        return switch error.remedy {
        case .authenticate, .misconfigured: true
        default: false
        }
    }
}
