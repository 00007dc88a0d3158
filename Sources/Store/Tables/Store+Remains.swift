package import Core

// Objects that uploads leave at a destination and that are not needed: queued for removal in the transaction that gives
// them up.

extension Schema {
    static let leftThere = """
        -- 1 when a cancel could not remove what had been sent.
        ALTER TABLE upload ADD COLUMN left_there INTEGER NOT NULL DEFAULT 0;
        """
}

extension Store {
    /// Stores the checkpoint of a new beginning, and queues the objects named in `old` for removal at the remote, as
    /// one change. Durable when it returns.
    ///
    /// - Throws: ``LeaseLost`` when the upload was cancelled meanwhile, which has queued all objects already.
    package func renew(_ checkpoint: Checkpoint, for id: String, leaving old: Checkpoint?) async throws {
        let isHeld = try await change { connection in
            guard let upload = try self.upload(id), upload.state == .uploading else { return false }
            if let old { try self.removeRemains(of: upload, old, isEarlier: true) }
            guard try self.keep(checkpoint, for: id) else { return false }
            try connection.run("DELETE FROM part WHERE upload = ?1", [.text(id)])
            try self.noteWaste(of: id, standingAt: 0)
            try connection.run("UPDATE upload SET acked = 0, sent = 0 WHERE id = ?1", [.text(id)])
            // The new beginning may still be the same object at the remote.
            if upload.named.map({ !checkpoint.fields.values.contains($0) }) ?? false { try self.forgetName(of: id) }
            return true
        }
        if !isHeld { throw LeaseLost() }
    }

    /// Inside a transaction. Objects to which another writer has sent bytes are never removed.
    ///
    /// - Parameter isEarlier: Whether the upload continues without them.
    /// - Returns: Whether they will be removed.
    @discardableResult
    func removeRemains(of upload: UploadRecord, _ checkpoint: Checkpoint, isEarlier: Bool = false) throws -> Bool {
        guard !checkpoint.isOfAnotherWriter else {
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
                .integer(clocks.wall().milliseconds),
                .integer(isEarlier ? RemoteLeftovers.replaced : RemoteLeftovers.current),
            ])
        return true
    }

    /// Values of the column `earlier`.
    enum RemoteLeftovers {
        /// Remains of the cancel that the upload has ended by.
        static let current: Int64 = 0
        /// The upload continued without them.
        static let replaced: Int64 = 1
        /// Remains of a cancel before a `retry`.
        static let before: Int64 = 2
    }

    /// Inside a transaction. The upload is sent again: a later cancel has remains of its own.
    func passRemains(of id: String) throws {
        try connection.run(
            "UPDATE remote_delete SET earlier = ?2 WHERE upload = ?1 AND earlier = ?3",
            [.text(id), .integer(RemoteLeftovers.before), .integer(RemoteLeftovers.current)])
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
                isEarlier: row.integer(6) != RemoteLeftovers.current)
        }
    }

    /// - Parameter result: `done`, `unsupported`, `gave_up` or `unknown` are final; `nil` means a failed try.
    package func remoteDeletion(_ deletion: RemoteDeletion, _ result: String?) async throws {
        try await change { connection in
            guard let result else {
                try connection.run("UPDATE remote_delete SET tries = tries + 1 WHERE id = ?1", [.integer(deletion.id)])
                return
            }
            // Another try may have begun meanwhile.
            let kind = try connection.first(
                "SELECT earlier FROM remote_delete WHERE id = ?1", [.integer(deletion.id)]
            ) { $0.integer(0) }
            try connection.run("DELETE FROM remote_delete WHERE id = ?1", [.integer(deletion.id)])
            // The upload may leave its list now.
            self.listsChanged = true
            let isReplaced = kind == RemoteLeftovers.replaced
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

    /// The removal is complete only when nothing is left of an earlier try either: remaining objects are reported.
    private func noteRemoved(_ id: String) throws {
        try connection.run(
            """
            UPDATE upload SET remote_delete = CASE WHEN left_there = 1 THEN 'unknown' ELSE 'done' END
            WHERE id = ?1 AND state IN ('cancelled', 'removed') AND remote_delete = 'pending'
            AND NOT EXISTS (SELECT 1 FROM remote_delete WHERE upload = ?1)
            """, [.text(id)])
    }

    /// Inside a transaction. A warning for a person about an upload that was cancelled, tried again and sent once more.
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
                [.text(id), .integer(RemoteLeftovers.before)]
            ) { $0.integer(0) } != nil
        return isPending
            ? [
                "it was cancelled before, and what had been sent by then is still to be removed: until then that is there besides"
            ] : []
    }
}
