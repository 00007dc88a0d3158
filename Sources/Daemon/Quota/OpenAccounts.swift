internal import Core
internal import Store
internal import Synchronization

/// The accounts of all running work. Their bytes reach the ledger on disk only when a step is renewed, or when the work
/// is over.
final class OpenAccounts: Sendable {
    private struct Entry {
        weak var account: QuotaAccount?
    }

    private let entries = Mutex<[ObjectIdentifier: Entry]>([:])

    func add(_ account: QuotaAccount) {
        entries.withLock { $0[ObjectIdentifier(account)] = Entry(account: account) }
    }

    func remove(_ account: ObjectIdentifier) { entries.withLock { _ = $0.removeValue(forKey: account) } }

    /// Bytes that were sent and received, and are not entered yet.
    var unentered: [(key: SpendingAccount, spending: Spending)] {
        let accounts = entries.withLock { $0.values.compactMap(\.account) }
        return accounts.map { ($0.key, $0.unentered) }.filter { $0.spending != .none }
    }

    /// Ends work that has reserved bytes in one of these quotas, which others have used meanwhile.
    func withdraw(from quotas: Set<QuotaName>) {
        for account in entries.withLock({ $0.values.compactMap(\.account) })
        where !account.isExempt && !account.kind.quotas.isDisjoint(with: quotas) {
            account.recharge()
        }
    }

    func unentered(for destination: String) -> Spending {
        unentered.filter { $0.key.destination == destination }.reduce(.none) { $0 + $1.spending }
    }
}
