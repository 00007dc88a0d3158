package import Core
package import Linux

/// Rows of `interface_count`, one for each quota of all programs, and the counters of the links when they were last
/// compared.
///
/// The kernel counts all bytes of an interface, and the ledger enters our own when they are settled. The difference is
/// what other programs sent and received. It is entered as far as it is more than the bytes reserved for us, which the
/// kernel may have counted already. So the count with its reservations is never less than what the interfaces carried.
package struct InterfaceCountTable<Access> {
    let tx: Transaction<Access>

    private static var setting: String { "interface counters" }

    /// The counters of the links at the last comparison; `nil` before the first.
    func lastCounters() throws -> LinkBytes? { try tx.settings.value(Self.setting).flatMap { LinkBytes($0) } }
}

/// What followed from a reading of the counters.
package struct InterfaceComparison: Sendable {
    /// The latest reading that is compared.
    package private(set) var counters: LinkBytes
    /// By quota of all programs, the links that it counts.
    package let links: [QuotaName: Set<Int32>]
    /// What was entered.
    package fileprivate(set) var entered: [QuotaName: Spending] = [:]
    /// Nothing more can be entered before a link has carried more.
    package fileprivate(set) var isSettled = true

    fileprivate init(counters: LinkBytes, links: [QuotaName: Set<Int32>]) {
        (self.counters, self.links) = (counters, links)
    }

    /// Takes a reading that changes nothing, which then needs no transaction.
    ///
    /// - Returns: Whether it changes nothing.
    package mutating func takes(_ counters: LinkBytes, _ links: [QuotaName: Set<Int32>]) -> Bool {
        guard isSettled, links == self.links,
            links.values.allSatisfy({ counters.carried(by: $0, since: self.counters) == .none })
        else { return false }
        self.counters = counters
        return true
    }
}

/// Bytes that TCP has sent and that may still wait in the queue of an interface.
private let queued: Int64 = 256 << 10

extension InterfaceCountTable where Access == Writing {
    /// Our own bytes were entered in the count of a quota.
    func noteEntry(_ spending: Spending, of name: QuotaName) throws {
        try tx.connection.run(
            "UPDATE interface_count SET sent = sent - ?2, received = received - ?3 WHERE name = ?1",
            [.text(name.key), .integer(max(0, spending.bytes)), .integer(max(0, spending.received))])
    }

    /// Compares the counters with those of the last call, and enters what other programs sent and received.
    ///
    /// - Parameters:
    ///   - counters: Those of all links now.
    ///   - links: By quota of all programs, the numbers of the links that it counts. A quota that is new here counts
    ///     from now on.
    ///   - latest: A later reading than that of the last call, up to which these links have carried nothing.
    package func compare(
        _ counters: LinkBytes, _ links: [QuotaName: Set<Int32>], since latest: LinkBytes? = nil
    ) throws -> InterfaceComparison {
        let before = try latest ?? lastCounters()
        var result = InterfaceComparison(counters: counters, links: links)
        let known = try tx.connection.all("SELECT name, sent, received FROM interface_count") {
            ($0.text(0), Spending(bytes: $0.integer(1), received: $0.integer(2)))
        }
        for (key, _) in known where !links.keys.contains(where: { $0.key == key }) {
            try tx.connection.run("DELETE FROM interface_count WHERE name = ?1", [.text(key)])
        }
        let open = Dictionary(known, uniquingKeysWith: { $1 })
        for (name, numbers) in links {
            guard let before, var rest = open[name.key] else {
                try tx.connection.run("INSERT OR IGNORE INTO interface_count (name) VALUES (?1)", [.text(name.key)])
                result.isSettled = false
                continue
            }
            rest += counters.carried(by: numbers, since: before)
            // What was entered without having been carried, as after a crash, is no room for others later.
            rest.bytes = max(rest.bytes, -queued)
            rest.received = max(rest.received, -queued)
            let reserved = try tx.ledger.reserved(by: name)
            let others = Spending(
                bytes: max(0, rest.bytes - max(0, reserved.bytes)),
                received: max(0, rest.received - max(0, reserved.received)))
            // What may be ours is entered for others when it turns out that it is not.
            if rest.bytes > others.bytes || rest.received > others.received { result.isSettled = false }
            try tx.connection.run(
                "UPDATE interface_count SET sent = ?2, received = ?3 WHERE name = ?1",
                [
                    .text(name.key), .integer(rest.bytes - others.bytes), .integer(rest.received - others.received),
                ])
            if others == .none { continue }
            try tx.ledger.enter(others, name.account, tx.ledger.hour)
            result.entered[name] = others
        }
        try tx.settings.set(Self.setting, counters.text)
        return result
    }
}

extension LedgerTable {
    package var interfaces: InterfaceCountTable<Access> { InterfaceCountTable(tx: tx) }
}
