package import Core

// What uploads leave at a destination and nobody needs: queued for removal in the transaction that gives it up.

extension Schema {
    static let leftThere = """
        -- 1 when a cancel could not remove what had been sent.
        ALTER TABLE upload ADD COLUMN left_there INTEGER NOT NULL DEFAULT 0;
        """
}

extension Store {
    /// Stores the checkpoint of a new beginning, and queues what `old` names at the remote for removal, as one change.
    /// Durable when it returns.
    ///
    /// - Throws: ``LeaseLost`` when the upload was cancelled meanwhile, which has queued everything already.
    package func renew(_ checkpoint: Checkpoint, for id: String, leaving old: Checkpoint?) async throws {
        let isHeld = try await change { connection in
            guard let upload = try self.upload(id), upload.state == .uploading else { return false }
            if let old { try self.removeRemains(of: upload, old, isEarlier: true) }
            guard try self.keep(checkpoint, for: id) else { return false }
            try connection.run("DELETE FROM part WHERE upload = ?1", [.text(id)])
            try self.noteWaste(of: id, standingAt: 0)
            try connection.run("UPDATE upload SET acked = 0, sent = 0 WHERE id = ?1", [.text(id)])
            // What is begun anew may still be the same thing to the remote.
            if upload.named.map({ !checkpoint.fields.values.contains($0) }) ?? false { try self.forgetName(of: id) }
            return true
        }
        if !isHeld { throw LeaseLost() }
    }

    /// Inside a transaction. What another writer has sent bytes to is never removed.
    ///
    /// - Parameter isEarlier: The upload goes on without them.
    /// - Returns: Whether they are to be removed.
    @discardableResult
    func removeRemains(of upload: UploadRecord, _ checkpoint: Checkpoint, isEarlier: Bool = false) throws -> Bool {
        guard checkpoint[Checkpoint.isOfAnother] == nil else {
            if !isEarlier { try noteLeft(by: upload.id) }
            return false
        }
        try connection.run(
            """
            INSERT INTO remote_delete (upload, destination, checkpoint, tries, created_at, earlier)
            VALUES (?1, ?2, ?3, 0, ?4, ?5)
            """,
            [
                .text(upload.id), .text(upload.destination), .text(TextMap.text(checkpoint.fields)),
                .integer(clocks.wall().milliseconds), .integer(isEarlier ? Remains.replaced : Remains.current),
            ])
        return true
    }

    /// Values of the column `earlier`.
    enum Remains {
        /// Of the cancel that the upload has ended by.
        static let current: Int64 = 0
        /// The upload went on without them.
        static let replaced: Int64 = 1
        /// Of a cancel before a `retry`.
        static let before: Int64 = 2
    }

    /// Inside a transaction. The upload is sent again: a later cancel has remains of its own.
    func passRemains(of id: String) throws {
        try connection.run(
            "UPDATE remote_delete SET earlier = ?2 WHERE upload = ?1 AND earlier = ?3",
            [.text(id), .integer(Remains.before), .integer(Remains.current)])
    }

    private func noteLeft(by id: String) throws {
        try connection.run("UPDATE upload SET left_there = 1 WHERE id = ?1", [.text(id)])
    }

    package func remoteDeletions() throws -> [RemoteDeletion] {
        try connection.all(
            "SELECT id, upload, destination, checkpoint, tries, created_at, earlier FROM remote_delete ORDER BY id LIMIT 1000"
        ) { row in
            RemoteDeletion(
                id: row.integer(0), upload: row.text(1), destination: row.text(2),
                checkpoint: Checkpoint(TextMap.map(row.text(3)) ?? [:]),
                tries: Int(row.integer(4)), createdAt: WallTime(milliseconds: row.integer(5)),
                isEarlier: row.integer(6) != Remains.current)
        }
    }

    /// - Parameter result: `done`, `unsupported`, `gave_up` or `unknown` end it; `nil` means tried in vain.
    package func remoteDeletion(_ deletion: RemoteDeletion, _ result: String?) async throws {
        try await change { connection in
            guard let result else {
                try connection.run("UPDATE remote_delete SET tries = tries + 1 WHERE id = ?1", [.integer(deletion.id)])
                return
            }
            // It may have been tried again meanwhile.
            let kind = try connection.first(
                "SELECT earlier FROM remote_delete WHERE id = ?1", [.integer(deletion.id)]
            ) { $0.integer(0) }
            try connection.run("DELETE FROM remote_delete WHERE id = ?1", [.integer(deletion.id)])
            // It may leave its list now.
            self.listsChanged = true
            let isReplaced = kind == Remains.replaced
            if result == "done" {
                try self.noteRemoved(deletion.upload)
            } else {
                if !isReplaced { try self.noteLeft(by: deletion.upload) }
                try connection.run(
                    "UPDATE upload SET remote_delete = ?2 WHERE id = ?1 AND state IN ('cancelled', 'removed')",
                    [.text(deletion.upload), .text(result)])
            }
            if isReplaced { return }
            try self.note("remote_delete", deletion.upload, ["result": result])
        }
    }

    /// Everything is gone only when nothing is left of an earlier try either: what is left undone is told.
    private func noteRemoved(_ id: String) throws {
        try connection.run(
            """
            UPDATE upload SET remote_delete = CASE WHEN left_there = 1 THEN 'unknown' ELSE 'done' END
            WHERE id = ?1 AND state IN ('cancelled', 'removed') AND remote_delete = 'pending'
            AND NOT EXISTS (SELECT 1 FROM remote_delete WHERE upload = ?1)
            """, [.text(id)])
    }

    /// Inside a transaction. What a person should know of an upload that was cancelled, tried again and sent once more.
    func whatCancelLeft(of id: String) throws -> [String] {
        let isLeft = try connection.first("SELECT left_there FROM upload WHERE id = ?1", [.text(id)]) {
            $0.integer(0) == 1
        }
        if isLeft ?? false {
            return [
                "it was cancelled before, and what had been sent by then could not be removed: that may be there besides"
            ]
        }
        let isPending =
            try connection.first(
                "SELECT 1 FROM remote_delete WHERE upload = ?1 AND earlier = ?2 LIMIT 1",
                [.text(id), .integer(Remains.before)]
            ) { $0.integer(0) } != nil
        return isPending
            ? [
                "it was cancelled before, and what had been sent by then is still to be removed: until then that is there besides"
            ] : []
    }
}
