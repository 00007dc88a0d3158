package import Core
internal import Linux

/// More than any real amount, and twice as much is still a valid number. A row that a disk has damaged must not
/// make every sum with it fail, or uploads could not end any more.
private let maxBytes: Int64 = 4_000_000_000_000_000_000

/// Days for which hours are kept; then they become one row for their day.
private let daysByHour: Int64 = 40
/// Days with entries that are kept beyond that.
private let keptDays: Int64 = 360

/// Rows of `usage` and `usage_step`: bytes sent and received, by account, network and time.
///
/// Two rules ensure that it never under-reports. Bytes of a transfer are reserved before they are sent, in a row of
/// their own. A row that still exists when the database is opened counts as sent, since the opposite cannot be known.
/// And settled bytes count in the hour of their end: the period in which bytes may still be spent includes them.
package struct LedgerTable<Access> {
    let tx: Transaction<Access>

    private static func sane(_ column: String) -> String { "max(0, min(\(column), \(maxBytes)))" }

    /// The current hour.
    var hour: Range<WallTime> { Period.hour.interval(around: tx.clocks.wall(), in: tx.session.zone) }

    /// Settled bytes that were sent since then. Bytes dated later than now count as well: the clock was set back, and
    /// that grants no bytes a second time.
    ///
    /// - Parameters:
    ///   - destination: Only bytes to this destination; `nil` for all.
    ///   - folder: Only bytes from this folder; `nil` for all.
    ///   - networks: Only bytes over these networks; `nil` for all traffic.
    package func spent(
        since: WallTime, destination: String? = nil, folder: String? = nil, networks: Set<NetworkClass>? = nil
    ) throws -> Spending {
        // A row counts when one of its two hours is past and not before then, or when both are in the future. No period
        // is longer than a day of 25 hours.
        try tx.connection.first(
            """
            SELECT CAST(total(max(bytes, 0)) AS INTEGER), CAST(total(max(files, 0)) AS INTEGER),
                CAST(total(max(received, 0)) AS INTEGER) FROM (
                SELECT bytes, files, received, destination, folder, network FROM usage
                WHERE hour > ?1 - 90000000 AND ends > ?1 AND (hour <= ?2 OR counted IS NULL OR counted > ?2)
                UNION ALL
                SELECT bytes, files, received, destination, folder, network FROM usage INDEXED BY usage_counted
                WHERE counted > ?1 - 3600000 AND counted <= ?2 AND hour > ?2
            ) WHERE (?3 IS NULL OR destination = ?3) AND (?4 IS NULL OR folder = ?4)
            AND (network IN (?5, ?6, ?7, ?8, ?9, ?10) OR ?6 <> '' AND network NOT IN (\(NetworkClass.inSQL)))
            """,
            [.integer(since.milliseconds), .integer(tx.clocks.wall().milliseconds)]
                + Self.filter(destination, folder, networks)
        ) { Spending(bytes: $0.integer(0), received: $0.integer(2), files: $0.integer(1)) } ?? .none
    }

    /// The amount that was spent in the period of a quota.
    package func spent(for recount: QuotaState.Recount) throws -> Spending {
        if let account = recount.name?.account {
            return try spent(
                since: recount.since, destination: account.destination, folder: account.folder, networks: [.quota])
        }
        return try spent(
            since: recount.since, destination: recount.destination, folder: recount.folder,
            networks: NetworkClass.counting)
    }

    /// The amount of a quota that is reserved now.
    package func reserved(for recount: QuotaState.Recount) throws -> Spending {
        if let name = recount.name { return try reserved(by: name) }
        return try reserved(
            destination: recount.destination, folder: recount.folder, networks: NetworkClass.counting)
    }

    /// Bytes that are reserved now and charged to a quota with a condition.
    func reserved(by name: QuotaName) throws -> Spending {
        try tx.connection.first(
            """
            SELECT CAST(total(max(bytes, 0)) AS INTEGER), CAST(total(max(files, 0)) AS INTEGER),
                CAST(total(max(received, 0)) AS INTEGER) FROM usage_step
            WHERE instr(char(10) || quotas || char(10), char(10) || ?1 || char(10)) > 0
            """, [.text(name.key)]
        ) { Spending(bytes: $0.integer(0), received: $0.integer(2), files: $0.integer(1)) } ?? .none
    }

    /// Bytes that are reserved now.
    package func reserved(
        destination: String? = nil, folder: String? = nil, networks: Set<NetworkClass>? = nil
    ) throws -> Spending {
        try tx.connection.first(
            """
            SELECT CAST(total(max(bytes, 0)) AS INTEGER), CAST(total(max(files, 0)) AS INTEGER),
                CAST(total(max(received, 0)) AS INTEGER) FROM usage_step
            WHERE (?1 IS NULL OR destination = ?1) AND (?2 IS NULL OR folder = ?2)
            AND (network IN (?3, ?4, ?5, ?6, ?7, ?8) OR ?4 <> '' AND network NOT IN (\(NetworkClass.inSQL)))
            """, Self.filter(destination, folder, networks)
        ) { Spending(bytes: $0.integer(0), received: $0.integer(2), files: $0.integer(1)) } ?? .none
    }

    private static func filter(
        _ destination: String?, _ folder: String?, _ networks: Set<NetworkClass>?
    ) -> [Connection.Value] {
        let networks = networks ?? NetworkClass.traffic
        return [.init(destination), .init(folder)]
            + NetworkClass.allCases.map { .text(networks.contains($0) ? $0.rawValue : "") }
    }

    /// Settled bytes that were sent since then, the oldest first. Rows dated later than now keep the hour in which they
    /// were counted.
    package func usage(since: WallTime) throws -> [UsageRow] {
        try tx.connection.all(
            """
            SELECT CASE WHEN hour <= ?2 THEN hour ELSE min(coalesce(counted, ?2), ?2) END AS at,
            destination, folder, network, bytes, files, received FROM usage
            WHERE hour > ?1 - 90000000 AND at >= ?1 AND network <> 'quota' ORDER BY at
            """, [.integer(since.milliseconds), .integer(tx.clocks.wall().milliseconds)]
        ) { row in
            UsageRow(
                at: WallTime(milliseconds: row.integer(0)),
                account: SpendingAccount(
                    destination: row.text(1), folder: row.text(2).isEmpty ? nil : row.text(2),
                    network: NetworkClass(rawValue: row.text(3)) ?? .unknown),
                spending: Spending(bytes: row.integer(4), received: row.integer(6), files: row.integer(5)))
        }
    }

    /// The first day whose hours are kept. Older hours become one row for their day.
    var firstDayByHour: Int64 {
        let today = Period.day.interval(around: tx.clocks.wall(), in: tx.session.zone).lowerBound.milliseconds
        return today - daysByHour * 86_400_000
    }

    /// The last of the days that are to be deleted: by their number and not by their age. A clock that shows the year
    /// 2099 for a moment must not delete rows that count today.
    func lastDayToDelete(before cutoff: Int64) throws -> Int64? {
        try tx.connection.first(
            "SELECT DISTINCT hour FROM usage WHERE hour < ?1 ORDER BY hour DESC LIMIT 1 OFFSET ?2",
            [.integer(cutoff), .integer(keptDays)]
        ) { $0.integer(0) }
    }

    /// Whether rows are dated later than now, and count only then.
    func hasFutureRows() throws -> Bool {
        try tx.connection.first(
            "SELECT 1 FROM usage WHERE hour > ?1 AND (counted IS NULL OR counted > ?1) LIMIT 1",
            [.integer(tx.clocks.wall().milliseconds)]
        ) { _ in true } == true
    }

    func oldestHour(before cutoff: Int64) throws -> WallTime? {
        try tx.connection.first(
            "SELECT hour FROM usage WHERE hour < ?1 AND ends - hour <= 3600000 ORDER BY hour LIMIT 1",
            [.integer(cutoff)]
        ) { WallTime(milliseconds: $0.integer(0)) }
    }

}

extension LedgerTable where Access == Writing {
    /// Gives back the unsent bytes of a step, or counts the bytes beyond it.
    package func close(_ step: StoredReservation, _ actual: Spending) throws {
        try pay([Payment(closing: step, actual)])
    }

    /// Takes over a row of a damaged database: the values of all columns.
    func insertSalvaged(_ row: [Connection.Value]) throws {
        try tx.connection.run("INSERT OR IGNORE INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)", row)
    }

    /// Enters sent bytes, and reserves those to be sent next: one transaction.
    ///
    /// - Returns: A step for each reservation.
    @discardableResult
    package func pay(_ payments: [Payment], reserving reservations: [Reservation] = []) throws -> [StoredReservation] {
        if payments.isEmpty && reservations.isEmpty { return [] }
        for payment in payments { try enter(payment) }
        return try reservations.map { try open($0) }
    }

    /// Counts `reservation` as sent until it is settled. Durable when it returns: then the first of its bytes may
    /// leave.
    package func reserve(_ reservation: Reservation) throws -> StoredReservation {
        try open(reservation)
    }

    /// see ``reserve(_:)``.
    func open(_ reservation: Reservation) throws -> StoredReservation {
        let (account, spending) = (reservation.account, reservation.spending)
        try tx.connection.run(
            """
            INSERT INTO usage_step (hour, destination, folder, network, bytes, files, links, received, quotas)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
            """,
            [
                .integer(hour.lowerBound.milliseconds), .text(account.destination), .text(account.folder ?? ""),
                .text(account.network.rawValue), .integer(max(0, spending.bytes)), .integer(max(0, spending.files)),
                .init(reservation.links { tx.session.linkBytes(.now) }), .integer(max(0, spending.received)),
                .init(reservation.quotasText),
            ])
        return StoredReservation(id: tx.connection.lastRow, account: account, spending: spending)
    }

    /// Enters a payment. A payment for a step that is settled already is ignored.
    func enter(_ payment: Payment) throws {
        var quotas = payment.quotas
        if let step = payment.step {
            let charged = try tx.connection.first(
                "DELETE FROM usage_step WHERE id = ?1 RETURNING quotas", [.integer(step.id)]
            ) { Reservation.quotas(inText: $0.optionalText(0)) }
            guard let charged else { return }
            quotas = charged
        }
        try enter(payment.spending, payment.account, quotas, hour)
    }

    /// Enters bytes of an account, and the same for each of the quotas with conditions that count them.
    func enter(
        _ spending: Spending, _ account: SpendingAccount, _ quotas: Set<QuotaName>, _ hour: Range<WallTime>
    ) throws {
        try enter(spending, account, hour)
        for name in quotas {
            try enter(spending, name.account, hour)
            try interfaces.noteEntry(spending, of: name)
        }
    }

    /// Sets the usage of a quota with a condition in its present period, without reservations.
    ///
    /// - Parameter recount: The quota, with the beginning of its period.
    package func set(_ recount: QuotaState.Recount, to spending: Spending) throws {
        guard let account = recount.name?.account else { return }
        // Every row that counts in the period, whichever of its two hours is the reason.
        try tx.connection.run(
            """
            DELETE FROM usage WHERE network = 'quota' AND destination = ?1 AND folder = ?2
            AND (ends > ?3 OR counted > ?3 - 3600000)
            """,
            [.text(account.destination), .init(account.folder), .integer(recount.since.milliseconds)])
        try enter(spending, account, hour)
    }

    func enter(_ spending: Spending, _ account: SpendingAccount, _ hour: Range<WallTime>) throws {
        guard spending.bytes > 0 || spending.files > 0 || spending.received > 0 else { return }
        try tx.connection.run(
            """
            INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, received)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
            ON CONFLICT DO UPDATE SET bytes = \(Self.sane("bytes")) + ?6, files = \(Self.sane("files")) + ?7,
                received = \(Self.sane("received")) + ?8
            """,
            [
                .integer(hour.lowerBound.milliseconds), .integer(hour.upperBound.milliseconds),
                .text(account.destination), .text(account.folder ?? ""), .text(account.network.rawValue),
                .integer(min(maxBytes, max(0, spending.bytes))), .integer(min(maxBytes, max(0, spending.files))),
                .integer(min(maxBytes, max(0, spending.received))),
            ])
    }

    func delete(upTo last: Int64) throws {
        try tx.connection.run("DELETE FROM usage WHERE hour <= ?1", [.integer(last)])
    }

    func combineDay(of hour: WallTime) throws {
        let day = Period.day.interval(around: hour, in: tx.session.zone)
        let range: [Connection.Value] = [.integer(day.lowerBound.milliseconds), .integer(day.upperBound.milliseconds)]
        let sums = try tx.connection.all(
            """
            SELECT max(ends), destination, folder, network, CAST(total(max(bytes, 0)) AS INTEGER), CAST(total(max(files, 0)) AS INTEGER),
                CAST(total(max(received, 0)) AS INTEGER)
            FROM usage WHERE hour >= ?1 AND hour < ?2 GROUP BY destination, folder, network
            """, range
        ) { row in
            (
                ends: row.integer(0),
                key: [row.text(1), row.text(2), row.text(3)].map { Connection.Value.text($0) },
                sums: [row.integer(4), row.integer(5), row.integer(6)].map { Connection.Value.integer($0) }
            )
        }
        try tx.connection.run("DELETE FROM usage WHERE hour >= ?1 AND hour < ?2", range)
        for row in sums {
            try tx.connection.run(
                """
                INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, received)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                """,
                [range[0], .integer(max(row.ends, day.upperBound.milliseconds))] + row.key + row.sums)
        }
    }

    /// rows dated later than now count in this hour from now on, and are past when it is. They
    /// keep their own hour as well: if that was right after all, they count in it then.
    func countFutureRows() throws {
        let now = tx.clocks.wall().milliseconds
        try tx.connection.run(
            "UPDATE usage SET counted = ?1 WHERE hour > ?2 AND (counted IS NULL OR counted > ?2)",
            [.integer(hour.lowerBound.milliseconds), .integer(now)])
    }
}

extension Transaction {
    package var ledger: LedgerTable<Access> { LedgerTable(tx: self) }
}

extension NetworkClass {
    /// Every class of this program, for SQL. A stored one that is not among them counts as `unknown`, the second of them.
    fileprivate static let inSQL = allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
}
