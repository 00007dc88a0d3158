package import Core

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

private let day: Int64 = 86_400_000

/// Rows of `waste`: bytes that were sent in vain.
package struct WasteTable<Access> {
    let tx: Transaction<Access>

    /// Bytes of an upload that were sent in vain.
    package func of(_ id: String) throws -> Waste {
        let now = tx.clocks.wall().milliseconds
        let rows = try tx.connection.all("SELECT at, bytes FROM waste WHERE upload = ?1 ORDER BY at", [.text(id)]) {
            (at: $0.integer(0), bytes: $0.integer(1))
        }
        // If the clock was set back by more than a day, that day is unknown.
        let today = rows.filter { $0.at > 0 && abs($0.at.subtractingReportingOverflow(now).partialValue) < day }
        let left = try tx.connection.first(
            "SELECT max(0, sent - acked), acked FROM upload WHERE id = ?1", [.text(id)]
        ) { (unsettled: $0.integer(0), acked: $0.integer(1)) }
        // Bytes of a running upload are not in vain yet.
        return Waste(
            total: Self.sum(rows.map(\.bytes)), today: Self.sum(today.map(\.bytes)),
            since: today.first.map { WallTime(milliseconds: $0.at) },
            unsettled: tx.session.facts.uploadsWithNotedProgress.contains(id) ? 0 : left?.unsettled ?? 0,
            startsOver: left?.acked == 0)
    }

    /// Uploads that wait to be sent and may have wasted bytes, with the time of their last failure or, if that is later, of
    /// the last wasted bytes.
    package func waiting() throws -> [(upload: UploadRecord, waste: Waste, since: WallTime)] {
        let ids = try tx.connection.all("SELECT DISTINCT upload FROM waste") { $0.text(0) }
        return try Set(ids).union(tx.session.facts.waitedBefore).compactMap { id in
            guard let upload = try tx.uploads.find(id), upload.state == .queued else { return nil }
            let since = try tx.connection.first(
                """
                SELECT max(coalesce(troubled_at, 0), (SELECT coalesce(max(at), 0) FROM waste WHERE upload = ?1))
                FROM upload WHERE id = ?1
                """, [.text(id)]
            ) { $0.integer(0) }
            return (upload, try of(id), WallTime(milliseconds: since ?? 0))
        }
    }

    private static func sum(_ numbers: [Int64]) -> Int64 {
        numbers.reduce(0) { min($0.addingReportingOverflow(max(0, $1)).partialValue, 1 << 60) }
    }

    /// A warning for a person about an upload that has cost more than its file.
    func warnings(about upload: UploadRecord) throws -> [String] {
        let wasted = try of(upload.id).total
        guard wasted >= max(upload.size / 10, 1_000_000) else { return [] }
        return ["\(wasted) bytes were sent in vain before: the remote did not keep them"]
    }
}

extension WasteTable where Access == Writing {
    /// Called before the upload is known to stand at `acked`: bytes that were sent beyond that went in
    /// vain.
    ///
    /// - Parameter isUnderWay: Whether the bytes beyond that may be on their way.
    func record(of id: String, standingAt acked: Int64, isUnderWay: Bool = false) throws {
        let column = isUnderWay ? "acked" : "max(acked, sent)"
        let reach = try tx.connection.first("SELECT \(column) FROM upload WHERE id = ?1", [.text(id)]) { $0.integer(0) }
        if let reach, reach > acked { try add(reach - max(0, acked), of: id) }
    }

    func add(_ bytes: Int64, of id: String) throws {
        let now = tx.clocks.wall().milliseconds
        // Older waste is combined in one row.
        try tx.connection.run(
            """
            INSERT INTO waste SELECT ?1, 0, sum(bytes) FROM waste WHERE upload = ?1 AND at > 0 AND at <= ?2
            HAVING count(*) > 0 ON CONFLICT DO UPDATE SET bytes = waste.bytes + excluded.bytes
            """, [.text(id), .integer(now - day)])
        try tx.connection.run(
            "DELETE FROM waste WHERE upload = ?1 AND at > 0 AND at <= ?2", [.text(id), .integer(now - day)])
        try tx.connection.run(
            "INSERT INTO waste VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET bytes = waste.bytes + excluded.bytes",
            [.text(id), .integer(max(1, now)), .integer(bytes)])
    }

    /// An attempt has sent bytes from `acked` on, and the remote did not confirm those of the one
    /// before.
    func settleSent(of upload: UploadRecord) throws {
        if upload.sent > upload.acked { try add(upload.sent - upload.acked, of: upload.id) }
    }
}

extension Transaction {
    package var waste: WasteTable<Access> { WasteTable(tx: self) }
}
