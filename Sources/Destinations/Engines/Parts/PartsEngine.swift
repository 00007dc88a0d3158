internal import Core
internal import Linux

/// Takes a file to a remote that takes it in numbered parts: sends those that are missing, several at once where it may, and
/// has a file made of them.
///
/// Knows no vendor. Does not wait: what needs time or a person is thrown with its remedy. What was acknowledged is written
/// down part by part; where the remote can be asked what it has, its word counts.
struct PartsEngine: Sendable {
    let dialect: any PartsDialect
    /// Parts of one upload that may be on their way together.
    let parallel: Int
    let gone: GonePolicy
    var finalError = FinalErrorPolicy.fail
    /// Whether a later attempt goes on where one was stopped. If not, what is at the remote is removed when it is, or where no byte may
    /// go then, when the next one begins.
    var resumes = true

    func upload(_ order: UploadOrder, _ notes: any UploadNotes) async throws -> RemoteObject {
        let look = try order.file.checkLook(dialect.failure)
        let run = PartsRun(self, order, notes, look)
        while true {
            do throws(PartsRun.Exit) { return try await run.run() } catch {
                switch error {
                case .renewed: continue
                case .finished(let object): return object
                case .failed(let error):
                    if error is CancellationError, !resumes, notes.mayClearUp { await run.abandon() }
                    throw error
                }
            }
        }
    }

    /// For whoever asks something of the remote before ``upload(_:_:)``.
    ///
    /// - Throws: ``UploadError`` where a quota leaves less than the next part takes.
    func checkQuota(_ order: UploadOrder, _ notes: any UploadNotes) async throws {
        try await PartsRun(self, order, notes, try order.file.checkLook(dialect.failure)).checkQuota()
    }

    /// - Returns: `false` when the remote offers no removal.
    func discard(_ checkpoint: Checkpoint) async throws -> Bool {
        // An opening whose answer never came may have left something that has no name here.
        guard checkpoint[PartsRun.begun] != nil else {
            return checkpoint["orphans"] == nil && checkpoint["creating"] == nil
        }
        // The server that has it is not configured any more, and nobody else is asked to remove it.
        guard dialect.isOurs(checkpoint) else { return false }
        return try await dialect.abort(checkpoint)
    }
}

extension PartsRun {
    /// Why a run ends before its end.
    enum Exit: Error {
        /// Everything is to be looked at again: the upload was begun anew.
        case renewed
        case finished(RemoteObject)
        case failed(any Error)
    }

    /// The remote wants it from the beginning.
    ///
    /// - Parameter sent: The part that was answered so; `nil` for the wish for the whole file.
    func startedOver(_ error: UploadError, _ sent: SentPart? = nil) async throws -> any Error {
        if error.failure.code == Failure.perhapsThere {
            checkpoint["doubled"] = "1"
        } else if !dialect.onlyCounts {
            // No file was made of it, and none is looked for when it is removed.
            if let sent, sent.sending.isRefused { try await noteRefused(sent.part, sent.sending) }
            if sent == nil { checkpoint["completing"] = nil }
        }
        return try await renewed(error.failure.message)
    }

    /// The attempt was stopped, and the next one begins anew: gives the remote's room back now, if it can be done at once.
    func abandon() async {
        guard checkpoint[Self.begun] != nil, !isPerhapsWhole, dialect.canAbort else { return }
        let (dialect, checkpoint) = (dialect, checkpoint)
        // What fails here is removed with the next beginning.
        let task = Task { try? await dialect.abort(checkpoint) }
        let alarm = Task {
            try? await Alarms.shared.sleep(for: .seconds(2))
            task.cancel()
        }
        _ = await task.value
        alarm.cancel()
    }
}
