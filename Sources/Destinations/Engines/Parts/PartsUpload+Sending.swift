internal import Core
internal import Linux
internal import Transport

extension PartsUpload {
    /// Sends the parts that the remote does not have, in order, with the allowed number in parallel.
    func sendMissing(_ plan: PartPlan) async throws {
        let missing = missing(of: plan)
        // The part whose answer described the whole file has arrived, whether that was recorded or not.
        if let done = checkpoint.finishedPart, missing == [done] {
            return try await note([AcknowledgedPart(index: done, size: plan[done].length)])
        }
        let last = plan.count - 1
        if dialect.lastGoesAlone, missing.last == last {
            try await send(Array(missing.dropLast()), plan, isRest: false)
            try await send([last], plan, isRest: true)
        } else {
            try await send(missing, plan, isRest: true)
        }
    }

    /// - Parameter isRest: With these parts, none is missing.
    private func send(_ indices: [Int], _ plan: PartPlan, isRest: Bool) async throws {
        guard !indices.isEmpty else { return }
        var waiting = indices[...]
        var failure: (any Error)?
        // A child task that returns no part computes the digest of the sent ones.
        try await withThrowingTaskGroup(of: SentPart?.self) { group in
            var running = 0
            while true {
                // A server that keeps renaming never gets two requests at once.
                // After a cut, one part shows whether the path takes its size.
                let isAlone = dialect.mayRename && accepted.isEmpty || renamings > 2 || PartCuts.isSuspected(checkpoint)
                let most = isAlone ? 1 : engine.parallel
                while failure == nil, running < most, !reporter.shouldPause, let index = waiting.first {
                    if let shortage = await dialect.reserve(for: plan[index].length) {
                        // A part in flight may use less than its reservation.
                        if running == 0 { failure = shortage.error(dialect.failure) }
                        break
                    }
                    waiting.removeFirst()
                    try await prepare(index, plan, isLast: isRest && waiting.isEmpty)
                    start(plan[index], plan, in: &group)
                    running += 1
                }
                guard running > 0, let next = try await group.next() else { break }
                guard let sent = next else { continue }
                running -= 1
                dialect.returnReservation(for: sent.part.length, sent: sent.sending.bytesSent)
                do {
                    try await judge(sent)
                    digestAlong(in: &group)
                } catch let error as DamagedPartError {
                    try await count(error, plan)
                    waiting.insert(sent.part.index, at: waiting.startIndex)
                } catch let error as MisplacedPartsError {
                    waiting.insert(contentsOf: error.parts, at: waiting.startIndex)
                } catch let error as UploadError {
                    // Other parts in flight may still arrive.
                    failure = failure ?? error
                }
            }
            // The digest of an attempt that ends here is not needed.
            if failure != nil || !waiting.isEmpty { group.cancelAll() }
        }
        if let failure { throw failure }
        // A person has paused it: the parts in flight have arrived.
        if !waiting.isEmpty { throw CancellationError() }
    }

    /// Sends no request to the remote where a quota leaves less than the next part needs.
    func checkQuota() async throws {
        // A file that may be complete is looked for nevertheless.
        if isPerhapsWhole || checkpoint.has(\.finishedPart) { return }
        let plan = try storedPlan ?? dialect.plan(order)
        let accepted = Set(try await reporter.parts().map(\.index))
        guard let next = (0..<plan.count).first(where: { !accepted.contains($0) }) else { return }
        if let shortage = await dialect.reserve(for: plan[next].length) { throw shortage.error(dialect.failure) }
        // The reservation is made again when the part leaves: the answer to a question may have changed which parts are
        // sent.
        dialect.returnReservation(for: plan[next].length, sent: 0)
    }

    /// Records what must be durable before a part leaves.
    private func prepare(_ index: Int, _ plan: PartPlan, isLast: Bool) async throws {
        try Task.checkCancellation()
        try await checkCopy()
        var isNew = false
        // Checked each time the last part leaves: the copy may have rotted since the first time.
        if isLast, !dialect.comparesContent, !isCheckedAtEnd { try await checkContent(before: plan[index]) }
        // Where the remote can only count, it is unknown whether it completed the file the first time.
        if isLast, wasPerhapsWhole, !checkpoint.mayBeDoubled, dialect.onlyCounts, !dialect.endsByRequest(plan) {
            checkpoint.mayBeDoubled = true
            isNew = true
        }
        if index == plan.count - 1, !checkpoint.mayEndHaveLeft, dialect.sharesName(plan) {
            checkpoint.mayEndHaveLeft = true
            isNew = true
        }
        // If the upload is found gone later, it may be complete.
        if bounds.enter(index, isLast: isLast) { isNew = true }
        if !dialect.repeatsSafely {
            checkpoint.partInDoubt = index
            isNew = true
        }
        if isNew { try await record() }
    }

    /// Whether the remote assembles the file only on request, so that the copy can be checked when all parts were sent.
    var isCheckedAtEnd: Bool {
        dialect.completesByRequest && !dialect.lastGoesAlone && !dialect.comparesContent
    }
    /// Their digest is known in time only where the last part leaves after all others, or is not the end.
    private var isDigestedAlong: Bool { isCheckedAtEnd || dialect.lastGoesAlone && !dialect.comparesContent }

    /// Checks the staged copy, which may have rotted, and with it the bytes that were sent. The whole copy is read
    /// where an earlier attempt has sent some parts.
    private func checkContent(before last: PartPlan.Part) async throws {
        if isDigestedAlong, arrived == last.offset, last.isLast, along.extend(to: last.end) { await along.run() }
        if let digest = along.digest(of: order.file.size), digest == order.file.sha256 { return try await checkCopy() }
        try await order.file.checkContent(dialect.failure)
    }

    private func start(
        _ part: PartPlan.Part, _ plan: PartPlan,
        in group: inout ThrowingTaskGroup<SentPart?, any Error>
    ) {
        var piece = piece(plan)
        (piece.resumes, isResuming) = (isResuming, false)
        let (dialect, reporter, flight, request) = (dialect, reporter, flight, piece)
        let (renamings, arrivals) = (renamings, arrivals.count)
        along.forget(from: part.offset)
        flight.acknowledge(acked)
        group.addTask {
            let sending = await dialect.send(part, request) { sent in
                reporter.sending(flight.set(part.index, min(sent, part.length)))
            }
            return SentPart(part: part, sending: sending, renamings: renamings, arrivals: arrivals)
        }
    }

    /// The end of the parts that have arrived without a gap.
    private var arrived: Int64 {
        guard let plan else { return 0 }
        return (0..<plan.count).first { accepted[$0] == nil }.map { plan[$0].offset } ?? plan.size
    }

    var isAllProven: Bool { accepted.keys.allSatisfy { proven.contains($0) } }

    private func digestAlong(in group: inout ThrowingTaskGroup<SentPart?, any Error>) {
        guard isDigestedAlong, !isAllProven, along.extend(to: arrived) else { return }
        group.addTask { [along] in
            await along.run()
            return nil
        }
    }

    private func judge(_ sent: SentPart) async throws {
        let (part, sending) = (sent.part, sent.sending)
        if sent.renamings < renamings {
            switch sending.answer {
            case .accepted, .gone, .startOver:
                try await recordWaste(of: sent)
                throw MisplacedPartsError(parts: [part.index])
            case .damaged, .failed: break
            }
        }
        switch sending.answer {
        case .accepted(let accepted, let finished, let changes):
            CrashPoint.reached("part-answered")
            if sending.isProven { proven.insert(part.index) } else { proven.remove(part.index) }
            let doubtful = try await rename(changes, since: sent.arrivals)
            try await accept(part, accepted, finished)
            if !doubtful.isEmpty { throw MisplacedPartsError(parts: doubtful) }
        case .gone(let error):
            if checkpoint.has(\.finishedPart) { throw error.endedEarly(dialect) }
            throw try await afterGone(error)
        case .startOver(let error, let cause, let changes): throw try await startedOver(error, cause, changes, sent)
        case .damaged(let error):
            try await recordWaste(of: sent)
            try await noteRefused(part, sending)
            throw DamagedPartError(part: part.index, error: error)
        case .failed(var error):
            // The remote may have it. Otherwise these bytes count as wasted when the next attempt shows that.
            reporter.sending(flight.set(part.index, min(sending.bytesSent, part.length)))
            if error is CancellationError {
                // The bytes that left are known now. If recording fails, the next attempt has wider bounds, and this
                // stop remains a stop.
                do { try await noteRefused(part, sending) } catch { throw CancellationError() }
                throw error
            }
            if let cut = error as? UploadError { error = try await noteCut(cut, part, sending) }
            let refusal = try await noteEnd(error, part, sending)
            if let plan, !dialect.endsByRequest(plan), missing(of: plan) == [part.index],
                let object = await findObject(after: error, plan)
            {
                throw Exit.finished(object)
            }
            try await noteRefused(part, sending)
            throw refusal ?? error
        }
    }

    /// - Returns: Parts that arrived while the part whose answer renamed the upload was in flight; they no longer
    ///   count.
    private func rename(_ changes: Checkpoint, since count: Int) async throws -> [Int] {
        guard !checkpoint.stored.contains(changes) else { return [] }
        let doubtful = Array(arrivals.dropFirst(count))
        // Recorded before the new name: under that name they may be missing.
        if !doubtful.isEmpty { try await note([], lost: doubtful) }
        checkpoint.stored.merge(changes)
        renamings += 1
        arrivals = []
        try await record()
        return doubtful
    }

    private func accept(_ part: PartPlan.Part, _ new: AcknowledgedPart, _ finished: RemoteObject?) async throws {
        let before = checkpoint
        if let finished {
            checkpoint.finishedPart = part.index
            checkpoint.finishedURL = finished.url
            checkpoint.finishedVerifiedBy = finished.verifiedBy
        }
        checkpoint.damagedAnswers = nil
        PartCuts.end(in: &checkpoint)
        dialect.accepted(part.length)
        if part.isLast { checkpoint.isEndUnanswered = false }
        checkpoint.goneAnswers = nil
        FinalAnswer.clear(&checkpoint)
        // Recorded before the part: the remote does not repeat what the answer said about the file.
        if checkpoint != before { try await record() }
        try await note([new])
        arrivals.append(part.index)
    }

    /// Records what is known about a part that was not accepted: where the remote cannot have it, no doubt remains.
    func noteRefused(_ part: PartPlan.Part, _ sending: PartSendResult) async throws {
        guard let plan else { return }
        var isNew = bounds.ended(
            part, sending.delivery, isRefused: sending.isRefused, missing: missing(of: plan))
        if sending.isRefused, checkpoint.has(\.partInDoubt) {
            checkpoint.partInDoubt = nil
            isNew = true
        }
        if isNew { try await record() }
    }

    /// Records the refusal of the last part by a server that can only count its parts, before any other request.
    ///
    /// - Returns: The error for a final refusal; `nil` where there is none.
    private func noteEnd(
        _ error: any Error, _ part: PartPlan.Part, _ sending: PartSendResult
    ) async throws -> UploadError? {
        guard dialect.onlyCounts, let plan, !dialect.endsByRequest(plan), missing(of: plan) == [part.index],
            var error = error as? UploadError,
            FinalAnswer.note(
                error, isOfState: dialect.inquiry == .none && FinalAnswer.isOfPathOrSpace(error),
                refusesInBody: sending.refusesInBody, order, in: &checkpoint)
        else { return nil }
        // Where each repeat may leave a complete file, the answer is not doubted for ever.
        let isDenied = sending.refusesInBody && !dialect.repeatsSafely && checkpoint.increment(\.denials) >= 3
        try await record()
        guard let refusal = FinalAnswer.refusal(in: checkpoint, dialect.failure) else { return nil }
        // The remote's content cannot be queried: the answer decides.
        if dialect.inquiry == .none {
            if isDenied { return refusal }
            return FinalAnswer.isFinal(error, isKnownPlace: !accepted.isEmpty || wasPerhapsWhole) ? refusal : nil
        }
        guard error.remedy == .failUpload else { return nil }
        if engine.finalError == .fail { return refusal }
        // Accepted where the server says that it has every part.
        error.remedy = .refused(after: nil)
        error.failure.retryable = true
        return error
    }

    /// Records the bytes of a part that is sent again in this attempt.
    private func recordWaste(of sent: SentPart) async throws {
        flight.end(sent.part.index)
        try await reporter.wasted(min(sent.sending.bytesSent, sent.part.length))
    }

    /// Records that the connection cut a part. Parts in flight together are cut together, and count once.
    private func noteCut(
        _ error: UploadError, _ part: PartPlan.Part, _ sending: PartSendResult
    ) async throws -> UploadError {
        guard !wasCut, PartCuts.isCut(part, sending) else { return error }
        wasCut = true
        let cuts = PartCuts(part, in: &checkpoint)
        try await record()
        if cuts.shouldShrinkParts { dialect.cut(part.length) }
        var error = error
        error.failure.message += cuts.hint(dialect.sizeKey(ofPart: part.length))
        return error
    }

    /// Counts damaged parts. The staged copy is checked after the first, because sending a copy that has rotted again is
    /// in vain, and after three in a row, before the remote is believed.
    private func count(_ damage: DamagedPartError, _ plan: PartPlan) async throws {
        let times = checkpoint.increment(\.damagedAnswers)
        let isEnd = dialect.onlyCounts && !dialect.endsByRequest(plan) && missing(of: plan) == [damage.part]
        // The remote may have kept a part that it refused.
        if isEnd { checkpoint.mayBeDoubled = true }
        try await record()
        if times >= 3 || !wasCopyChecked { try await order.file.checkContent(dialect.failure) }
        wasCopyChecked = true
        guard times >= 3 else { return }
        guard isEnd,
            FinalAnswer.note(damage.error, isOfState: false, order, in: &checkpoint)
        else { throw damage.error }
        try await record()
        throw FinalAnswer.refusal(in: checkpoint, dialect.failure) ?? damage.error
    }
}

extension UploadError {
    /// The error for a remote that said that the file is complete while parts were still missing.
    fileprivate func endedEarly(_ dialect: any PartsDialect) -> UploadError {
        UploadError(
            dialect.failure(
                .protocol, .endedEarly,
                "the server called the file complete before it had all of it, and accepts no more: \(failure.message)",
                retryable: false), remedy: .failUpload)
    }
}
