internal import Core

/// Reads what is left of the ledger of a database that is given up. Each row is checked before it counts.
enum LedgerSalvage {
    static func rows(_ reading: Connection, backwards: Bool) -> ([[Connection.Value]], Bool) {
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

    static func steps(_ reading: Connection) -> ([Payment], Bool) {
        var steps: [Payment] = []
        do {
            try reading.query("SELECT destination, folder, network, bytes, files, received, quotas FROM usage_step") {
                row throws(StoreError) in
                while try row.next() {
                    guard let account = account(row, 0), let spending = spending(row, 3, received: 5) else { continue }
                    let quotas = Reservation.quotas(inText: row.optionalText(6))
                    steps.append(Payment(account, spending, quotas: quotas))
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
