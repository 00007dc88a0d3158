internal import Config
internal import Core
internal import Linux
internal import Store

/// Records settled files from `Watch` as assets and uploads, by the settings of their folder.
struct Intake: Sendable {
    let house: House

    /// Records a batch of settled files. Waits while the state cannot be written: `Watch` finds the files again that it
    /// holds back meanwhile, so no file is lost.
    ///
    /// - Parameters:
    ///   - isUnit: Whether the files travel together.
    ///   - leader: The file that they belong to, which was taken up before; a path below their folder.
    func record(_ files: [SettledFile], asUnit isUnit: Bool = false, with leader: FilePath? = nil) async throws {
        let (empty, wanted) = await split(files)
        try await insist { try await house.store.write { try $0.tombstones.skip(empty.map(\.identity)) } }
        for file in empty {
            house.log.info("empty file skipped", ["folder": file.folder, "path": file.path.display])
        }
        let shared = isUnit ? await facts(ofUnit: wanted, with: leader) : MediaFacts()
        var arrivals: [NewAsset] = []
        for file in wanted {
            guard let folder = house.folder(file.folder) else { continue }
            let own = await facts(of: file)
            var arrival = arrival(of: file, folder, to: folder.uploadTo, facts: own.isEmpty ? shared : own)
            if isUnit { (arrival.unit, arrival.joins) = (0, leader) }
            arrivals.append(arrival)
        }
        if arrivals.isEmpty { return }
        let outcomes = try await insist {
            try await house.store.write { [arrivals] tx in try tx.arrivals.record(arrivals) }
        }
        CrashPoint.reached("arrived")
        for (arrival, outcome) in zip(arrivals, outcomes) { log(arrival, outcome) }
        tookNewVersions()
    }

    /// Stops uploads that read earlier versions in place. A crash before that does no harm: the same record ended them.
    func tookNewVersions() {
        house.live.reviewSuperseded()
        house.schedulingSignal.signal()
    }

    /// Skips files that were in a folder before it was watched for the first time, and are not wanted (`existing:
    /// skip`).
    func skipExisting(_ files: [SettledFile]) async throws {
        try await insist { try await house.store.write { try $0.tombstones.skip(files.map(\.identity)) } }
        house.log.info("skipped files that existed before the folder was first watched", ["files": "\(files.count)"])
    }

    private func split(_ files: [SettledFile]) async -> (empty: [SettledFile], wanted: [SettledFile]) {
        var (empty, wanted): ([SettledFile], [SettledFile]) = ([], [])
        for file in files {
            let isSkipped = file.status.size == 0 && house.folder(file.folder)?.empty == .skip
            if isSkipped { empty.append(file) } else { wanted.append(file) }
        }
        return (empty, wanted)
    }

    /// - Parameter destinations: Names; the folder's own unless a person gave others.
    func arrival(
        of file: SettledFile, _ folder: FolderSettings, to destinations: [String], key: String? = nil,
        context: [String: String] = [:], headers: [String: String] = [:], url: String? = nil, again: Bool = false,
        facts: MediaFacts = MediaFacts()
    ) -> NewAsset {
        var naming = RemoteNaming(
            folder: file.folder, relative: file.relative, size: file.status.size, modified: file.status.modified)
        naming.facts = facts
        // The output of a command has another name, and perhaps another type.
        var sent = naming
        let export = folder.export(of: file.relative.name)
        if let export { sent = RemoteNaming(file.identity, as: naming.exported(export)) }
        sent.facts = facts
        let orders = destinations.map { destination in
            var order = NewAsset.Order(
                destination: destination, name: sent.remoteName(folder.name),
                mediaType: MediaType.of(sent.relative), key: key ?? folder.key.map { naming.text($0) },
                context: folder.context.mapValues { naming.text($0) }.merging(context) { $1 },
                metadata: metadata(of: folder, for: destination).mapValues { naming.text($0) })
            order.headers = headers
            order.url = url
            return order
        }
        return NewAsset(
            file: file, action: naming.settled(folder.afterUpload), priority: folder.priority, orders: orders,
            again: again,
            stagingMode: export != nil ? .export : stagingMode(in: folder))
    }

    /// The templates for metadata: the destination's own take precedence over the folder's with the same names.
    private func metadata(of folder: FolderSettings, for destination: String) -> [String: Template] {
        folder.metadata.merging(house.settings(ofDestination: destination)?.templates ?? [:]) { $1 }
    }

    private func stagingMode(in folder: FolderSettings) -> StagingMode {
        if folder.isReceived { return .received }
        return (folder.copy ?? house.settings.staging.copy) == .inPlace ? .inPlace : .copy
    }

    func count(_ outcome: NewAssetOutcome, of folder: String) {
        switch outcome {
        case .recorded, .newVersion: house.counters.add(.files, [folder])
        case .renewed, .known, .keyTaken: break
        }
    }

    private func log(_ arrival: NewAsset, _ outcome: NewAssetOutcome) {
        count(outcome, of: arrival.file.folder)
        let path = arrival.file.path.display
        switch outcome {
        case .recorded(_, let uploads): log("found a new file", arrival, uploads)
        case .newVersion(_, let uploads): log("found a new version of a known file", arrival, uploads)
        case .renewed:
            house.log.info("file settled again after a change", ["folder": arrival.file.folder, "path": path])
        case .known:
            house.log.debug("file already known", ["folder": arrival.file.folder, "path": path])
        case .keyTaken(let holder):
            house.log.warning(
                "file not added: an upload in progress has the same key",
                ["folder": arrival.file.folder, "path": path, "id": holder])
        }
    }

    private func log(_ what: String, _ arrival: NewAsset, _ uploads: [String]) {
        house.log.info(
            what,
            [
                "folder": arrival.file.folder, "path": arrival.file.path.display, "size": "\(arrival.file.status.size)",
                "settled_by": arrival.file.settledBy.rawValue, "uploads": uploads.joined(separator: ","),
            ])
    }

    /// Repeats a change of the state until it succeeds: intake waits for the disk, and loses nothing.
    @discardableResult
    private func insist<R: Sendable>(_ body: () async throws -> R) async throws -> R {
        while true {
            do {
                return try await body()
            } catch let error as StoreError {
                house.stateFailed(error)
                try await Alarms.shared.sleep(for: .seconds(5))
            }
        }
    }
}

extension FolderSettings {
    /// The command that makes the file to upload; `nil` where the file itself is uploaded. A command processes videos;
    /// files that travel with them are sent unchanged.
    func export(of name: FilePath) -> ExportSettings? { group?.isSidecar(name) == true ? nil : export }
}
