internal import Config
internal import Core
internal import Linux
internal import Store
internal import Synchronization

/// The first attempt of several small uploads as one transfer. What does not go the plain way is left to an ``UploadRun``
/// of its own, which judges.
struct BundleRun: Sendable {
    let house: House
    let claims: [Claim]
    let destination: any Destination

    /// What was verified, and what each upload sent, by their ids.
    struct Result: Sendable {
        var verified: [String: RemoteObject] = [:]
        var spent: [String: Int64] = [:]
    }

    /// - Throws: `StoreError` when the state cannot be written.
    func run() async throws -> Result {
        for claim in claims { house.live.begin(claim.upload.id, acked: 0, size: claim.asset.size) }
        defer { for claim in claims { house.live.end(claim.upload.id) } }
        CrashPoint.reached("claimed")
        let notes = BundleRunNotes(house: house, ids: claims.map(\.upload.id))
        let orders = claims.compactMap { claim in claim.asset.sha256.map { house.order(claim, $0) } }
        do {
            let verified = try await destination.upload(together: orders, notes: notes)
            CrashPoint.reached("verified")
            return Result(verified: verified, spent: notes.spent)
        } catch is CancellationError {
            return Result(spent: notes.spent)
        }
    }
}

private final class BundleRunNotes: BundleNotes {
    private let house: House
    private let ids: [String]
    private let sums = Mutex<[String: Int64]>([:])

    init(house: House, ids: [String]) {
        self.house = house
        self.ids = ids
    }

    var spent: [String: Int64] { sums.withLock { $0 } }

    func record(_ checkpoints: [String: Checkpoint]) async throws -> Set<String> {
        CrashPoint.reached("opening")
        let held = try await house.store.record(checkpoints)
        CrashPoint.reached("opened")
        return held
    }

    func sending(_ id: String, _ offset: Int64) { house.live.sent(id, offset) }
    func spent(_ id: String, _ bytes: Int64) { sums.withLock { $0[id, default: 0] += bytes } }
    func entered(_ phase: UploadPhase) { for id in ids { house.live.enter(id, phase) } }
}
