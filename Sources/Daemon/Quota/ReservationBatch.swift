internal import Config
internal import Core
internal import Destinations
internal import Store
internal import Synchronization

/// Routes and quota reservations for one batch of claims to one destination: the way of each folder's files, and the
/// reservations made while they are claimed.
final class ReservationBatch: Sendable {
    let destination: String
    /// The state of policy that it was made with.
    private let snapshot: PolicySnapshot
    /// The rules that a person waived for the one upload that is claimed.
    private let exemptions: Set<Exemption>
    /// Whether its bytes bypass our sockets: the destination reports how many it has sent.
    private let countsNotes: Bool
    private let ledger: Ledger
    /// The decision for each class that was asked about: a bundle has many files of one class.
    private let routes = Mutex<[FileClass: Admission.RouteDecision]>([:])
    /// Numbers of the reservations that the store has not confirmed yet, by upload.
    private let pending = Mutex<[String: (number: Int64, kind: QuotaState.Class)]>([:])

    /// - Parameter exemptions: The rules that a person waived for the one upload that is claimed.
    init(_ snapshot: PolicySnapshot, to destination: String, exempting exemptions: Set<Exemption>, ledger: Ledger) {
        self.destination = destination
        self.snapshot = snapshot
        self.exemptions = exemptions
        self.ledger = ledger
        countsNotes = snapshot.configuration.destinations[destination]?.site.isFolder ?? false
    }

    /// The generation of the policy that it was made with.
    var generation: PolicyGeneration { snapshot.generation }

    /// Whether policy still allows an upload, on the route that it was claimed for.
    ///
    /// - Parameter now: What policy depends on now.
    func isOpen(_ upload: UploadRecord, in now: PolicySnapshot) -> Bool {
        let state = now.destination(destination)
        let waived = exemptions.isEmpty ? [] : exemptions.intersection(now.exemptions(of: upload.id))
        let folder = now.folder(upload.files, exempting: waived)
        // An exemption that ended meanwhile may have decided what was reserved.
        guard origin(upload).exempt.isSubset(of: folder.exempt), let route = route(for: upload),
            now.hardBlockers(on: state, from: folder, isUnderWay: true).isEmpty,
            case .open(let present) = now.routeDecision(to: state, from: folder)
        else { return false }
        return route.isSame(as: present)
    }

    func origin(_ upload: UploadRecord) -> Admission.FolderState {
        snapshot.folder(upload.files, exempting: exemptions)
    }

    /// The way that an upload may use; `nil` for none.
    func route(for upload: UploadRecord) -> Admission.Route? {
        let decision = routes.withLock { routes in
            if let known = routes[upload.files] { return known }
            let decision = snapshot.route(to: destination, from: origin(upload))
            routes[upload.files] = decision
            return decision
        }
        if case .open(let route) = decision { return route }
        return nil
    }

    /// The rules that apply to an upload now.
    func appliedRules(_ upload: UploadRecord, in now: PolicySnapshot) -> AppliedRules {
        if case .open(let route) = now.route(to: destination, from: origin(upload)) { route.applied } else { .init() }
    }

    private func kind(_ folder: String, _ route: Admission.Route) -> QuotaState.Class {
        QuotaState.Class(destination, from: folder, route.applied.quotas)
    }

    private func key(_ folder: String, _ route: Admission.Route) -> SpendingAccount {
        SpendingAccount(destination: destination, folder: folder, network: route.ledger)
    }

    /// Reserves bytes for an upload, within the transaction that claims it.
    func reserve(_ claim: Claim) -> Reservation? {
        let folder = claim.upload.folder
        guard let route = route(for: claim.upload), route.ledger != .local else { return nil }
        let kind = kind(folder, route)
        let left = max(0, claim.asset.stagedSize - claim.upload.acked)
        guard
            let (number, reservation) = ledger.reserveFirst(
                key(folder, route), kind, size: left, isBegun: claim.checkpoint != nil,
                isExempt: origin(claim.upload).exempt.contains(.quota))
        else { return nil }
        pending.withLock { $0[claim.upload.id] = (number, kind) }
        return reservation
    }

    /// Called when the claims with their reservations are on disk, or when storing failed and nothing was reserved.
    func recordStored(_ claims: [Claim]) {
        let steps = Dictionary(claims.map { ($0.upload.id, $0.step) }, uniquingKeysWith: { $1 })
        let reserved = pending.withLock { pending in
            defer { pending = [:] }
            return pending
        }
        for (id, one) in reserved { ledger.replaceProvisional(one.number, as: steps[id] ?? nil, one.kind) }
    }

    /// Whether the claim has a reservation, where it needs one.
    func hasEnough(_ claim: Claim) -> Bool {
        claim.step != nil || route(for: claim.upload)?.ledger == NetworkClass.local
    }

    /// An account for each claim of a transfer, by the id of its upload.
    func accounts(for claims: [Claim], _ route: Admission.Route) -> [String: QuotaAccount] {
        var accounts: [String: QuotaAccount] = [:]
        for claim in claims {
            let folder = claim.upload.folder
            accounts[claim.upload.id] = QuotaAccount(
                key(folder, route), kind(folder, self.route(for: claim.upload) ?? route),
                size: max(0, claim.asset.stagedSize - claim.upload.acked),
                step: claim.step, isExempt: origin(claim.upload).exempt.contains(.quota),
                isFree: route.ledger == .local,
                countsNotes: countsNotes, in: ledger)
        }
        return accounts
    }
}
