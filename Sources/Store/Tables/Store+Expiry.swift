package import Core

// Uploads that have waited too long.

extension Store {
    /// The waiting uploads of one class that are too old, and the time when the next one will be.
    ///
    /// The oldest are checked: an upload that was made before another has the lower id. An upload that a person began
    /// again does not get too old.
    ///
    /// - Parameters:
    ///   - oldest: No correct clock shows an earlier time.
    ///   - most: Limit of the answer; if there are fewer, these are all.
    package func aged(
        _ upload: UploadClass, by expiry: Expiry, oldest: WallTime, most: Int
    ) throws -> (ids: [String], next: WallTime?) {
        let (now, run) = (clocks.wall(), clocks.monotonic().since(openedAt))
        var ids: [String] = []
        var times: [WallTime] = []
        for state in [UploadState.queued, .staging] {
            let rows = try connection.all(
                """
                SELECT id, created_at FROM upload INDEXED BY upload_class
                WHERE destination = ?1 AND folder = ?2 AND state = ?3 AND generation = 1 ORDER BY id LIMIT ?4
                """,
                [
                    .text(upload.destination), .text(upload.folder), .text(state.rawValue),
                    .integer(Int64(most - ids.count)),
                ]
            ) { (id: $0.text(0), found: WallTime(milliseconds: $0.integer(1))) }
            for row in rows {
                let due = expiry.due(
                    found: row.found, isOfRun: row.id > lastOfBefore || row.found < oldest, now: now, run: run)
                if due <= now { ids.append(row.id) } else { times.append(due) }
            }
        }
        return (ids, times.min())
    }

    /// Ends uploads that are too old, unless they are running by now or have ended: as a cancel does, with a failure
    /// that tells the reason. One transaction.
    ///
    /// - Returns: Those that it ended.
    package func expire(_ ids: [String]) async throws -> [UploadRow] {
        try await change { _ in
            try ids.compactMap { id in
                guard let row = try self.row(id), row.upload.state == .queued || row.upload.state == .staging,
                    row.upload.generation == 1
                else { return nil }
                let failure = Failure(
                    .local, code: Expiry.code,
                    message:
                        "it was found at \(row.upload.createdAt), which is longer ago than expires_after allows: it "
                        + "is not sent any more, and its source stays",
                    at: self.clocks.wall(), retryable: false)
                try self.note(failure, row.upload)
                try self.abandon(row.upload, code: Expiry.code)
                try self.dropUnneeded(row.upload.asset)
                return row
            }
        }
    }

    /// Whether it ended because of its age, or because `before_upload` rejected it: no person asked for that by name.
    func isUnasked(_ upload: UploadRecord) throws -> Bool {
        guard upload.ending == .cancelled, let row = try row(upload.id) else { return false }
        return row.isExpired || row.isSkipped
    }
}
