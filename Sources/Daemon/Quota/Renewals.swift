internal import Core
internal import Store
internal import Synchronization

/// The request of one account: its sent bytes are entered, and a step of another size replaces the present one.
struct Renewal: Sendable {
    let account: QuotaAccount
    /// The class that the next step is charged to.
    let kind: QuotaState.Class
    /// Whether the present step is charged to other quotas.
    let isRecharged: Bool
    let step: StoredReservation?
    /// Bytes of that step to be entered.
    let spent: Spending
    /// Bytes of the step that stay reserved, to be sent and to be received.
    let kept: Int64
    let keptReceived: Int64
    /// Bytes in addition to those.
    let wanted: Int64
    /// Whether the account cannot continue for long without them.
    let isNeeded: Bool
}

/// Renews the steps of all running transfers in one transaction, so that the disk is synced once for all of them.
final class Renewals: Sendable {
    private struct Running {
        weak var account: QuotaAccount?
    }

    private struct State {
        var running: [ObjectIdentifier: Running] = [:]
        /// The next renewal, which has not collected requests yet.
        var next: Task<Void, Never>?
        /// The next renewal, or the one that runs or ran last.
        var last: Task<Void, Never>?
    }

    private let state = Mutex(State())

    func add(_ account: QuotaAccount) {
        state.withLock { $0.running[ObjectIdentifier(account)] = Running(account: account) }
    }

    func remove(_ account: ObjectIdentifier) { state.withLock { _ = $0.running.removeValue(forKey: account) } }

    /// Schedules a renewal that checks every account after this call, and returns it.
    @discardableResult
    func next(in ledger: Ledger) -> Task<Void, Never> {
        state.withLock { state in
            if let next = state.next { return next }
            let last = state.last
            let next = Task {
                await last?.value
                await self.renew(ledger)
            }
            (state.next, state.last) = (next, next)
            return next
        }
    }

    /// The running renewal, or the next one.
    var last: Task<Void, Never>? { state.withLock { $0.last } }

    private func renew(_ ledger: Ledger) async {
        // In this order: bytes that leave after the reading are bounded by the links, and bytes that left before are
        // counted.
        let links = ledger.currentLinkBytes()
        await ledger.chargeAll()
        let accounts = state.withLock { state in
            state.next = nil
            return state.running.values.compactMap(\.account)
        }
        let renewals = accounts.compactMap { $0.beginRenewal() }
        if renewals.isEmpty { return }
        var failure: (any Error)?
        var steps: [StoredReservation?] = renewals.map { _ in nil }
        do { steps = try await ledger.renew(renewals, after: links) } catch { failure = error }
        for (renewal, step) in zip(renewals, steps) { renewal.account.endRenewal(renewal, step, failure) }
        // If the report cannot be written, the next refresh writes it.
        if failure == nil { try? await ledger.reportMarks() }
    }
}
