internal import Core
internal import Store
internal import Synchronization

/// Routes and quota reservations for one batch of claims to one destination: the way of each folder's files, and the
/// reservations made while they are claimed.
final class ReservationBatch: Sendable {
    let destination: String
    private let admission: Admission
    private let inputs: Admission.PolicyInputs
    private let remote: Admission.DestinationState
    private let origins: [String: Admission.FolderState]
    /// Whether its bytes bypass our sockets: the destination reports how many it has sent.
    private let countsNotes: Bool
    private let ledger: Ledger
    /// Numbers of the reservations that the store has not confirmed yet, by upload.
    private let pending = Mutex<[String: (number: Int64, kind: QuotaState.Class)]>([:])

    init(
        destination: String, admission: Admission, inputs: Admission.PolicyInputs, remote: Admission.DestinationState,
        origins: [String: Admission.FolderState], countsNotes: Bool, ledger: Ledger
    ) {
        self.destination = destination
        self.admission = admission
        self.inputs = inputs
        self.remote = remote
        self.origins = origins
        self.countsNotes = countsNotes
        self.ledger = ledger
    }

    func origin(_ folder: String) -> Admission.FolderState { origins[folder] ?? Admission.FolderState(name: folder) }

    /// The way that files of a folder may use; `nil` for none.
    func route(for folder: String) -> Admission.Route? {
        guard case .open(let route) = admission.way(to: remote, from: origin(folder), in: inputs) else { return nil }
        return route
    }

    private func kind(_ folder: String, _ route: Admission.Route) -> QuotaState.Class {
        QuotaState.Class(destination, from: folder, isMetered: route.countsAsMetered)
    }

    private func key(_ folder: String, _ route: Admission.Route) -> SpendingAccount {
        SpendingAccount(destination: destination, folder: folder, network: route.ledger)
    }

    /// Reserves bytes for an upload, within the transaction that claims it.
    func reserve(_ claim: Claim) -> Reservation? {
        let folder = claim.upload.folder
        guard let route = route(for: folder), route.ledger != .local else { return nil }
        let kind = kind(folder, route)
        let left = max(0, claim.asset.stagedSize - claim.upload.acked)
        guard
            let (number, reservation) = ledger.first(
                key(folder, route), kind, size: left, isBegun: claim.checkpoint != nil,
                isExempt: origin(folder).exempt.contains(.quota))
        else { return nil }
        pending.withLock { $0[claim.upload.id] = (number, kind) }
        return reservation
    }

    /// Called when the claims with their reservations are on disk, or when storing failed and nothing was reserved.
    func took(_ claims: [Claim]) {
        let steps = Dictionary(claims.map { ($0.upload.id, $0.step) }, uniquingKeysWith: { $1 })
        let reserved = pending.withLock { pending in
            defer { pending = [:] }
            return pending
        }
        for (id, one) in reserved { ledger.took(one.number, as: steps[id] ?? nil, one.kind) }
    }

    /// Whether the claim has a reservation, where it needs one.
    func hasEnough(_ claim: Claim) -> Bool {
        claim.step != nil || route(for: claim.upload.folder)?.ledger == NetworkClass.local
    }

    /// The permission for a transfer of these claims, each with its own account.
    func permit(for claims: [Claim], _ bandwidth: BandwidthLimiter) -> (TransferPermit, Admission.Route) {
        let folders = Set(claims.map(\.upload.folder))
        // Files that travel together come from folders without rules about networks.
        let route = claims.first.flatMap { self.route(for: $0.upload.folder) } ?? Admission.Route.local
        var permit = bandwidth.permit(to: destination, from: folders.count == 1 ? folders.first : nil, route)
        for claim in claims {
            let folder = claim.upload.folder
            permit.accounts[claim.upload.id] = QuotaAccount(
                key(folder, route), kind(folder, route), size: max(0, claim.asset.stagedSize - claim.upload.acked),
                step: claim.step, isExempt: origin(folder).exempt.contains(.quota), isFree: route.ledger == .local,
                countsNotes: countsNotes, in: ledger)
        }
        if claims.count == 1 { permit.account = permit.accounts.values.first }
        return (permit, route)
    }
}
