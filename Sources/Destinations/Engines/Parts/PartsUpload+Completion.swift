internal import Core
internal import Linux

// The end of a file whose parts have all arrived.

extension PartsUpload {
    /// - Returns: `nil` when parts are missing after all.
    func complete(_ plan: PartPlan) async throws -> RemoteObject? {
        let parts = accepted.values.sorted { $0.index < $1.index }
        if isCheckedAtEnd, !checkpoint.isCompleting, !isAllProven {
            if along.extend(to: plan.size) { await along.run() }
            if along.digest(of: plan.size) != order.file.sha256 { try await order.file.checkContent(dialect.failure) }
        }
        let before = checkpoint
        // The remote may have completed a file at an earlier request, and a second one now.
        let isRepeated = checkpoint.isCompleting && dialect.onlyCounts && dialect.endsByRequest(plan)
        if isRepeated { checkpoint.mayBeDoubled = true }
        if dialect.completesByRequest { checkpoint.isCompleting = true }
        if checkpoint != before { try await record() }
        switch await dialect.complete(parts, piece(plan)) {
        case .done(var object):
            CrashPoint.reached("parts-completed")
            object.warnings += warnings
            return object
        case .missing(let indices, let isListed, let error):
            return try await sendAgain(indices.filter { accepted[$0] != nil }, isListed: isListed, error)
        case .gone(let error): throw try await afterGone(error)
        case .startOver(let error, let cause, let changes): throw try await startedOver(error, cause, changes)
        case .unconfirmed(let error):
            // The remote's answer may have been lost, with its description of the file.
            guard dialect.repeatsSafely, !checkpoint.isReconfirmed else {
                // A retry queries the remote again.
                checkpoint.isReconfirmed = false
                try await record()
                throw error
            }
            checkpoint.isReconfirmed = true
            try await record()
            try await note([], lost: [plan.count - 1])
            return nil
        case .failed(let error):
            if let object = await findObject(after: error, plan) { return object }
            throw try await noteRefusedEnd(error, isRepeated: isRepeated) ?? error
        }
    }

    /// Handles a remote that does not assemble the file. The number of times is durable before the next step.
    ///
    /// - Returns: `nil` where parts are sent again now.
    private func sendAgain(_ lost: [Int], isListed: Bool, _ error: UploadError) async throws -> RemoteObject? {
        checkpoint.isCompleting = false
        let retryLimit = CompletionRetryLimit(
            times: checkpoint.increment(\.refusedCompletions), isListed: isListed, hasParts: !lost.isEmpty)
        if retryLimit.isAtEnd { checkpoint.givenUpIn = order.generation }
        try await record()
        if retryLimit.sendsAgain { try await note([], lost: lost) }
        if let error = retryLimit.error(error) { throw error }
        return nil
    }

    /// Records that a server that can only count its parts refuses to complete the file, as for a last part that needs
    /// no such request.
    private func noteRefusedEnd(_ error: any Error, isRepeated: Bool) async throws -> UploadError? {
        guard dialect.onlyCounts, let error = error as? UploadError else { return nil }
        if FinalAnswer.isFinal(error, isKnownPlace: isRepeated),
            FinalAnswer.note(error, isOfState: false, order, in: &checkpoint)
        {
            try await record()
            return FinalAnswer.refusal(in: checkpoint, dialect.failure)
        }
        if !isRepeated, FinalAnswer.provesIncomplete(error), checkpoint.isCompleting {
            checkpoint.isCompleting = false
            try await record()
        }
        return nil
    }

    /// Looks for the whole file after its end was answered with an error. Where the remote can compare the content,
    /// that decides, regardless of the answer. A busy remote is left to the next attempt.
    func findObject(after error: any Error, _ plan: PartPlan) async -> RemoteObject? {
        guard !dialect.onlyCounts, let error = error as? UploadError, let status = error.failure.http,
            FinalAnswer.allowsQuery(status)
        else { return nil }
        // A failed query gives no information: the answer counts, and the next attempt queries again.
        guard var object = try? await dialect.found(piece(plan)) else { return nil }
        object.warnings += [
            "the end was answered with an error (\(error.failure.message)); the file is there, and was compared"
        ]
        object.warnings += warnings
        return object
    }
}
