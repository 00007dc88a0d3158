package import Core

// Uploads that wait for a moment, and do not any more.

extension Store {
    /// When the first of the uploads that wait after a failure may go again whose wait is not over at `time`.
    package func nextBackoff(after time: MonotonicTime) throws -> MonotonicTime? {
        try connection.first(
            // Waits that are over are no deadlines: what holds such an upload now wakes by itself.
            """
            SELECT min(backoff_until) FROM upload INDEXED BY upload_backoff
            WHERE backoff_until > 0 AND backoff_until > ?1 AND state = 'queued'
            """, [.integer(time.nanoseconds)]
        ) { $0.optionalInteger(0) }.flatMap { $0 }.map { MonotonicTime(nanoseconds: $0) }
    }

    /// What waits after a failure may go at once.
    package func forgetWaits(for destination: String) async throws {
        try await change { connection in
            try connection.run(
                // By the index of those that wait: by that of the class it would read all uploads to the destination.
                """
                UPDATE upload INDEXED BY upload_backoff SET backoff_until = 0
                WHERE backoff_until > 0 AND destination = ?1
                """, [.text(destination)])
        }
    }

    /// These do not wait any longer.
    package func forgetWaits(of ids: [String]) async throws {
        try await change { connection in
            for id in ids { try connection.run("UPDATE upload SET backoff_until = 0 WHERE id = ?1", [.text(id)]) }
        }
    }

    /// What waits for this reason may go at once.
    ///
    /// - Parameter code: ``Failure/code`` of the last failure.
    package func forgetWaits(becauseOf code: String) async throws {
        let waiting = try connection.all(
            """
            SELECT id FROM upload INDEXED BY upload_backoff WHERE backoff_until > 0 AND ?1 =
            (SELECT json_extract(body, '$.code') FROM failure WHERE upload = upload.id ORDER BY id DESC LIMIT 1)
            """, [.text(code)]
        ) { $0.text(0) }
        if !waiting.isEmpty { try await forgetWaits(of: waiting) }
    }
}
