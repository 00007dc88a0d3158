internal import Core

extension Schema {
    static let furthest = """
        -- The most bytes that the server has confirmed in this generation, also where it has lost them since.
        ALTER TABLE upload ADD COLUMN furthest INTEGER NOT NULL DEFAULT 0;
        """
}

/// The columns `sent` and `acked` of `upload`.
package struct UploadProgress<Access> {
    let tx: Transaction<Access>
}

extension UploadProgress where Access == Writing {
    /// Stores how far a running attempt has sent, so that it is known after a crash. The session knows the uploads of
    /// which a running attempt has stored it.
    package func recordSent(_ sent: Int64, of id: String) throws {
        guard let upload = try tx.uploads.find(id), upload.state == .uploading, sent > upload.acked else { return }
        if tx.session.facts.uploadsWithNotedProgress.insert(id).inserted {
            try tx.waste.settleSent(of: upload)
            try setSent(sent, of: id)
        } else if sent > upload.sent {
            try setSent(sent, of: id)
        }
    }

    /// Records bytes that a running attempt has sent in vain, and sends again: its progress does not contain them.
    package func recordWaste(_ bytes: Int64, of id: String) throws {
        guard let upload = try tx.uploads.find(id), upload.state == .uploading else { return }
        if tx.session.facts.uploadsWithNotedProgress.insert(id).inserted {
            try tx.waste.settleSent(of: upload)
            try setSent(upload.acked, of: id)
        } else {
            try setSent(max(upload.acked, upload.sent - bytes), of: id)
        }
        try tx.waste.add(bytes, of: id)
    }

    func setSent(_ sent: Int64, of id: String) throws {
        try tx.connection.run("UPDATE upload SET sent = ?2 WHERE id = ?1", [.text(id), .integer(sent)])
    }

    /// An acknowledged byte beyond all earlier ones of this generation resets the budget of attempts.
    func setAcknowledged(_ acked: Int64, of id: String) throws {
        try tx.failures.recordRecovery(of: id, acked: acked)
        try tx.waste.record(
            of: id, standingAt: acked, isUnderWay: tx.session.facts.uploadsWithNotedProgress.contains(id))
        try tx.connection.run(
            """
            UPDATE upload SET attempt = CASE WHEN ?2 > max(acked, furthest) THEN 0 ELSE attempt END,
            failing_since = CASE WHEN ?2 > max(acked, furthest) THEN NULL ELSE failing_since END,
            failed_for = CASE WHEN ?2 > max(acked, furthest) THEN NULL ELSE failed_for END,
            furthest = max(?2, acked, furthest), acked = ?2, sent = ?2 WHERE id = ?1
            """, [.text(id), .integer(acked)])
    }
}

extension Transaction {
    package var progress: UploadProgress<Access> { UploadProgress(tx: self) }
}
