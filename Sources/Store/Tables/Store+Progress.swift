package import Core

// Progress and speed of waiting uploads, and the time since when a quota blocks. For people and plans only: correctness
// does not depend on it.

extension Store {
    /// Inside a transaction.
    func keep(sent: Int64, of id: String) throws {
        try connection.run("UPDATE upload SET sent = ?2 WHERE id = ?1", [.text(id), .integer(sent)])
    }

    /// Stores how far a running attempt has sent (``notedSent`` has the ids of such), so that it is known after a
    /// crash. Durable when it returns.
    package func note(sent: Int64, of id: String) async throws {
        try await change { _ in
            guard let upload = try self.upload(id), upload.state == .uploading, sent > upload.acked else { return }
            if self.notedSent.insert(id).inserted {
                try self.settleSent(of: upload)
                try self.keep(sent: sent, of: id)
            } else if sent > upload.sent {
                try self.keep(sent: sent, of: id)
            }
        }
    }

    /// Inside a transaction. Any acknowledged byte resets the budget of attempts.
    func keep(acked: Int64, of id: String) throws {
        try noteRecovery(of: id, acked: acked)
        try noteWaste(of: id, standingAt: acked, isUnderWay: notedSent.contains(id))
        try connection.run(
            """
            UPDATE upload SET attempt = CASE WHEN ?2 > acked THEN 0 ELSE attempt END,
            failing_since = CASE WHEN ?2 > acked THEN NULL ELSE failing_since END, acked = ?2, sent = ?2 WHERE id = ?1
            """, [.text(id), .integer(acked)])
    }

    /// Sent bytes of begun uploads that do not run. Reads only the begun uploads, which are few.
    package func bytesBegun() throws -> Int64 {
        try connection.first(
            """
            SELECT CAST(total(min(size, max(\(UploadRecord.reach), 0))) AS INTEGER)
            FROM checkpoint CROSS JOIN upload ON id = checkpoint.upload WHERE state = 'queued'
            """
        ) { $0.integer(0) } ?? 0
    }

    /// The number of begun uploads of a class that wait.
    package func begun(_ one: UploadClass) throws -> Int {
        try connection.first(
            """
            SELECT count(*) FROM checkpoint CROSS JOIN upload ON id = checkpoint.upload
            WHERE state = 'queued' AND folder = ?1 AND destination = ?2
            """, [.text(one.folder), .text(one.destination)]
        ) { Int($0.integer(0)) } ?? 0
    }

    /// Stores the speed to a destination, for a later start. Bytes a second.
    package func keep(speed: Int64, to destination: String) async throws {
        try await change { connection in
            try connection.run(
                "INSERT OR REPLACE INTO setting VALUES (?1, ?2)", [.text("speed \(destination)"), .text("\(speed)")])
        }
    }

    /// Stores the bytes that one request to a destination may carry, where a larger one has failed; `nil` where none
    /// has.
    ///
    /// - Parameter site: The remote that this is known of: another remote under the same name does not inherit it.
    package func keep(requestSize size: RequestSize?, to destination: String, at site: String) async throws {
        try await change { connection in
            let name = Connection.Value.text("request size \(destination)")
            guard let size else { return try connection.run("DELETE FROM setting WHERE name = ?1", [name]) }
            try connection.run(
                "INSERT OR REPLACE INTO setting VALUES (?1, ?2)",
                [name, .text("\(size.most) \(size.failed) \(size.patience) \(site)")])
        }
    }

    /// The value that ``keep(requestSize:to:at:)`` stored last.
    package func requestSize(to destination: String, at site: String) throws -> RequestSize? {
        let value = try connection.first(
            "SELECT value FROM setting WHERE name = ?1", [.text("request size \(destination)")]
        ) { $0.text(0) }
        let parts = (value ?? "").split(separator: " ", maxSplits: 3).map(String.init)
        guard parts.count == 4, parts[3] == site, let most = Int64(parts[0]), let failed = Int64(parts[1]),
            let patience = Int(parts[2])
        else { return nil }
        return RequestSize(most: most, failed: failed, patience: patience)
    }

    /// Stores since when quotas are used up: exactly these quotas.
    package func keep(quotasUsedUp all: [QuotaState.ExhaustedQuota: WallTime]) async throws {
        try await change { connection in
            try connection.run("DELETE FROM setting WHERE name >= 'used up ' AND name < 'used up!'")
            for (one, since) in all {
                try connection.run(
                    "INSERT OR REPLACE INTO setting VALUES (?1, ?2)",
                    [
                        .text("used up \(one.stretch.milliseconds) \(one.quota)"),
                        .text("\(since.milliseconds)"),
                    ])
            }
        }
    }

    /// The values that ``keep(quotasUsedUp:)`` stored last.
    package func quotasUsedUp() throws -> [QuotaState.ExhaustedQuota: WallTime] {
        let rows = try connection.all(
            "SELECT substr(name, 9), value FROM setting WHERE name >= 'used up ' AND name < 'used up!'"
        ) { (name: $0.text(0), since: $0.text(1)) }
        var all: [QuotaState.ExhaustedQuota: WallTime] = [:]
        for row in rows {
            let parts = row.name.split(separator: " ", maxSplits: 1)
            guard parts.count == 2, let stretch = Int64(parts[0]), let since = Int64(row.since) else { continue }
            all[QuotaState.ExhaustedQuota(quota: String(parts[1]), stretch: WallTime(milliseconds: stretch))] =
                WallTime(milliseconds: since)
        }
        return all
    }

    /// The value that ``keep(speed:to:)`` stored last; `nil` when there is none.
    package func speed(to destination: String) throws -> Int64? {
        try connection.first("SELECT value FROM setting WHERE name = ?1", [.text("speed \(destination)")]) {
            Int64($0.text(0))
        }.flatMap { $0 }.flatMap { $0 > 0 ? $0 : nil }
    }
}
