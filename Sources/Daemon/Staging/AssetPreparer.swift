internal import Config
internal import Core
internal import Destinations
internal import Linux
internal import Staging
internal import Store

/// Bytes that are ready to be uploaded: their location and their digests.
struct PreparedContent: Sendable {
    /// `nil` for a source that is uploaded in place.
    var copy: StagingArea.FreshCopy?
    var sha256: [UInt8]
    var parts: PartDigests
    /// The result of the export command, where one ran.
    var export: (size: Int64, sourceSHA256: [UInt8]?)?
    /// The token in the copy's own record.
    var releaseToken: ReleaseToken?
}

enum CopyResult: Sendable {
    case ready(PreparedContent)
    case failed(StagingError)
    /// Policy holds the command that makes its file.
    case held(Hold)
    /// The asset's folder does not meet its requirement: none of its files is inspected.
    case away(String)
}

/// Prepares the assets of one batch, each in the way that its folder configures. A value for a thread that may wait for
/// the disk.
struct AssetPreparer: Sendable {
    fileprivate let staging: StagingArea
    fileprivate let making: LiveStaging
    /// The facts that each copy carries with it.
    fileprivate let origins: [Int64: CopyOrigin]
    fileprivate let methods: [Int64: StagingArea.Method]
    fileprivate let exports: [Int64: Export]
    /// The holds on exports, as they were when the batch began.
    fileprivate let holds: [Int64: Hold]
    /// Decides about the connections of the command of each export that policy applies to.
    let gates: [Int64: ProgramGate]
    /// The destinations of each asset.
    fileprivate let destinations: [Int64: [any Destination]]
    /// Whether progress is shown: a batch of small files is over before it could be seen.
    fileprivate let isSeen: Bool
    fileprivate let stop: StopFlag
    fileprivate let locator: SourceLocator

    func make(_ asset: AssetRecord) -> CopyResult {
        if let missing = locator.requirementMissing(of: asset) {
            return .away("\(asset.root.display): \(missing)")
        }
        if let hold = holds[asset.id] { return .held(hold) }
        do throws(StagingError) {
            var content = try content(of: asset)
            content.releaseToken = origins[asset.id]?.release
            return .ready(content)
        } catch { return .failed(error) }
    }

    private func content(of asset: AssetRecord) throws(StagingError) -> PreparedContent {
        let wanted = CopyRequest(locator.source(of: asset), asset.identity, changed: asset.changed)
        let (stop, making, isSeen) = (stop, making, isSeen)
        let pace = CopyProgress(
            progress: { if isSeen { making.copied(asset.id, $0) } }, isStopped: { stop.isSet })
        let requestedDigests = { (size: Int64) in
            destinations[asset.id, default: []].flatMap { $0.requestedDigests(forSize: size) }
        }
        switch asset.stagingMode {
        case .copy:
            begin(asset, .copying)
            let copy = try staging.copy(
                wanted, as: asset.stagedName, by: methods[asset.id], origin: origins[asset.id],
                requestedDigests: requestedDigests(asset.size), pace: pace)
            return PreparedContent(copy: copy, sha256: copy.sha256, parts: copy.parts)
        case .inPlace:
            begin(asset, .digesting)
            let content = try staging.digestInPlace(wanted, requestedDigests: requestedDigests(asset.size), pace: pace)
            return PreparedContent(sha256: content.sha256, parts: content.parts)
        // The copy is gone, and there is no source to make another from.
        case .received: throw .missing(asset.path.shown)
        case .export:
            guard let export = exports[asset.id] else {
                throw .noCommand(
                    "it was found while the folder had an `export`, which is no longer configured: restore it, "
                        + "or cancel its uploads", isOfAll: true)
            }
            begin(asset, .exporting)
            let made = try staging.export(
                wanted, as: asset.stagedName, export, origin: origins[asset.id],
                digestsSource: asset.action != .leave, requestedDigests: requestedDigests,
                progress: { making.exported(asset.id, $0) },
                isStopped: { stop.isSet })
            return PreparedContent(
                copy: made.copy, sha256: made.copy.sha256, parts: made.copy.parts,
                export: (made.copy.size, made.sourceSHA256))
        }
    }

    private func begin(_ asset: AssetRecord, _ work: LiveStaging.Work) {
        if isSeen { making.begin(asset.id, asset.path.shown, work, total: asset.size) }
    }
}

extension Stager {
    func maker(of batch: [AssetRecord], _ stop: StopFlag) async -> AssetPreparer {
        var methods: [Int64: StagingArea.Method] = [:]
        var exports: [Int64: Export] = [:]
        var (holds, gates): ([Int64: Hold], [Int64: ProgramGate]) = ([:], [:])
        for asset in batch {
            methods[asset.id] = method(for: asset)
            guard asset.stagingMode == .export, let settings = context.configuration.folder(asset.folder)?.export else {
                continue
            }
            exports[asset.id] = Export(
                command: settings.command, output: RemoteNaming(asset.identity).exported(settings).name,
                timeout: settings.timeout, minSize: settings.minSize, folder: asset.folder,
                relative: asset.identity.relative, cover: { [secrets = context.secrets] in redacted(secrets.cover($0)) }
            )
            guard let servers = settings.servers else { continue }
            let payer = ProgramPayer.export(folder: asset.folder)
            if let hold = await policed.connections.scheduler.hold(on: payer) { holds[asset.id] = hold }
            let gate = policed.gate(for: payer)
            gates[asset.id] = gate
            exports[asset.id]?.network = { [policed] () throws(SystemError) in
                try policed.network(to: servers, through: gate)
            }
        }
        let isSeen = batch.count == 1 && (batch[0].size > StagingAdmission.smallFile || batch[0].stagingMode == .export)
        let origins = await CopyOrigins(store: context.store).of(batch)
        let all = context.destinations
        return AssetPreparer(
            staging: context.staging, making: making, origins: origins, methods: methods, exports: exports,
            holds: holds, gates: gates,
            destinations: origins.mapValues { Set($0.uploads.map(\.destination)).compactMap { all[$0] } },
            isSeen: isSeen, stop: stop, locator: locator)
    }
}

extension RemoteNaming {
    /// - Parameter relative: A path to use in place of its own.
    init(_ identity: FileIdentity, as relative: FilePath? = nil) {
        self.init(
            folder: identity.folder, relative: relative ?? identity.relative, size: identity.size,
            modified: identity.modified)
    }

    /// The path below the folder that a source would have if it were the output of the command.
    func exported(_ export: ExportSettings) -> FilePath {
        let name = FilePath(bytes: fill(export.output)).name
        let isName = !name.isEmpty && name != "." && name != ".."
        return relative.parent.appending(isName ? name : relative.name)
    }
}
