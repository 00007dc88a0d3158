internal import Config
internal import Core
internal import Destinations
internal import Linux
internal import Store
internal import Synchronization
internal import Transport

/// The first attempt of several small uploads as one transfer. Uploads with any complication are left to an
/// ``UploadAttempt`` of their own, which decides.
struct BundleAttempt: Sendable {
    let shared: AttemptContext
    let claims: [Claim]
    let destination: any Destination
    /// The permit of the transfer, which has an account for each upload.
    let permit: TransferPermit

    struct Result: Sendable {
        /// By the ids of their uploads.
        var verified: [String: RemoteObject] = [:]
        /// The other uploads, with their present checkpoints: objects that they made at the remote have to be
        /// continued.
        var left: [Claim] = []
    }

    /// - Throws: `StoreError` when the state cannot be written.
    func run() async throws -> Result {
        for claim in claims {
            shared.live.begin(claim.upload.id, to: claim.upload.destination, acked: 0, size: claim.asset.stagedSize)
        }
        defer { for claim in claims { shared.live.end(claim.upload.id) } }
        CrashPoint.reached("claimed")
        let troubled = claims.map(\.upload).filter(\.isTroubled)
        if !troubled.isEmpty {
            try await shared.context.store.write { try $0.failures.beginAttempts(troubled.map(\.id)) }
        }
        let reporter = BundleAttemptReporter(
            store: shared.context.store, live: shared.live, stops: shared.stops, ids: claims.map(\.upload.id),
            accounts: permit.accounts)
        var orders: [UploadOrder] = []
        for claim in claims {
            guard let sha256 = claim.asset.sha256 else { continue }
            orders.append(shared.order(claim, sha256, try await shared.parts(of: claim.asset, for: destination)))
        }
        do {
            // A bundle is sent only where no request has headers.
            let context = RequestContext(permit: permit, headers: [:])
            let verified = try await destination.upload(together: orders, reporter: reporter, context: context)
            CrashPoint.reached("verified")
            return result(verified, reporter)
        } catch is CancellationError {
            return result([:], reporter)
        }
    }

    private func result(_ verified: [String: RemoteObject], _ reporter: BundleAttemptReporter) -> Result {
        let left = claims.filter { verified[$0.upload.id] == nil }.map { claim in
            var claim = claim
            claim.checkpoint = reporter.recorded[claim.upload.id] ?? claim.checkpoint
            return claim
        }
        return Result(verified: verified, left: left)
    }
}

private final class BundleAttemptReporter: BundleReporter {
    private let store: Store
    private let live: LiveUploads
    private let stops: StopRequests
    private let ids: [String]
    private let accounts: [String: QuotaAccount]
    private let pages = Mutex<[String: Checkpoint]>([:])

    init(
        store: Store, live: LiveUploads, stops: StopRequests, ids: [String], accounts: [String: QuotaAccount]
    ) {
        self.accounts = accounts
        (self.store, self.live, self.stops) = (store, live, stops)
        self.ids = ids
    }

    var recorded: [String: Checkpoint] { pages.withLock { $0 } }

    func record(_ checkpoints: [String: Checkpoint]) async throws -> Set<String> {
        CrashPoint.reached("opening")
        let held = try await store.write { try $0.checkpoints.record(checkpoints) }
        for id in held { accounts[id]?.note(isBegun: checkpoints[id]?.fields.isEmpty == false) }
        pages.withLock { $0.merge(checkpoints) { $1 } }
        CrashPoint.reached("opened")
        return held
    }

    func sending(_ id: String, _ offset: Int64) { live.sent(id, offset) }
    func spent(_ id: String, _ bytes: Int64) {
        if let account = accounts[id], account.countsNotes { account.spend(bytes) }
    }
    func received(_ id: String, _ bytes: Int64) {
        if let account = accounts[id], account.countsNotes { account.receive(bytes) }
    }
    func entered(_ phase: UploadPhase) { for id in ids { live.enter(id, phase) } }
    func shouldPause(_ id: String) -> Bool { stops.shouldPause(id) }
}
