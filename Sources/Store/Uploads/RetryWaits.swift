package import Core

/// The column `backoff_until` of `upload`: waits after failures.
package struct RetryWaits<Access> {
    let tx: Transaction<Access>

    /// The time when the first upload may go whose wait after a failure is not over at `time`.
    package func next(after time: MonotonicTime) throws -> MonotonicTime? {
        try tx.connection.first(
            // Waits that are over are no deadlines: whatever holds such an upload now has its own wake-up.
            """
            SELECT min(backoff_until) FROM upload INDEXED BY upload_backoff
            WHERE backoff_until > 0 AND backoff_until > ?1 AND state = 'queued'
            """, [.integer(time.nanoseconds)]
        ) { $0.optionalInteger(0) }.flatMap { $0 }.map { MonotonicTime(nanoseconds: $0) }
    }

    /// The uploads that wait because their last failure had this cause.
    package func waiting(becauseOf cause: Failure.Cause) throws -> [String] {
        try tx.connection.all(
            """
            SELECT id FROM upload INDEXED BY upload_backoff WHERE backoff_until > 0 AND ?1 =
            (SELECT json_extract(body, '$.code') FROM failure WHERE upload = upload.id ORDER BY id DESC LIMIT 1)
            """, [.text(cause.code.rawValue)]
        ) { $0.text(0) }
    }
}

extension RetryWaits where Access == Writing {
    /// Ends all waits: they were measured by the clock of the run that set them.
    func endAll() throws {
        // Where these follow from wasted bytes, the daemon sets them again.
        tx.session.facts.waitedBefore = try tx.connection.all(
            "SELECT id FROM upload INDEXED BY upload_backoff WHERE backoff_until > 0 AND sent > acked"
        ) { $0.text(0) }
        try tx.connection.run("UPDATE upload INDEXED BY upload_backoff SET backoff_until = 0 WHERE backoff_until > 0")
    }

    /// Ends the waits after failures for a destination: its uploads may go at once.
    package func end(for destination: String) throws {
        try tx.connection.run(
            // By the index of waiting uploads: the index of the class would read all uploads to the destination.
            """
            UPDATE upload INDEXED BY upload_backoff SET backoff_until = 0
            WHERE backoff_until > 0 AND destination = ?1
            """, [.text(destination)])
        if tx.connection.changes > 0 { tx.session.facts.changes.insert(.queued) }
    }

    /// Sets how long uploads wait for their next attempt.
    package func set(_ waits: [String: MonotonicTime]) throws {
        for (id, until) in waits {
            try tx.connection.run(
                "UPDATE upload SET backoff_until = ?2 WHERE id = ?1", [.text(id), .integer(until.nanoseconds)])
        }
    }

    /// The queued uploads in place from the disk of this file wait until `time`, except those that wait for reasons of
    /// their own.
    ///
    /// - Parameter before: The time until which uploads wait for the disk already.
    /// - Returns: The files of those that wait until `time` from now on.
    package func waitForDisk(
        of asset: AssetRecord, until time: MonotonicTime, before: MonotonicTime?
    ) throws -> [Int64] {
        try tx.connection.all(
            """
            UPDATE upload SET backoff_until = ?1
            WHERE state = 'queued' AND (backoff_until <= ?2 OR backoff_until = ?3) AND backoff_until <> ?1
            AND asset IN (
                SELECT id FROM asset INDEXED BY asset_in_place WHERE keeping = 'in-place' AND state = 'staged'
                AND folder = ?4 AND file_system IS ?5 AND root = ?6)
            RETURNING asset
            """,
            [
                .integer(time.nanoseconds), .integer(tx.clocks.monotonic().nanoseconds),
                before.map { .integer($0.nanoseconds) } ?? .null, .text(asset.folder),
                asset.identity.fileSystem.map { .text($0) } ?? .null, .blob(asset.root.bytes),
            ]
        ) { $0.integer(0) }
    }

    /// Ends the waits that were set until exactly this time.
    package func end(until time: MonotonicTime) throws {
        try tx.connection.run(
            """
            UPDATE upload INDEXED BY upload_backoff SET backoff_until = 0
            WHERE backoff_until > 0 AND backoff_until = ?1 AND state = 'queued'
            """, [.integer(time.nanoseconds)])
        if tx.connection.changes > 0 { tx.session.facts.changes.insert(.queued) }
    }

    /// Ends the waits of uploads from these folders whose last failure had this cause, except where bytes were sent in
    /// vain: these wait longer for that.
    package func end(from folders: Set<String>, becauseOf cause: Failure.Cause) throws {
        for folder in folders {
            try tx.connection.run(
                """
                UPDATE upload INDEXED BY upload_backoff SET backoff_until = 0
                WHERE backoff_until > 0 AND folder = ?1 AND state = 'queued' AND sent <= acked
                AND NOT EXISTS (SELECT 1 FROM waste WHERE upload = upload.id) AND ?2 =
                (SELECT json_extract(body, '$.code') FROM failure WHERE upload = upload.id ORDER BY id DESC LIMIT 1)
                """, [.text(folder), .text(cause.code.rawValue)])
            if tx.connection.changes > 0 { tx.session.facts.changes.insert(.queued) }
        }
    }

    /// Ends the waits of these uploads.
    package func end(of ids: [String]) throws {
        for id in ids { try tx.connection.run("UPDATE upload SET backoff_until = 0 WHERE id = ?1", [.text(id)]) }
        if !ids.isEmpty { tx.session.facts.changes.insert(.queued) }
    }
}

extension Transaction {
    package var waits: RetryWaits<Access> { RetryWaits(tx: self) }
}
