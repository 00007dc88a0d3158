internal import Config
internal import Core
internal import Destinations
internal import Linux
internal import Store
internal import Transport

/// Asks the destinations for their content, for a rebuild, and gives up on those that cannot answer.
actor RemoteInventory {
    private let destinations: [String: any Destination]
    private let options: RebuildOptions
    private let clocks: any Clocks
    /// For the questions to each destination; empty where none may be asked.
    private let permits: [String: TransferPermit]
    /// Destinations that are not asked any more, and why.
    private(set) var silent: [String: String] = [:]
    private var failuresInARow: [String: Int] = [:]
    private(set) var report = RebuildReport()
    /// Whether the old database's log is present and complete, so that its rows are the latest state.
    private var isLogWhole = false

    func trustLog() { isLogWhole = true }

    init(
        _ destinations: [String: any Destination], _ settings: Settings, _ options: RebuildOptions, clocks: any Clocks
    ) {
        self.destinations = destinations
        self.options = options
        self.clocks = clocks
        permits = TransferPermit.forRebuild(options, settings.destinations, clocks)
        if options.isOffline {
            for name in destinations.keys { silent[name] = "--offline: no request was sent" }
        }
    }

    /// Whether any of these may still be able to answer: only then is it worth reading the file for a digest.
    func canQuery(_ names: [String]) -> Bool { names.contains { silent[$0] == nil } }

    /// The state of this file's upload.
    ///
    /// - Parameters:
    ///   - evidence: The old database's records of this path.
    ///   - mayBeOld: Whether the folder ignores files from before it was watched, so that "not there" is no reason to
    ///     send.
    func resolveKnowledge(
        of order: NewAsset.PlannedUpload, id: String?, _ file: StagedFile?, size: Int64, modified: Int64,
        _ evidence: [Evidence], mayBeOld: Bool
    ) async -> RestoredFile.Upload {
        let known = evidence.first { $0.fits(size: size, modified: modified, sha256: file?.sha256) }
        var upload = RestoredFile.Upload(id: id, knowledge: .toSend)
        upload.knowledge = await resolveKnowledge(of: order, id: id ?? "", file, modified, known, mayBeOld)
        // An address at the remote is useful only for an upload that goes there.
        if upload.knowledge == .toSend, let known, known.stage == .going {
            upload.id = upload.id ?? known.upload
            upload.checkpoint = known.checkpoint
            upload.generation = known.generation
            upload.acked = known.acked
        }
        return upload
    }

    private func resolveKnowledge(
        of order: NewAsset.PlannedUpload, id: String, _ file: StagedFile?, _ modified: Int64, _ known: Evidence?,
        _ mayBeOld: Bool
    ) async -> RestoredFile.Knowledge {
        let name = order.destination
        let answer = await answer(order, id, file, modified)
        switch (answer, known?.stage) {
        case (.found(let remote), _):
            report.held[name, default: 0] += 1
            return .done(remote)
        // The owner of the remote may have removed it since, which is no reason to send it again.
        case (_, .sent):
            report.assumed[name, default: 0] += 1
            return .assumed(markedAssumed(known?.remote))
        case (_, .cancelled):
            return undecided(name, "it had been paused or cancelled by command")
        case (.absent, nil) where mayBeOld:
            return undecided(
                name, "\(name) does not have it, but the file may have existed before the folder was first watched")
        case (.absent, _):
            report.toSend[name, default: 0] += 1
            return .toSend
        // With its address the remote can be asked for its state; without one, nothing had been sent.
        case (.unknown, .going) where known?.checkpoint != nil || isLogWhole:
            report.toSend[name, default: 0] += 1
            return .toSend
        case (.unknown(let why), _):
            return undecided(name, why)
        }
    }

    private func answer(_ order: NewAsset.PlannedUpload, _ id: String, _ file: StagedFile?, _ modified: Int64) async
        -> RemoteLookup
    {
        let name = order.destination
        guard silent[name] == nil, let destination = destinations[name], let permit = permits[name], let file else {
            return .unknown(silent[name] ?? "cannot read its content")
        }
        let order = UploadOrder(
            id: id, generation: 1, file: file, name: order.name, mediaType: order.mediaType, modified: modified,
            metadata: order.metadata, checkpoint: nil, url: order.url)
        do throws(UploadError) {
            let finding = try await destination.find(order, context: RequestContext(permit: permit, headers: [:]))
            failuresInARow[name] = 0
            // The reason concerns the destination and not the file: the next query would fail too.
            if case .unknown(let why) = finding { silent[name] = why }
            return finding
        } catch {
            let failures = failuresInARow[name, default: 0] + 1
            failuresInARow[name] = failures
            // Each failure may cost a minute.
            if failures >= 3 { silent[name] = error.failure.message }
            return .unknown(error.failure.message)
        }
    }

    /// A row of a damaged database is reason enough to send nothing again, but not to remove a source.
    private func markedAssumed(_ remote: RemoteObject?) -> RemoteObject {
        var remote = remote ?? RemoteObject(id: nil, url: nil, verifiedBy: "history")
        remote.warnings = ["counted as uploaded, according to the old database; the source is kept"]
        return remote
    }

    private func undecided(_ name: String, _ why: String) -> RestoredFile.Knowledge {
        report.reasons[name] = why
        switch options.undecided {
        case .send:
            report.toSend[name, default: 0] += 1
            return .toSend
        case .assumeSent:
            report.assumed[name, default: 0] += 1
            return .assumed(
                RemoteObject(
                    id: nil, url: nil, verifiedBy: "assumed",
                    warnings: [
                        "counted as uploaded by `sluice rebuild` without asking the destination; the source is kept"
                    ]))
        case .fail:
            report.undecided[name, default: 0] += 1
            return .undecided(
                Failure(
                    .local, code: .perhapsSent,
                    message:
                        "may have been uploaded before the rebuild: \(why). `sluice retry ID` uploads it, `sluice cancel ID` "
                        + "ends it; the source is kept until then", at: clocks.wall(), retryable: true))
        }
    }
}

extension RestoredFile.Knowledge {
    var isAssumed: Bool { if case .assumed = self { true } else { false } }
}
