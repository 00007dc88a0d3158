internal import Core

/// The recorded progress of one upload to a remote that counts bytes. Owned by one ``OffsetUpload``.
final class OffsetProgress {
    private let order: UploadOrder
    private let reporter: any UploadReporter
    var checkpoint: OffsetCheckpoint
    var bounds: SentBounds

    init(_ order: UploadOrder, _ reporter: any UploadReporter) {
        self.order = order
        self.reporter = reporter
        checkpoint = order.offsetCheckpoint
        bounds = SentBounds(checkpoint, size: order.file.size)
    }

    var acknowledged: Int64 { checkpoint.offset ?? 0 }

    /// Durable when it returns.
    func record() async throws {
        bounds.store(in: &checkpoint)
        try await reporter.record(checkpoint.stored)
    }

    /// Records that the remote stands at `offset`. Durable when it returns.
    func accepted(_ offset: Int64) async throws {
        checkpoint.offset = offset
        bounds.store(in: &checkpoint)
        try await reporter.accepted(offset, checkpoint.stored)
    }

    /// Whether a success has named the end of the file.
    var isEndAccepted: Bool { order.file.size > 0 && (checkpoint.acceptedOffset ?? 0) == order.file.size }

    /// Records that the remote says that bytes are missing. Its answer to the last bytes stays, since the new answer
    /// may be an old one, until the remote accepts bytes again.
    func recordMissing() {
        bounds.recordMissing()
        checkpoint.isEndAnswered = false
    }

    /// Records the remote's answer to the last byte.
    ///
    /// - Returns: Whether there is something to record before any other request.
    func note(end error: UploadError, isOfState: Bool) -> Bool {
        FinalAnswer.note(error, isOfState: isOfState, order, in: &checkpoint)
    }

    /// Forgets the upload. Durable when it returns.
    ///
    /// - Parameters:
    ///   - remains: The object to remove at the remote.
    ///   - name: The remote's name for the forgotten upload, if that is no secret.
    func renew(leaving remains: OffsetCheckpoint?, name: String?) async throws {
        var fresh = OffsetCheckpoint(checkpoint.stored.keeping(OffsetCheckpoint.lasting))
        if checkpoint.isOfAnotherWriter { FinalAnswer.recordLeft(name, in: &fresh) }
        // Another generation means that a person wants it sent again.
        if checkpoint.has(\.missingIn) {
            fresh.nameNotFound = name
        } else if FinalAnswer.isFromEarlierGeneration(checkpoint, order) {
            // The remote may have the upload although it was given up.
            fresh.wasReuploaded = checkpoint.has(\.givenUpIn)
            if let status = checkpoint.text(of: \.refusedStatus) {
                fresh.refusedURL = checkpoint.url
                fresh.refusedBefore = status
            }
        } else {
            fresh.increment(\.restarts)
        }
        checkpoint = fresh
        bounds = SentBounds(fresh, size: order.file.size)
        try await reporter.renewed(checkpoint.stored, leaving: remains?.stored)
    }
}
