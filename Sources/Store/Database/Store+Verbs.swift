package import Core

// A person's commands for uploads: pause, cancel, retry.

extension Store {
    /// Sets or clears the operator hold of one upload. Repeating it changes nothing.
    package func pause(_ id: String, _ on: Bool) async throws { try await pause([id], on) }

    /// The same for several, in one transaction.
    package func pause(_ ids: [String], _ on: Bool) async throws {
        let now = clocks.wall().milliseconds
        try await change { connection in
            for id in ids {
                try connection.run(
                    """
                    UPDATE upload SET paused_at = ?2 WHERE id = ?1 AND (paused_at IS NULL) = ?3
                    AND state IN ('staging', 'queued', 'uploading')
                    """,
                    [.text(id), on ? .integer(now) : .null, .integer(on ? 1 : 0)])
                if connection.changes > 0 {
                    try self.note("state", id, ["hold": on ? "operator" : "", "reason": on ? "paused" : "resumed"])
                }
            }
        }
    }

    /// Ends uploads by request: state, tombstone and the queue of remote removals in one transaction.
    ///
    /// - Returns: Their state afterwards: `cancelled`, or the state that forbade it (`completed`).
    package func cancel(_ ids: [String]) async throws -> [UploadState?] {
        try await change { _ in
            try ids.map { id in
                guard let upload = try self.upload(id) else { return nil }
                guard upload.state.after(.cancelled) != nil else { return upload.state }
                try self.abandon(upload)
                try self.dropUnneeded(upload.asset)
                return .cancelled
            }
        }
    }

    /// Drops the copy that was to be made, unless another upload waits for it.
    func dropUnneeded(_ asset: Int64) throws {
        try connection.run(
            """
            UPDATE asset SET state = 'dropped' WHERE id = ?1 AND state IN ('arrived', 'unsettled') AND NOT EXISTS
            (SELECT 1 FROM upload WHERE asset = ?1 AND state = 'staging')
            """, [.integer(asset)])
    }

    /// Ends an upload, and queues its remains at the destination for removal.
    ///
    /// - Parameter code: The reason, when no person asked for it.
    func abandon(_ upload: UploadRecord, code: String? = nil) throws {
        let checkpoint = try checkpoint(upload.id)
        // A checkpoint is stored before the creation request, so something may exist at the remote.
        let isRemoved = try checkpoint.map { try removeRemains(of: upload, $0) }
        // Earlier remains may still wait for removal; objects of another writer stay.
        let isPending =
            try isRemoved
            ?? (connection.first(
                "SELECT 1 FROM remote_delete WHERE upload = ?1 LIMIT 1", [.text(upload.id)]
            ) { $0.integer(0) } != nil)
        try connection.run(
            "UPDATE upload SET remote_delete = ?2, paused_at = NULL, backoff_until = 0 WHERE id = ?1",
            [.text(upload.id), .text(isPending ? "pending" : isRemoved == nil ? "none" : "unknown")])
        try connection.run("DELETE FROM checkpoint WHERE upload = ?1", [.text(upload.id)])
        try move(upload, by: .cancelled, because: code, as: code == Expiry.code ? .expired : .cancelled)
        try remember(upload, .cancelled, code: code)
    }

    /// Starts a new generation of a failed or cancelled upload.
    ///
    /// - Parameter fromCopy: Whether the staged copy exists; otherwise the file is staged again from the source.
    /// - Returns: The state before, so that the caller can tell "was waiting already" from "started".
    package func retry(_ id: String, fromCopy: Bool) async throws -> UploadState? {
        try await change { connection in
            guard let upload = try self.upload(id) else { return nil }
            guard upload.ending == .failed || upload.ending == .cancelled else { return upload.state }
            try self.passRemains(of: id)
            try connection.run(
                """
                UPDATE upload SET generation = generation + 1, attempt = 0, backoff_until = 0, finished_at = NULL,
                failing_since = NULL, remote_delete = NULL, acked = CASE WHEN EXISTS (SELECT 1 FROM checkpoint WHERE upload = ?1) THEN acked
                ELSE 0 END, sent = CASE WHEN EXISTS (SELECT 1 FROM checkpoint WHERE upload = ?1) THEN sent ELSE 0 END
                WHERE id = ?1
                """, [.text(id)])
            if !upload.isBegun { try self.forgetName(of: id) }
            // The source is no longer verified.
            try connection.run("UPDATE asset SET kept_at = NULL WHERE id = ?1", [.integer(upload.asset)])
            if !fromCopy {
                try connection.run(
                    "UPDATE asset SET state = 'arrived', sha256 = NULL, staged_size = NULL, source_state = 'untouched', "
                        + "source_note = NULL WHERE id = ?1",
                    [.integer(upload.asset)])
            }
            try self.move(upload, by: fromCopy ? .retriedFromCopy : .retriedFromSource)
            return upload.state
        }
    }

    package func setPause(_ pause: PauseRecord) async throws {
        try await change { connection in
            try connection.run(
                "INSERT OR REPLACE INTO pause VALUES (?1, ?2, ?3, ?4)",
                [
                    .text(pause.scope.rawValue), .text(pause.name), .integer(pause.since.milliseconds),
                    .init(pause.until?.milliseconds),
                ])
            try self.note("paused", nil, ["scope": pause.scope.rawValue, "name": pause.name])
        }
    }

    /// - Returns: Whether there was one.
    @discardableResult
    package func clearPause(_ scope: PauseRecord.Scope, _ name: String) async throws -> Bool {
        try await change { connection in
            try connection.run(
                "DELETE FROM pause WHERE scope = ?1 AND name = ?2", [.text(scope.rawValue), .text(name)])
            guard connection.changes > 0 else { return false }
            try self.note("resumed", nil, ["scope": scope.rawValue, "name": name])
            return true
        }
    }

    package func pauses() throws -> [PauseRecord] {
        try connection.all("SELECT scope, name, since, until FROM pause") { row in
            PauseRecord(
                scope: PauseRecord.Scope(rawValue: row.text(0)), name: row.text(1),
                since: WallTime(milliseconds: row.integer(2)),
                until: row.optionalInteger(3).map { WallTime(milliseconds: $0) })
        }
    }
}
