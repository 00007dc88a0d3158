package import Core

// Bytes that were sent in vain, and since when an upload fails.

extension Schema {
    static let waste = """
        -- Bytes of an upload that were sent, and that the remote has not kept.
        CREATE TABLE waste (
            upload TEXT NOT NULL REFERENCES upload (id),
            at INTEGER NOT NULL,                   -- ms since 1970; 0: longer ago than a day
            bytes INTEGER NOT NULL,
            PRIMARY KEY (upload, at)
        ) STRICT, WITHOUT ROWID;
        -- By the time that the daemon has run, ms: when it failed first since bytes of it were taken.
        ALTER TABLE upload ADD COLUMN failing_since INTEGER;
        """
}

extension Store {
    /// Writes down how long daemons have run, when this one stops: else as much as a minute of it would not count. Durable when it returns.
    package func keepRun() async throws { try await change { _ in try self.storeRun() } }

    private static let day: Int64 = 86_400_000

    /// What was sent of an upload in vain.
    package func waste(of id: String) throws -> Waste {
        let now = clocks.wall().milliseconds
        let rows = try connection.all("SELECT at, bytes FROM waste WHERE upload = ?1 ORDER BY at", [.text(id)]) {
            (at: $0.integer(0), bytes: $0.integer(1))
        }
        // A clock that was set back for longer than a day knows nothing of that day.
        let today = rows.filter { $0.at > 0 && abs($0.at.subtractingReportingOverflow(now).partialValue) < Self.day }
        let left = try connection.first(
            "SELECT max(0, sent - acked), acked FROM upload WHERE id = ?1", [.text(id)]
        ) { (unsettled: $0.integer(0), acked: $0.integer(1)) }
        // What runs is not in vain yet.
        return Waste(
            total: Self.sum(rows.map(\.bytes)), today: Self.sum(today.map(\.bytes)),
            since: today.first.map { WallTime(milliseconds: $0.at) },
            unsettled: notedSent.contains(id) ? 0 : left?.unsettled ?? 0,
            beginsAnew: left?.acked == 0)
    }

    private static func sum(_ numbers: [Int64]) -> Int64 {
        numbers.reduce(0) { min($0.addingReportingOverflow(max(0, $1)).partialValue, 1 << 60) }
    }

    /// Inside a transaction, before the upload is known to stand at `acked`: what was sent beyond that went in vain.
    ///
    /// - Parameter isUnderWay: The bytes beyond that may be on their way.
    func noteWaste(of id: String, standingAt acked: Int64, isUnderWay: Bool = false) throws {
        let column = isUnderWay ? "acked" : "max(acked, sent)"
        let reach = try connection.first("SELECT \(column) FROM upload WHERE id = ?1", [.text(id)]) { $0.integer(0) }
        if let reach, reach > acked { try noteWaste(reach - max(0, acked), of: id) }
    }

    /// Inside a transaction.
    func noteWaste(_ bytes: Int64, of id: String) throws {
        let now = clocks.wall().milliseconds
        // What is long ago is one row.
        try connection.run(
            """
            INSERT INTO waste SELECT ?1, 0, sum(bytes) FROM waste WHERE upload = ?1 AND at > 0 AND at <= ?2
            HAVING count(*) > 0 ON CONFLICT DO UPDATE SET bytes = waste.bytes + excluded.bytes
            """, [.text(id), .integer(now - Self.day)])
        try connection.run(
            "DELETE FROM waste WHERE upload = ?1 AND at > 0 AND at <= ?2", [.text(id), .integer(now - Self.day)])
        try connection.run(
            "INSERT INTO waste VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET bytes = waste.bytes + excluded.bytes",
            [.text(id), .integer(max(1, now)), .integer(bytes)])
    }

    /// What a person should know of an upload that has cost more than its file.
    func whatWentInVain(_ upload: UploadRecord) throws -> [String] {
        let wasted = try waste(of: upload.id).total
        guard wasted >= max(upload.size / 10, 1_000_000) else { return [] }
        return ["\(wasted) bytes were sent in vain before: the remote did not keep them"]
    }

    /// Inside a transaction. An attempt has sent bytes from `acked` on, and nothing was heard of those of the one before.
    func settleSent(of upload: UploadRecord) throws {
        if upload.sent > upload.acked { try noteWaste(upload.sent - upload.acked, of: upload.id) }
    }
}
