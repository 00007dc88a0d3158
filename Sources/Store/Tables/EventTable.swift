internal import Core

/// Rows of `event`: a ring of what happened, for readers and hooks.
package struct EventTable<Access> {
    let tx: Transaction<Access>

    /// Events after `seq`, oldest first.
    package func list(after seq: Int64, limit: Int) throws -> [EventRecord] {
        try tx.connection.all(
            "SELECT seq, at, type, upload, detail FROM event WHERE seq > ?1 AND seq <= ?3 ORDER BY seq LIMIT ?2",
            // Only committed events: an event that a crash takes back must not have been seen.
            [.integer(seq), .integer(Int64(limit)), .integer(tx.session.committedEvent)]
        ) { row in
            EventRecord(
                seq: row.integer(0), at: WallTime(milliseconds: row.integer(1)), type: EventType(rawValue: row.text(2)),
                upload: row.optionalText(3), detail: TextMap.map(row.text(4)) ?? [:])
        }
    }

    /// The number of the oldest event that still exists; 0 when there never was one.
    package func oldest() throws -> Int64 {
        try tx.connection.first("SELECT min(seq) FROM event") { $0.integer(0) } ?? 0
    }

    /// The number of the newest event in the database; 0 when there never was one.
    func newest() throws -> Int64 { try tx.connection.first("SELECT max(seq) FROM event") { $0.integer(0) } ?? 0 }
}

extension EventTable where Access == Writing {
    /// The types whose events stay for a day, for SQL.
    private static var keptLonger: String {
        let types: [EventType] = [.completed, .failed, .cancelled, .removed, .flushed]
        return types.map { "'\($0.rawValue)'" }.joined(separator: ", ")
    }

    /// Writes an event. The table is a ring: old events are deleted, several at a time.
    package func append(_ event: Event, of upload: String? = nil) throws {
        let detail = Dictionary(event.detail.map { ($0.key.rawValue, $0.value) }, uniquingKeysWith: { $1 })
        try tx.connection.run(
            "INSERT INTO event (at, type, upload, detail) VALUES (?1, ?2, ?3, ?4)",
            [
                .integer(tx.clocks.wall().milliseconds), .text(event.type.rawValue), .init(upload),
                .text(TextMap.text(detail)),
            ])
        let last = tx.connection.lastRow
        tx.session.facts.storedEvent = last
        tx.session.facts.changes.insert(.events)
        guard last % 256 == 0 else { return }
        try tx.connection.run(
            """
            DELETE FROM event WHERE seq > ?1 AND seq <= ?2
            AND type NOT IN (\(Self.keptLonger))
            """, [.integer(last - 11_024), .integer(last - 10_000)])
        // Endings stay for a day.
        try tx.connection.run(
            "DELETE FROM event WHERE seq IN (SELECT seq FROM event ORDER BY seq LIMIT 1024) AND seq <= ?1 AND at < ?2",
            [.integer(last - 10_000), .integer(tx.clocks.wall().milliseconds - 86_400_000)])
    }
}

extension Transaction {
    package var events: EventTable<Access> { EventTable(tx: self) }
}
