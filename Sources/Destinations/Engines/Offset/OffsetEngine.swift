internal import Core
internal import Linux

/// Takes a file to a remote that counts bytes: asks where it stands, sends what is missing, and believes only the remote.
///
/// Knows no vendor. Does not wait: what needs time or a person is thrown with its remedy, and the next attempt begins
/// by asking. One request at a time for an upload.
struct OffsetEngine: Sendable {
    let dialect: any OffsetDialect
    let chunks: ChunkSize
    let gone: GonePolicy
    let finalError: FinalErrorPolicy

    init(
        dialect: any OffsetDialect, chunks: ChunkSize, gone: GonePolicy, finalError: FinalErrorPolicy = .fail
    ) {
        self.dialect = dialect
        self.chunks = chunks
        self.gone = gone
        self.finalError = finalError
    }

    /// The same engine at another address.
    func over(_ dialect: any OffsetDialect) -> OffsetEngine {
        OffsetEngine(dialect: dialect, chunks: chunks, gone: gone, finalError: finalError)
    }

    func upload(_ order: UploadOrder, _ notes: any UploadNotes) async throws -> RemoteObject {
        try order.file.checkLook(dialect.failure)
        let run = OffsetRun(self, order, notes)
        notes.entered(.opening)
        var offset = run.isConcluding ? order.file.size : try await run.open()
        while true {
            if !run.isConcluding { notes.entered(.uploading) }
            while offset < order.file.size {
                if Task.isCancelled || notes.isToPause { throw try await run.stopped() }
                offset = try await run.send(from: offset)
            }
            notes.entered(.finishing)
            if let verified = try await run.confirm(), let outcome = try await run.conclude(verified) {
                return RemoteObject(
                    id: outcome.id, url: outcome.url, verifiedBy: outcome.verifiedBy ?? verified,
                    warnings: run.warnings + outcome.warnings)
            }
            // The remote took back what it had acknowledged, or lacks bytes after all.
            offset = run.acknowledged
        }
    }
}

extension UploadError {
    /// A creation that failed like this has made nothing at the remote: it was refused, or nobody heard it.
    var leavesNothingBehind: Bool {
        // 507 (RFC 4918, section 11.5) says that it could not be stored, not that something went wrong on the way.
        // A gateway that has waited too long (408), or that will not pass on what may come twice (425), may have passed it on.
        if let status = failure.http {
            return (300..<500).contains(status) && status != 408 && status != 425 || status == 507
        }
        let unheard = ["unreachable", "tls", "no_tls", "proxy_refused", "secret_unreadable", "request_impossible"]
        return unheard.contains(failure.code)
    }
}
