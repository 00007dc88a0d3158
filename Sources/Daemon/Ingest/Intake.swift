internal import API
internal import Config
internal import Core
internal import Linux
internal import Store

/// Files that travel together.
struct FileUnit: Sendable {
    var rule: GroupRule
    /// The name under which they are reported as one: a path below their folder.
    var name: FilePath?
    /// The file that they belong to, which was recorded before; a path below their folder.
    var leader: FilePath?
}

/// Records settled files from `Watch` as assets and uploads, by the settings of their folder.
struct Intake: Sendable {
    let context: Context
    let stateHealth: StateHealth
    let assets: NewAssetBuilder
    let counters: Counters

    /// Records a batch of settled files. Waits while the state cannot be written: `Watch` finds the files again that it
    /// holds back meanwhile, so no file is lost.
    ///
    /// - Parameters:
    ///   - unit: The group that they are; `nil` for files that travel alone.
    ///   - limit: When this is over no further facts are read, as `ffprobe` may need seconds for each file.
    ///     Before they are read the files may have waited for long: one that has changed or gone since is not
    ///     recorded, since its folder finds it again.
    /// - Returns: The files that are left because of `limit`, and not recorded.
    @discardableResult
    func record(
        _ files: [SettledFile], as unit: FileUnit? = nil, within limit: Duration? = nil
    ) async throws -> [SettledFile] {
        let (empty, wanted) = await split(files)
        if !empty.isEmpty { try await skip(empty) }
        for file in empty {
            context.log.info("empty file skipped", ["folder": file.folder, "path": file.path.display])
        }
        // Only a sidecar has no facts and destinations of its own.
        let stem = unit?.rule.by == .stem ? unit : nil
        let shared = stem == nil ? MediaFacts() : await assets.facts(ofUnit: wanted, with: stem?.leader)
        let earlier = try await destinations(of: stem?.leader, beside: wanted.first)
        var arrivals: [NewAsset] = []
        var left: [SettledFile] = []
        var later: [SettledFile] = []
        let began = context.clocks.monotonic()
        for (index, file) in wanted.enumerated() {
            if index > 0, let limit, context.clocks.monotonic().since(began) >= limit {
                later = Array(wanted[index...])
                break
            }
            guard let folder = context.configuration.folder(file.folder) else { continue }
            let own = await assets.facts(of: file)
            if limit != nil, await !isUnchanged(file) { continue }
            let media = own.isEmpty ? shared : own
            let routes =
                stem != nil
                ? assets.routes(forUnit: wanted, folder, shared, earlier: earlier)
                : assets.routes(for: file, folder, media)
            if routes.isEmpty {
                left.append(file)
                continue
            }
            var arrival = assets.arrival(of: file, folder, to: routes, facts: media)
            if let unit { (arrival.unit, arrival.joins, arrival.group) = (0, unit.leader, unit.name) }
            arrivals.append(arrival)
        }
        if !left.isEmpty { try await skip(left) }
        for file in left {
            context.log.info(
                "file left alone: no item of `upload_to` takes it", ["folder": file.folder, "path": file.path.display])
        }
        // A receiver may take the manifest for the sign that all is there.
        if let rule = unit?.rule {
            arrivals =
                arrivals.filter { !rule.isManifest($0.file.relative.name) }
                + arrivals.filter { rule.isManifest($0.file.relative.name) }
        }
        try await record(arrivals)
        return later
    }

    /// Whether the file is as it settled. What cannot be inspected now, as without its disk, is not.
    private func isUnchanged(_ file: SettledFile) async -> Bool {
        let source = assets.sources.source(file.path)
        guard let now = (try? await blocking { try source.statusIfPresent() }) else { return false }
        // Not by the inode: a file system without inodes gives a file another number after a while.
        let then = file.status
        return (now.device, now.size, now.modified) == (then.device, then.size, then.modified)
    }

    private func record(_ arrivals: [NewAsset]) async throws {
        if arrivals.isEmpty { return }
        let outcomes = try await retryUntilStored {
            try await context.store.write { tx in try tx.arrivals.record(arrivals) }
        }
        CrashPoint.reached("arrived")
        for (arrival, outcome) in zip(arrivals, outcomes) { log(arrival, outcome) }
    }

    /// Where a file goes that was recorded before, on the disk of `file`; empty where it is not recorded any more.
    private func destinations(of leader: FilePath?, beside file: SettledFile?) async throws -> [String] {
        guard let leader, let file, let folder = context.configuration.folder(file.folder) else { return [] }
        let path = folder.watch.path.appending(leader)
        return try await context.store.read { try $0.uploads.rows(path: path, on: file.identity.fileSystem) }
            .map(\.upload.destination)
    }

    /// Skips files that were in a folder before it was watched for the first time, and are not wanted (`existing:
    /// skip`).
    func skipExisting(_ files: [SettledFile]) async throws {
        try await skip(files)
        context.log.info("skipped files that existed before the folder was first watched", ["files": "\(files.count)"])
    }

    private func skip(_ files: [SettledFile]) async throws {
        try await retryUntilStored { try await context.store.write { try $0.tombstones.skip(files.map(\.identity)) } }
    }

    private func split(_ files: [SettledFile]) async -> (empty: [SettledFile], wanted: [SettledFile]) {
        var (empty, wanted): ([SettledFile], [SettledFile]) = ([], [])
        for file in files {
            let isSkipped = file.status.size == 0 && context.configuration.folder(file.folder)?.empty == .skip
            if isSkipped { empty.append(file) } else { wanted.append(file) }
        }
        return (empty, wanted)
    }

    func count(_ outcome: NewAssetOutcome, of folder: String) {
        switch outcome {
        case .recorded, .newVersion: counters.add(.files, [folder])
        case .renewed, .known, .keyTaken, .copyAwaited: break
        }
    }

    private func log(_ arrival: NewAsset, _ outcome: NewAssetOutcome) {
        count(outcome, of: arrival.file.folder)
        let path = arrival.file.path.display
        switch outcome {
        case .recorded(_, let uploads): log("found a new file", arrival, uploads)
        case .newVersion(_, let uploads): log("found a new version of a known file", arrival, uploads)
        case .renewed:
            context.log.info("file settled again after a change", ["folder": arrival.file.folder, "path": path])
        case .known:
            context.log.debug("file already known", ["folder": arrival.file.folder, "path": path])
        case .keyTaken(let holder):
            context.log.warning(
                "file not added: an upload in progress has the same key",
                ["folder": arrival.file.folder, "path": path, "id": holder])
        case .copyAwaited(let upload):
            context.log.warning(
                "file not added: an upload of it waits for its copy",
                ["folder": arrival.file.folder, "path": path, "id": upload])
        }
    }

    private func log(_ what: String, _ arrival: NewAsset, _ uploads: [String]) {
        context.log.info(
            what,
            [
                "folder": arrival.file.folder, "path": arrival.file.path.display, "size": "\(arrival.file.status.size)",
                "settled_by": arrival.file.settledBy.rawValue, "uploads": uploads.joined(separator: ","),
            ])
    }

    /// Repeats a change of the state until it succeeds: intake waits for the disk, and loses nothing.
    @discardableResult
    private func retryUntilStored<R: Sendable>(_ body: () async throws -> R) async throws -> R {
        while true {
            do {
                return try await body()
            } catch let error as StoreError {
                stateHealth.failed(error)
                try await Alarms.shared.sleep(for: .seconds(5))
            }
        }
    }
}
