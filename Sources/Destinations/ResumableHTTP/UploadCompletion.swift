internal import Core
internal import Transport

/// Completes an upload whose bytes are all at the server. An offset at the end of the file does not complete it: a
/// request says so, and the answer of the target decides.
struct UploadCompletion: Sendable {
    let dialect: ResumableHTTPDialect
    let order: UploadOrder
    let reporter: any UploadReporter

    private var size: Int64 { order.file.size }
    private var client: AuthorizedClient { dialect.client }

    /// May be repeated: the server is asked first, unless it was just asked.
    func conclude(_ checkpoint: inout OffsetCheckpoint) async throws -> Conclusion {
        let wasRefused = checkpoint.has(\.refusedStatus)
        if !checkpoint.draft.isComplete, !checkpoint.isAssumedComplete {
            if dialect.memory.located != size, let conclusion = try await locate(&checkpoint) { return conclusion }
            if !checkpoint.draft.isComplete, let conclusion = try await complete(&checkpoint) { return conclusion }
        }
        var outcome = RemoteDescription(url: checkpoint.draft.finalURL)
        if !wasRefused, checkpoint.has(\.refusedStatus) {
            outcome.warnings = FinalAnswer.warnings(checkpoint)
        } else if checkpoint.draft.isUnanswered, checkpoint.concludesFrom != FinalAnswer.unanswered {
            // The answer of the target is not known, and cannot be asked for. The engine warns of it if it knows.
            outcome.verifiedBy = FinalAnswer.unanswered
            outcome.warnings = [FinalAnswer.unansweredWarning]
        }
        return .done(outcome)
    }

    /// - Returns: `nil` when all bytes are there.
    private func locate(_ checkpoint: inout OffsetCheckpoint) async throws -> Conclusion? {
        switch try await dialect.locate(order, &checkpoint) {
        case .at(size): return nil
        case .doubtful(let error): throw error
        // The engine asks again, and decides.
        case .at, .gone, .foreign: return .incomplete(error("the upload is not there with all its bytes"))
        }
    }

    /// Sends the request that completes the upload: an append without bytes.
    ///
    /// - Returns: `nil` when it is complete.
    private func complete(_ checkpoint: inout OffsetCheckpoint) async throws -> Conclusion? {
        guard let url = checkpoint.url else { return .incomplete(error("the upload has no address")) }
        dialect.memory.located = nil
        let carried = await client.sendBody(
            Request(
                "PATCH", url, headers: dialect.headers(offset: size, isLast: true, checkpoint),
                limits: dialect.settings.limits.ending), dialect.context, sent: { _ in })
        let answer = try carried.result.get()
        let append = AppendAnswer(
            dialect: dialect, answer: answer, version: dialect.version(checkpoint), range: size..<size, isLast: true)
        let result = append.result(carried, &checkpoint)
        if result.isFinal, let error = result.error {
            FinalAnswer.noteFinal(error, order, in: &checkpoint)
            return try await refused(error, &checkpoint)
        }
        switch result.answer {
        case .accepted:
            checkpoint.isEndAnswered = true
            if checkpoint.draft.isComplete {
                try await reporter.record(checkpoint.stored)
                return nil
            }
            return try await askWhetherComplete(
                error("the request to complete the upload was accepted, and the upload is not complete"), &checkpoint)
        case .status(let error, _), .tooMuch(let error), .damaged(let error):
            let isOfFile = error.remedy == .failUpload && !result.isAboutOffset
            if isOfFile, FinalAnswer.note(error, isOfState: false, order, in: &checkpoint),
                checkpoint.has(\.refusedStatus)
            {
                return try await refused(error, &checkpoint)
            }
            return try await askWhetherComplete(error, &checkpoint)
        case .failed(let error): throw error
        }
    }

    /// - Throws: `error` when the upload has all its bytes and is not complete.
    private func askWhetherComplete(
        _ error: UploadError, _ checkpoint: inout OffsetCheckpoint
    ) async throws -> Conclusion? {
        if let conclusion = try await locate(&checkpoint) { return conclusion }
        guard checkpoint.draft.isComplete else { throw error }
        try await reporter.record(checkpoint.stored)
        return nil
    }

    /// Records a refusal of the file. The next attempt does not send the request again.
    private func refused(_ error: UploadError, _ checkpoint: inout OffsetCheckpoint) async throws -> Conclusion? {
        checkpoint.concludesFrom = nil
        try await reporter.record(checkpoint.stored)
        let refusal = FinalAnswer.refusal(in: checkpoint, dialect.failure) ?? error
        guard dialect.settings.finalError == .accept else { throw refusal }
        return try await askWhetherComplete(refusal, &checkpoint)
    }

    private func error(_ words: String) -> UploadError {
        dialect.error(.protocol, .notConfirmed, words, .retry(after: nil))
    }
}
