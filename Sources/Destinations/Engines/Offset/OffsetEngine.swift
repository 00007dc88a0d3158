internal import Core
internal import Linux

/// Uploads a file to a remote that counts bytes: queries the offset, sends the missing bytes, and trusts only the
/// remote.
///
/// Contains nothing that is particular to a vendor. Does not wait: an error that needs time or a person is thrown with
/// its remedy, and the next attempt begins with a question. Only one request at a time is sent for an upload.
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

    func upload(_ order: UploadOrder, _ reporter: any UploadReporter) async throws -> RemoteObject {
        try await complete(order, reporter).object
    }

    /// - Returns: With the last checkpoint: the upload may have started again.
    func complete(
        _ order: UploadOrder, _ reporter: any UploadReporter
    ) async throws -> (object: RemoteObject, checkpoint: OffsetCheckpoint) {
        if !dialect.isSection { try await order.file.checkStatus(dialect.failure) }
        let run = OffsetUpload(self, order, reporter)
        reporter.entered(.opening)
        var offset = run.isConcluding ? order.file.size : try await run.open()
        while true {
            if !run.isConcluding { reporter.entered(.uploading) }
            while offset < order.file.size {
                if Task.isCancelled || reporter.shouldPause { throw try await run.stopped() }
                offset = try await run.send(from: offset)
            }
            reporter.entered(.finishing)
            if let verified = try await run.confirm(), let outcome = try await run.conclude(verified) {
                let object = RemoteObject(
                    id: outcome.id, url: outcome.url, verifiedBy: outcome.verifiedBy ?? verified,
                    warnings: run.warnings + outcome.warnings)
                return (object, run.checkpoint)
            }
            // The remote's offset went back behind what it had acknowledged, or it lacks bytes after all.
            offset = run.acknowledged
        }
    }
}

extension UploadError {
    /// Whether a creation that failed like this has made nothing at the remote, because it was refused or not received.
    var leavesNothingBehind: Bool {
        // 507 (RFC 4918, section 11.5) says that the remote could not store it, not that something went wrong on the
        // way. A gateway that has waited too long (408), or that refuses to forward a request that may be a replay
        // (425), may have forwarded it.
        if let status = failure.http {
            return (300..<500).contains(status) && status != 408 && status != 425 || status == 507
        }
        // The address of another upload: the remote has made none.
        if failure.code == .sameUpload { return true }
        let unheard: [Failure.Code] = [
            .unreachable, .tls, .pinnedKey, .clientCertificate, .noTLS, .proxyRefused, .secretUnreadable,
            .requestImpossible,
        ]
        return unheard.contains(failure.code)
    }
}
