internal import Config
internal import Core
internal import Destinations
internal import Linux
internal import Staging
internal import Store

/// The values that every attempt of an upload uses, whatever its destination.
struct AttemptContext: Sendable {
    let context: Context
    let live: LiveUploads
    /// How the scheduler wants attempts to end.
    let stops: StopRequests
    let locator: SourceLocator
    /// Reasons why single assets wait for their source, by asset number.
    let stagingHolds: StagingHolds
    let absentDisks: AbsentDisks
    /// The programs of `before_upload` share it with hooks.
    let hookSlots: AsyncSemaphore
    let pendingApprovals: PendingApprovals
    let counters: Counters
    let learned: LearnedFacts
}

extension AttemptContext {
    /// Records how attempts end.
    ///
    /// - Parameter accounts: The accounts of a transfer, by upload.
    func recorder(_ ledger: Ledger, _ stateHealth: StateHealth, _ accounts: [String: QuotaAccount]) -> AttemptRecorder {
        AttemptRecorder(
            context: context, live: live, stops: stops, ledger: ledger, stateHealth: stateHealth, accounts: accounts)
    }

    /// The digests of a copy's parts that a destination wants, if they were made.
    func parts(of asset: AssetRecord, for destination: any Destination) async throws -> PartDigests {
        if destination.requestedDigests(forSize: asset.stagedSize).isEmpty { return PartDigests() }
        return try await context.store.read { try $0.partDigests.of(asset.id) }
    }

    /// The order of an upload for its destination.
    ///
    /// - Parameter place: The location of its bytes; the staged copy by default.
    func order(
        _ claim: Claim, _ sha256: [UInt8], _ parts: PartDigests = PartDigests(), from place: FilePlace? = nil
    ) -> UploadOrder {
        let (upload, asset) = (claim.upload, claim.asset)
        return UploadOrder(
            id: upload.id, generation: upload.generation,
            file: StagedFile(
                place: place ?? .path(context.staging.path(asset.stagedName)), size: asset.stagedSize,
                sha256: sha256, parts: parts),
            name: upload.name, mediaType: upload.mediaType, modified: upload.modified, metadata: upload.metadata,
            checkpoint: claim.checkpoint, url: upload.url, removesSource: asset.action.removesSource)
    }
}
