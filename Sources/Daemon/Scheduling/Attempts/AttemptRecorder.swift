internal import Core
internal import Destinations
internal import Linux
internal import Store

/// Records how the attempts of one transfer ended, with what they cost.
struct AttemptRecorder: Sendable {
    let context: Context
    let live: LiveUploads
    let stops: StopRequests
    let ledger: Ledger
    let stateHealth: StateHealth
    /// The accounts of the transfer, by upload.
    var accounts: [String: QuotaAccount] = [:]

    /// The ending of an upload, with its cost.
    func ending(_ upload: UploadRecord, _ outcome: AttemptOutcome) async -> EndedAttempt {
        let hasArrived = if case .verified = outcome { true } else { false }
        let payment = await accounts[upload.id]?.closing(hasArrived: hasArrived)
        return EndedAttempt(
            upload.id, outcome, payments: payment.map { [$0] } ?? [], sent: live.removeEndPosition(upload.id),
            lasting: { [destinations = context.destinations] in
                destinations[$0]?.lasting(of: $1) ?? Checkpoint()
            })
    }

    /// Called when the costs of the endings are on disk.
    func recordPayments(_ endings: [EndedAttempt]) {
        for ending in endings {
            guard let account = accounts[ending.id] else { continue }
            for payment in ending.payments { ledger.recordPayment(payment, for: account) }
        }
    }

    /// The uploads stay leased to this run: they are put back when the state can be written, or at the next start.
    func recordLater(_ endings: [EndedAttempt], _ error: any Error) async {
        let ids = endings.map(\.id).joined(separator: ",")
        if let error = error as? StoreError {
            stateHealth.failed(error)
            context.log.debug("did not record the end of attempts", ["ids": ids, "reason": "\(error)"])
        } else {
            context.log.error("cannot record the end of attempts; will retry", ["ids": ids, "reason": "\(error)"])
        }
        await retryRecording(endings)
    }

    /// Puts back uploads that were claimed and did not begin.
    func returnClaims(
        _ claims: [Claim], isolation: isolated (any Actor)? = #isolation,
        as outcome: (Claim) async throws -> AttemptOutcome = { _ in .yielded }
    ) async throws {
        if claims.isEmpty { return }
        var endings: [EndedAttempt] = []
        for claim in claims {
            let payments = claim.step.map { [Payment(closing: $0, .none)] } ?? []
            endings.append(EndedAttempt(claim.upload.id, try await outcome(claim), payments: payments))
        }
        try await context.store.write { [endings] tx in try tx.attempts.finish(endings) }
        for payment in endings.flatMap(\.payments) { ledger.enter(payment) }
    }

    private func retryRecording(_ endings: [EndedAttempt]) async {
        while !stops.endsAll && !Task.isCancelled {
            do {
                try await Alarms.shared.sleep(for: .seconds(5))
                try await context.store.write { try $0.attempts.finish(endings) }
                recordPayments(endings)
                return
            } catch {
                context.log.debug(
                    "still cannot record the end of attempts; will retry",
                    ["ids": endings.map(\.id).joined(separator: " "), "reason": "\(error)"])
            }
        }
        // Only the transfer was stopped: without this its uploads would stay leased until the next start.
        if !stops.endsAll { await Task { await self.retryRecording(endings) }.value }
    }
}
