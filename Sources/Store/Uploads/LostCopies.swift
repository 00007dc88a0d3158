internal import Core

/// Staged copies that turn out to be missing or damaged while their assets have uploads.
///
/// The copy is made again when no attempt reads it any more (``StagingQueue``): an attempt that went on with a new copy
/// could complete an object that begins with bytes of the damaged one.
struct LostCopies<Access> {
    let tx: Transaction<Access>

    /// Whether the asset's copy is to be made again.
    func isLost(of asset: Int64) throws -> Bool {
        try tx.connection.first(
            "SELECT 1 FROM asset WHERE id = ?1 AND state IN ('arrived', 'unsettled')", [.integer(asset)]
        ) { _ in true } ?? false
    }

    /// Whether an attempt reads the asset's copy.
    func isRead(_ asset: Int64) throws(StoreError) -> Bool {
        try tx.connection.first(
            "SELECT 1 FROM upload INDEXED BY upload_asset WHERE asset = ?1 AND state = 'uploading' LIMIT 1",
            [.integer(asset)]
        ) { _ in true } ?? false
    }

    /// Whether the asset's copy was lost because an upload other than `id` has found it damaged.
    private func wasDamaged(_ asset: Int64, besides id: String) throws -> Bool {
        guard try isLost(of: asset) else { return false }
        return try tx.connection.first(
            "SELECT 1 FROM upload INDEXED BY upload_asset WHERE asset = ?1 AND id <> ?2 AND trouble = ?3 LIMIT 1",
            [.integer(asset), .text(id), .text(Failure.Code.stagedChanged.rawValue)]
        ) { _ in true } ?? false
    }
}

extension LostCopies where Access == Writing {
    /// Records that `upload`, whose attempt ends, has found its copy missing or damaged. The copy is made again from
    /// the source.
    ///
    /// - Parameters:
    ///   - isDamage: Whether the content of the copy is not the staged one. Then bytes that any upload of the asset has
    ///     sent may be damaged too: all of them start at their first byte. Those that run are stopped, and follow when
    ///     their attempt ends.
    ///   - lasting: What stays of the checkpoint of an upload to a destination.
    func record(
        _ upload: UploadRecord, isDamage: Bool, keeping lasting: (_ destination: String, Checkpoint) -> Checkpoint
    ) throws {
        if isDamage {
            try tx.transitions.forgetProgress(of: upload, keeping: lasting)
            if try !wasDamaged(upload.asset, besides: upload.id) {
                for other in try tx.uploads.of(upload.asset) where mayContinue(other) {
                    try tx.transitions.forgetProgress(of: other, keeping: lasting)
                }
            }
        }
        try tx.transitions.move(upload, by: .copyLost)
        try tx.connection.run(
            "UPDATE asset SET state = 'arrived', sha256 = NULL, staged_size = NULL WHERE id = ?1 AND state IN ('staged', 'dropped')",
            [.integer(upload.asset)])
        tx.session.facts.changes.insert(.copies)
        for other in try tx.uploads.of(upload.asset) {
            if other.state == .queued { try tx.transitions.move(other, by: .copyLost) }
            if other.state == .uploading { tx.session.facts.changes.insert(.superseded) }
        }
    }

    /// Whether an upload may go on with bytes that it has sent: one that failed may be retried.
    private func mayContinue(_ upload: UploadRecord) -> Bool {
        switch upload.state {
        case .queued, .staging: true
        case .failed, .removed: upload.ending == .failed
        case .uploading, .completed, .cancelled: false
        }
    }

    /// Called when an attempt has ended: where another attempt has found meanwhile that the copy is lost, this upload
    /// waits for the new one, and starts again where the lost one was damaged.
    func endAttempt(of id: String, keeping lasting: (_ destination: String, Checkpoint) -> Checkpoint) throws {
        guard let upload = try tx.uploads.find(id), upload.state == .queued || upload.state == .failed,
            try isLost(of: upload.asset)
        else { return }
        if try wasDamaged(upload.asset, besides: id) { try tx.transitions.forgetProgress(of: upload, keeping: lasting) }
        if upload.state == .queued { try tx.transitions.move(upload, by: .copyLost) }
    }
}

extension Transaction {
    var copyLosses: LostCopies<Access> { LostCopies(tx: self) }
}
