internal import Core

/// The limits of the bytes that are sent: quotas, and rates.
struct SendingLimits: Sendable {
    let ledger: Ledger
    let bandwidth: BandwidthLimiter

    /// These rules apply to a running transfer from now on.
    ///
    /// - Parameter applied: By upload. An upload that is not among them keeps its rules.
    func apply(_ applied: [String: AppliedRules], to transfer: RunningTransfers.Transfer) {
        if applied.isEmpty { return }
        bandwidth.update(
            transfer.ruleLimit, to: applied.values.reduce(into: AppliedRules()) { $0.formUnion($1) })
        for (id, account) in transfer.accounts {
            if let own = applied[id] { account.setQuotas(own.quotas) }
        }
    }

    /// These rules apply to a running request besides transfers from now on.
    func apply(_ applied: AppliedRules, to request: BackgroundRequests.BackgroundRequest) {
        guard let permit = request.permit, request.purpose.network == .policy else { return }
        bandwidth.update(permit.ruleLimit, to: applied)
        permit.account?.setQuotas(applied.quotas)
    }
}
