package import Core

/// An attempt that has ended: its outcome, its cost, and the bytes that it sent.
package struct EndedAttempt: Sendable {
    package var id: String
    package var outcome: AttemptOutcome
    /// Payments that are entered in the same transaction.
    package var payments: [Payment]
    /// Bytes of the file up to which it was sent, whether the remote has confirmed them or not.
    package var sent: Int64
    /// Whether the wait that follows counts as time of failing. A full destination fails no upload.
    package var isWaitOfFailure = true
    /// The part of its checkpoint that an upload to a destination keeps when a damaged copy makes it start again.
    package var lasting: @Sendable (_ destination: String, Checkpoint) -> Checkpoint

    package init(
        _ id: String, _ outcome: AttemptOutcome, payments: [Payment] = [], sent: Int64 = 0,
        lasting: @escaping @Sendable (_ destination: String, Checkpoint) -> Checkpoint = { _, _ in Checkpoint() }
    ) {
        self.id = id
        self.outcome = outcome
        self.payments = payments
        self.sent = sent
        self.lasting = lasting
    }
}

/// Records the ends of attempts in all tables that they concern.
package struct AttemptEndings<Access> {
    let tx: Transaction<Access>

    private static func endedCompanions(_ companions: [Companion]) -> [Companion] {
        companions.filter(\.state.isTerminal)
    }
}

extension AttemptEndings where Access == Writing {
    /// Records that the credential for an upload was renewed.
    ///
    /// - Returns: Whether this run still holds the upload.
    package func record(_ renewal: CredentialRenewal, of id: String) throws -> Bool {
        guard try tx.uploads.find(id)?.state == .uploading else { return false }
        try tx.events.append(.credential(renewal), of: id)
        return true
    }

    /// Ends the attempts of earlier runs: a lease belongs to the process that took it.
    func endAllOfEarlierRuns() throws {
        let left = try tx.connection.all(
            "SELECT \(UploadRecord.columns) FROM upload INDEXED BY upload_list WHERE state = 'uploading'"
        ) { UploadRecord($0, 0) }
        for upload in left {
            try tx.transitions.move(upload, by: .yielded)
            // The destinations are not configured yet, so nothing of its checkpoint lasts.
            try tx.copyLosses.endAttempt(of: upload.id) { _, _ in Checkpoint() }
        }
    }

    /// Ends attempts that went together, in one transaction.
    ///
    /// - Returns: The result of ``finish(_:_:payments:)`` for each.
    @discardableResult
    package func finish(_ endings: [EndedAttempt]) throws -> [UploadState?] {
        try endings.map { try end($0) }
    }

    /// Ends an attempt: failure first, then the state that shows it, and the ledger, in one transaction.
    ///
    /// - Returns: The state afterwards; `nil` when the upload had been cancelled meanwhile. The sent bytes count all
    ///   the same.
    @discardableResult
    package func finish(
        _ id: String, _ outcome: AttemptOutcome, payments: [Payment] = []
    ) throws -> UploadState? {
        try end(EndedAttempt(id, outcome, payments: payments))
    }

    private func end(_ ending: EndedAttempt) throws -> UploadState? {
        let id = ending.id
        defer { tx.session.facts.failingTimes.endAttempt(id) }
        let isNoted = tx.session.facts.uploadsWithNotedProgress.remove(id) != nil
        for payment in ending.payments { try tx.ledger.enter(payment) }
        guard let upload = try tx.uploads.find(id) else { return nil }
        guard upload.state == .uploading else {
            if case .verified(let remote) = ending.outcome {
                try recordFinished(upload)
                try tx.alternatives.recordBoth(upload, remote)
            }
            return nil
        }
        // Otherwise the stored value is that of the attempt before.
        if !isNoted, ending.sent > upload.acked { try tx.waste.settleSent(of: upload) }
        if upload.isBegun, ending.sent > upload.acked { try tx.progress.setSent(ending.sent, of: id) }
        switch ending.outcome {
        case .yielded:
            try tx.transitions.move(upload, by: .yielded)
        case .held(let failure, let until, let known, let isFault):
            if isFault {
                try tx.failures.record(failure, upload)
                try tx.failures.recordTrouble(failure, of: upload, until: ending.isWaitOfFailure ? until : nil)
            } else {
                try tx.failures.recordWait(failure, upload)
            }
            // A companion that ended during the attempt could not end a wait that had not begun yet.
            let hasEndedCompanion =
                try known.map { try Self.endedCompanions($0) != Self.endedCompanions(tx.uploads.companions(of: id)) }
                ?? false
            try tx.connection.run(
                "UPDATE upload SET backoff_until = ?2 WHERE id = ?1",
                [.text(id), .integer(hasEndedCompanion ? 0 : until.nanoseconds)])
            try tx.transitions.move(upload, by: .yielded)
        case .retry(let failure, let until):
            try tx.failures.record(failure, upload)
            try tx.failures.recordTrouble(failure, of: upload, until: until)
            try tx.connection.run(
                "UPDATE upload SET attempt = attempt + 1, backoff_until = ?2 WHERE id = ?1",
                [.text(id), .integer(until.nanoseconds)])
            try tx.transitions.move(upload, by: .attemptFailed)
            try tx.events.append(.attemptFailed(code: failure.code, message: failure.message), of: id)
        case .refused(let failure, let usesAttempt):
            try tx.failures.record(failure, upload)
            try tx.failures.recordTrouble(failure, of: upload)
            if usesAttempt {
                try tx.connection.run("UPDATE upload SET attempt = attempt + 1 WHERE id = ?1", [.text(id)])
            }
            try tx.transitions.move(upload, by: .refused)
            try tx.history.record(upload, .failed, code: failure.code)
        case .copyLost(let failure, let defect, let until):
            try tx.failures.record(failure, upload)
            try tx.failures.recordTrouble(failure, of: upload)
            try tx.copyLosses.record(upload, isDamage: defect == .changed, keeping: ending.lasting)
            if let until { try tx.waits.set([id: until]) }
        case .sourceChanged(let failure, let isFinished):
            try tx.transitions.sourceChanged(upload, failure)
            if isFinished { try recordFinished(upload) }
        case .skipped(let failure):
            try tx.failures.record(failure, upload)
            try tx.connection.run("UPDATE upload SET approved = -generation WHERE id = ?1", [.text(id)])
            try tx.transitions.abandon(upload, because: failure)
            try tx.assets.dropUnneededCopy(upload.asset)
        case .verified(let remote):
            try tx.failures.recordRecovery(of: id)
            try tx.transitions.complete(upload, remote)
        }
        try tx.copyLosses.endAttempt(of: id, keeping: ending.lasting)
        return try tx.uploads.find(id)?.state
    }

    /// It was cancelled when the remote had all of it: the removal of the remote object has to know.
    private func recordFinished(_ upload: UploadRecord) throws {
        let body = try tx.connection.first(
            "SELECT checkpoint FROM remote_delete WHERE upload = ?1 AND earlier = 0", [.text(upload.id)]
        ) {
            $0.text(0)
        }
        guard var checkpoint = body.flatMap({ TextMap.map($0) }).map({ Checkpoint($0) }) else { return }
        checkpoint.isFinished = true
        try tx.connection.run(
            "UPDATE remote_delete SET checkpoint = ?2 WHERE upload = ?1 AND earlier = 0",
            [.text(upload.id), .text(TextMap.text(checkpoint.fields))])
    }
}

extension Transaction {
    package var attempts: AttemptEndings<Access> { AttemptEndings(tx: self) }
}
