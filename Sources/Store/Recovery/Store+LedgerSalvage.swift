package import Core

extension Store {
    /// Takes over the readable ledger of a database that is given up: a damaged disk must not start a quota from zero.
    /// Bytes that are reserved there count as sent. Each row is checked before it counts.
    ///
    /// - Returns: Whether it could be read to its end.
    package func salvageLedger(from old: FilePath) async throws -> Bool {
        let reading: Connection
        do { reading = try Connection(path: old.appending(StateFiles.database), asEvidence: true) } catch {
            return false
        }
        defer { reading.close() }
        var isWhole = true
        for backwards in [false, true] {
            let (rows, isRead) = Self.rows(reading, backwards: backwards)
            try await change { connection in
                for row in rows {
                    try connection.run(
                        "INSERT OR IGNORE INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)", row)
                }
            }
            if isRead { break }
            // The damaged page is approached from the other end.
            isWhole = false
        }
        let (steps, isRead) = Self.steps(reading)
        try await pay(steps)
        return isWhole && isRead
    }

    private static func rows(_ reading: Connection, backwards: Bool) -> ([[Connection.Value]], Bool) {
        let order = backwards ? "DESC" : "ASC"
        var rows: [[Connection.Value]] = []
        do {
            try reading.query(
                "SELECT hour, ends, destination, folder, network, bytes, files, counted, received FROM usage ORDER BY hour \(order)"
            ) { row throws(StoreError) in
                while try row.next() {
                    guard let account = account(row, 2), let spending = spending(row, 5, received: 8) else { continue }
                    // A plausible day of some calendar, if it is none of these.
                    let (hour, ends) = (row.integer(0), row.integer(1))
                    guard hour >= 0, ends > hour, ends - hour <= 2 * 86_400_000 else { continue }
                    rows.append([
                        .integer(hour), .integer(ends), .text(account.destination), .text(account.folder ?? ""),
                        .text(account.network.rawValue), .integer(spending.bytes), .integer(spending.files),
                        .init(row.optionalInteger(7)), .integer(spending.received),
                    ])
                }
            }
            return (rows, true)
        } catch {
            // Rows that were read up to there count.
            return (rows, false)
        }
    }

    private static func steps(_ reading: Connection) -> ([Payment], Bool) {
        var steps: [Payment] = []
        do {
            try reading.query("SELECT destination, folder, network, bytes, files, received FROM usage_step") {
                row throws(StoreError) in
                while try row.next() {
                    guard let account = account(row, 0), let spending = spending(row, 3, received: 5) else { continue }
                    steps.append(Payment(account, spending))
                }
            }
            return (steps, true)
        } catch {
            return (steps, false)
        }
    }

    private static func account(_ row: Connection.Row, _ column: Int32) -> SpendingAccount? {
        let (destination, folder) = (row.text(column), row.text(column + 1))
        let word = row.text(column + 2)
        // A class that only a newer program knows was paid for all the same; what is no word is damage.
        guard !destination.isEmpty, let network = NetworkClass(rawValue: word) ?? (word.isStoredWord ? .unknown : nil)
        else { return nil }
        return SpendingAccount(destination: destination, folder: folder.isEmpty ? nil : folder, network: network)
    }

    private static func spending(_ row: Connection.Row, _ column: Int32, received: Int32) -> Spending? {
        let spending = Spending(
            bytes: row.integer(column), received: row.integer(received), files: row.integer(column + 1))
        return spending.bytes >= 0 && spending.received >= 0 && spending.files >= 0 ? spending : nil
    }
}
