internal import Core
internal import Transport

/// The state of an upload whose partial uploads the server has promised to join. It has an offset only when that is
/// done, which may take minutes.
struct JoinedUpload {
    private let elapsed: Duration

    /// A server that has not joined them by then has lost the upload.
    private static let longest = Duration.seconds(24 * 3600)

    init(_ checkpoint: OffsetCheckpoint, now: WallTime) {
        elapsed = .milliseconds(max(0, now.milliseconds - (checkpoint.concatenation.joinedAt ?? 0)))
    }

    /// - Returns: `nil` when they are joined: the answer is then that of any other upload.
    /// - Throws: ``UploadError`` with ``Remedy/pending(after:)`` while the server works.
    func unfinished(
        _ response: Response, of order: UploadOrder, _ failure: StagedFile.MakeFailure
    ) throws(UploadError) -> Position? {
        let offset = response.headers["Upload-Offset"].flatMap { plainInteger($0) }
        guard response.hasTusHeader, offset ?? 0 < order.file.size else { return nil }
        // Its length may be another one until then.
        if elapsed > Self.longest { return .gone(isCertain: true) }
        // The waits grow with the time that it takes.
        let wait = min(max(elapsed / 4, .seconds(2)), .seconds(600))
        throw UploadError(
            failure(
                .transient, .remoteWorks,
                "the server joins the parts of the file: \(offset ?? 0) of \(order.file.size) bytes", true),
            remedy: .pending(after: wait))
    }
}
