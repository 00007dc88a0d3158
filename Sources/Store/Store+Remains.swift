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
            try connection.run("UPDATE upload SET acked = 0, sent = 0 WHERE id = ?1", [.text(id)])
            // What is begun anew may still be the same thing to the remote.
            if upload.named.map({ !checkpoint.fields.values.contains($0) }) ?? false { try self.forgetName(of: id) }
            return true
        }
        if !isHeld { throw LeaseLost() }
    }

    /// - Parameter isEarlier: The upload goes on without them.
    func removeRemains(of upload: UploadRecord, _ checkpoint: Checkpoint, isEarlier: Bool = false) throws {
        try connection.run(
            """
            INSERT INTO remote_delete (upload, destination, checkpoint, tries, created_at, earlier)
            VALUES (?1, ?2, ?3, 0, ?4, ?5)
            """,
            [
                .text(upload.id), .text(upload.destination), .text(TextMap.text(checkpoint.fields)),
                .integer(clocks.wall().milliseconds), .integer(isEarlier ? 1 : 0),
            ])
    }

    package func remoteDeletions() throws -> [RemoteDeletion] {
        try connection.all(
            "SELECT id, upload, destination, checkpoint, tries, created_at, earlier FROM remote_delete ORDER BY id LIMIT 1000"
        ) { row in
            RemoteDeletion(
                id: row.integer(0), upload: row.text(1), destination: row.text(2),
                checkpoint: Checkpoint(TextMap.map(row.text(3)) ?? [:]),
                tries: Int(row.integer(4)), createdAt: WallTime(milliseconds: row.integer(5)),
                isEarlier: row.integer(6) != 0)
        }
    }

    /// - Parameter result: `done`, `unsupported`, `gave_up` or `unknown` end it; `nil` means tried in vain.
    package func remoteDeletion(_ deletion: RemoteDeletion, _ result: String?) async throws {
        try await change { connection in
            guard let result else {
                try connection.run("UPDATE remote_delete SET tries = tries + 1 WHERE id = ?1", [.integer(deletion.id)])
                return
            }
            try connection.run("DELETE FROM remote_delete WHERE id = ?1", [.integer(deletion.id)])
            // It may leave its list now.
            self.listsChanged = true
            if deletion.isEarlier { return }
            if result != "done" {
                try connection.run("UPDATE upload SET left_there = 1 WHERE id = ?1", [.text(deletion.upload)])
            }
            try connection.run(
                "UPDATE upload SET remote_delete = ?2 WHERE id = ?1 AND state IN ('cancelled', 'removed')",
                [.text(deletion.upload), .text(result)])
            try self.note("remote_delete", deletion.upload, ["result": result])
        }
    }

    /// Inside a transaction. What a person should know of an upload that was cancelled, tried again and sent once more.
    func whatCancelLeft(of id: String) throws -> [String] {
        let isLeft = try connection.first("SELECT left_there FROM upload WHERE id = ?1", [.text(id)]) {
            $0.integer(0) == 1
        }
        return isLeft ?? false
            ? [
                "it was cancelled before, and what had been sent by then could not be removed: that may be there besides"
            ] : []
    }
}
