internal import Core
internal import Transport

// What follows when the joined file was verified.

extension ConcatenatedUpload {
    /// Says how the parts of a joined file were verified, and removes them.
    ///
    /// - Parameters:
    ///   - object: The file, as its own upload was verified.
    ///   - checkpoint: The last one of that upload. If the joined file was lost, it is that of one upload.
    /// - Throws: ``UploadError`` where the server may have lost the file with its parts, or cannot be asked.
    func finish(
        _ order: UploadOrder, _ object: RemoteObject, _ checkpoint: OffsetCheckpoint, _ reporter: any UploadReporter
    ) async throws -> RemoteObject {
        guard checkpoint.concatenation.isJoined else { return object }
        let object = withPartWarnings(object, of: order.file, checkpoint.concatenation)
        return try await removingParts(from: object, order, checkpoint, reporter)
    }

    /// The joined file is no better known than the part about which least is known.
    private func withPartWarnings(
        _ object: RemoteObject, of file: StagedFile, _ joined: ConcatenationCheckpoint
    ) -> RemoteObject {
        let (sections, uploads) = (joined.sections(of: file) ?? [], joined.partialUploads)
        var object = object
        for (index, (section, upload)) in zip(sections, uploads).enumerated() {
            let isAnswered = upload.isEndAnswered || upload.acceptedOffset ?? 0 == Int64(section.range.count)
            object.warnings += FinalAnswer.warnings(upload, verifiedBy: isAnswered ? nil : FinalAnswer.unanswered)
                .map { "part \(index + 1) of \(uploads.count): \($0)" }
            if !isAnswered, object.verifiedBy == "offset" { object.verifiedBy = FinalAnswer.unanswered }
        }
        return object
    }

    /// Removes the partial uploads of a joined and verified file, where the server offers that.
    private func removingParts(
        from object: RemoteObject, _ order: UploadOrder, _ checkpoint: OffsetCheckpoint, _ reporter: any UploadReporter
    ) async throws -> RemoteObject {
        var checkpoint = checkpoint
        let parts = checkpoint.concatenation.removableParts.filter { part in
            // The server has joined them at the address of one of them: that is the file now.
            checkpoint.url.map { !UploadAddresses.areEqual($0, part.url) } ?? true
        }
        guard !parts.isEmpty, try await offers("termination") else { return object }
        var object = object
        // A file that the server does not show may have its bytes in the parts.
        guard object.verifiedBy == "offset" || object.verifiedBy == FinalAnswer.unanswered else {
            object.warnings.append(kept(parts.count))
            return object
        }
        // Without an offset: if the process is killed after a removal and the file is not found then, `gone` decides.
        checkpoint.offset = nil
        try await reporter.accepted(order.file.size, checkpoint.stored)
        dialect.server.addresses.release(upload: order.id)
        var count = 0
        for (index, part) in parts.enumerated() {
            do { if try await !dialect.remove(part, checkpoint) { count += 1 } } catch is UploadError {
                count += parts.count - index
                break
            }
        }
        if count > 0 { object.warnings.append(kept(count)) }
        // A server that keeps the bytes with the parts would have lost the file now.
        guard case .gone = try await dialect.locate(order, &checkpoint) else { return object }
        return try await afterLoss(order, checkpoint, object, reporter)
    }

    private func kept(_ count: Int) -> String {
        "\(count) part(s) of the joined file were not removed: the server may keep them"
    }

    /// Handles a joined file that is not found any more since its parts were removed.
    private func afterLoss(
        _ order: UploadOrder, _ checkpoint: OffsetCheckpoint, _ object: RemoteObject, _ reporter: any UploadReporter
    ) async throws -> RemoteObject {
        let words = "the joined file is not found there any more since its parts were removed"
        var checkpoint = checkpoint
        switch gone {
        case .assumeComplete:
            var object = object
            object.verifiedBy = "assumption"
            object.warnings.append("regarded as complete: \(words)")
            return object
        case .hold:
            checkpoint.givenUpIn = order.generation
            try await reporter.accepted(order.file.size, checkpoint.stored)
            throw dialect.error(
                .protocol, .outcomeUnknown, words + ": the server may have moved it away, or lost it", .failUpload)
        case .reupload:
            var next = checkpoint.asSingle
            next.mayBeDoubled = true
            try await reporter.renewed(next.stored, leaving: nil)
            throw dialect.error(.protocol, .uploadLost, words, .retry(after: nil))
        }
    }
}
