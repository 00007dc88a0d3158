internal import Core
internal import Store
internal import Synchronization

/// What one account asks for: what it has sent is entered, and a step of another size takes the place of the one before.
struct Renewal: Sendable {
    let account: Account
    let step: ReservedStep?
    /// Of that step, to be entered.
    let spent: Spending
    /// What stays reserved of it, to be sent and to come in.
    let kept: Int64
    let keptReceived: Int64
    /// Bytes beyond that.
    let wanted: Int64
    /// It cannot go on for long without.
    let isNeeded: Bool
}

/// Renews what the transfers that run have reserved, those of all in one transaction: the disk is synced once for all of them.
final class Renewals: Sendable {
    private struct Running {
        weak var account: Account?
    }

    private struct State {
        var running: [ObjectIdentifier: Running] = [:]
        /// The next one, which has not looked yet who needs what.
        var next: Task<Void, Never>?
        /// That, or the one that runs or ran last.
        var last: Task<Void, Never>?
    }

    private let state = Mutex(State())

    func add(_ account: Account) {
        state.withLock { $0.running[ObjectIdentifier(account)] = Running(account: account) }
    }

    func remove(_ account: ObjectIdentifier) { state.withLock { _ = $0.running.removeValue(forKey: account) } }

    /// The renewal that looks at every account after this call.
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

    /// The renewal that runs, or the next one.
    var last: Task<Void, Never>? { state.withLock { $0.last } }

    private func renew(_ ledger: Ledger) async {
        // In this order: what leaves after the look is bounded by the links, and what left before is counted.
        let links = ledger.linksNow()
        await ledger.chargeAll()
        let accounts = state.withLock { state in
            state.next = nil
            return state.running.values.compactMap(\.account)
        }
        let renewals = accounts.compactMap { $0.beginRenewal() }
        if renewals.isEmpty { return }
        var failure: (any Error)?
        var steps: [ReservedStep?] = renewals.map { _ in nil }
        do { steps = try await ledger.renew(renewals, after: links) } catch { failure = error }
        for (renewal, step) in zip(renewals, steps) { renewal.account.endRenewal(renewal, step, failure) }
        // Where that cannot be written, the next look tells.
        if failure == nil { try? await ledger.tellMarks() }
    }
}
