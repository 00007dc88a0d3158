internal import Core

/// Uploads that leave the history.
package struct HistoryRetentionTable<Access> {
    let tx: Transaction<Access>

    /// The oldest uploads in the history, at most `most`.
    ///
    /// - Parameter after: The age and the id of the last one that was examined before.
    func removed(after: (ran: Int64, id: String)?, most: Int) throws -> [(ran: Int64, id: String)] {
        try tx.connection.all(
            """
            SELECT id, ran_at FROM upload INDEXED BY upload_age
            WHERE state = 'removed' AND ran_at IS NOT NULL AND (ran_at, id) > (?1, ?2) ORDER BY ran_at, id LIMIT ?3
            """, [.integer(after?.ran ?? .min), .text(after?.id ?? ""), .integer(Int64(most))]
        ) { (ran: $0.integer(1), id: $0.text(0)) }
    }

    private func isSettled(_ upload: UploadRecord, mayGo: Bool) throws -> Bool {
        let isBusy = try tx.connection.first(
            """
            SELECT 1 FROM asset WHERE id = ?1 AND (due = 1 OR (?3 AND kept_at IS NOT NULL) OR state IN ('staged', 'unsettled')
            OR source_state = 'releasing')
            UNION ALL SELECT 1 FROM remote_delete WHERE upload = ?2 LIMIT 1
            """, [.integer(upload.asset), .text(upload.id), .integer(mayGo ? 1 : 0)]
        ) { _ in true }
        return isBusy == nil
    }
}

extension HistoryRetentionTable where Access == Writing {
    func forget(_ id: String, _ folders: Set<String>) throws {
        guard let upload = try tx.uploads.find(id), upload.state == .removed,
            try isSettled(upload, mayGo: folders.contains(upload.folder))
        else { return }
        if let checkpoint = try tx.checkpoints.find(id) { try tx.remoteDeletions.queue(of: upload, checkpoint) }
        for table in ["checkpoint", "failure", "waste"] {
            try tx.connection.run("DELETE FROM \(table) WHERE upload = ?1", [.text(id)])
        }
        try tx.connection.run("DELETE FROM exception WHERE scope = 'upload' AND name = ?1", [.text(id)])
        try tx.connection.run(
            """
            DELETE FROM history WHERE upload = ?1 AND (outcome <> 'completed' OR NOT EXISTS (
                SELECT 1 FROM tombstone
                WHERE tombstone.folder = history.folder AND tombstone.relative = history.relative UNION ALL
                SELECT 1 FROM displaced_tombstone AS displaced INDEXED BY displaced_tombstone_path
                WHERE displaced.folder = history.folder AND displaced.relative = history.relative))
            """, [.text(id)])
        try tx.connection.run("DELETE FROM upload WHERE id = ?1", [.text(id)])
        guard try tx.uploads.of(upload.asset).isEmpty else { return }
        try tx.connection.run("DELETE FROM media WHERE asset = ?1", [.integer(upload.asset)])
        try tx.connection.run("DELETE FROM asset WHERE id = ?1", [.integer(upload.asset)])
    }
}

extension Transaction {
    package var retention: HistoryRetentionTable<Access> { HistoryRetentionTable(tx: self) }
}
