internal import Core
internal import Transport

/// tus for a video of Bunny Stream: ``TusDialect`` with the headers of the video.
struct BunnyDialect: OffsetDialect {
    let stream: BunnyStream
    let server: TusServer
    /// The context of its requests.
    let context: RequestContext

    private var tus: TusDialect { TusDialect(server: server, context: context) }

    private func tus(for checkpoint: OffsetCheckpoint) async throws(UploadError) -> TusDialect {
        guard let video = checkpoint.bunny.video else { return tus }
        let headers = try await stream.headers(of: video).merging(context.headers) { $1 }
        return TusDialect(server: server, context: RequestContext(permit: context.permit, headers: headers))
    }

    /// Creates the video first. Where its upload cannot be created, the engine has the video removed:
    /// ``remains(of:)``.
    func create(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Bool {
        let title = order.metadata[TusPreset.bunnyStream.titleKey]
        let (stream, context) = (stream, context)
        checkpoint.bunny.video = try await server.creations.make(
            stream.api, after: checkpoint.orphans ?? 0, countsLost: .unanswered
        ) {
            try await stream.create(title: title ?? TusMetadata.fileName(order.name.name, isASCII: false), context)
        }
        do { return try await tus(for: checkpoint).create(order, &checkpoint) } catch var error as UploadError {
            // Otherwise the engine would take it that nothing was made, and forget the video.
            if error.failure.code == .creationsUnknown { error.failure.code = .creationUnclear }
            throw error
        }
    }

    func isOurs(_ checkpoint: OffsetCheckpoint) -> Bool { tus.isOurs(checkpoint) }
    func objection(to checkpoint: OffsetCheckpoint) -> UploadError? { tus.objection(to: checkpoint) }

    func locate(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Position {
        try await tus(for: checkpoint).locate(order, &checkpoint)
    }

    func allowance(for count: Int64) -> Int64 { tus.allowance(for: count) }
    var minRequest: Int64 { tus.minRequest }
    func reserve(for count: Int64) async -> Shortage? { await tus.reserve(for: count) }
    func returnReservation(for count: Int64, sent: Int64) { tus.returnReservation(for: count, sent: sent) }
    func isProbing(_ checkpoint: OffsetCheckpoint) -> Bool { tus.isProbing(checkpoint) }

    func send(
        _ range: Range<Int64>, _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, past digest: SentDigest,
        _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> SendResult {
        let dialect: TusDialect
        do { dialect = try await tus(for: checkpoint) } catch { return SendResult(unsent: .failed(error)) }
        return await dialect.send(range, order, &checkpoint, past: digest, sent)
    }

    func remains(of checkpoint: OffsetCheckpoint) -> OffsetCheckpoint? {
        guard let video = checkpoint.bunny.video else { return nil }
        var remains = OffsetCheckpoint()
        remains.server = checkpoint.server ?? WebAddress(server.endpoint).origin
        remains.bunny.video = video
        return remains
    }

    func name(of checkpoint: OffsetCheckpoint) -> (id: String, url: String?)? {
        checkpoint.bunny.video.map { ($0, nil) }
    }

    func isThere() async throws -> Bool { try await tus.isThere() }

    func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, retryable: Bool) -> Failure {
        tus.failure(kind, code, message, retryable: retryable)
    }

    /// Removes the video of a checkpoint, with the bytes that it has.
    ///
    /// - Returns: `false` where it belongs to another server.
    func discard(_ checkpoint: OffsetCheckpoint) async throws -> Bool {
        // A creation whose answer never came may have left a video whose id is unknown here.
        guard let video = checkpoint.bunny.video else { return !checkpoint.isCreating && !checkpoint.has(\.orphans) }
        guard isOurs(checkpoint) else { return false }
        try await stream.remove(video, context)
        return true
    }
}

/// The fields of Bunny Stream in the checkpoint of an upload.
struct BunnyCheckpoint: TypedCheckpoint {
    var stored: Checkpoint

    init(_ stored: Checkpoint) { self.stored = stored }

    struct Fields: CheckpointFields {
        static let all = Fields()

        /// The id of the video.
        let video = CheckpointField<String?>("video")
    }
}

extension OffsetCheckpoint {
    var bunny: BunnyCheckpoint {
        get { self[as: BunnyCheckpoint.self] }
        set { self[as: BunnyCheckpoint.self] = newValue }
    }
}
