package import Core

/// One event that is still to be delivered to a hook.
package struct NoticeRecord: Sendable, Hashable {
    package struct Key: Sendable, Hashable {
        package var hook: String
        /// The number of the event.
        package var seq: Int64

        package init(hook: String, seq: Int64) {
            self.hook = hook
            self.seq = seq
        }
    }

    package var key: Key
    /// The time of the event.
    package var at: WallTime
    package var upload: String?
    package var tries: Int
    /// The time that it had waited at the last try, by the clock of the runs that it waited in.
    package var waited: Duration

    package init(key: Key, at: WallTime, upload: String?, tries: Int = 0, waited: Duration = .zero) {
        self.key = key
        self.at = at
        self.upload = upload
        self.tries = tries
        self.waited = waited
    }
}

// Delivered and pending notices of hooks.

/// Rows of `hook` and `notice`: events that are still to be delivered to hooks.
package struct NoticeTable<Access> {
    let tx: Transaction<Access>

    /// For each hook, the last event that it is done with, or that waits for it.
    package func hookMarks() throws -> [String: Int64] {
        Dictionary(
            try tx.connection.all("SELECT name, seq FROM hook") { ($0.text(0), $0.integer(1)) },
            uniquingKeysWith: { $1 })
    }

    /// All pending notices, oldest first.
    package func all() throws -> [NoticeRecord] {
        try tx.connection.all("SELECT hook, seq, at, upload, tries, waited FROM notice ORDER BY hook, seq") { row in
            NoticeRecord(
                key: .init(hook: row.text(0), seq: row.integer(1)), at: WallTime(milliseconds: row.integer(2)),
                upload: row.optionalText(3), tries: Int(clamping: row.integer(4)),
                waited: .milliseconds(max(0, row.integer(5))))
        }
    }

    /// The text of a notice; `nil` when it does not wait any more.
    package func body(of notice: NoticeRecord.Key) throws -> String? {
        try tx.connection.first(
            "SELECT body FROM notice WHERE hook = ?1 AND seq = ?2", [.text(notice.hook), .integer(notice.seq)]
        ) { $0.text(0) }
    }
}

extension NoticeTable where Access == Writing {
    /// Remembers these hooks and no others. A new hook begins after the event `seq`; pending notices for removed hooks
    /// are deleted. Durable when it returns; writes nothing where nothing changes.
    ///
    /// - Returns: The number of deleted notices.
    @discardableResult
    package func keepHooks(_ names: [String], from seq: Int64) throws -> Int {
        let known = try hookMarks()
        let (new, gone) = (Set(names).subtracting(known.keys), Set(known.keys).subtracting(names))
        if new.isEmpty, gone.isEmpty { return 0 }
        var forgotten = 0
        for name in gone {
            forgotten +=
                try tx.connection.first("SELECT count(*) FROM notice WHERE hook = ?1", [.text(name)]) {
                    Int($0.integer(0))
                } ?? 0
            try tx.connection.run("DELETE FROM notice WHERE hook = ?1", [.text(name)])
            try tx.connection.run("DELETE FROM hook WHERE name = ?1", [.text(name)])
        }
        for name in new {
            // An earlier hook of this name may have left these, if it was removed while a notice was being recorded
            // for it.
            try tx.connection.run("DELETE FROM notice WHERE hook = ?1", [.text(name)])
            try tx.connection.run("INSERT INTO hook VALUES (?1, ?2)", [.text(name), .integer(seq)])
        }
        return forgotten
    }

    /// Records notices for hooks, deletes those beyond the limit, and stores how far each hook has come: one
    /// transaction, durable when it returns.
    package func queue(
        _ notices: [(record: NoticeRecord, body: String)], dropping: [NoticeRecord.Key], marks: [String: Int64]
    ) throws {
        for (notice, body) in notices {
            try tx.connection.run(
                // A reload may have removed the hook meanwhile.
                """
                INSERT OR IGNORE INTO notice
                SELECT ?1, ?2, ?3, ?4, ?5, 0, 0 WHERE EXISTS (SELECT 1 FROM hook WHERE name = ?1)
                """,
                [
                    .text(notice.key.hook), .integer(notice.key.seq), .integer(notice.at.milliseconds),
                    .init(notice.upload), .text(body),
                ])
        }
        for key in dropping { try remove(key) }
        for (hook, seq) in marks {
            try tx.connection.run("UPDATE hook SET seq = max(seq, ?2) WHERE name = ?1", [.text(hook), .integer(seq)])
        }
    }

    /// Removes notices that were delivered, or given up.
    package func remove(_ keys: [NoticeRecord.Key]) throws {
        for key in keys { try remove(key) }
    }

    /// Records that one more try has failed.
    package func recordFailure(_ notice: NoticeRecord) throws {
        try tx.connection.run(
            "UPDATE notice SET tries = ?3, waited = ?4 WHERE hook = ?1 AND seq = ?2",
            [
                .text(notice.key.hook), .integer(notice.key.seq), .integer(Int64(notice.tries)),
                .integer(notice.waited.inMilliseconds),
            ])
    }

    private func remove(_ notice: NoticeRecord.Key) throws {
        try tx.connection.run(
            "DELETE FROM notice WHERE hook = ?1 AND seq = ?2", [.text(notice.hook), .integer(notice.seq)])
    }
}

extension Transaction {
    package var notices: NoticeTable<Access> { NoticeTable(tx: self) }
}
