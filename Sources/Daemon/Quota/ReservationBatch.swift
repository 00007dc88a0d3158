internal import Config
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

    /// - Parameter exemptions: The rules that a person waived for the one upload that is claimed.
    convenience init(
        _ snapshot: PolicySnapshot, to destination: String, exempting exemptions: Set<Exemption>, ledger: Ledger
    ) {
        let folders = snapshot.settings.folders.map { folder in
            (folder.watch.name, snapshot.folder(folder.watch.name, exempting: exemptions))
        }
        self.init(
            destination: destination, admission: snapshot.admission, inputs: snapshot.inputs,
            remote: snapshot.destination(destination), origins: Dictionary(folders, uniquingKeysWith: { $1 }),
            countsNotes: snapshot.configuration.destinations[destination]?.site.isFolder ?? false, ledger: ledger)
    }

    /// Whether a claim may still start, on the route that it was made for, with the reservations it needs: claiming
    /// waits for the disk, and meanwhile a window may have closed.
    ///
    /// - Parameter now: What policy depends on now.
    func allows(_ claim: Claim, _ now: PolicySnapshot) -> Bool {
        let state = now.destination(destination)
        let folder = origin(claim.upload.folder)
        guard let route = route(for: claim.upload.folder), hasEnough(claim),
            now.admission.hardBlockers(on: state, from: folder, in: now.inputs, isUnderWay: true).isEmpty,
            case .open(let present) = now.admission.way(to: state, from: folder, in: now.inputs)
        else { return false }
        return route.isSame(as: present)
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

extension TransferPermit {
    /// For requests that belong to no file. The account has to be closed.
    ///
    /// - Parameter isExempt: Neither quotas nor a rate limit hold it. Its bytes are counted nevertheless.
    init(
        forRequestTo destination: String, by route: Admission.Route, isExempt: Bool, _ bandwidth: BandwidthLimiter,
        _ ledger: Ledger
    ) {
        self =
            isExempt
            ? bandwidth.unthrottledPermit(to: destination, route) : bandwidth.permit(to: destination, from: nil, route)
        account = QuotaAccount(
            SpendingAccount(destination: destination, folder: nil, network: route.ledger),
            QuotaState.Class(destination, from: nil, isMetered: route.countsAsMetered), step: nil,
            isExempt: isExempt, isFree: route.ledger == .local, in: ledger)
    }
}
