internal import Core
internal import Transport

/// Sends a file as several partial uploads at the same time, and has the server join them (tus 1.0, "Concatenation").
///
/// Each section has an ``OffsetEngine`` and a checkpoint of its own. The joined upload is one whose bytes have all been
/// sent; ``OffsetEngine`` verifies it. Where the server does not do this, the file is sent as one upload.
///
/// No section is known to be whole by its offset alone. The server may have refused its last bytes, or have given it
/// the address of another upload, whose bytes it has then.
struct ConcatenatedUpload {
    let dialect: TusDialect
    let chunks: ChunkSize
    let gone: GonePolicy
    let finalError: FinalErrorPolicy

    var client: AuthorizedClient { dialect.client }
    /// After this many refusals to join complete sections, the file is sent as one upload.
    static let maxRefusals: Int64 = 2

    /// Sends and joins the sections, where that is configured, offered and not finished.
    ///
    /// - Returns: The order with the checkpoint of the joined upload, or of an upload that is sent as one.
    func joinIfWanted(_ order: UploadOrder, _ reporter: any UploadReporter) async throws -> UploadOrder {
        var checkpoint = order.offsetCheckpoint
        if checkpoint.url != nil { return order }
        if !checkpoint.concatenation.ends.isEmpty, checkpoint.concatenation.sections(of: order.file) == nil {
            // The sections are those of other content.
            let next = OffsetCheckpoint(checkpoint.stored.keeping(OffsetCheckpoint.lasting))
            let remains = dialect.isOurs(checkpoint) ? checkpoint.partialUploads : nil
            try await reporter.renewed(next.stored, leaving: remains?.stored)
            checkpoint = next
        }
        if checkpoint.concatenation.ends.isEmpty {
            guard try await isWanted(order, checkpoint) else { return order }
            let sections = TusSection.cut(order.file.size, into: dialect.settings.parallel)
            checkpoint.concatenation.ends = sections.map { "\($0.range.upperBound)" }
            checkpoint.concatenation.content = hexadecimal(order.file.sha256)
            checkpoint.server = WebAddress(dialect.endpoint).origin
        }
        reporter.entered(.opening)
        try await order.file.checkStatus(dialect.failure)
        while true {
            do {
                try requireOwnAddresses(order, checkpoint)
                checkpoint = try await sendSections(order, checkpoint, reporter)
                // A permanent redirect may have moved one to the address of another.
                try requireOwnAddresses(order, checkpoint)
                try await order.file.checkContent(dialect.failure)
                reporter.entered(.finishing)
                let isJoined = try await join(order, &checkpoint, reporter)
                if isJoined { return with(checkpoint, order) }
            } catch let refusal as ConcatenationRefusedError {
                dialect.log("files are not sent in parts for an hour: \(refusal.error.failure.message)")
                dialect.server.concatenations.record(client.clocks)
                return try await single(order, refusal.checkpoint ?? checkpoint, reporter)
            }
            if checkpoint.concatenation.refusals ?? 0 >= Self.maxRefusals {
                dialect.server.concatenations.record(client.clocks)
                return try await single(order, checkpoint, reporter)
            }
        }
    }

    private func with(_ checkpoint: OffsetCheckpoint, _ order: UploadOrder) -> UploadOrder {
        var order = order
        order.checkpoint = checkpoint.stored
        return order
    }

    private func isWanted(_ order: UploadOrder, _ checkpoint: OffsetCheckpoint) async throws -> Bool {
        guard dialect.settings.parallel > 1, order.file.size >= 2 * TusSection.minSize,
            !checkpoint.concatenation.isSingle,
            // A creation whose answer was lost is counted when the next one begins.
            !checkpoint.isCreating, !dialect.server.concatenations.isRecent(client.clocks)
        else { return false }
        return try await offers("concatenation")
    }

    func offers(_ name: String) async throws -> Bool {
        try await dialect.capabilities.current(dialect)?.extensions.contains(name) ?? false
    }

    /// Starts again as one upload. The partial uploads are removed at the server.
    private func single(
        _ order: UploadOrder, _ checkpoint: OffsetCheckpoint, _ reporter: any UploadReporter
    ) async throws -> UploadOrder {
        var checkpoint = checkpoint
        // The server may have joined them, and hold the file already.
        if checkpoint.concatenation.isJoining { try await allowRepeatedJoin(order, &checkpoint, reporter) }
        dialect.server.addresses.release(upload: order.id)
        let next = checkpoint.asSingle
        let remains = dialect.isOurs(checkpoint) ? checkpoint.partialUploads : nil
        try await reporter.renewed(next.stored, leaving: remains?.stored)
        return with(next, order)
    }

    // MARK: The sections

    /// Requires that each section has an address of its own, and that nothing else has sent bytes there.
    ///
    /// - Throws: ``ConcatenationRefusedError``, with a checkpoint by which nothing of another upload is removed.
    private func requireOwnAddresses(
        _ order: UploadOrder, _ checkpoint: OffsetCheckpoint
    ) throws(ConcatenationRefusedError) {
        var uploads = checkpoint.concatenation.partialUploads
        var problem: String?
        for (index, section) in (checkpoint.concatenation.sections(of: order.file) ?? []).enumerated() {
            let owner = UploadAddresses.Owner(upload: order.id, part: section.range.lowerBound)
            if uploads[index].isOfAnotherWriter {
                problem = "a part of the file has bytes that were not sent to it"
            } else if let url = uploads[index].url, !dialect.server.addresses.claim(url, for: owner) {
                problem = "a part of the file has the address of another upload"
                uploads[index].isOfAnotherWriter = true
            }
        }
        guard let problem else { return }
        var refused = checkpoint
        refused.concatenation.partialUploads = uploads
        throw ConcatenationRefusedError(
            error: dialect.error(.protocol, .sameUpload, problem, .failUpload), checkpoint: refused)
    }

    /// Returns when the server has every section.
    private func sendSections(
        _ order: UploadOrder, _ checkpoint: OffsetCheckpoint, _ reporter: any UploadReporter
    ) async throws -> OffsetCheckpoint {
        let requests = SectionRequests()
        let sections = (checkpoint.concatenation.sections(of: order.file) ?? []).map {
            TusSection(range: $0.range, requests: requests)
        }
        let progress = SectionProgress(checkpoint, reporter)
        reporter.entered(.uploading)
        let failure = await withTaskGroup(of: (any Error)?.self) { group in
            for (index, section) in sections.enumerated() {
                group.addTask {
                    do { try await send(section, index, order, progress) } catch {
                        if error is ConcatenationRefusedError { progress.refusedCreation(of: index) }
                        return error
                    }
                    return nil
                }
            }
            var failure: (any Error)?
            for await error in group {
                guard let error else { continue }
                // The others end after their requests in flight: a creation that is cut may leave something behind. Where
                // nothing can be recorded any more, they end now.
                progress.fail()
                if !(error is UploadError), !(error is ConcatenationRefusedError) { group.cancelAll() }
                if failure == nil || failure is CancellationError { failure = error }
                // It decides about the file, and an error of another section only about this attempt.
                if failure is UploadError, error is ConcatenationRefusedError { failure = error }
            }
            return failure
        }
        guard let failure else { return progress.checkpoint }
        if let refusal = failure as? ConcatenationRefusedError {
            throw ConcatenationRefusedError(error: refusal.error, checkpoint: progress.checkpoint)
        }
        throw failure
    }

    private func send(
        _ section: TusSection, _ index: Int, _ order: UploadOrder, _ progress: SectionProgress
    ) async throws {
        var part = order
        part.file.size = Int64(section.range.count)
        part.file.parts = PartDigests()
        part.checkpoint = progress.upload(index).stored
        var dialect = dialect
        dialect.section = section
        let engine = OffsetEngine(dialect: dialect, chunks: chunks, gone: gone, finalError: finalError)
        do { _ = try await engine.upload(part, SectionReporter(progress, index)) } catch let error as UploadError
            where error.remedy == .failUpload
        {
            // The server refuses the section, perhaps after it has stored every byte. As one upload the file gets an
            // answer of its own.
            throw ConcatenationRefusedError(error: error)
        }
    }
}
