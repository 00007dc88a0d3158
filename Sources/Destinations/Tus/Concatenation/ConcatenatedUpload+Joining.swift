internal import Core
internal import Transport

// The request that joins the sections.

extension ConcatenatedUpload {
    /// - Returns: `false` where the server refuses.
    func join(
        _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, _ reporter: any UploadReporter
    ) async throws -> Bool {
        if checkpoint.concatenation.isJoining { try await allowRepeatedJoin(order, &checkpoint, reporter) }
        checkpoint.concatenation.isJoining = true
        // The sections may have begun at another server, and are all at this one now.
        checkpoint.server = WebAddress(dialect.endpoint).origin
        try await reporter.record(checkpoint.stored)
        let before = checkpoint
        do {
            checkpoint.url = try await dialect.server.creations.make(client, after: checkpoint.orphans ?? 0) {
                try await requestJoin(order, before)
            }
        } catch let refusal as ConcatenationRefusedError {
            checkpoint.concatenation.isJoining = false
            let refusals = checkpoint.concatenation.increment(\.refusals)
            try await reporter.record(checkpoint.stored)
            if refusal.isFinal { throw ConcatenationRefusedError(error: refusal.error, checkpoint: checkpoint) }
            dialect.log("the server did not join the parts of a file (\(refusals)): \(refusal.error.failure.message)")
            return false
        } catch let refusal as ServerUnavailableError {
            checkpoint.concatenation.isJoining = false
            try await reporter.record(checkpoint.stored)
            throw refusal.error
        } catch let error as UploadError {
            if try await recordFailure(error, &checkpoint, reporter) { return false }
            throw error
        }
        ConcatenationCheckpoint.countLostCreations(in: &checkpoint)
        checkpoint.concatenation.isJoining = false
        checkpoint.concatenation.joinedAt = client.clocks.wall().milliseconds
        checkpoint.concatenation.joinAnswer = nil
        // If the joined upload is lost, the file is not joined again.
        checkpoint.concatenation.isSingle = true
        (checkpoint.offset, checkpoint.expires) = (nil, nil)
        checkpoint.reach = order.file.size
        (checkpoint.mayBeWhole, checkpoint.isDelivered, checkpoint.isEndAnswered) = (true, true, true)
        try await reporter.record(checkpoint.stored)
        return true
    }

    /// Records an unsuccessful answer to the request, or that there was none.
    ///
    /// - Returns: Whether it is the last of the refusals after which the file is sent as one upload.
    private func recordFailure(
        _ error: UploadError, _ checkpoint: inout OffsetCheckpoint, _ reporter: any UploadReporter
    ) async throws -> Bool {
        var isLast = false
        if error.failure.code == .creationsUnknown || FinalAnswer.provesIncomplete(error) {
            checkpoint.concatenation.isJoining = false
        } else if gone != .hold, error.failure.http == 503 {
            // A gateway that answers 503 has no server behind it, or has lost its connection: nothing is known.
            checkpoint.concatenation.isJoining = false
            checkpoint.mayBeDoubled = true
        } else if gone != .hold, error.failure.http ?? 0 >= 500, FinalAnswer.isRefusal(error) {
            // The server's own answer refuses the request. An error inside the server leaves open whether it has joined
            // the parts before that.
            checkpoint.concatenation.isJoining = false
            checkpoint.mayBeDoubled = true
            isLast = checkpoint.concatenation.increment(\.refusals) >= Self.maxRefusals
        } else {
            checkpoint.concatenation.joinAnswer = error.failure.http == nil ? nil : error.failure.message
        }
        try await reporter.record(checkpoint.stored)
        if isLast { dialect.log("the server did not join the parts of a file: \(error.failure.message)") }
        return isLast
    }

    /// The server itself answers that it is not available: it has not joined anything.
    private struct ServerUnavailableError: Error { let error: UploadError }

    /// The answer to an earlier request was lost: the server may hold the joined file, and cannot be asked for it. It is
    /// joined once more, unless a person wants to decide.
    func allowRepeatedJoin(
        _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, _ reporter: any UploadReporter
    ) async throws {
        let isWanted = FinalAnswer.isFromEarlierGeneration(checkpoint, order)
        guard isWanted || gone != .hold && !checkpoint.mayBeDoubled else {
            checkpoint.givenUpIn = order.generation
            try await reporter.record(checkpoint.stored)
            let answer = checkpoint.concatenation.joinAnswer
            let words =
                answer.map { "the request that joins the parts of the file failed (\($0))" }
                ?? "the answer to the request that joins the parts of the file is not known"
            throw dialect.error(.protocol, .outcomeUnknown, words + ": the server may hold the file", .failUpload)
        }
        checkpoint.givenUpIn = nil
        checkpoint.mayBeDoubled = true
    }

    /// - Returns: The address of the joined upload.
    private func requestJoin(_ order: UploadOrder, _ checkpoint: OffsetCheckpoint) async throws -> String {
        let urls = checkpoint.concatenation.partialUploads.compactMap { $0.concatenation.location ?? $0.url }
        guard urls.count == checkpoint.concatenation.ends.count else {
            throw ConcatenationRefusedError(
                error: dialect.error(.protocol, .uploadLost, "the address of a part is not known", .failUpload),
                isFinal: true)
        }
        var answer = try await post(order, checkpoint, urls, isMinimal: false)
        if answer.verdict == .lessMetadata { answer = try await post(order, checkpoint, urls, isMinimal: true) }
        let response = answer.answer.response
        let error = dialect.refused("the request to join its parts", response, .retry(after: nil))
        if answer.verdict.refusesConcatenation(response) {
            let text = String(decoding: response.body.prefix(64), as: UTF8.self)
            throw ConcatenationRefusedError(
                error: error, isFinal: response.status == 501 || text.hasPrefix("ERR_CONCATENATION_UNSUPPORTED"))
        }
        switch answer.verdict {
        case .success:
            return try dialect.requests.uploadAddress(
                answer.answer, of: dialect.endpoint, log: dialect.log)
        case .stop(let remedy):
            let refusal = dialect.refused("the request to join its parts", response, remedy)
            if response.status == 503, response.hasTusHeader { throw ServerUnavailableError(error: refusal) }
            throw refusal
        default: throw error
        }
    }

    private func post(
        _ order: UploadOrder, _ checkpoint: OffsetCheckpoint, _ urls: [String], isMinimal: Bool
    ) async throws -> (verdict: TusVerdict, answer: AuthorizedClient.Answer) {
        let metadata = TusMetadata.header(
            order, isASCII: dialect.settings.isASCII, titleKey: dialect.settings.preset?.titleKey, isMinimal: isMinimal,
            isRepeat: checkpoint.mayBeDoubled)
        // Joining may copy the whole file.
        var limits = dialect.settings.limits.ending
        if dialect.settings.limits.reply == nil { limits.replyWait = .seconds(1800) }
        let answer = try await dialect.followRedirects(
            Request(
                "POST", dialect.endpoint,
                headers: [
                    TusDialect.version, ("Upload-Concat", "final;" + urls.joined(separator: " ")),
                    ("Upload-Metadata", metadata),
                ], limits: limits))
        return (dialect.verdict(.POST, answer.response), answer)
    }
}
