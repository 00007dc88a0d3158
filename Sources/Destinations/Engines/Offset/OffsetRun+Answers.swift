internal import Core
internal import Transport

// What is made of an answer that moves nothing, or that says no.

extension OffsetRun {
    /// Asks the remote where it stands. Answers that cannot be used are counted.
    func position() async throws -> Position {
        do {
            let position = try await dialect.locate(order, &progress.checkpoint)
            Contradiction.end(.look, in: &progress.checkpoint)
            return position
        } catch let error as UploadError {
            guard error.remedy.isForOnce else { throw error }
            let blind = Contradiction(.look, error, in: &progress.checkpoint)
            try await progress.record()
            throw blind.error(error, "its answers to the question for the offset cannot be used")
        }
    }

    /// Whether an answer that is no success is about where the upload stands, and says nothing of the file: bytes that a success has taken
    /// came again, or some that may have come before, since the offset that was named for them was an old one.
    ///
    /// - Parameter reach: No byte from here on had left before this request.
    func isOfPlace(_ error: UploadError, _ sending: Sending, _ range: Range<Int64>, _ reach: Int64) -> Bool {
        if sending.isOfState { return true }
        guard let status = error.failure.http, FinalAnswer.isOfPlace(status) else { return false }
        if range.lowerBound < checkpoint.number("taken") { return true }
        // A finish hook may have refused what came for the first time now: a conflict, its words, or that it was not waited for tells.
        guard reach >= range.upperBound else { return false }
        return status == 409 || sending.saysPlace || sending.delivery.atMost < range.upperBound - range.lowerBound
    }

    /// What the remote says to the last byte is on disk before anything else is asked of it.
    func note(_ error: UploadError, _ sending: Sending, _ end: Int64) async throws {
        guard end == size, progress.note(end: error, isOfState: sending.isOfState) else { return }
        try await progress.record()
    }

    func afterFailure(
        _ error: any Error, _ sending: Sending, from offset: Int64, to end: Int64
    ) async throws -> Int64 {
        if error is CancellationError {
            // What left is known now, and the next attempt is to know it. Without it that has wider bounds, and the stop stays one.
            do { try await progress.record() } catch { throw CancellationError() }
            throw error
        }
        guard let error = error as? UploadError else { throw error }
        if end == size, !progress.note(end: error, isOfState: sending.isOfState), progress.bounds.mayBeWhole,
            checkpoint["refused_status"] == nil
        {
            checkpoint["unclear_end"] = error.failure.message
        }
        // A lock that does not end: what was taken all the same, the next look tells.
        if error.remedy.isForOnce, error.failure.http != nil, checkpoint["refused_status"] == nil {
            let standstill = try await count(.standstill, error, at: offset)
            throw standstill.error(error, "no byte from offset \(offset) on was taken")
        }
        try await progress.record()
        return try await lookBehind(error)
    }

    /// Durable when it returns.
    ///
    /// - Parameter offset: The largest that was named.
    private func count(
        _ kind: Contradiction.Kind, _ error: UploadError, at offset: Int64
    ) async throws -> Contradiction {
        let contradiction = Contradiction(kind, error, in: &progress.checkpoint)
        checkpoint["conflict_peak"] = "\(max(offset, checkpoint.number("conflict_peak")))"
        try await progress.record()
        return contradiction
    }

    /// Whether it is the whole file that was refused, its offset tells.
    ///
    /// - Throws: `error` where it is not, or nothing was refused.
    func lookBehind(_ error: UploadError) async throws -> Int64 {
        guard checkpoint["refused_status"] != nil else { throw error }
        let earlier = renewals
        let now = try await locate()
        // Every byte is there, and the refusal of the file is accepted: what is left is told as a warning.
        if renewals == earlier, now < size || engine.finalError == .fail { throw error }
        return now
    }

    /// A success without growth, or with an offset that cannot be: the remote's word is asked again, three times.
    func afterStrange(_ new: Int64?, _ offset: Int64, _ end: Int64) async throws -> Int64 {
        strangeAnswers += 1
        // It was a success all the same.
        if end == size {
            FinalAnswer.clear(&progress.checkpoint)
            checkpoint["answered"] = "1"
        }
        let earlier = renewals
        let now = try await locate()
        if now > offset, new == nil {
            strangeAnswers = 0  // it does not name offsets, but it grows
            return now
        }
        let said = new.map { "\($0)" } ?? "none"
        let words = "bytes \(offset) to \(end) were acknowledged with the offset \(said)"
        if now <= offset, renewals == earlier {
            let error = dialect.error(.protocol, "no_progress", words, .again(after: nil))
            return try await contradicted(error, from: offset, now, mayGoOn: strangeAnswers < 3)
        }
        if strangeAnswers >= 3 {
            throw dialect.error(.protocol, "no_progress", words + ", three times in a row", .again(after: nil))
        }
        return now
    }

    /// An answer that only the remote's own offset explains.
    func look(
        from offset: Int64, _ error: UploadError, _ again: Int, isOfPlace: Bool
    ) async throws -> Int64 {
        let earlier = renewals
        let now = try await locate()
        if renewals != earlier { return now }
        if now > max(offset, checkpoint.number("conflict_peak")) {
            standstills = 0
            return now
        }
        standstills = now == offset ? standstills + 1 : 0
        let isOver = standstills > again
        // The key, or the bytes themselves.
        if !error.remedy.isForOnce, isOver, !isOfPlace { throw error }
        return try await contradicted(error, from: offset, now, mayGoOn: !isOver)
    }

    /// The remote names an offset, and does not go on from there.
    ///
    /// - Parameter now: What it named last.
    /// - Returns: `now`, where that was not so too often.
    func contradicted(
        _ error: UploadError, from offset: Int64, _ now: Int64, mayGoOn: Bool
    ) async throws -> Int64 {
        let conflict = try await count(.conflict, error, at: max(offset, now))
        if mayGoOn, conflict.times <= Contradiction.few { return now }
        let taken = checkpoint.number("taken")
        throw conflict.error(
            error,
            (taken > now ? "it acknowledged \(taken) of \(size) bytes, " : "of \(size) bytes ")
                + "it names the offset \(now), and does not go on from there")
    }

    func afterDamage(_ offset: Int64, _ error: UploadError) async throws -> Int64 {
        if checkpoint["damaged_at"] != "\(offset)" { checkpoint["damaged"] = nil }
        checkpoint["damaged_at"] = "\(offset)"
        if checkpoint.count("damaged") >= 3 { throw error }
        try await progress.record()
        return try await locate()
    }
}
