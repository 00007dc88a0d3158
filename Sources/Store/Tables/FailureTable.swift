package import Core

extension Schema {
    static let trouble = """
        -- Of its last failure, until it is on its way again: code, when that was (ms since 1970), and whether another attempt
        -- was begun since (1).
        ALTER TABLE upload ADD COLUMN trouble TEXT;
        ALTER TABLE upload ADD COLUMN troubled_at INTEGER;
        ALTER TABLE upload ADD COLUMN tried_again INTEGER NOT NULL DEFAULT 0;
        """
}

private struct Trouble {
    var code: Failure.Code
    /// ms since 1970.
    var at: Int64?
    /// The number of the attempt that follows, as in the list of failed ones.
    var attempt: Int64
    /// The most bytes that were acknowledged before.
    var furthest: Int64
}

/// A waiting upload that has been failing for as long as it may.
package struct ExhaustedUpload: Sendable {
    package let id: String
    /// The last one.
    package let failure: Failure
    package let failing: Duration
    package let limit: Duration
}

/// Rows of `failure`, and the columns of `upload` about its last failure until it runs again.
package struct FailureTable<Access> {
    let tx: Transaction<Access>

    /// The failures of an upload, oldest first: generation, attempt, failure.
    ///
    /// Reasons for mere waits are not among them.
    package func of(_ upload: String) throws -> [(generation: Int, attempt: Int, failure: Failure)] {
        try tx.connection.all(
            "SELECT generation, attempt, body FROM failure WHERE upload = ?1 ORDER BY id", [.text(upload)]
        ) { row in
            (Int(row.integer(0)), Int(row.integer(1)), StoredJSON.decode(Failure.self, json: row.text(2)))
        }.compactMap { row in row.2.flatMap { $0.isWait == true ? nil : (row.0, row.1, $0) } }
    }

    /// How long an upload has been failing if it fails now, without the time in which it could not be tried.
    ///
    /// - Returns: `nil` where it has not failed before, or where the remote has accepted further bytes since.
    package func failingTime(of id: String) throws -> Duration? {
        guard let upload = try tx.uploads.find(id) else { return nil }
        return try failingTime(of: upload).map { .milliseconds($0) }
    }

    /// In ms.
    private func failingTime(of upload: UploadRecord) throws -> Int64? {
        let before = try tx.connection.first(
            "SELECT min(max(failed_for, 0), 1 << 50) FROM upload WHERE id = ?1", [.text(upload.id)]
        ) { $0.optionalInteger(0) }
        guard let before = before.flatMap({ $0 }) else { return nil }
        return before
            + tx.session.facts.failingTimes.elapsed(upload.id, of: upload.uploadClass, at: tx.session.currentRunTime)
    }

    /// Waiting uploads that have been failing for as long as they may.
    ///
    /// - Parameter limit: For the uploads of a folder to a destination; `nil` for no limit.
    /// - Returns: Also when the next one is due, if its present wait lasts as long.
    package func exhausted(
        by limit: (_ folder: String, _ destination: String) -> Duration?
    ) throws -> (due: [ExhaustedUpload], next: MonotonicTime?) {
        let now = tx.session.currentRunTime
        var due: [ExhaustedUpload] = []
        var next: Int64?
        let waiting = try tx.connection.all(
            """
            SELECT id, folder, destination, min(max(failed_for, 0), 1 << 50) FROM upload INDEXED BY upload_backoff
            WHERE backoff_until > 0 AND state = 'queued' AND paused_at IS NULL AND failed_for IS NOT NULL
            """
        ) { row in (row.text(0), UploadClass(folder: row.text(1), destination: row.text(2)), row.integer(3)) }
        for (id, group, before) in waiting {
            guard let most = limit(group.folder, group.destination),
                let time = tx.session.facts.failingTimes.time(of: id, group, toAdd: most.inMilliseconds - before)
            else { continue }
            if time > now {
                next = min(next ?? time, time)
            } else if let failure = try of(id).last?.failure, let failing = try failingTime(of: id) {
                due.append(ExhaustedUpload(id: id, failure: failure, failing: failing, limit: most))
            }
        }
        return (due, next.map { tx.clocks.monotonic().advanced(by: .milliseconds($0 - now)) })
    }

    private func trouble(of id: String) throws -> Trouble? {
        try tx.connection.first(
            """
            SELECT trouble, troubled_at, min(max(attempt, 0), 1 << 40) + 1, max(acked, furthest) FROM upload
            WHERE id = ?1 AND trouble IS NOT NULL
            """, [.text(id)]
        ) { row in
            Trouble(
                code: Failure.Code(rawValue: row.text(0)), at: row.optionalInteger(1), attempt: row.integer(2),
                furthest: row.integer(3))
        }
    }
}

extension FailureTable where Access == Writing {
    func record(_ failure: Failure, _ upload: UploadRecord) throws {
        try tx.connection.run(
            "INSERT INTO failure (upload, generation, attempt, body) VALUES (?1, ?2, ?3, ?4)",
            [
                .text(upload.id), .integer(Int64(upload.generation)), .integer(Int64(upload.attempt + 1)),
                .text(try StoredJSON.encode(failure)),
            ])
        // A destination that is down for a week must not fill the disk with the same sentence.
        try tx.connection.run(
            """
            DELETE FROM failure WHERE upload = ?1 AND id NOT IN
            (SELECT id FROM failure WHERE upload = ?1 ORDER BY id DESC LIMIT 20)
            """, [.text(upload.id)])
    }

    /// Records why an upload waits, where nothing failed: only the last reason is kept, and it is no failed attempt.
    func recordWait(_ failure: Failure, _ upload: UploadRecord) throws {
        try tx.connection.run(
            "DELETE FROM failure WHERE upload = ?1 AND json_extract(body, '$.isWait') = 1", [.text(upload.id)])
        var wait = failure
        wait.isWait = true
        try record(wait, upload)
    }

    /// Records that attempts of uploads that this run holds begin. An attempt that follows a failure is announced, once
    /// for each failure. An attempt that continues after a pause or a crash counts as the same one. Durable when it
    /// returns.
    package func beginAttempts(_ ids: [String]) throws {
        for id in ids {
            try tx.connection.run(
                """
                UPDATE upload SET tried_again = 1
                WHERE id = ?1 AND state = 'uploading' AND trouble IS NOT NULL AND tried_again = 0
                """, [.text(id)])
            guard tx.connection.changes > 0, let trouble = try trouble(of: id) else { continue }
            try tx.events.append(.attempt(number: trouble.attempt, code: trouble.code), of: id)
        }
    }

    /// Records a failed attempt.
    ///
    /// - Parameter until: The end of the wait that follows from the failure; `nil` where that does not count as time of
    ///   failing.
    func recordTrouble(_ failure: Failure, of upload: UploadRecord, until: MonotonicTime? = nil) throws {
        let now = tx.session.currentRunTime
        let failing = try failingTime(of: upload) ?? 0
        let wait = until.map { max(0, ($0.nanoseconds - tx.clocks.monotonic().nanoseconds) / 1_000_000) } ?? 0
        tx.session.facts.failingTimes.fail(upload.id, of: upload.uploadClass, at: now, wait: wait)
        try tx.connection.run(
            """
            UPDATE upload SET trouble = ?2, troubled_at = ?3, tried_again = 0,
            failing_since = coalesce(failing_since, ?4), failed_for = ?5 WHERE id = ?1
            """,
            [
                .text(upload.id), .text(failure.code.rawValue), .integer(tx.clocks.wall().milliseconds),
                .integer(now), .integer(failing),
            ])
    }

    /// Called before its attempts are counted from zero. Announces that the upload has recovered, if it
    /// had failed.
    ///
    /// - Parameter acked: Bytes that are acknowledged now: only where these are more than ever before;
    ///   `nil` for all of them.
    func recordRecovery(of id: String, acked: Int64? = nil) throws {
        guard let trouble = try trouble(of: id), acked.map({ $0 > trouble.furthest }) ?? true else { return }
        try tx.connection.run(
            "UPDATE upload SET trouble = NULL, troubled_at = NULL, tried_again = 0 WHERE id = ?1", [.text(id)])
        // If the clock was set back meanwhile, the time is unknown.
        let elapsed = trouble.at.map { tx.clocks.wall().milliseconds - $0 }
        let seconds = elapsed.flatMap { $0 >= 0 ? $0 / 1000 : nil }
        try tx.events.append(.recovered(attempt: trouble.attempt, seconds: seconds), of: id)
    }
}

extension Transaction {
    package var failures: FailureTable<Access> { FailureTable(tx: self) }
}
