internal import Core

// Uploads whose last attempt has failed, until they run again, so that both can be announced.

extension Schema {
    static let trouble = """
        -- Of its last failure, until it is on its way again: code, when that was (ms since 1970), and whether another attempt
        -- was begun since (1).
        ALTER TABLE upload ADD COLUMN trouble TEXT;
        ALTER TABLE upload ADD COLUMN troubled_at INTEGER;
        ALTER TABLE upload ADD COLUMN tried_again INTEGER NOT NULL DEFAULT 0;
        """
}

extension Store {
    /// Records that attempts of uploads that this run holds begin. An attempt that follows a failure is announced, once
    /// for each failure. An attempt that continues after a pause or a crash counts as the same one. Durable when it
    /// returns.
    package func beginAgain(_ ids: [String]) async throws {
        try await change { connection in
            for id in ids {
                try connection.run(
                    """
                    UPDATE upload SET tried_again = 1
                    WHERE id = ?1 AND state = 'uploading' AND trouble IS NOT NULL AND tried_again = 0
                    """, [.text(id)])
                guard connection.changes > 0, let trouble = try self.trouble(of: id) else { continue }
                try self.note("attempt", id, ["attempt": "\(trouble.attempt)", "code": trouble.code])
            }
        }
    }

    /// Inside a transaction. Records a failed attempt.
    func noteTrouble(_ failure: Failure, of id: String) throws {
        try connection.run(
            """
            UPDATE upload SET trouble = ?2, troubled_at = ?3, tried_again = 0,
            failing_since = coalesce(failing_since, ?4) WHERE id = ?1
            """, [.text(id), .text(failure.code), .integer(clocks.wall().milliseconds), .integer(ran)])
    }

    /// Inside a transaction, before its attempts are counted from zero. Announces that the upload has recovered, if it
    /// had failed.
    ///
    /// - Parameter acked: Bytes that are acknowledged now: only where these are more than before; `nil` for all of
    ///   them.
    func noteRecovery(of id: String, acked: Int64? = nil) throws {
        guard let trouble = try trouble(of: id), acked.map({ $0 > trouble.acked }) ?? true else { return }
        try connection.run(
            "UPDATE upload SET trouble = NULL, troubled_at = NULL, tried_again = 0 WHERE id = ?1", [.text(id)])
        var detail = ["attempt": "\(trouble.attempt)"]
        // If the clock was set back meanwhile, the time is unknown.
        let elapsed = trouble.at.map { clocks.wall().milliseconds - $0 }
        if let elapsed, elapsed >= 0 { detail["after"] = "\(elapsed / 1000)" }
        try note("recovered", id, detail)
    }

    private struct Trouble {
        var code: String
        /// ms since 1970.
        var at: Int64?
        /// The number of the attempt that follows, as in the list of failed ones.
        var attempt: Int64
        var acked: Int64
    }

    private func trouble(of id: String) throws -> Trouble? {
        try connection.first(
            """
            SELECT trouble, troubled_at, min(max(attempt, 0), 1 << 40) + 1, acked FROM upload
            WHERE id = ?1 AND trouble IS NOT NULL
            """, [.text(id)]
        ) { Trouble(code: $0.text(0), at: $0.optionalInteger(1), attempt: $0.integer(2), acked: $0.integer(3)) }
    }
}
