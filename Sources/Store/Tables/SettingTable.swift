package import Core

/// Rows of `setting`: single values by name. Speeds, request sizes, servers without `Expect` and exhausted quotas serve display
/// and plans only: correctness does not depend on them.
package struct SettingTable<Access> {
    let tx: Transaction<Access>

    func value(_ name: String) throws(StoreError) -> String? {
        try tx.connection.first("SELECT value FROM setting WHERE name = ?1", [.text(name)]) { $0.text(0) }
    }

    /// The time that daemons had run when it was last stored, in ms. See ``RunTime``.
    func runTime() throws -> Int64 { max(0, try value("ran").flatMap { Int64($0) } ?? 0) }

    /// The value that ``store(speed:to:)`` stored last; `nil` when there is none.
    package func speed(to destination: String) throws -> Int64? {
        try value("speed \(destination)").flatMap { Int64($0) }.flatMap { $0 > 0 ? $0 : nil }
    }

    /// Ends the value of a destination that refuses requests with bytes.
    private static var noBytes: String { "no-bytes" }

    /// The value that ``store(requestSize:to:at:)`` stored last.
    package func requestSize(to destination: String, at site: String) throws -> RequestSize? {
        let parts = (try value("request size \(destination)") ?? "").split(separator: " ", maxSplits: 4).map(
            String.init)
        guard parts.count >= 4, parts[3] == site, let most = Int64(parts[0]), let failed = Int64(parts[1]),
            let requiredRun = Int(parts[2])
        else { return nil }
        return RequestSize(
            most: most, failed: failed, requiredRun: requiredRun, refusesBytes: parts.dropFirst(4) == [Self.noBytes])
    }

    /// The value that ``store(originsWithoutExpect:)`` stored last.
    package func originsWithoutExpect() throws -> [String: WallTime] {
        let words = (try value("without expect") ?? "").split(separator: " ")
        let pairs = stride(from: 0, to: words.count - 1, by: 2).compactMap { at in
            Int64(words[at + 1]).map { (String(words[at]), WallTime(milliseconds: $0)) }
        }
        return Dictionary(pairs) { $1 }
    }

    /// The values that ``store(quotasUsedUp:)`` stored last.
    package func quotasUsedUp() throws -> [QuotaState.ExhaustedQuota: WallTime] {
        let rows = try tx.connection.all(
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

    /// The marks that ``announce(_:_:)`` stored last.
    package func quotaMarks() throws -> QuotaThresholds {
        let text = try value("quota marks")
        return text.flatMap { StoredJSON.decode(QuotaThresholds.self, json: $0) } ?? QuotaThresholds()
    }
}

extension SettingTable where Access == Writing {
    func set(_ name: String, _ value: String) throws(StoreError) {
        try tx.connection.run("INSERT OR REPLACE INTO setting VALUES (?1, ?2)", [.text(name), .text(value)])
    }

    func remove(_ name: String) throws(StoreError) {
        try tx.connection.run("DELETE FROM setting WHERE name = ?1", [.text(name)])
    }

    /// Stores how long daemons have run. Otherwise up to a minute would not count.
    package func storeRunTime() throws(StoreError) {
        let ran = tx.session.currentRunTime
        try set("ran", "\(ran)")
        tx.session.runTime.recordStored(ran)
    }

    /// Stores the speed to a destination, for a later start. Bytes a second.
    package func store(speed: Int64, to destination: String) throws {
        try set("speed \(destination)", "\(speed)")
    }

    /// Stores the bytes that one request to a destination may carry, where a larger one has failed; `nil` where none
    /// has.
    ///
    /// - Parameter site: The remote that this is known of: another remote under the same name does not inherit it.
    package func store(requestSize size: RequestSize?, to destination: String, at site: String) throws {
        let name = "request size \(destination)"
        guard let size else { return try remove(name) }
        let last = size.refusesBytes ? " " + Self.noBytes : ""
        try set(name, "\(size.most) \(size.failed) \(size.requiredRun) \(site)\(last)")
    }

    /// Stores the servers that refuse `Expect`, by the origin of their address, with the time of the refusal.
    package func store(originsWithoutExpect all: [String: WallTime]) throws {
        let text = all.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value.milliseconds)" }.joined(separator: " ")
        try set("without expect", text)
    }

    /// Stores since when quotas are used up: exactly these quotas.
    package func store(quotasUsedUp all: [QuotaState.ExhaustedQuota: WallTime]) throws {
        try tx.connection.run("DELETE FROM setting WHERE name >= 'used up ' AND name < 'used up!'")
        for (one, since) in all {
            try set("used up \(one.stretch.milliseconds) \(one.quota)", "\(since.milliseconds)")
        }
    }

    /// Writes an event for each reached share, and remembers that it was announced: one transaction, durable when it
    /// returns.
    package func announce(_ reached: [QuotaThresholds.Reached], _ marks: QuotaThresholds) throws {
        let text = try StoredJSON.encode(marks)
        for one in reached { try tx.events.append(.quotaReached(one)) }
        try set("quota marks", text)
    }
}

extension Transaction {
    package var settings: SettingTable<Access> { SettingTable(tx: self) }
}
