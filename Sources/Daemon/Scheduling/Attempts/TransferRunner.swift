internal import Config
internal import Core
internal import Destinations
internal import Linux
internal import Store

/// Runs one transfer until each of its uploads has a verdict, and records the verdicts. Deciding what follows from them
/// is the scheduler's.
struct TransferRunner: Sendable {
    let attempts: AttemptContext
    let scheduler: Scheduler
    let destination: any Destination
    /// The permission of all requests of the transfer.
    let permit: TransferPermit
    /// The generation of the destination's settings that the transfer uses.
    let generation: Int
    let records: AttemptRecorder
    /// The number of a person's commands to try the destination when the transfer began.
    let commandCount: Int

    private var context: Context { attempts.context }

    /// Runs a transfer until each of its uploads has a verdict.
    func run(_ claims: [Claim], isBundle: Bool) async {
        var left = claims
        if isBundle { left = await runBundle(claims) }
        var isHeld = false
        var yielded: [(Claim, UploadAttempt.Verdict)] = []
        for claim in left {
            if isHeld || Task.isCancelled || attempts.stops.shouldPause(claim.upload.id) {
                yielded.append((claim, UploadAttempt.Verdict(outcome: .yielded, wasAnswered: false)))
            } else {
                // An obstacle of the destination that stops one upload stops the rest too.
                isHeld = await !runAlone(claim)
            }
        }
        await conclude(yielded)
    }

    /// - Returns: Whether the next upload has a chance.
    private func runAlone(_ claim: Claim) async -> Bool {
        do {
            let verdict = try await UploadAttempt(
                shared: attempts, claim: claim, destination: destination, permit: permit
            ).run()
            await conclude([(claim, verdict)])
            return verdict.failure == nil || verdict.wasAnswered
        } catch {
            await records.recordLater([await records.ending(claim.upload, .yielded)], error)
            return false
        }
    }

    /// - Returns: The uploads that have to be sent one by one.
    private func runBundle(_ claims: [Claim]) async -> [Claim] {
        let began = context.clocks.monotonic()
        do {
            let result = try await BundleAttempt(
                shared: attempts, claims: claims, destination: destination, permit: permit
            ).run()
            let took = context.clocks.monotonic().since(began)
            let done = claims.compactMap { claim -> (Claim, UploadAttempt.Verdict)? in
                guard let remote = result.verified[claim.upload.id] else { return nil }
                return (claim, UploadAttempt.Verdict(outcome: .verified(remote), wasAnswered: true, took: took))
            }
            await conclude(done)
            return result.left
        } catch {
            var endings: [EndedAttempt] = []
            for claim in claims { endings.append(await records.ending(claim.upload, .yielded)) }
            await records.recordLater(endings, error)
            return []
        }
    }

    /// Records how attempts ended, and reports it.
    private func conclude(_ ends: [(claim: Claim, verdict: UploadAttempt.Verdict)]) async {
        if ends.isEmpty { return }
        var verdicts = await scheduler.applyVerdicts(ends, generation)
        var endings: [EndedAttempt] = []
        for (index, end) in ends.enumerated() {
            await limitFailing(&verdicts[index], end.claim.upload)
            var ending = await records.ending(end.claim.upload, verdicts[index].outcome)
            if case .outOfSpace? = verdicts[index].remedy { ending.isWaitOfFailure = false }
            endings.append(ending)
        }
        do {
            let states = try await context.store.write { [endings] tx in try tx.attempts.finish(endings) }
            records.recordPayments(endings)
            for (index, end) in ends.enumerated() {
                await scheduler.ended(
                    end.claim, verdicts[index], states[index], records.accounts[end.claim.upload.id])
            }
        } catch {
            for index in endings.indices { endings[index].outcome = .yielded }
            return await records.recordLater(endings, error)
        }
        for name in Set(ends.map(\.claim.upload.destination)) {
            let held = zip(ends, verdicts).filter { $0.0.claim.upload.destination == name && $0.1.isHeld }
            await scheduler.repeatIfCommanded(Set(held.map(\.0.claim.upload.id)), at: name, since: commandCount)
            await attempts.learned.storeSpeed(to: name)
            await attempts.learned.storeRequestSize(of: name)
        }
        await attempts.learned.storeOriginsWithoutExpect()
    }

    /// An upload that keeps failing waits longer the more bytes of it were wasted, and ends after
    /// `retry.give_up_after`.
    private func limitFailing(_ verdict: inout UploadAttempt.Verdict, _ upload: UploadRecord) async {
        guard verdict.failure != nil else { return }
        let waste: Waste
        let failing: Duration?
        do {
            (waste, failing) = try await context.store.read {
                (try $0.waste.of(upload.id), try $0.failures.failingTime(of: upload.id))
            }
        } catch {
            return context.log.debug(
                "cannot read how long the upload has failed and how many bytes it has wasted",
                ["id": upload.id, "reason": "\(error)"])
        }
        let retry = context.configuration.retry(folder: upload.folder, destination: upload.destination)
        if WasteRules.end(&verdict, failing: failing, retry) { return }
        let wasted = waste.total + waste.unsettled
        guard wasted > 0 else { return }
        WasteRules.delay(&verdict, waste, of: upload, retry, now: context.clocks.monotonic())
        guard await scheduler.shouldLog(waste: wasted, of: upload.id) else { return }
        context.log.warning(
            "attempt wasted the bytes it sent",
            [
                "id": upload.id, "destination": upload.destination, "bytes": "\(wasted)", "size": "\(upload.size)",
            ])
    }
}
