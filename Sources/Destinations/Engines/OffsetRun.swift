internal import Core
internal import Transport

/// One attempt. Owned by one task from beginning to end; what has to outlive it is in ``OffsetProgress``.
final class OffsetRun {
    private let engine: OffsetEngine
    private let order: UploadOrder
    private let notes: any UploadNotes
    private let progress: OffsetProgress
    private(set) var warnings: [String] = []

    /// Where the remote stood when it was asked last; `nil` once bytes were sent after that.
    private var located: Int64?
    /// Nothing grew, at this offset, so many times in this attempt.
    private var standstills = 0
    private var strangeAnswers = 0
    private var renewals = 0

    private var dialect: any OffsetDialect { engine.dialect }
    private var size: Int64 { order.file.size }
    var acknowledged: Int64 { progress.acknowledged }
    private var checkpoint: Checkpoint {
        get { progress.checkpoint }
        set { progress.checkpoint = newValue }
    }

    private static let mostRejections: Int64 = 3

    init(_ engine: OffsetEngine, _ order: UploadOrder, _ notes: any UploadNotes) {
        self.engine = engine
        self.order = order
        self.notes = notes
        progress = OffsetProgress(order, notes)
    }

    // MARK: Opening

    /// - Returns: The first byte that the remote does not have.
    func open() async throws -> Int64 {
        guard checkpoint["url"] != nil else { return try await create() }
        // A person wants it sent again: what was refused or lost is not looked at.
        if FinalAnswer.isOfBefore(checkpoint, order) { return try await renew("it is tried again") }
        // What another server has is of no use here, and what is sent here must not go there.
        guard dialect.isOurs(checkpoint) else { return try await renew("the destination is another server now") }
        return try await locate()
    }

    private func create() async throws -> Int64 {
        let before = checkpoint
        if checkpoint["creating"] != nil { checkpoint.count("orphans") }
        checkpoint["creating"] = "1"
        try await notes.record(checkpoint)
        let isKnown: Bool
        do { isKnown = try await dialect.create(order, &progress.checkpoint) } catch let error as UploadError {
            if error.failure.code == Asking.creationsUnknown {
                // It was not asked for: what is not known is as it was.
                checkpoint = before
                try await notes.record(checkpoint)
            } else if dialect.remains(of: checkpoint) != nil {
                // It has made something that is of no use.
                try await forget()
            } else if error.leavesNothingBehind {
                checkpoint["creating"] = nil
                try await notes.record(checkpoint)
            }
            throw error
        }
        checkpoint["creating"] = nil
        if let url = checkpoint["refused_url"], url == checkpoint["url"], try await !standsAtBeginning() {
            checkpoint["url"] = nil
            try await notes.record(checkpoint)
            throw dialect.error(
                .protocol, "same_upload",
                "a new upload has the address of the one that the server refused: remove that at the server", .giveUp)
        }
        checkpoint["offset"] = "0"
        progress.bounds = SentBounds(Checkpoint(), size: size)
        if isKnown {
            progress.bounds.isKnownThere()
            checkpoint["answered"] = "1"
        } else if size > 0 {
            _ = progress.bounds.enter(to: end(from: 0))
        }
        // Durable before the first byte: an address that is not on disk is an upload that is paid for and lost.
        try await progress.record()
        if let name = dialect.name(of: checkpoint) { try await notes.named(name.id, at: name.url) }
        return isKnown ? try await locate() : 0
    }

    /// Asks the remote, and takes its word.
    @discardableResult
    private func locate() async throws -> Int64 {
        switch try await dialect.locate(order, &progress.checkpoint) {
        case .at(let offset):
            checkpoint["gone_seen"] = nil
            checkpoint["doubts"] = nil
            if let reason = objection(to: offset) { return try await end(loss.ofForeign(reason, at: offset)) }
            checkpoint["foreign_seen"] = nil
            engine.chunks.learn(from: offset, &progress.checkpoint)
            if offset < size { progress.lacks() }
            located = offset
            try await progress.accepted(offset)
            if offset == size, let refusal = loss.refusal { throw refusal }
            return offset
        case .gone(let isCertain): return try await end(loss.ofGone(isCertain))
        case .foreign(let reason): return try await end(loss.ofForeign(reason))
        case .doubtful(let error):
            if checkpoint.count("doubts") > 2 { return try await end(loss.ofGone(true)) }
            try await notes.record(checkpoint)
            throw error
        }
    }

    /// Why an offset cannot be that of this upload.
    private func objection(to offset: Int64) -> String? {
        if offset > progress.bounds.reach {
            return
                "it holds \(offset) bytes, and no more than \(progress.bounds.reach) can have left: there is a second writer"
        }
        let before = acknowledged
        if offset < before, checkpoint.count("regressions") >= 3 {
            return "it went back to \(offset) from \(before), for the third time"
        }
        return nil
    }

    private func standsAtBeginning() async throws -> Bool {
        if case .at(0) = try await dialect.locate(order, &progress.checkpoint) { true } else { false }
    }

    // MARK: Bytes

    private func end(from offset: Int64) -> Int64 { dialect.end(from: offset, of: size, atMost: engine.chunks.cap) }

    /// The attempt ends between two requests: what was entered for the next one did not leave.
    func stopped() async throws -> CancellationError {
        if progress.bounds.withdraw() { try await progress.record() }
        return CancellationError()
    }

    /// Sends the next piece.
    ///
    /// - Returns: The offset from there on.
    func send(from offset: Int64) async throws -> Int64 {
        let end = end(from: offset)
        if progress.bounds.enter(to: end) { try await progress.record() }
        located = nil
        let notes = notes
        let sending = await dialect.send(
            offset..<end, order, &progress.checkpoint, { notes.sending(offset + min($0, end - offset)) })
        let isConflict = dialect.isListed && sending.isConflict
        // What is refused for its offset has brought nothing, however much of it left.
        if isConflict { _ = progress.bounds.withdraw() } else { progress.bounds.ended(from: offset, sending.delivery) }
        switch sending.answer {
        case .accepted(let new?) where new > offset && new <= end:
            return try await advance(to: new, of: end - offset, isWhole: new == end)
        case .accepted(let new): return try await afterStrange(new, offset, end)
        case .look(let error, let again):
            try await note(error, sending, end)
            // The key may have been refused, and not the file: the next attempt looks, with what is the key by then.
            if end == size, error.failure.http == 401 { throw error }
            return try await look(from: offset, error, again)
        case .tooMuch(let error):
            try await note(error, sending, end)
            let now = try await locate()
            if now != offset || engine.chunks.refused(end - offset) { return now }
            throw error
        case .damaged(let error):
            try await note(error, sending, end)
            return try await afterDamage(offset, error)
        case .failed(let error):
            ChunkSize.noteCut(from: offset, to: offset + sending.bytesSent, &progress.checkpoint)
            return try await afterFailure(error, sending, end)
        }
    }

    /// What the remote says to the last byte is on disk before anything else is asked of it.
    private func note(_ error: UploadError, _ sending: Sending, _ end: Int64) async throws {
        let isOfState = sending.isOfState || dialect.isListed && sending.isConflict
        guard end == size, progress.note(end: error, isOfState: isOfState) else { return }
        try await progress.record()
    }

    private func afterFailure(_ error: any Error, _ sending: Sending, _ end: Int64) async throws -> Int64 {
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
        try await progress.record()
        return try await lookBehind(error)
    }

    /// Whether it is the whole file that was refused, its offset tells.
    ///
    /// - Throws: `error` where it is not, or nothing was refused.
    private func lookBehind(_ error: UploadError) async throws -> Int64 {
        guard checkpoint["refused_status"] != nil else { throw error }
        let earlier = renewals
        let now = try await locate()
        // Every byte is there, and the refusal of the file is accepted: what is left is told as a warning.
        if renewals == earlier, now < size || engine.finalError == .fail { throw error }
        return now
    }

    private func advance(to offset: Int64, of asked: Int64, isWhole: Bool) async throws -> Int64 {
        if isWhole { engine.chunks.accepted(asked) }
        standstills = 0
        strangeAnswers = 0
        ChunkSize.forgetCuts(&progress.checkpoint)
        for field in ["damaged", "damaged_at"] { checkpoint[field] = nil }
        FinalAnswer.clear(&progress.checkpoint)
        if offset == size { checkpoint["answered"] = "1" }
        try await progress.accepted(offset)
        return offset
    }

    /// A success without growth, or with an offset that cannot be: the remote's word is asked again, three times.
    private func afterStrange(_ new: Int64?, _ offset: Int64, _ end: Int64) async throws -> Int64 {
        strangeAnswers += 1
        // It was a success all the same.
        if end == size, new == nil {
            FinalAnswer.clear(&progress.checkpoint)
            checkpoint["answered"] = "1"
        }
        let now = try await locate()
        if now > offset, new == nil {
            strangeAnswers = 0  // it does not name offsets, but it grows
        } else if strangeAnswers >= 3 {
            let said = new.map { "\($0)" } ?? "none"
            let words = "bytes \(offset) to \(end) were acknowledged with the offset \(said), three times in a row"
            throw dialect.error(.protocol, "no_progress", words, .again(after: nil))
        }
        return now
    }

    /// An answer that only the remote's own offset explains.
    private func look(from offset: Int64, _ error: UploadError, _ again: Int) async throws -> Int64 {
        let earlier = renewals
        let now = try await locate()
        if renewals != earlier { return now }
        if now != offset {
            standstills = 0
            return now
        }
        standstills += 1
        if standstills > again { throw error }
        return now
    }

    private func afterDamage(_ offset: Int64, _ error: UploadError) async throws -> Int64 {
        if checkpoint["damaged_at"] != "\(offset)" { checkpoint["damaged"] = nil }
        checkpoint["damaged_at"] = "\(offset)"
        if checkpoint.count("damaged") >= 3 { throw error }
        try await progress.record()
        return try await locate()
    }

    // MARK: The end

    /// An earlier attempt got so far.
    var isConcluding: Bool { checkpoint["concluding"] != nil && dialect.isOurs(checkpoint) }

    /// - Parameter verified: How it is known that the remote has every byte.
    /// - Returns: `nil` when it lacks some after all.
    func conclude(_ verified: String) async throws -> Outcome? {
        guard dialect.concludes else { return Outcome() }
        if checkpoint["concluding"] == nil {
            checkpoint["concluding"] = verified
            try await progress.record()
        }
        switch try await dialect.conclude(order, &progress.checkpoint, notes) {
        case .done(let outcome): return outcome
        case .incomplete(let error):
            // An offset was stale, or bytes were lost behind it.
            if try await locate() == size { throw error }
            checkpoint["concluding"] = nil
            try await progress.record()
            return nil
        case .rejected(var error):
            // Each time costs the whole file once more.
            if checkpoint.count("rejections") >= Self.mostRejections, case .again = error.remedy {
                error.remedy = .giveUp
                error.failure.retryable = false
                error.failure.message += ", for the third time"
            }
            try await forget()
            throw error
        case .missing(let error):
            guard let seen = checkpoint.fields[OffsetProgress.missingIn].flatMap({ Int($0) }), seen < order.generation
            else {
                checkpoint[OffsetProgress.missingIn] = "\(order.generation)"
                try await progress.record()
                throw error
            }
            try await renew(error.failure.message)
            return nil
        }
    }

    /// Whether the remote holds everything.
    ///
    /// - Returns: How that is known; `nil` when bytes are missing after all.
    func confirm() async throws -> String? {
        if isConcluding, let verified = checkpoint["concluding"] { return completed(verified) }
        if located == size { return completed(byOffset) }
        switch try await dialect.locate(order, &progress.checkpoint) {
        case .at(size): return completed(byOffset)
        case .at(let offset):
            if let reason = objection(to: offset) {
                _ = try await end(loss.ofForeign(reason, at: offset))
                return nil
            }
            progress.lacks()
            try await progress.accepted(offset)
            return nil
        // Some remotes clear an upload away once it is whole; the acknowledgement of the last byte was theirs.
        case .gone, .doubtful:
            let isAssumed = checkpoint["assumed"] != nil
            // An empty file is there when its upload was created.
            let isAnswered = checkpoint["answered"] != nil || size == 0
            return completed(isAssumed ? "assumption" : isAnswered ? "acknowledgement" : byOffset)
        case .foreign(let reason):
            _ = try await end(loss.ofForeign(reason))
            return nil
        }
    }

    /// That the remote counts every byte is said apart from that, where it was not heard to take the last one.
    private var byOffset: String { size == 0 || checkpoint["answered"] != nil ? "offset" : FinalAnswer.unanswered }

    private func completed(_ how: String) -> String {
        warnings += FinalAnswer.warnings(checkpoint, verifiedBy: how) + FinalAnswer.doubts(checkpoint)
        return how
    }

    // MARK: Beginning anew

    private var loss: OffsetLoss { OffsetLoss(engine: engine, order: order, progress: progress) }

    private func end(_ end: OffsetLoss.End) async throws -> Int64 {
        switch end {
        case .whole: return size
        case .assumed:
            checkpoint["assumed"] = "1"
            try await progress.accepted(size)
            return size
        case .again(let reason): return try await renew(reason)
        }
    }

    /// Forgets the upload and begins a new one at 0.
    @discardableResult
    private func renew(_ reason: String) async throws -> Int64 {
        try await forget()
        renewals += 1
        if renewals > 1 {
            let (wait, words) = (Backoff.ofLosses(checkpoint.number("restarts")), "the upload was lost twice in a row")
            throw dialect.error(.protocol, "upload_lost", "\(words): \(reason)", .pending(after: wait))
        }
        return try await create()
    }

    private func forget() async throws {
        located = nil
        // What is not found may be there all the same, whole.
        let isRemoved =
            dialect.isOurs(checkpoint) && checkpoint[Checkpoint.isOfAnother] == nil
            && checkpoint[OffsetProgress.missingIn] == nil
        try await progress.renew(
            leaving: isRemoved ? dialect.remains(of: checkpoint) : nil, name: dialect.name(of: checkpoint)?.id)
    }
}
