internal import Core

/// Rows of `history`: the compact record that stays when an upload has left the lists.
package struct HistoryTable<Access> {
    let tx: Transaction<Access>
}

extension HistoryTable where Access == Writing {
    /// Writes the compact row that stays when the upload has left the lists.
    func record(_ upload: UploadRecord, _ outcome: UploadState, code: Failure.Code? = nil, remote: RemoteObject? = nil)
        throws
    {
        try tx.connection.run(
            """
            INSERT INTO history (upload, generation, key, folder, relative, size, sha256, destination, remote, outcome,
                code, attempts, created_at, finished_at, remote_id)
            SELECT ?1, ?2, ?3, folder, relative, size, sha256, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?12 FROM asset WHERE id = ?11
            """,
            [
                .text(upload.id), .integer(Int64(upload.generation)), .init(upload.key), .text(upload.destination),
                remote == nil ? .null : .text(try StoredJSON.encode(remote)), .text(outcome.rawValue),
                .init(code?.rawValue),
                .integer(Int64(upload.attempt + 1)), .integer(upload.createdAt.milliseconds),
                .integer(tx.clocks.wall().milliseconds), .integer(upload.asset), .init(remote?.id),
            ])
    }

    /// Deletes the record that the content of a source was sent, when the source is gone and its upload is forgotten.
    func forgetSent(_ identity: FileIdentity) throws {
        try tx.connection.run(
            """
            DELETE FROM history WHERE outcome = 'completed' AND folder = ?1 AND relative = ?2
            AND sha256 IN (
                SELECT sha256 FROM tombstone WHERE folder = ?1 AND relative = ?2 AND file_system IS ?3 UNION ALL
                SELECT sha256 FROM displaced_tombstone WHERE folder = ?1 AND relative = ?2 AND file_system = ?3)
            AND NOT EXISTS (SELECT 1 FROM upload WHERE upload.id = history.upload)
            """, [.text(identity.folder), .blob(identity.relative.bytes), .init(identity.fileSystem)])
    }
}

extension Transaction {
    package var history: HistoryTable<Access> { HistoryTable(tx: self) }
}
