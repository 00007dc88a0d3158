internal import Core

// Uploads of the same content to the same destination, where duplicates are skipped: one goes, and the others wait for
// its result.

extension Store {
    /// Whether the content has arrived since this copy was staged; if so, the upload is completed.
    func isRepeat(_ upload: UploadRecord, _ asset: AssetRecord) throws -> Bool {
        // A begun upload continues: its bytes at the remote may be the very object that it would count as.
        guard let sha256 = asset.sha256, try checkpoint(upload.id) == nil else { return false }
        _ = try settleRepeat(asset, Copied(asset: asset.id, sha256: sha256, skipsDuplicates: true))
        return try self.upload(upload.id)?.state == .completed
    }

    /// The condition that no upload of the same content runs to the same destination, and that none has been begun and
    /// waits to continue, unless this one has been begun too.
    static let isAlone = """
        AND NOT (size >= \(smallestDuplicate) AND (EXISTS (
            SELECT 1 FROM upload AS other INDEXED BY upload_list JOIN asset AS theirs ON theirs.id = other.asset
            WHERE other.state = 'uploading' AND other.destination = ?1
            AND theirs.sha256 = (SELECT sha256 FROM asset WHERE id = upload.asset))
        OR NOT EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.upload = upload.id) AND EXISTS (
            SELECT 1 FROM upload AS other INDEXED BY upload_begun JOIN asset AS theirs ON theirs.id = other.asset
            WHERE other.state = 'queued' AND other.started_at IS NOT NULL AND other.destination = ?1
            AND EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.upload = other.id)
            AND theirs.sha256 = (SELECT sha256 FROM asset WHERE id = upload.asset))))
        """

    /// Another upload of the same content to the same destination that this one waits for, where duplicates are
    /// skipped.
    package func twin(of upload: UploadRecord, sha256: [UInt8]) throws -> UploadRecord? {
        guard upload.state == .queued, upload.size >= Self.smallestDuplicate else { return nil }
        let sending = try connection.first(
            """
            SELECT other.id FROM upload AS other INDEXED BY upload_list JOIN asset AS theirs ON theirs.id = other.asset
            WHERE other.state = 'uploading' AND other.destination = ?1 AND theirs.sha256 = ?2 LIMIT 1
            """, [.text(upload.destination), .blob(sha256)]
        ) { $0.text(0) }
        if let sending { return try self.upload(sending) }
        guard try checkpoint(upload.id) == nil else { return nil }
        let begun = try connection.first(
            """
            SELECT other.id FROM upload AS other INDEXED BY upload_begun JOIN asset AS theirs ON theirs.id = other.asset
            WHERE other.state = 'queued' AND other.started_at IS NOT NULL AND other.destination = ?1
            AND EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.upload = other.id) AND theirs.sha256 = ?2 LIMIT 1
            """, [.text(upload.destination), .blob(sha256)]
        ) { $0.text(0) }
        return try begun.flatMap { try self.upload($0) }
    }
}
