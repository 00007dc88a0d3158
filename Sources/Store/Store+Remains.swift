internal import Core

// What cancelled and renewed uploads left at their remotes.

extension Store {
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

    /// - Parameter result: `done`, `unsupported` or `gave_up` end it; `nil` means tried in vain.
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
            try connection.run(
                "UPDATE upload SET remote_delete = ?2 WHERE id = ?1 AND state IN ('cancelled', 'removed')",
                [.text(deletion.upload), .text(result)])
            try self.note("remote_delete", deletion.upload, ["result": result])
        }
    }
}
