internal import Config
internal import Core
internal import Linux
internal import Store

// A transfer from its start to the verdict of each of its uploads.

extension Scheduler {
    /// Updates the facts about destinations and uploads after their attempts have ended.
    ///
    /// - Parameter generation: The generation of the destination's settings that the attempts used.
    func applyVerdicts(
        _ ends: [(claim: Claim, verdict: UploadAttempt.Verdict)], _ generation: Int
    ) async -> [UploadAttempt.Verdict] {
        facts.transfers.attemptsEnded(ends.map(\.claim.upload.id))
        var verdicts: [UploadAttempt.Verdict] = []
        for (claim, verdict) in ends {
            var verdict = verdict
            if facts.destinations.generation(of: claim.upload.destination) == generation {
                verdict = await applyVerdict(verdict, claim.upload)
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
            cycles.uploadCompleted()
            if let took = verdict.took { attempts.counters.recordDuration(took, to: name) }
            CrashPoint.reached("completed")
        }
        facts.quotaWaits.ended(id, lacking: verdict.lacksQuota ? account?.quotaWait(claim.file) : nil)
        if let failure = verdict.failure { attempts.counters.add(failure, at: name) }
        AttemptLog(log: context.log).report(
            verdict, of: claim, state, sent: account?.total ?? 0,
            isFirstShortOfQuota: facts.quotaWaits.count(at: name) == 1)
        if case .sourceChanged = verdict.outcome {
            callbacks.reconsiderSource(claim.asset.folder, claim.asset.identity.relative)
        }
        // `nil`: ended by a cancel.
        let isOver = state?.isTerminal ?? true
        if isOver { facts.uploads.forget(id) }
        facts.destinations.ended(name, id, isOver: isOver, hasArrived: state == .completed)
        if state?.isTerminal == false { facts.waitsAgain(claim.upload, context) }
    }

    /// Repeats attempts that failed where a person has meanwhile commanded to try their destination.
    ///
    /// - Parameter count: The number of commands when the attempts began.
    func repeatIfCommanded(_ uploads: Set<String>, at name: String, since count: Int) async {
        guard !uploads.isEmpty, facts.destinations.commandCount(of: name) != count else { return }
        await endWaits(of: uploads, at: name)
        facts.destinations.reconsider(name, at: context.clocks.monotonic())
    }

    /// Gives back claims that did not begin. Another cycle follows: other uploads may be sent in their place.
    func returnClaims(
        _ claims: [Claim], as outcome: (Claim) async throws -> AttemptOutcome = { _ in .yielded }
    ) async throws {
        try await records().returnClaims(claims, as: outcome)
        cycles.repeatSoon()
    }

    /// - Returns: The verdict, with the time when a held upload may be sent again.
    private func applyVerdict(_ verdict: UploadAttempt.Verdict, _ upload: UploadRecord) async -> UploadAttempt.Verdict {
        let name = upload.destination
        let isRefusal = if case .authenticate? = verdict.remedy { true } else { false }
        let othersWait = isRefusal ? await othersWait(at: name) : false
        var end = AttemptEvaluation(
            verdict: verdict, id: upload.id, destination: name, attempt: upload.attempt,
            retry: context.configuration.retry(folder: upload.folder, destination: name),
            credentialKeys: context.configuration.settings(ofDestination: name)?.credentialKeys ?? [],
            othersWait: othersWait, now: (context.clocks.wall(), context.clocks.monotonic()), log: context.log)
        for consequence in facts.applyVerdict(&end) {
            switch consequence {
            case .renewSecret: callbacks.renewSecret(name)
            case .doubtNetwork: doubtNetwork()
            case .endWaits(let ids): await endWaits(of: ids, at: name)
            }
        }
        return end.verdict
    }

    /// Whether this number of wasted bytes has to be logged for an upload.
    func shouldLog(waste: Int64, of id: String) -> Bool { facts.uploads.shouldLog(waste: waste, of: id) }

    /// Gives back uploads that have to wait because many bytes of them were wasted over a metered network.
    func passOverWasted(
        _ claims: [Claim], _ reservations: ReservationBatch, _ snapshot: PolicySnapshot
    ) async throws -> [Claim] {
        let waits = try await WasteRules.waits(of: claims, reservations, snapshot, context)
        if waits.isEmpty { return claims }
        let back = claims.filter { waits[$0.upload.id] != nil }
        try await returnClaims(back) { waits[$0.upload.id] ?? .yielded }
        for claim in back where facts.uploads.waitForUnmetered(claim.upload) {
            AttemptLog(log: context.log).reportWait(forUnmetered: claim.upload, waits[claim.upload.id])
        }
        return claims.filter { waits[$0.upload.id] == nil }
    }
}

extension UploadAttempt.Verdict {
    /// Whether the upload waits, and is tried again.
    var isHeld: Bool { if case .held = outcome { true } else { false } }
}

extension QuotaAccount {
    /// The amount that the work lacked at its end; `nil` for none.
    fileprivate func quotaWait(_ file: FileFacts) -> QuotaWait? {
        missingBytes.map { QuotaWait(kind: kind, bytes: $0, file: .file(file)) }
    }
}
