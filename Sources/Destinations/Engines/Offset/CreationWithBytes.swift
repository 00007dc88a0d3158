internal import Core
internal import Transport

/// The creation of a small file's upload by the request that carries its bytes.
///
/// If its answer is lost, the address is lost as well as the bytes. So the request is entered in ``SentBounds`` before
/// it leaves, as any other with bytes, and the creation that follows it carries none: its answer shows what the remote
/// has, or a second upload is made, which is counted.
struct CreationWithBytes {
    /// A larger file is sent in requests that can continue.
    static let maxSize: Int64 = 1 << 20

    let engine: OffsetEngine
    let order: UploadOrder
    let progress: OffsetProgress
    let digest: SentDigest
    let reporter: any UploadReporter

    private var dialect: any OffsetDialect { engine.dialect }
    private var size: Int64 { order.file.size }

    /// - Returns: `nil` where the upload has to be created without bytes.
    func run() async throws -> CreationResult.Created? {
        let earlier = progress.checkpoint
        guard (1...Self.maxSize).contains(size), size <= engine.chunks.cap, !earlier.isCreating, !earlier.mayBeWhole,
            earlier.refusedURL == nil, !reporter.shouldPause, dialect.allowance(for: size) == size,
            try await dialect.createsWithBytes(order, earlier)
        else { return nil }
        try await digest.begin(at: 0, dialect.failure)
        _ = try await dialect.repeatsCreation(order, &progress.checkpoint)
        progress.checkpoint.isCreating = true
        _ = progress.bounds.enter(to: size)
        try await progress.record()
        reporter.entered(.uploading)
        let (reporter, size) = (reporter, size)
        let result = await dialect.create(carrying: order, &progress.checkpoint, past: digest) {
            reporter.sending(min($0, size))
        }
        if let damage = digest.damage(dialect.failure) { throw damage }
        switch result.answer {
        case .created(let created):
            try await record(created, result.delivery)
            return created
        case .declined:
            // The remote has kept nothing, so that the creation that follows makes no second upload.
            _ = progress.bounds.withdraw()
            progress.checkpoint.isCreating = false
            try await progress.record()
            return nil
        case .failed(let error):
            if let error = error as? UploadError, error.leavesNothingBehind || error.failure.code == .creationsUnknown {
                _ = progress.bounds.withdraw()
                progress.checkpoint.isCreating = false
                dialect.forgetCreation(&progress.checkpoint)
            } else {
                progress.bounds.ended(from: 0, result.delivery)
            }
            try await progress.record()
            throw error
        }
    }

    /// Durable when it returns.
    private func record(_ created: CreationResult.Created, _ delivery: DeliveryBounds) async throws {
        progress.bounds.ended(from: 0, delivery)
        progress.checkpoint.isCreating = false
        let offset = created.offset.flatMap { (0...size).contains($0) ? $0 : nil }
        if let offset {
            progress.checkpoint.acceptedOffset = offset
            progress.checkpoint.isEndAnswered = offset == size
        }
        try await progress.accepted(offset ?? 0)
        if let name = dialect.name(of: progress.checkpoint) { try await reporter.recordName(name.id, at: name.url) }
        if let objection = dialect.objection(to: progress.checkpoint) { throw objection }
    }
}

/// The result of a creation that carried bytes.
struct CreationResult: Sendable {
    struct Created: Sendable {
        /// The offset that the remote named; `nil` for none.
        var offset: Int64?
        /// The remote's own word is enough: it need not be asked again.
        var isConfirmed: Bool
    }

    enum Answer: Sendable {
        case created(Created)
        /// The remote takes no bytes with a creation, and has made nothing: a creation without bytes is next.
        case declined
        /// An ``UploadError`` or `CancellationError`.
        case failed(any Error)
    }

    var answer: Answer
    /// How many bytes have left.
    var delivery: DeliveryBounds
}
