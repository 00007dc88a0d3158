internal import Core
internal import Store
internal import Synchronization

/// Routes and quota reservations for one batch of claims to one destination: the way of each folder's files, and the
/// reservations made while they are claimed.
final class Purse: Sendable {
    let destination: String
    private let admission: Admission
    private let world: Admission.World
    private let remote: Admission.Remote
    private let origins: [String: Admission.Origin]
    /// Whether its bytes bypass our sockets: the destination reports how many it has sent.
    private let countsNotes: Bool
    private let ledger: Ledger
    /// Numbers of the reservations that the store has not confirmed yet, by upload.
    private let pending = Mutex<[String: (number: Int64, kind: QuotaBook.Class)]>([:])

    init(
        destination: String, admission: Admission, world: Admission.World, remote: Admission.Remote,
        origins: [String: Admission.Origin], countsNotes: Bool, ledger: Ledger
    ) {
        self.destination = destination
        self.admission = admission
        self.world = world
        self.remote = remote
        self.origins = origins
        self.countsNotes = countsNotes
        self.ledger = ledger
    }

    func origin(_ folder: String) -> Admission.Origin { origins[folder] ?? Admission.Origin(name: folder) }

    /// The way that files of a folder may use; `nil` for none.
    func passage(for folder: String) -> Admission.Passage? {
        guard case .open(let passage) = admission.way(to: remote, from: origin(folder), in: world) else { return nil }
        return passage
    }

    private func kind(_ folder: String, _ passage: Admission.Passage) -> QuotaBook.Class {
        QuotaBook.Class(destination, from: folder, isMetered: passage.countsAsMetered)
    }

    private func key(_ folder: String, _ passage: Admission.Passage) -> SpendingAccount {
        SpendingAccount(destination: destination, folder: folder, network: passage.ledger)
    }

    /// Reserves bytes for an upload, within the transaction that claims it.
    func reserve(_ claim: Claim) -> Reservation? {
        let folder = claim.upload.folder
        guard let passage = passage(for: folder), passage.ledger != .local else { return nil }
        let kind = kind(folder, passage)
        let left = max(0, claim.asset.stagedSize - claim.upload.acked)
        guard
            let (number, reservation) = ledger.first(
                key(folder, passage), kind, size: left, isBegun: claim.checkpoint != nil,
                isExcused: origin(folder).excused.contains(.quota))
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
        claim.step != nil || passage(for: claim.upload.folder)?.ledger == NetworkClass.local
    }

    /// The permission for a transfer of these claims, each with its own account.
    func lane(for claims: [Claim], _ lanes: Lanes) -> (Lane, Admission.Passage) {
        let folders = Set(claims.map(\.upload.folder))
        // Files that travel together come from folders without rules about networks.
        let passage = claims.first.flatMap { self.passage(for: $0.upload.folder) } ?? Admission.Passage.local
        var lane = lanes.lane(to: destination, from: folders.count == 1 ? folders.first : nil, passage)
        for claim in claims {
            let folder = claim.upload.folder
            lane.accounts[claim.upload.id] = Account(
                key(folder, passage), kind(folder, passage), size: max(0, claim.asset.stagedSize - claim.upload.acked),
                step: claim.step, isExcused: origin(folder).excused.contains(.quota), isFree: passage.ledger == .local,
                countsNotes: countsNotes, in: ledger)
        }
        if claims.count == 1 { lane.account = lane.accounts.values.first }
        return (lane, passage)
    }
}
