internal import Core
internal import Linux
internal import Transport

extension PartsRun {
    /// Sends what the remote does not have, in order, as many at once as may be.
    func sendMissing(_ plan: PartPlan) async throws {
        let missing = missing(of: plan)
        // The part whose answer is known for the file itself has arrived, whether that was written down or not.
        if let done = checkpoint["done"].flatMap({ Int($0) }), missing == [done] {
            return try await note([TakenPart(index: done, size: plan[done].length)])
        }
        let last = plan.count - 1
        if dialect.lastGoesAlone, missing.last == last {
            try await send(Array(missing.dropLast()), plan, isRest: false)
            try await send([last], plan, isRest: true)
        } else {
            try await send(missing, plan, isRest: true)
        }
    }

    /// - Parameter isRest: Nothing is missing when these are there.
    private func send(_ indices: [Int], _ plan: PartPlan, isRest: Bool) async throws {
        guard !indices.isEmpty else { return }
        var waiting = indices[...]
        var failure: (any Error)?
        // What is no part that was sent is the digest of those that were.
        try await withThrowingTaskGroup(of: SentPart?.self) { group in
            var running = 0
            while true {
                // A server that goes on renaming is never asked for two things at once.
                let most = dialect.mayRename && taken.isEmpty || renamings > 2 ? 1 : engine.parallel
                while failure == nil, running < most, !notes.isToPause, let index = waiting.first {
                    if let shortage = dialect.pledge(for: plan[index].length) {
                        // What is on its way may take less than was set aside for it.
                        if running == 0 { failure = short(shortage) }
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
                dialect.returnPledge(for: sent.part.length, sent: sent.sending.bytesSent)
                do {
                    try await judge(sent)
                    digestAlong(in: &group)
                } catch let error as DamagedPart {
                    try await count(error, plan)
                    waiting.insert(sent.part.index, at: waiting.startIndex)
                } catch let error as MisplacedParts {
                    waiting.insert(contentsOf: error.parts, at: waiting.startIndex)
                } catch let error as UploadError {
                    // What else is on its way may arrive.
                    failure = failure ?? error
                }
            }
            // Nobody needs the digest of an attempt that ends here.
            if failure != nil || !waiting.isEmpty { group.cancelAll() }
        }
        if let failure { throw failure }
        // A person has paused it: what was on its way has arrived.
        if !waiting.isEmpty { throw CancellationError() }
    }

    private func short(_ shortage: Shortage) -> UploadError {
        UploadError(
            dialect.failure(.quota, Failure.shortOfQuota, shortage.text, retryable: true),
            remedy: .pending(after: shortage.after))
    }

    /// Nothing is asked of the remote where a quota leaves less than the next part takes.
    func checkQuota() async throws {
        // What may be there already is looked for.
        if isPerhapsWhole || checkpoint["done"] != nil { return }
        let plan = try storedPlan ?? dialect.plan(order)
        let taken = Set(try await notes.parts().map(\.index))
        guard let next = (0..<plan.count).first(where: { !taken.contains($0) }) else { return }
        if let shortage = dialect.pledge(for: plan[next].length) { throw short(shortage) }
        // It is asked for once more when it leaves: what its answer said may have changed what is to be sent.
        dialect.returnPledge(for: plan[next].length, sent: 0)
    }

    /// What must be durable before a part leaves.
    private func prepare(_ index: Int, _ plan: PartPlan, isLast: Bool) async throws {
        try Task.checkCancellation()
        try checkCopy()
        var isNew = false
        // Each time that it leaves: the copy may have rotted since it did for the first time.
        if isLast, !dialect.comparesContent, !isCheckedAtEnd { try await checkContent(before: plan[index]) }
        // Where it can only be counted, nobody knows whether a file was made of it the first time.
        if isLast, wasPerhapsWhole, checkpoint["doubled"] == nil, dialect.onlyCounts, !dialect.endsByRequest(plan) {
            checkpoint["doubled"] = "1"
            isNew = true
        }
        if index == plan.count - 1, checkpoint["last_left"] == nil, dialect.sharesName(plan) {
            checkpoint["last_left"] = "1"
            isNew = true
        }
        // An upload that is found gone later may be whole.
        if bounds.enter(index, isLast: isLast) { isNew = true }
        if !dialect.repeatsSafely {
            checkpoint["sending"] = "\(index)"
            isNew = true
        }
        if isNew { try await record() }
    }

    /// Nothing is made of the parts before the remote is told to, so that the copy may be looked at when they are all there.
    private var isCheckedAtEnd: Bool {
        dialect.completesByRequest && !dialect.lastGoesAlone && !dialect.comparesContent
    }
    /// Only where the last part leaves behind all others, or is not the end, is their digest known in time.
    private var isDigestedAlong: Bool { isCheckedAtEnd || dialect.lastGoesAlone && !dialect.comparesContent }

    /// The copy in staging may have rotted, and then so has what was sent of it. All of it is read where an earlier attempt
    /// has sent some.
    private func checkContent(before last: PartPlan.Part) async throws {
        if isDigestedAlong, arrived == last.offset, last.isLast, along.extend(to: last.end) { await along.run() }
        if let digest = along.digest(of: order.file.size), digest == order.file.sha256 { return try checkCopy() }
        try await checkContent()
    }

    private func checkContent() async throws {
        do { try await order.file.checkContent(dialect.failure) } catch let error as UploadError {
            // What it is about to say matters more than that the upload was begun too often.
            _ = try await renewed("the staged copy has changed")
            throw error
        }
    }

    private func start(
        _ part: PartPlan.Part, _ plan: PartPlan,
        in group: inout ThrowingTaskGroup<SentPart?, any Error>
    ) {
        var piece = piece(plan)
        (piece.resumes, isResuming) = (isResuming, false)
        let (dialect, notes, flight, told) = (dialect, notes, flight, piece)
        let (renamings, arrivals) = (renamings, arrivals.count)
        along.forget(from: part.offset)
        flight.acknowledge(acked)
        group.addTask {
            let sending = await dialect.send(part, told) { sent in
                notes.sending(flight.set(part.index, min(sent, part.length)))
            }
            return SentPart(part: part, sending: sending, renamings: renamings, arrivals: arrivals)
        }
    }

    /// Behind the parts that have arrived without a gap.
    private var arrived: Int64 {
        guard let plan else { return 0 }
        return (0..<plan.count).first { taken[$0] == nil }.map { plan[$0].offset } ?? plan.size
    }

    private var isAllProven: Bool { taken.keys.allSatisfy { proven.contains($0) } }

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
            case .taken, .gone, .startOver:
                flight.end(part.index)
                throw MisplacedParts(parts: [part.index])
            case .damaged, .failed: break
            }
        }
        switch sending.answer {
        case .taken(let taken, let finished, let changes):
            CrashPoint.reached("part-answered")
            if sending.isProven { proven.insert(part.index) } else { proven.remove(part.index) }
            let doubtful = try await rename(changes, since: sent.arrivals)
            try await took(part, taken, finished)
            if !doubtful.isEmpty { throw MisplacedParts(parts: doubtful) }
        case .gone(let error):
            if checkpoint["done"] != nil { throw error.endedEarly(dialect) }
            throw try await afterGone(error)
        case .startOver(let error): throw try await startedOver(error, sent)
        case .damaged(let error):
            flight.end(part.index)
            try await noteRefused(part, sending)
            throw DamagedPart(part: part.index, error: error)
        case .failed(let error):
            flight.end(part.index)
            if error is CancellationError {
                // What left is known now. Without it the next attempt has wider bounds, and the stop stays one.
                do { try await noteRefused(part, sending) } catch { throw CancellationError() }
                throw error
            }
            let refusal = try await noteEnd(error, part, sending)
            if let plan, !dialect.endsByRequest(plan), missing(of: plan) == [part.index],
                let object = await there(behind: error, plan)
            {
                throw Exit.finished(object)
            }
            try await noteRefused(part, sending)
            throw refusal ?? error
        }
    }

    /// - Returns: Parts that arrived while the one was on its way that changed this, and count for nothing now.
    private func rename(_ changes: [String: String], since count: Int) async throws -> [Int] {
        guard changes.contains(where: { checkpoint[$0.key] != $0.value }) else { return [] }
        let doubtful = Array(arrivals.dropFirst(count))
        // Before the name: under the new one they may not be there.
        if !doubtful.isEmpty { try await note([], lost: doubtful) }
        for (field, value) in changes { checkpoint[field] = value }
        renamings += 1
        arrivals = []
        try await record()
        return doubtful
    }

    private func took(_ part: PartPlan.Part, _ taken: TakenPart, _ finished: RemoteObject?) async throws {
        let before = checkpoint
        if let finished {
            checkpoint["done"] = "\(part.index)"
            checkpoint["done_url"] = finished.url
            checkpoint["done_by"] = finished.verifiedBy
        }
        checkpoint["damaged"] = nil
        if part.isLast { checkpoint["end_unanswered"] = nil }
        checkpoint["gone_seen"] = nil
        FinalAnswer.clear(&checkpoint)
        // Before the part: what the answer said of the file is not said twice.
        if checkpoint != before { try await record() }
        try await note([taken])
        arrivals.append(part.index)
    }

    /// What is known of a part that was not taken: where the remote cannot have it, nothing stays in doubt.
    func noteRefused(_ part: PartPlan.Part, _ sending: PartSending) async throws {
        guard let plan else { return }
        var isNew = bounds.ended(
            part, sending.delivery, isRefused: sending.isRefused, missing: missing(of: plan))
        if sending.isRefused, checkpoint["sending"] != nil {
            checkpoint["sending"] = nil
            isNew = true
        }
        if isNew { try await record() }
    }

    /// A server that can only count its parts has refused the one that makes the file whole: on disk before anything else.
    ///
    /// - Returns: What a refusal for good comes to; `nil` where there is none.
    private func noteEnd(
        _ error: any Error, _ part: PartPlan.Part, _ sending: PartSending
    ) async throws -> UploadError? {
        guard dialect.onlyCounts, let plan, !dialect.endsByRequest(plan), missing(of: plan) == [part.index],
            var error = error as? UploadError,
            FinalAnswer.note(error, isOfState: false, saysNo: sending.saysNo, order, in: &checkpoint)
        else { return nil }
        // Where each time may leave a whole file, its word is not doubted for ever.
        let isDenied = sending.saysNo && !dialect.repeatsSafely && checkpoint.count("denied") >= 3
        try await record()
        guard let refusal = FinalAnswer.refusal(in: checkpoint, dialect.failure) else { return nil }
        // Nothing can be asked: the answer decides.
        if dialect.inquiry == .none {
            if isDenied { return refusal }
            return FinalAnswer.isFinal(error, isKnownPlace: !taken.isEmpty || wasPerhapsWhole) ? refusal : nil
        }
        guard error.remedy == .giveUp else { return nil }
        if engine.finalError == .fail { return refusal }
        // Accepted where the server says that it has every part.
        error.remedy = .refused(after: nil)
        error.failure.retryable = true
        return error
    }

    /// Three times in a row, and the staged copy is looked at before the remote is believed.
    private func count(_ damage: DamagedPart, _ plan: PartPlan) async throws {
        let times = checkpoint.count("damaged")
        let isEnd = dialect.onlyCounts && !dialect.endsByRequest(plan) && missing(of: plan) == [damage.part]
        // What it refuses it may have kept all the same.
        if isEnd { checkpoint["doubled"] = "1" }
        try await record()
        guard times >= 3 else { return }
        try await checkContent()
        guard isEnd,
            FinalAnswer.note(damage.error, isOfState: false, order, in: &checkpoint)
        else { throw damage.error }
        try await record()
        throw FinalAnswer.refusal(in: checkpoint, dialect.failure) ?? damage.error
    }

    // MARK: The end

    /// - Returns: `nil` when parts are missing after all.
    func complete(_ plan: PartPlan) async throws -> RemoteObject? {
        let parts = taken.values.sorted { $0.index < $1.index }
        if isCheckedAtEnd, checkpoint["completing"] == nil, !isAllProven {
            if along.extend(to: plan.size) { await along.run() }
            if along.digest(of: plan.size) != order.file.sha256 { try await checkContent() }
        }
        let before = checkpoint
        // It may have made a file when it was told to before, and a second one now.
        let isRepeated = checkpoint["completing"] != nil && dialect.onlyCounts && dialect.endsByRequest(plan)
        if isRepeated { checkpoint["doubled"] = "1" }
        if dialect.completesByRequest { checkpoint["completing"] = "1" }
        if checkpoint != before { try await record() }
        switch await dialect.complete(parts, piece(plan)) {
        case .done(var object):
            CrashPoint.reached("parts-completed")
            object.warnings += warnings
            return object
        case .missing(let indices, let isListed, let error):
            return try await sendAgain(indices.filter { taken[$0] != nil }, isListed: isListed, error)
        case .gone(let error): throw try await afterGone(error)
        case .startOver(let error): throw try await startedOver(error)
        case .unconfirmed(let error):
            // Its answer may have been lost with what it said of the file.
            guard dialect.repeatsSafely, checkpoint["reconfirmed"] == nil else {
                // A person who tries it again has it asked again.
                checkpoint["reconfirmed"] = nil
                try await record()
                throw error
            }
            checkpoint["reconfirmed"] = "1"
            try await record()
            try await note([], lost: [plan.count - 1])
            return nil
        case .failed(let error):
            if let object = await there(behind: error, plan) { return object }
            throw try await noteRefusedEnd(error, isRepeated: isRepeated) ?? error
        }
    }

    /// The remote does not make a file of its parts. How often that was so is durable before anything is done about it.
    ///
    /// - Returns: `nil` where parts go again now.
    private func sendAgain(_ lost: [Int], isListed: Bool, _ error: UploadError) async throws -> RemoteObject? {
        checkpoint["completing"] = nil
        let patience = CompletionPatience(
            times: checkpoint.count("completions_refused"), isListed: isListed, hasParts: !lost.isEmpty)
        if patience.isAtEnd { checkpoint["ended_in"] = "\(order.generation)" }
        try await record()
        if patience.sendsAgain { try await note([], lost: lost) }
        if let error = patience.error(error) { throw error }
        return nil
    }

    /// A server that can only count its parts will not make a file of them: as of the last part of one that needs no such request.
    private func noteRefusedEnd(_ error: any Error, isRepeated: Bool) async throws -> UploadError? {
        guard dialect.onlyCounts, let error = error as? UploadError else { return nil }
        if FinalAnswer.isFinal(error, isKnownPlace: isRepeated),
            FinalAnswer.note(error, isOfState: false, order, in: &checkpoint)
        {
            try await record()
            return FinalAnswer.refusal(in: checkpoint, dialect.failure)
        }
        // It has made no file.
        // A gateway that sends elsewhere (421) or slows down (429) may have passed it on.
        let isUnheard = error.leavesNothingBehind && error.failure.http != 421 && error.failure.http != 429
        if !isRepeated, isUnheard, checkpoint["completing"] != nil {
            checkpoint["completing"] = nil
            try await record()
        }
        return nil
    }

    /// Looks for the whole file after its end was answered with an error: where the remote can compare its content, that decides, whatever was
    /// answered. What only says that the remote is busy is left to the next attempt.
    private func there(behind error: any Error, _ plan: PartPlan) async -> RemoteObject? {
        guard !dialect.onlyCounts, let error = error as? UploadError, let status = error.failure.http,
            FinalAnswer.isRefusal(status)
        else { return nil }
        // A look that fails says nothing: the answer stands, and the next attempt looks again.
        guard var object = try? await dialect.found(piece(plan)) else { return nil }
        object.warnings += [
            "the end was answered with an error (\(error.failure.message)); the file is there, and was compared"
        ]
        object.warnings += warnings
        return object
    }
}

extension UploadError {
    /// The remote had said that the file is there while parts of it were still to come.
    fileprivate func endedEarly(_ dialect: any PartsDialect) -> UploadError {
        UploadError(
            dialect.failure(
                .protocol, "ended_early",
                "the server called the file complete before it had all of it, and takes no more: \(failure.message)",
                retryable: false), remedy: .giveUp)
    }
}
