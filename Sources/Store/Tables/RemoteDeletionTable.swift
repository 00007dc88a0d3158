internal import Core

extension Schema {
    static let leftThere = """
        -- 1 when a cancel could not remove what had been sent.
        ALTER TABLE upload ADD COLUMN left_there INTEGER NOT NULL DEFAULT 0;
        """
}

/// Values of the column `earlier`.
enum RemoteDeletionOrigin {
    /// Remains of the cancel that the upload has ended by.
    static let current: Int64 = 0
    /// The upload continued without them.
    static let replaced: Int64 = 1
    /// Remains of a cancel before a `retry`.
    static let before: Int64 = 2
}

/// Rows of `remote_delete`: objects that uploads left at a destination and that are not needed, queued for removal in
/// the transaction that gives them up.
package struct RemoteDeletionTable<Access> {
    let tx: Transaction<Access>

    package func all() throws -> [RemoteDeletion] {
        try tx.connection.all(
            "SELECT id, upload, destination, checkpoint, tries, created_at, earlier FROM remote_delete ORDER BY id LIMIT 1000"
        ) { row in
            RemoteDeletion(
                id: row.integer(0), upload: row.text(1), destination: row.text(2),
                checkpoint: Checkpoint(TextMap.map(row.text(3)) ?? [:]),
                tries: Int(row.integer(4)), createdAt: WallTime(milliseconds: row.integer(5)),
                isEarlier: row.integer(6) != RemoteDeletionOrigin.current)
        }
    }

    /// A warning for a person about an upload that was cancelled, tried again and sent once more.
    func warnings(about id: String) throws -> [String] {
        let isLeft = try tx.connection.first("SELECT left_there FROM upload WHERE id = ?1", [.text(id)]) {
            $0.integer(0) == 1
        }
        if isLeft ?? false {
            return [
                "it was cancelled before, and what had been sent by then could not be removed: that may be there besides"
            ]
        }
        let isPending =
            try tx.connection.first(
                "SELECT 1 FROM remote_delete WHERE upload = ?1 AND earlier = ?2 LIMIT 1",
                [.text(id), .integer(RemoteDeletionOrigin.before)]
            ) { $0.integer(0) } != nil
        return isPending
            ? [
                "it was cancelled before, and what had been sent by then is still to be removed: until then that is there besides"
            ] : []
    }
}

extension RemoteDeletionTable where Access == Writing {
    /// Objects to which another writer has sent bytes are never removed.
    ///
    /// - Parameter isEarlier: Whether the upload continues without them.
    /// - Returns: Whether they will be removed.
    @discardableResult
    func queue(of upload: UploadRecord, _ checkpoint: Checkpoint, isEarlier: Bool = false) throws -> Bool {
        guard !checkpoint.isOfAnotherWriter else {
            if !isEarlier { try recordLeft(by: upload.id) }
            return false
        }
        try tx.connection.run(
            """
            INSERT INTO remote_delete (upload, destination, checkpoint, tries, created_at, earlier)
            VALUES (?1, ?2, ?3, 0, ?4, ?5)
            """,
            [
                .text(upload.id), .text(upload.destination), .text(TextMap.text(checkpoint.fields)),
                .integer(tx.clocks.wall().milliseconds),
                .integer(isEarlier ? RemoteDeletionOrigin.replaced : RemoteDeletionOrigin.current),
            ])
        tx.session.facts.changes.insert(.leftovers)
        return true
    }

    /// The upload is sent again: a later cancel has remains of its own.
    func markEarlier(of id: String) throws {
        try tx.connection.run(
            "UPDATE remote_delete SET earlier = ?2 WHERE upload = ?1 AND earlier = ?3",
            [.text(id), .integer(RemoteDeletionOrigin.before), .integer(RemoteDeletionOrigin.current)])
    }

    /// - Parameter result: `nil` means a failed try, which is repeated.
    package func finish(_ deletion: RemoteDeletion, _ result: RemoteDeletion.Result?) throws {
        guard let result else {
            try tx.connection.run("UPDATE remote_delete SET tries = tries + 1 WHERE id = ?1", [.integer(deletion.id)])
            return
        }
        // Another try may have begun meanwhile.
        let kind = try tx.connection.first(
            "SELECT earlier FROM remote_delete WHERE id = ?1", [.integer(deletion.id)]
        ) { $0.integer(0) }
        try tx.connection.run("DELETE FROM remote_delete WHERE id = ?1", [.integer(deletion.id)])
        // The upload may leave its list now.
        tx.session.facts.changes.insert(.lists)
        let isReplaced = kind == RemoteDeletionOrigin.replaced
        if result == .done {
            try recordRemoved(deletion.upload)
        } else {
            if !isReplaced { try recordLeft(by: deletion.upload) }
            try tx.connection.run(
                "UPDATE upload SET remote_delete = ?2 WHERE id = ?1 AND state IN ('cancelled', 'removed')",
                [.text(deletion.upload), .text(result.rawValue)])
        }
        if isReplaced { return }
        try tx.events.append(.remoteDelete(result), of: deletion.upload)
    }

    private func recordLeft(by id: String) throws {
        try tx.connection.run("UPDATE upload SET left_there = 1 WHERE id = ?1", [.text(id)])
    }

    /// The removal is complete only when nothing is left of an earlier try either: remaining objects are reported.
    private func recordRemoved(_ id: String) throws {
        try tx.connection.run(
            """
            UPDATE upload SET remote_delete = CASE WHEN left_there = 1 THEN 'unknown' ELSE 'done' END
            WHERE id = ?1 AND state IN ('cancelled', 'removed') AND remote_delete = 'pending'
            AND NOT EXISTS (SELECT 1 FROM remote_delete WHERE upload = ?1)
            """, [.text(id)])
    }
}

extension Transaction {
    package var remoteDeletions: RemoteDeletionTable<Access> { RemoteDeletionTable(tx: self) }
}
