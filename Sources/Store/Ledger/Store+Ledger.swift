package import Core
package import Linux

// The ledger: bytes sent and received, by account, network and time.
//
// Two rules ensure that it never under-reports. Bytes of a transfer are reserved before they are sent, in a row of
// their own. A row that still exists when the database is opened counts as sent, since the opposite cannot be known.
// And settled bytes count in the hour of their end: the period in which bytes may still be spent includes them.

/// Bytes to be reserved.
package struct Reservation: Sendable, Hashable {
    package var account: SpendingAccount
    package var spending: Spending

    /// The time when the last byte was counted that is entered as spent. The bytes that links have sent since then
    /// limit the bytes that may have left of this reservation.
    package enum Since: Sendable, Hashable {
        /// No bytes were sent before.
        case now
        /// The links' counters at that time; `nil` where they are not known.
        case counted(LinkBytes?)
    }

    package var since: Since

    package init(_ account: SpendingAccount, _ spending: Spending, since: Since = .now) {
        self.account = account
        self.spending = spending
        self.since = since
    }

    /// As text, for a later start that may give some of it back.
    fileprivate func links(_ now: () -> LinkBytes?) -> String? {
        switch since {
        case .now: now()?.text
        case .counted(let links): links?.text
        }
    }
}

/// A reservation that is to be settled.
package struct ReservedStep: Sendable, Hashable {
    /// Never used again.
    package let id: Int64
    package let account: SpendingAccount
    package let spending: Spending
}

/// Sent bytes that are to be entered.
package struct Payment: Sendable, Hashable {
    /// `nil` if nothing was reserved.
    package let step: ReservedStep?
    package let account: SpendingAccount
    package let spending: Spending

    /// Bytes that were sent without a reservation.
    package init(_ account: SpendingAccount, _ spending: Spending) {
        step = nil
        self.account = account
        self.spending = spending
    }

    /// Replaces the reservation by the bytes that were sent: fewer, or more.
    package init(settling step: ReservedStep, _ actual: Spending) {
        self.step = step
        account = step.account
        spending = actual
    }
}

extension Store {
    // MARK: Paying

    /// Enters sent bytes, and reserves those to be sent next: one transaction. Durable when it returns.
    ///
    /// - Returns: A step for each reservation.
    @discardableResult
    package func pay(_ payments: [Payment], reserving reservations: [Reservation] = []) async throws -> [ReservedStep] {
        if payments.isEmpty && reservations.isEmpty { return [] }
        return try await change { _ in
            for payment in payments { try self.enter(payment) }
            return try reservations.map { try self.open($0) }
        }
    }

    /// Counts `reservation` as sent until it is settled. Durable when it returns: then the first of its bytes may
    /// leave.
    package func reserve(_ reservation: Reservation) async throws -> ReservedStep {
        try await change { _ in try self.open(reservation) }
    }

    /// Gives back the unsent bytes of a step, or counts the bytes beyond it.
    package func settle(_ step: ReservedStep, _ actual: Spending) async throws {
        try await pay([Payment(settling: step, actual)])
    }

    /// Inside a transaction: see ``reserve(_:)``.
    func open(_ reservation: Reservation) throws -> ReservedStep {
        let (account, spending) = (reservation.account, reservation.spending)
        try connection.run(
            """
            INSERT INTO usage_step (hour, destination, folder, network, bytes, files, links, received)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
            """,
            [
                .integer(hour.lowerBound.milliseconds), .text(account.destination), .text(account.folder ?? ""),
                .text(account.network.rawValue), .integer(max(0, spending.bytes)), .integer(max(0, spending.files)),
                .init(reservation.links { linkBytes(.now) }), .integer(max(0, spending.received)),
            ])
        return ReservedStep(id: connection.lastRow, account: account, spending: spending)
    }

    /// Inside a transaction: enters a payment. A payment for a step that is settled already is ignored.
    func enter(_ payment: Payment) throws {
        if let step = payment.step {
            let isOpen = try connection.first("DELETE FROM usage_step WHERE id = ?1 RETURNING id", [.integer(step.id)])
            {
                _ in true
            }
            guard isOpen == true else { return }
        }
        try enter(payment.spending, payment.account, hour)
    }

    func enter(_ spending: Spending, _ account: SpendingAccount, _ hour: Range<WallTime>) throws {
        guard spending.bytes > 0 || spending.files > 0 || spending.received > 0 else { return }
        try connection.run(
            """
            INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, received)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
            ON CONFLICT DO UPDATE SET bytes = \(Self.sane("bytes")) + ?6, files = \(Self.sane("files")) + ?7,
                received = \(Self.sane("received")) + ?8
            """,
            [
                .integer(hour.lowerBound.milliseconds), .integer(hour.upperBound.milliseconds),
                .text(account.destination), .text(account.folder ?? ""), .text(account.network.rawValue),
                .integer(min(Self.most, max(0, spending.bytes))), .integer(min(Self.most, max(0, spending.files))),
                .integer(min(Self.most, max(0, spending.received))),
            ])
    }

    /// More than any real amount, and twice as much is still a valid number. A row that a disk has damaged must not
    /// make every sum with it fail, or uploads could not end any more.
    private static let most: Int64 = 4_000_000_000_000_000_000
    private static func sane(_ column: String) -> String { "max(0, min(\(column), \(most)))" }

    /// The current hour.
    private var hour: Range<WallTime> { Period.hour.interval(around: clocks.wall(), in: zone) }

    // MARK: Queries

    /// Settled bytes that were sent since then. Bytes dated later than now count as well: the clock was set back, and
    /// that grants no bytes a second time.
    ///
    /// - Parameters:
    ///   - destination: Only bytes to this destination; `nil` for all.
    ///   - folder: Only bytes from this folder; `nil` for all.
    ///   - networks: Only bytes over these networks; `nil` for all.
    package func spent(
        since: WallTime, destination: String? = nil, folder: String? = nil, networks: Set<NetworkClass>? = nil
    ) throws -> Spending {
        // A row counts when one of its two hours is past and not before then, or when both are in the future. No period
        // is longer than a day of 25 hours.
        try connection.first(
            """
            SELECT CAST(total(max(bytes, 0)) AS INTEGER), CAST(total(max(files, 0)) AS INTEGER),
                CAST(total(max(received, 0)) AS INTEGER) FROM (
                SELECT bytes, files, received, destination, folder, network FROM usage
                WHERE hour > ?1 - 90000000 AND ends > ?1 AND (hour <= ?2 OR counted IS NULL OR counted > ?2)
                UNION ALL
                SELECT bytes, files, received, destination, folder, network FROM usage INDEXED BY usage_counted
                WHERE counted > ?1 - 3600000 AND counted <= ?2 AND hour > ?2
            ) WHERE (?3 IS NULL OR destination = ?3) AND (?4 IS NULL OR folder = ?4)
            AND (?5 = 1 OR network IN (?6, ?7, ?8, ?9, ?10) OR ?7 <> '' AND network NOT IN (\(NetworkClass.inSQL)))
            """,
            [.integer(since.milliseconds), .integer(clocks.wall().milliseconds)]
                + Self.filter(destination, folder, networks)
        ) { Spending(bytes: $0.integer(0), received: $0.integer(2), files: $0.integer(1)) } ?? .none
    }

    /// Bytes that are reserved now.
    package func reserved(
        destination: String? = nil, folder: String? = nil, networks: Set<NetworkClass>? = nil
    ) throws -> Spending {
        try connection.first(
            """
            SELECT CAST(total(max(bytes, 0)) AS INTEGER), CAST(total(max(files, 0)) AS INTEGER),
                CAST(total(max(received, 0)) AS INTEGER) FROM usage_step
            WHERE (?1 IS NULL OR destination = ?1) AND (?2 IS NULL OR folder = ?2)
            AND (?3 = 1 OR network IN (?4, ?5, ?6, ?7, ?8) OR ?5 <> '' AND network NOT IN (\(NetworkClass.inSQL)))
            """, Self.filter(destination, folder, networks)
        ) { Spending(bytes: $0.integer(0), received: $0.integer(2), files: $0.integer(1)) } ?? .none
    }

    private static func filter(
        _ destination: String?, _ folder: String?, _ networks: Set<NetworkClass>?
    ) -> [Connection.Value] {
        [.init(destination), .init(folder), .integer(networks == nil ? 1 : 0)]
            + NetworkClass.allCases.map { .text(networks?.contains($0) == true ? $0.rawValue : "") }
    }

    /// Settled bytes that were sent since then, the oldest first. Rows dated later than now keep the hour in which they
    /// were counted.
    package func usage(since: WallTime) throws -> [UsageRow] {
        try connection.all(
            """
            SELECT CASE WHEN hour <= ?2 THEN hour ELSE min(coalesce(counted, ?2), ?2) END AS at,
            destination, folder, network, bytes, files, received FROM usage
            WHERE hour > ?1 - 90000000 AND at >= ?1 ORDER BY at
            """, [.integer(since.milliseconds), .integer(clocks.wall().milliseconds)]
        ) { row in
            UsageRow(
                at: WallTime(milliseconds: row.integer(0)),
                account: SpendingAccount(
                    destination: row.text(1), folder: row.text(2).isEmpty ? nil : row.text(2),
                    network: NetworkClass(rawValue: row.text(3)) ?? .unknown),
                spending: Spending(bytes: row.integer(4), received: row.integer(6), files: row.integer(5)))
        }
    }

    // MARK: Maintenance

    /// Days for which hours are kept; then they become one row for their day.
    private static let daysByHour: Int64 = 40
    /// Days with entries that are kept beyond that.
    private static let keptDays: Int64 = 360

    /// Combines old hours into days, deletes rows that are older than any query, and dates rows from the future again.
    /// One day in each transaction.
    ///
    /// - Returns: The number of days combined.
    @discardableResult
    package func pruneLedger() async throws -> Int {
        let now = clocks.wall()
        let cutoff = Period.day.interval(around: now, in: zone).lowerBound.milliseconds - Self.daysByHour * 86_400_000
        var made = 0
        while let hour = try oldestHour(before: cutoff) {
            try await change { _ in try self.makeDay(of: hour) }
            made += 1
        }
        // By their number and not by their age: a clock that shows the year 2099 for a moment must not delete rows that
        // count today.
        let last = try connection.first(
            "SELECT DISTINCT hour FROM usage WHERE hour < ?1 ORDER BY hour DESC LIMIT 1 OFFSET ?2",
            [.integer(cutoff), .integer(Self.keptDays)]
        ) { $0.integer(0) }
        if let last {
            try await change { connection in
                try connection.run("DELETE FROM usage WHERE hour <= ?1", [.integer(last)])
            }
        }
        try await redateLedger()
        return made
    }

    /// Called when the clock was set back. Rows dated later than now then count in this hour, and are past when this
    /// hour is. Otherwise they would count as long as they are later than now.
    package func redateLedger() async throws {
        // Usually there is no such row, and nothing is written.
        let isAhead = try connection.first(
            "SELECT 1 FROM usage WHERE hour > ?1 AND (counted IS NULL OR counted > ?1) LIMIT 1",
            [.integer(clocks.wall().milliseconds)]
        ) { _ in true }
        if isAhead == true { try await change { _ in try self.countWhatIsToCome() } }
    }

    private func oldestHour(before cutoff: Int64) throws -> WallTime? {
        try connection.first(
            "SELECT hour FROM usage WHERE hour < ?1 AND ends - hour <= 3600000 ORDER BY hour LIMIT 1",
            [.integer(cutoff)]
        ) { WallTime(milliseconds: $0.integer(0)) }
    }

    private func makeDay(of hour: WallTime) throws {
        let day = Period.day.interval(around: hour, in: zone)
        let range: [Connection.Value] = [.integer(day.lowerBound.milliseconds), .integer(day.upperBound.milliseconds)]
        let sums = try connection.all(
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
        try connection.run("DELETE FROM usage WHERE hour >= ?1 AND hour < ?2", range)
        for row in sums {
            try connection.run(
                """
                INSERT INTO usage (hour, ends, destination, folder, network, bytes, files, received)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                """,
                [range[0], .integer(max(row.ends, day.upperBound.milliseconds))] + row.key + row.sums)
        }
    }

    /// Inside a transaction: rows dated later than now count in this hour from now on, and are past when it is. They
    /// keep their own hour as well: if that was right after all, they count in it then.
    func countWhatIsToCome() throws {
        let now = clocks.wall().milliseconds
        try connection.run(
            "UPDATE usage SET counted = ?1 WHERE hour > ?2 AND (counted IS NULL OR counted > ?2)",
            [.integer(hour.lowerBound.milliseconds), .integer(now)])
    }
}

extension NetworkClass {
    /// Every class of this program, for SQL. A stored one that is not among them counts as `unknown`, the second of them.
    fileprivate static let inSQL = allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
}
