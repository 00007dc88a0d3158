package import Core
internal import Linux

extension Schema {
    static let stepLinks = """
        -- What every link had sent and received when the step was opened (LinkBytes).
        ALTER TABLE usage_step ADD COLUMN links TEXT;
        """

    static let received = """
        -- What has come in, beside what was sent; of a step, what may come in.
        ALTER TABLE usage ADD COLUMN received INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE usage_step ADD COLUMN received INTEGER NOT NULL DEFAULT 0;
        """

    static let stepQuotas = """
        -- The quotas with conditions that the step is charged to (QuotaName.key), one in each line.
        ALTER TABLE usage_step ADD COLUMN quotas TEXT;
        """

    /// What quotas of all programs (`count: interface`) need to tell the bytes of others from our own.
    static let interfaceCounts = """
        CREATE TABLE interface_count (
            name TEXT PRIMARY KEY,                 -- QuotaName.key
            -- What interfaces carried less what was entered in the count: our own bytes that are still reserved, or,
            -- below zero, bytes that were entered and that no interface has carried.
            sent INTEGER NOT NULL DEFAULT 0,
            received INTEGER NOT NULL DEFAULT 0
        ) STRICT, WITHOUT ROWID;
        """
}

/// The amount that a start counted as sent for the reservations that an earlier run did not settle.
package struct CrashCharge: Sendable, Hashable {
    package let spending: Spending
    /// Whether the links' counters limited all of it. Otherwise some reservations were counted in full.
    package let isBounded: Bool
}

/// Reservations of a run that did not settle them.
package struct UnsettledReservations<Access> {
    let tx: Transaction<Access>

    /// Whether links can tell how much of a reservation may have been sent.
    func haveLinks() throws -> Bool {
        try tx.connection.first("SELECT 1 FROM usage_step WHERE links IS NOT NULL LIMIT 1") { _ in true } == true
    }
}

extension UnsettledReservations where Access == Writing {
    /// Counts the reservations of an earlier run that are not settled as sent and received. But it counts no more than
    /// has left or reached this machine since, where that is known.
    ///
    /// - Returns: `nil` if nothing was left.
    func close() throws -> CrashCharge? {
        let left = try tx.connection.all(
            "SELECT hour, destination, folder, network, bytes, files, links, received, quotas FROM usage_step"
        ) { row in
            (
                hour: WallTime(milliseconds: row.integer(0)),
                account: SpendingAccount(
                    destination: row.text(1), folder: row.text(2).isEmpty ? nil : row.text(2),
                    network: NetworkClass(rawValue: row.text(3)) ?? .unknown),
                spending: Spending(bytes: row.integer(4), received: row.integer(7), files: row.integer(5)),
                links: row.optionalText(6).flatMap { LinkBytes($0) },
                quotas: Reservation.quotas(inText: row.optionalText(8))
            )
        }
        if left.isEmpty { return nil }
        let links = tx.session.linkBytes(.whenQuiet)
        // All steps of one account together cannot have sent more than has left since the first of them was opened. The
        // same holds for received bytes.
        var most: [SpendingAccount: Spending] = [:]
        for (account, steps) in Dictionary(grouping: left, by: \.account) {
            let bounds = steps.map { step in step.links.flatMap { links?.upperBound(since: $0) } }
            if !bounds.contains(nil) {
                let all = bounds.compactMap { $0 }
                most[account] = Spending(
                    bytes: all.map(\.bytes).max() ?? 0, received: all.map(\.received).max() ?? 0)
            }
        }
        var (charged, isBounded) = (Spending.none, true)
        for step in left {
            var spending = step.spending
            if let before = step.links, let own = links?.upperBound(since: before) {
                spending.bytes = min(spending.bytes, own.bytes)
                spending.received = min(spending.received, own.received)
            } else {
                isBounded = false
            }
            if let all = most[step.account] {
                spending.bytes = min(spending.bytes, all.bytes)
                spending.received = min(spending.received, all.received)
                most[step.account] = Spending(
                    bytes: all.bytes - spending.bytes, received: all.received - spending.received)
            }
            // It may have been sent until a moment ago; but a clock that is not set yet is no evidence.
            let time = max(step.hour, tx.clocks.wall())
            charged += spending
            try tx.ledger.enter(
                spending, step.account, step.quotas, Period.hour.interval(around: time, in: tx.session.zone))
        }
        try tx.connection.run("DELETE FROM usage_step")
        return CrashCharge(spending: charged, isBounded: isBounded)
    }
}

extension Transaction {
    package var leftSteps: UnsettledReservations<Access> { UnsettledReservations(tx: self) }
}
