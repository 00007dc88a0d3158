internal import Core
internal import Transport

/// The answer to a request that appends bytes.
struct AppendAnswer: Sendable {
    let dialect: ResumableHTTPDialect
    let answer: AuthorizedClient.Answer
    /// That of the request.
    let version: InteropVersion
    let range: Range<Int64>
    /// The request carried the last byte, and asked to complete the upload.
    let isLast: Bool

    private var server: ResumableHTTPServer { dialect.server }
    private var response: Response { answer.response }
    private var isSuccess: Bool { (200..<300).contains(response.status) }

    func result(_ carried: AuthorizedClient.Carried, _ checkpoint: inout OffsetCheckpoint) -> SendResult {
        let fields = UploadFields(response.headers)
        dialect.memory.take(fields, at: dialect.client.clocks.wall(), &checkpoint)
        var result = SendResult(
            judge(fields, &checkpoint), carried, isOfState: isAboutState(fields),
            mentionsOffset: response.mentionsOffset)
        result.isFinal = isFinalRefusal(fields)
        return result
    }

    /// `Upload-Complete: ?1` marks the answer of the target itself. But some servers also say so when they refuse bytes
    /// because the upload is complete already: in a conflict, or with a problem document. Then the offset is asked.
    private func isOfTarget(_ fields: UploadFields) -> Bool {
        fields.isComplete == true && response.status != 409 && UploadProblem(response) == nil
    }

    /// A redirect of the target may lead to the finished file; whether the upload is complete is asked then.
    private func isFinalRefusal(_ fields: UploadFields) -> Bool {
        isOfTarget(fields) && (isSuccess ? !isLast : response.status >= 400)
    }

    private func judge(_ fields: UploadFields, _ checkpoint: inout OffsetCheckpoint) -> SendResult.Answer {
        if isOfTarget(fields) { return judgeFinal(fields, &checkpoint) }
        let verdict = server.verdict(.PATCH, response, to: version)
        noteMethod(verdict, fields, &checkpoint)
        switch verdict {
        case .success where response.isWebPage && !fields.isOfDraft:
            return .status(refusal(.misconfigured), again: 0)
        case .success: return accepted(fields, &checkpoint)
        case .moved:
            let url: String
            do { url = try dialect.requests.target(of: answer, "bytes") } catch { return .failed(error) }
            checkpoint.url = url
            // The server reports an unchanged offset: the request had no effect once.
            return .status(refusal(.retry(after: nil)), again: 3)
        // The target itself may refuse the file with this status; the engine tells it from a repeat of the bytes.
        case .status where response.status == 409 && fields.isComplete == true && UploadProblem(response) == nil:
            return .status(refusal(.failUpload), again: 0)
        case .status(let remedy, let again): return .status(refusal(remedy), again: again)
        // The question for the offset finds the version.
        case .otherVersion: return .status(refusal(.misconfigured), again: 0)
        case .tooMuch:
            // Less is refused too, by the server's own limit.
            let isLeast = range.upperBound - range.lowerBound <= dialect.minRequest && !isLast
            return isLeast ? .status(refusal(.failUpload), again: 0) : .tooMuch(refusal(.failUpload))
        case .stop(let remedy): return .failed(refusal(remedy))
        case .gone, .doubtful, .unsupported: return .status(refusal(.retry(after: nil)), again: 0)
        }
    }

    private func judgeFinal(_ fields: UploadFields, _ checkpoint: inout OffsetCheckpoint) -> SendResult.Answer {
        if isSuccess, isLast {
            checkpoint.draft.isComplete = true
            checkpoint.draft.isUnmarked = false
            checkpoint.draft.isUnanswered = false
            checkpoint.draft.finalURL =
                FinalAddress(
                    answer, upload: checkpoint.url ?? dialect.endpoint, server.allowed
                ).url
            // An offset that contradicts it is looked into.
            return .accepted(fields.offset.map { $0 == range.upperBound } ?? true ? range.upperBound : nil)
        }
        if isSuccess {
            return .status(
                dialect.client.refused(
                    "bytes", response, .failUpload,
                    words: "the upload is complete, and the file has more than \(range.upperBound) bytes"),
                again: 0)
        }
        return response.status >= 400 ? .status(refusal(.failUpload), again: 0) : .accepted(nil)
    }

    /// A success without a final answer.
    private func accepted(_ fields: UploadFields, _ checkpoint: inout OffsetCheckpoint) -> SendResult.Answer {
        if isLast {
            // tusd completes the upload and does not mark its answer.
            if fields.isComplete == nil, fields.offset == range.upperBound {
                checkpoint.draft.isComplete = true
                checkpoint.draft.isUnmarked = true
                checkpoint.draft.isUnanswered = false
            }
            return .accepted(fields.offset)
        }
        // `Upload-Complete: ?0` acknowledges all bytes of the request; an offset need not be named. Without either, the
        // offset is asked.
        return .accepted(fields.offset ?? (fields.isComplete == false ? range.upperBound : nil))
    }

    private func noteMethod(
        _ verdict: ResumableHTTPVerdict, _ fields: UploadFields, _ checkpoint: inout OffsetCheckpoint
    ) {
        switch verdict {
        case .stop(.misconfigured): (server.bodies.isRefused, checkpoint.draft.isPatchRefused) = (true, true)
        // A server may accept a request without bytes, and refuse every one with bytes.
        case .success where !response.isWebPage || fields.isOfDraft:
            (server.bodies.isRefused, checkpoint.draft.isPatchRefused) = (false, false)
        default: break
        }
    }

    /// Whether it is about where the upload stands, and not about the file: a conflict that names another offset, an
    /// upload that is complete already, or one of tusd's codes for a lock, a stop or an interrupted body.
    private func isAboutState(_ fields: UploadFields) -> Bool {
        switch UploadProblem(response) {
        case .mismatchingOffset(let expected)?: return isElsewhere(fields.offset ?? expected)
        case .completedUpload?: return true
        case .inconsistentLength?, nil: break
        }
        return response.status == 409 && isElsewhere(fields.offset)
            || response.leadingErrorCode.map(TusVerdict.codesOfState.contains) == true
    }

    /// If an answer names the end of these bytes, it has accepted them.
    private func isElsewhere(_ named: Int64?) -> Bool {
        named.map { $0 != range.lowerBound && $0 != range.upperBound } ?? false
    }

    private func refusal(_ remedy: Remedy) -> UploadError { dialect.client.refused("bytes", response, remedy) }
}
