internal import Core
internal import Transport

/// One attempt. Owned by one task from beginning to end; state that outlives it is in ``OffsetProgress``.
final class OffsetUpload {
    let engine: OffsetEngine
    let order: UploadOrder
    private let reporter: any UploadReporter
    let progress: OffsetProgress
    private(set) var warnings: [String] = []

    /// The remote's offset at the last query; `nil` once bytes were sent after that.
    var located: Int64?
    /// Number of answers in this attempt without progress at one offset.
    var standstills = 0
    var unexpectedAnswers = 0
    private(set) var renewals = 0
    private let digest: SentDigest

    var dialect: any OffsetDialect { engine.dialect }
    var size: Int64 { order.file.size }
    var acknowledged: Int64 { progress.acknowledged }
    var checkpoint: OffsetCheckpoint {
        get { progress.checkpoint }
        set { progress.checkpoint = newValue }
    }

    private static let maxRejections: Int64 = 3

    init(_ engine: OffsetEngine, _ order: UploadOrder, _ reporter: any UploadReporter) {
        self.engine = engine
        self.order = order
        self.reporter = reporter
        progress = OffsetProgress(order, reporter)
        digest = SentDigest(of: engine.dialect.isSection ? nil : order.file)
    }

    // MARK: Opening

    /// - Returns: The first byte that the remote does not have.
    func open() async throws -> Int64 {
        guard checkpoint.url != nil else { return try await create() }
        // A person wants the file sent again: earlier refusals and losses do not count.
        if FinalAnswer.isFromEarlierGeneration(checkpoint, order), !dialect.isGiven(order) {
            return try await renew("it is tried again")
        }
        // Bytes at another server are of no use, and new bytes must not go there.
        guard dialect.isOurs(checkpoint) else { return try await renew("the destination is another server now") }
        if checkpoint.isFinalAnswer { return try await afterFinalRefusal() }
        return try await locate()
    }

    private func create() async throws -> Int64 {
        if let offset = try await createWithBytes() { return offset }
        let before = checkpoint
        let isRepeated = try await dialect.repeatsCreation(order, &progress.checkpoint)
        if checkpoint.isCreating, !isRepeated { checkpoint.increment(\.orphans) }
        checkpoint.isCreating = true
        try await reporter.record(checkpoint.stored)
        let isKnown: Bool
        do { isKnown = try await dialect.create(order, &progress.checkpoint) } catch let error as UploadError {
            if error.failure.code == .creationsUnknown {
                // No request was sent: the uncertainty is as before.
                checkpoint = before
                try await reporter.record(checkpoint.stored)
            } else if dialect.remains(of: checkpoint) != nil {
                // The creation has made an upload that cannot be used.
                try await forget()
            } else if error.leavesNothingBehind {
                // An earlier creation that this one repeats is still without an answer.
                checkpoint.isCreating = before.isCreating && isRepeated
                if !checkpoint.isCreating { dialect.forgetCreation(&progress.checkpoint) }
                try await reporter.record(checkpoint.stored)
            } else {
                // What the dialect has learned from the answer.
                try await reporter.record(checkpoint.stored)
            }
            throw error
        }
        checkpoint.isCreating = false
        if let url = checkpoint.refusedURL, url == checkpoint.url, try await !isAtBeginning() {
            checkpoint.url = nil
            try await reporter.record(checkpoint.stored)
            throw dialect.error(
                .protocol, .sameUpload,
                "a new upload has the address of the one that the server refused: remove that at the server",
                .failUpload)
        }
        let objection = dialect.objection(to: checkpoint)
        checkpoint.offset = 0
        progress.bounds = SentBounds(OffsetCheckpoint(), size: size)
        if isKnown {
            progress.bounds.recordComplete()
            checkpoint.isEndAnswered = true
        } else if size > 0, objection == nil {
            _ = progress.bounds.enter(to: end(from: 0))
        }
        // Recorded before the first byte: without a recorded address the upload would be paid for and lost.
        try await progress.record()
        if let name = dialect.name(of: checkpoint) { try await reporter.recordName(name.id, at: name.url) }
        // Thrown only now: with the recorded address the upload continues when that is allowed, and no second one is
        // created.
        if let objection { throw objection }
        return isKnown ? try await locate() : 0
    }

    /// - Returns: `nil` where the upload has to be created without bytes.
    private func createWithBytes() async throws -> Int64? {
        let creation = CreationWithBytes(
            engine: engine, order: order, progress: progress, digest: digest, reporter: reporter)
        guard let created = try await creation.run() else { return nil }
        guard let offset = created.offset, (0...size).contains(offset) else { return try await locate() }
        if created.isConfirmed { located = offset }
        return offset
    }

    /// Queries the remote's offset, and uses its answer.
    @discardableResult
    func locate() async throws -> Int64 {
        switch try await position() {
        case .at(let offset):
            checkpoint.goneAnswers = nil
            checkpoint.doubtfulAnswers = nil
            if let reason = objection(to: offset) { return try await end(loss.handleForeign(reason, at: offset)) }
            checkpoint.foreignAnswers = nil
            if let peak = checkpoint.conflictPeak, offset > peak {
                Contradiction.end(.conflict, in: &progress.checkpoint)
            }
            engine.chunks.learn(from: offset, &progress.checkpoint)
            if offset < size { progress.recordMissing() }
            located = offset
            try await progress.accepted(offset)
            if offset == size, let refusal = loss.refusal { throw refusal }
            return offset
        case .gone(let isCertain): return try await end(loss.handleGone(isCertain))
        case .foreign(let reason): return try await end(loss.handleForeign(reason))
        case .doubtful(let error):
            if checkpoint.increment(\.doubtfulAnswers) > 2 { return try await end(loss.handleGone(true)) }
            try await reporter.record(checkpoint.stored)
            throw error
        }
    }

    /// Returns the reason why an offset cannot be this upload's.
    private func objection(to offset: Int64) -> String? {
        if offset > progress.bounds.reach {
            return
                "it holds \(offset) bytes, and no more than \(progress.bounds.reach) can have been sent: there is a second writer"
        }
        let before = acknowledged
        if offset < before, checkpoint.increment(\.regressions) >= 3 {
            return "it went back to \(offset) from \(before), for the third time"
        }
        return nil
    }

    func isAtBeginning() async throws -> Bool {
        if case .at(0) = try await dialect.locate(order, &progress.checkpoint) { true } else { false }
    }

    // MARK: Bytes

    private func end(from offset: Int64) -> Int64 {
        let cap = engine.chunks.cap
        let isProbe = Contradiction.exceedsLimit(checkpoint) || dialect.isProbing(checkpoint)
        let most = isProbe ? min(cap, Contradiction.probe) : cap
        return dialect.end(from: offset, of: size, atMost: most)
    }

    /// The attempt ends between two requests: the entry for the next request is withdrawn, since it did not leave.
    func stopped() async throws -> CancellationError {
        if progress.bounds.withdraw() { try await progress.record() }
        return CancellationError()
    }

    /// Sends the next piece.
    ///
    /// - Returns: The offset after it.
    func send(from offset: Int64) async throws -> Int64 {
        let end = end(from: offset)
        // The bytes that an earlier attempt sent were read from this copy.
        try await digest.begin(at: offset, dialect.failure)
        let reach = progress.bounds.reachBefore
        // A quota that cuts a request of the smallest size would have paid for bytes that the remote does not keep. The
        // sections of one file reserve together.
        let least = dialect.leastRequest(from: offset, of: size)
        let isForced = !dialect.isSection && dialect.allowance(for: least) < least
        if isForced, let shortage = await dialect.reserve(for: end - offset) {
            throw shortage.error(dialect.failure)
        }
        var sentBytes: Int64 = 0
        defer { if isForced { dialect.returnReservation(for: end - offset, sent: sentBytes) } }
        if progress.bounds.enter(to: end) { try await progress.record() }
        located = nil
        let reporter = reporter
        var sending = await dialect.send(
            offset..<end, order, &progress.checkpoint, past: digest,
            { reporter.sending(offset + min($0, end - offset)) })
        sentBytes = sending.bytesSent
        if let damage = digest.damage(dialect.failure) { throw damage }
        if let error = sending.error { sending.isAboutOffset = isAboutOffset(error, sending, offset..<end, reach) }
        // A request that is refused for its offset has delivered nothing, however many of its bytes left.
        if dialect.isListed && sending.isConflict {
            sending.isAboutOffset = true
            _ = progress.bounds.withdraw()
        } else {
            progress.bounds.ended(from: offset, sending.delivery)
        }
        if sending.isFinal, let error = sending.error {
            FinalAnswer.noteFinal(error, order, in: &progress.checkpoint)
            try await progress.record()
            return try await afterFinalRefusal()
        }
        switch sending.answer {
        case .accepted(let new?) where new > offset && new <= end:
            return try await advance(to: new, of: end - offset, isWhole: new == end)
        case .accepted(let new): return try await afterUnexpectedOffset(new, offset, end)
        case .status(let error, let again):
            try await note(error, sending, end)
            // The remote may have refused the credential, and not the file: the next attempt asks, with a renewed
            // credential. An answer that refuses neither ends no attempt.
            if end == size, error.failure.http == 401, !error.remedy.endsOnlyAttempt { throw error }
            if dialect.isSection, sending.isConflict, reach == 0, checkpoint.acceptedOffset == nil {
                try await requireBeginning()
            }
            return try await status(from: offset, error, again, isOfPlace: sending.isAboutOffset)
        case .tooMuch(let error):
            try await note(error, sending, end)
            let now = try await locate()
            if now != offset || engine.chunks.refused(end - offset) { return now }
            throw error
        case .damaged(let error):
            try await note(error, sending, end)
            return try await afterDamage(offset, error)
        case .failed(let error):
            ChunkSize.noteCut(from: offset, to: offset + sending.bytesSent, of: end - offset, &progress.checkpoint)
            return try await afterFailure(error, sending, from: offset, to: end)
        }
    }

    private func advance(to offset: Int64, of asked: Int64, isWhole: Bool) async throws -> Int64 {
        if isWhole { engine.chunks.accepted(asked) }
        standstills = 0
        unexpectedAnswers = 0
        // Offsets that a false answer took back count as progress only when they exceed the largest one that was named.
        if checkpoint.conflictPeak.map({ offset > $0 }) ?? true {
            Contradiction.end(.conflict, in: &progress.checkpoint)
        }
        checkpoint.acceptedOffset = max(offset, checkpoint.acceptedOffset ?? 0)
        ChunkSize.forgetCuts(&progress.checkpoint)
        checkpoint.damagedAnswers = nil
        checkpoint.damagedAt = nil
        FinalAnswer.clear(&progress.checkpoint)
        if offset == size { checkpoint.isEndAnswered = true }
        try await progress.accepted(offset)
        return offset
    }

    // MARK: The end

    /// Whether an earlier attempt reached the conclusion.
    var isConcluding: Bool { checkpoint.concludesFrom != nil && dialect.isOurs(checkpoint) }

    /// - Parameter verified: How it is known that the remote has every byte.
    /// - Returns: `nil` when it lacks some after all.
    func conclude(_ verified: String) async throws -> RemoteDescription? {
        guard dialect.concludes else { return RemoteDescription() }
        if checkpoint.concludesFrom == nil {
            checkpoint.concludesFrom = verified
            try await progress.record()
        }
        switch try await dialect.conclude(order, &progress.checkpoint, reporter) {
        case .done(let outcome): return outcome
        case .incomplete(let error):
            // An offset was out of date, or the remote lost bytes that it had acknowledged.
            if try await locate() == size, !checkpoint.isAssumedComplete { throw error }
            checkpoint.concludesFrom = nil
            try await progress.record()
            return nil
        case .rejected(var error):
            // Each time costs the whole file once more.
            if checkpoint.increment(\.rejections) >= Self.maxRejections, error.remedy.endsOnlyAttempt {
                error.remedy = .failUpload
                error.failure.retryable = false
                error.failure.message += ", for the third time"
            }
            try await forget()
            throw error
        case .missing(let error):
            guard let seen = checkpoint.missingIn, seen < order.generation
            else {
                checkpoint.missingIn = order.generation
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
        if isConcluding, let verified = checkpoint.concludesFrom { return completed(verified) }
        if located == size { return completed(byOffset) }
        switch try await position() {
        case .at(size): return completed(byOffset)
        case .at(let offset):
            if let reason = objection(to: offset) {
                _ = try await end(loss.handleForeign(reason, at: offset))
                return nil
            }
            progress.recordMissing()
            try await progress.accepted(offset)
            return nil
        // Some remotes remove an upload's record once it is complete. The remote has acknowledged the last byte.
        case .gone, .doubtful:
            let isAssumed = checkpoint.isAssumedComplete
            // An empty file is complete when its upload was created.
            let isAnswered = checkpoint.isEndAnswered || size == 0
            return completed(isAssumed ? "assumption" : isAnswered ? "acknowledgement" : byOffset)
        case .foreign(let reason):
            _ = try await end(loss.handleForeign(reason))
            return nil
        }
    }

    /// How the file was verified, where only the remote's byte count proves it. The text differs if no answer to the
    /// last byte was received.
    private var byOffset: String {
        let isAnswered = size == 0 || checkpoint.isEndAnswered || progress.isEndAccepted
        // The request that completes the upload is still to be sent, and its answer counts.
        return isAnswered || !dialect.isWhole(checkpoint) ? "offset" : FinalAnswer.unanswered
    }

    private func completed(_ how: String) -> String {
        warnings += FinalAnswer.warnings(checkpoint, verifiedBy: how) + FinalAnswer.doubts(checkpoint)
        return how
    }

    // MARK: Starting again

    private var loss: OffsetLoss { OffsetLoss(engine: engine, order: order, progress: progress) }

    private func end(_ end: OffsetLoss.End) async throws -> Int64 {
        switch end {
        case .whole: return size
        case .assumed:
            checkpoint.isAssumedComplete = true
            try await progress.accepted(size)
            return size
        case .again(let reason): return try await renew(reason)
        }
    }

    /// Forgets the upload and creates a new one at offset 0.
    @discardableResult
    private func renew(_ reason: String) async throws -> Int64 {
        if dialect.isGiven(order) {
            try await progress.record()
            throw dialect.lostGiven(order, reason)
        }
        try await forget()
        renewals += 1
        if renewals > 1 {
            let (wait, words) = (Backoff.ofLosses(checkpoint.restarts ?? 0), "the upload was lost twice in a row")
            throw dialect.error(.protocol, .uploadLost, "\(words): \(reason)", .pending(after: wait))
        }
        return try await create()
    }

    private func forget() async throws {
        located = nil
        // The remote may have all of an upload that it does not find.
        let isRemoved =
            dialect.isOurs(checkpoint) && !checkpoint.isOfAnotherWriter
            && !checkpoint.has(\.missingIn)
        try await progress.renew(
            leaving: isRemoved ? dialect.remains(of: checkpoint) : nil, name: dialect.name(of: checkpoint)?.id)
    }
}
