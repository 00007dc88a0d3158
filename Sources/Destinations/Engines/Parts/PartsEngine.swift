internal import Core
internal import Linux

/// Uploads a file to a remote that takes it in numbered parts: sends the missing parts, several at once where allowed,
/// and has the remote assemble the file.
///
/// Contains nothing that is particular to a vendor. Does not wait: an error that needs time or a person is thrown with
/// its remedy. Acknowledgements are recorded part by part. If the remote's content can be queried, its answer
/// counts.
struct PartsEngine: Sendable {
    let dialect: any PartsDialect
    /// Number of parts of one upload that may be in flight together.
    let parallel: Int
    let gone: GonePolicy
    var finalError = FinalErrorPolicy.fail
    /// Whether a later attempt continues a stopped one. If not, the parts at the remote are removed when the attempt
    /// stops or, where no byte may be sent then, when the next attempt begins.
    var resumes = true

    func upload(_ order: UploadOrder, _ reporter: any UploadReporter) async throws -> RemoteObject {
        let status = try await order.file.checkStatus(dialect.failure)
        let run = PartsUpload(self, order, reporter, status)
        while true {
            do throws(PartsUpload.Exit) { return try await run.run() } catch {
                switch error {
                case .renewed: continue
                case .finished(let object): return object
                case .failed(let error):
                    if error is CancellationError, !resumes, reporter.allowsCleanupRequest { await run.abandon() }
                    throw error
                }
            }
        }
    }

    /// For callers that ask the remote something before ``upload(_:_:)``.
    ///
    /// - Throws: ``UploadError`` where a quota leaves less than the next part needs.
    func checkQuota(_ order: UploadOrder, _ reporter: any UploadReporter) async throws {
        try await PartsUpload(self, order, reporter, order.file.checkStatus(dialect.failure)).checkQuota()
    }

    /// - Returns: `false` when the remote offers no removal.
    func discard(_ checkpoint: PartsCheckpoint) async throws -> Bool {
        // A creation whose answer never came may have left an upload whose name is unknown here.
        guard checkpoint.isBegun else {
            return !checkpoint.has(\.orphans) && !checkpoint.isCreating
        }
        // The server that has the upload is no longer configured, and no other server gets a request to remove it.
        guard dialect.isOurs(checkpoint) else { return false }
        return try await dialect.abort(checkpoint)
    }
}

extension PartsUpload {
    /// The reason why a run stops early.
    enum Exit: Error {
        /// The upload was started again: all state has to be read again.
        case renewed
        case finished(RemoteObject)
        case failed(any Error)
    }

    /// Handles a remote that requires the upload from the beginning.
    ///
    /// - Parameters:
    ///   - changes: Fields of the checkpoint that stay.
    ///   - sent: The part with this answer; `nil` if it answered the request to complete the file.
    func startedOver(
        _ error: UploadError, _ cause: RenewalCause, _ changes: Checkpoint, _ sent: SentPart? = nil
    ) async throws -> any Error {
        checkpoint.stored.merge(changes)
        if error.failure.code == .perhapsThere {
            checkpoint.mayBeDoubled = true
        } else if !dialect.onlyCounts {
            // The remote has not completed the file, so the removal does not look for one.
            if let sent, sent.sending.isRefused { try await noteRefused(sent.part, sent.sending) }
            if sent == nil { checkpoint.isCompleting = false }
        }
        return try await renewed(error.failure.message, cause: cause)
    }

    /// The attempt was stopped, and the next one starts again: removes the parts at the remote now, if that works at
    /// once.
    func abandon() async {
        guard checkpoint.isBegun, !isPerhapsWhole, dialect.canAbort else { return }
        let (dialect, checkpoint) = (dialect, checkpoint)
        // If this removal fails, the next start removes it.
        let task = Task { try? await dialect.abort(checkpoint) }
        let alarm = Task {
            try? await Alarms.shared.sleep(for: .seconds(2))
            task.cancel()
        }
        _ = await task.value
        alarm.cancel()
    }
}
