internal import Core
internal import Transport

// Handling of answers without progress, and of refusals.

extension OffsetUpload {
    /// Queries the remote's offset. Unusable answers are counted.
    func position() async throws -> Position {
        do {
            let position = try await dialect.locate(order, &progress.checkpoint)
            Contradiction.end(.unknownOffset, in: &progress.checkpoint)
            return position
        } catch let error as UploadError {
            guard error.remedy.endsOnlyAttempt else { throw error }
            let blind = Contradiction(.unknownOffset, error, in: &progress.checkpoint)
            try await progress.record()
            throw blind.error(error, "its answers to the lookup of the offset cannot be used")
        }
    }

    /// Whether an unsuccessful answer is about where the upload stands, and says nothing about the file. That is so
    /// when the request repeated bytes that were accepted, or bytes that may have arrived before, because the offset
    /// that was named for them was an old one.
    ///
    /// - Parameter reach: No byte from here on had left before this request.
    func isAboutOffset(_ error: UploadError, _ sending: SendResult, _ range: Range<Int64>, _ reach: Int64) -> Bool {
        if sending.isAboutOffset { return true }
        guard let status = error.failure.http, FinalAnswer.mayAnswerRepeatedBytes(status) else { return false }
        if range.lowerBound < (checkpoint.acceptedOffset ?? 0) { return true }
        // A finish hook of the server may have refused bytes that arrived for the first time. Only a conflict, the
        // answer's text, or a timeout in waiting for the hook shows that it was not.
        guard reach >= range.upperBound else { return false }
        return status == 409 || sending.mentionsOffset || sending.delivery.atMost < range.upperBound - range.lowerBound
    }

    /// Handles a conflict over the first bytes of a new section. If it is not at its beginning, it has bytes of another
    /// upload, to which the remote has given the same address.
    func requireBeginning() async throws {
        // Durable before the offset is asked for: after a crash no attempt continues at another upload's offset.
        checkpoint.isOfAnotherWriter = true
        try await progress.record()
        guard try await isAtBeginning() else {
            throw dialect.error(
                .protocol, .uploadChanged, "a new part of the file has bytes that were not sent to it", .failUpload)
        }
        checkpoint.isOfAnotherWriter = false
        try await progress.record()
    }

    /// Records the remote's answer to the last byte before any further request.
    func note(_ error: UploadError, _ sending: SendResult, _ end: Int64) async throws {
        guard end == size, progress.note(end: error, isOfState: sending.isAboutOffset) else { return }
        try await progress.record()
    }

    func afterFailure(
        _ error: any Error, _ sending: SendResult, from offset: Int64, to end: Int64
    ) async throws -> Int64 {
        if error is CancellationError {
            // The bytes that left are known now, and the next attempt needs them. If recording fails, that attempt has
            // wider bounds, and this stop remains a stop.
            do { try await progress.record() } catch { throw CancellationError() }
            throw error
        }
        guard let error = error as? UploadError else { throw error }
        if end == size, !progress.note(end: error, isOfState: sending.isAboutOffset), progress.bounds.mayBeWhole,
            !checkpoint.has(\.refusedStatus)
        {
            checkpoint.unclearEnd = error.failure.message
        }
        // A lock that does not end. The next question shows which bytes were accepted nevertheless.
        if error.remedy.endsOnlyAttempt, error.failure.http != nil, !checkpoint.has(\.refusedStatus) {
            let standstill = try await count(.standstill, error, at: offset)
            throw standstill.error(error, "no byte from offset \(offset) on was accepted")
        }
        try await progress.record()
        return try await locateAfterRefusal(error)
    }

    /// Durable when it returns.
    ///
    /// - Parameter offset: The largest that was named.
    private func count(
        _ kind: Contradiction.Kind, _ error: UploadError, at offset: Int64
    ) async throws -> Contradiction {
        let contradiction = Contradiction(kind, error, in: &progress.checkpoint)
        checkpoint.conflictPeak = max(offset, checkpoint.conflictPeak ?? 0)
        try await progress.record()
        return contradiction
    }

    /// Queries the offset, which shows whether the whole file was refused.
    ///
    /// - Throws: `error` if it was not the whole file, or if nothing was refused.
    func locateAfterRefusal(_ error: UploadError) async throws -> Int64 {
        guard checkpoint.has(\.refusedStatus) else { throw error }
        let earlier = renewals
        let now = try await locate()
        // The remote has every byte, and the refusal of the file is accepted: it is reported as a warning.
        if renewals == earlier, now < size || engine.finalError == .fail { throw error }
        return now
    }

    /// Handles the remote's own final answer, which is a refusal: the upload is not continued. It is complete only if
    /// the remote says that, and the refusal is accepted.
    ///
    /// - Returns: The size of the file.
    func afterFinalRefusal() async throws -> Int64 {
        guard let refusal = FinalAnswer.refusal(in: checkpoint, dialect.failure) else { return try await locate() }
        guard engine.finalError == .accept, case .at(size) = try await position(), dialect.isWhole(checkpoint) else {
            throw refusal
        }
        located = size
        try await progress.accepted(size)
        return size
    }

    /// Handles a success without growth, or with an impossible offset: the remote is queried again, three times.
    func afterUnexpectedOffset(_ new: Int64?, _ offset: Int64, _ end: Int64) async throws -> Int64 {
        unexpectedAnswers += 1
        // The request was a success nevertheless.
        if end == size {
            FinalAnswer.clear(&progress.checkpoint)
            checkpoint.isEndAnswered = true
        }
        let earlier = renewals
        let now = try await locate()
        if now > offset, new == nil {
            unexpectedAnswers = 0  // names no offsets, but grows
            return now
        }
        let named = new.map { "\($0)" } ?? "none"
        let words = "bytes \(offset) to \(end) were acknowledged with the offset \(named)"
        if now <= offset, renewals == earlier {
            let error = dialect.error(.protocol, .noProgress, words, .retry(after: nil))
            return try await contradicted(error, from: offset, now, mayGoOn: unexpectedAnswers < 3)
        }
        if unexpectedAnswers >= 3 {
            throw dialect.error(.protocol, .noProgress, words + ", three times in a row", .retry(after: nil))
        }
        return now
    }

    /// Handles an answer that only the remote's own offset explains.
    func status(
        from offset: Int64, _ error: UploadError, _ again: Int, isOfPlace: Bool
    ) async throws -> Int64 {
        let earlier = renewals
        let now = try await locate()
        if renewals != earlier { return now }
        if now > max(offset, checkpoint.conflictPeak ?? 0) {
            standstills = 0
            return now
        }
        standstills = now == offset ? standstills + 1 : 0
        let isOver = standstills > again
        // The cause is the credential, or the bytes themselves.
        if !error.remedy.endsOnlyAttempt, isOver, !isOfPlace { throw error }
        return try await contradicted(error, from: offset, now, mayGoOn: !isOver)
    }

    /// Handles a remote that names an offset and does not accept bytes from there.
    ///
    /// - Parameter now: The offset that it named last.
    /// - Returns: `now`, where that has not happened too often.
    func contradicted(
        _ error: UploadError, from offset: Int64, _ now: Int64, mayGoOn: Bool
    ) async throws -> Int64 {
        let conflict = try await count(.conflict, error, at: max(offset, now))
        if mayGoOn, conflict.times <= Contradiction.few { return now }
        let taken = checkpoint.acceptedOffset ?? 0
        throw conflict.error(
            error,
            (taken > now ? "it acknowledged \(taken) of \(size) bytes, " : "of \(size) bytes ")
                + "it reports the offset \(now), and does not continue from there")
    }

    func afterDamage(_ offset: Int64, _ error: UploadError) async throws -> Int64 {
        if checkpoint.damagedAt != offset { checkpoint.damagedAnswers = nil }
        checkpoint.damagedAt = offset
        if checkpoint.increment(\.damagedAnswers) >= 3 { throw error }
        try await progress.record()
        return try await locate()
    }
}
