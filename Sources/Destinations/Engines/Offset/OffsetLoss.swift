internal import Core

/// Decides what happens to an upload that the remote does not know any more, or about which it says something
/// impossible.
struct OffsetLoss {
    let engine: OffsetEngine
    let order: UploadOrder
    let progress: OffsetProgress

    enum End {
        /// Every byte was acknowledged, and only the confirmation is missing.
        case whole
        /// Taken for complete, as configured.
        case assumed
        /// The upload starts again, for this reason.
        case again(String)
    }

    /// With this many bytes at the remote, a single 404 does not discard them: a proxy may have lost its backend.
    private static let muchProgress: Int64 = 64 << 20
    /// A file that the remote has lost after its last byte is sent again at most this many times.
    private static let maxWholeLosses: Int64 = 10

    private var dialect: any OffsetDialect { engine.dialect }
    private var size: Int64 { order.file.size }
    private var acknowledged: Int64 { progress.acknowledged }
    private var isRefused: Bool { progress.checkpoint.has(\.refusedStatus) }

    /// The remote has refused the file, and the configuration does not accept that.
    var refusal: UploadError? {
        engine.finalError == .fail ? FinalAnswer.refusal(in: progress.checkpoint, dialect.failure) : nil
    }

    /// - Parameter isCertain: As in ``Position``.
    func handleGone(_ isCertain: Bool) async throws -> End {
        // A server that no longer knew the upload when its last bytes came has refused nothing.
        if let refusal, refusal.failure.http.map({ ![404, 410].contains($0) }) ?? true { throw refusal }
        if acknowledged == size, size > 0, !dialect.isSection, dialect.isWhole(progress.checkpoint) { return .whole }
        if acknowledged >= Self.muchProgress || progress.bounds.isDelivered && size >= Self.muchProgress,
            progress.checkpoint.increment(\.goneAnswers) < 3
        {
            try await progress.record()
            throw dialect.error(
                .transient, .uploadMissing, "the upload with \(acknowledged) bytes is not found; asking again",
                .pending(after: .seconds(15)))
        }
        if !dialect.isSection, progress.bounds.mayBeWhole || progress.isEndAccepted {
            // The remote may have finished the upload and removed its record, or lost it.
            if engine.gone == .assumeComplete, progress.bounds.isDelivered, !isRefused { return .assumed }
            return try await resendOrGiveUp("the upload is gone", "it is gone after its last byte may have been sent")
        }
        if !isCertain, try await !dialect.isThere() {
            throw dialect.error(
                .transient, .notTheRemote, "a 404 that does not come from the upload server itself",
                .holdDestination(after: nil))
        }
        return .again("it is gone")
    }

    /// Handles an address that holds something else than this upload, or not this upload alone.
    ///
    /// - Parameter offset: The offset that the remote named, if known.
    func handleForeign(_ reason: String, at offset: Int64? = nil) async throws -> End {
        let isBack = offset.map { $0 <= progress.bounds.reach } ?? false
        if !isBack, !progress.checkpoint.isOfAnotherWriter {
            // Recorded before any other step: neither a cancel nor a new start may remove data that another writer has
            // sent.
            progress.checkpoint.isOfAnotherWriter = true
            try await progress.record()
        }
        if let refusal { throw refusal }
        let mayBeWhole = progress.bounds.mayBeWhole || size > 0 && acknowledged == size
        if isBack, size > 0, progress.bounds.reachBefore == size {
            guard progress.checkpoint.increment(\.wholeLosses) > Self.maxWholeLosses else { return .again(reason) }
            progress.checkpoint.givenUpIn = order.generation
            try await progress.record()
            throw dialect.error(
                .protocol, .uploadLost,
                "the server accepts every byte and loses some each time (\(reason))"
                    + FinalAnswer.doubts(progress.checkpoint).map { "; " + $0 }.joined(), .failUpload)
        }
        guard !isBack, mayBeWhole, !dialect.isSection else { return .again(reason) }
        // Otherwise a single wrong answer would send the whole file twice.
        if progress.checkpoint.increment(\.foreignAnswers) < 3 {
            try await progress.record()
            throw dialect.error(
                .protocol, .uploadChanged,
                "the answer of the server is not about this upload: \(reason); asking again",
                .pending(after: .seconds(15)))
        }
        return try await resendOrGiveUp("the server has something other than this upload (\(reason))", reason)
    }

    /// The remote may have every byte: the file is sent once more, or given up.
    private func resendOrGiveUp(_ words: String, _ reason: String) async throws -> End {
        if engine.gone == .hold || progress.checkpoint.wasReuploaded {
            progress.checkpoint.givenUpIn = order.generation
            try await progress.record()
            throw dialect.error(
                .protocol, .outcomeUnknown,
                "\(words) after its last byte may have been sent: it may be finished or lost"
                    + FinalAnswer.doubts(progress.checkpoint).map { "; " + $0 }.joined(), .failUpload)
        }
        progress.checkpoint.wasReuploaded = true
        return .again(reason)
    }
}
