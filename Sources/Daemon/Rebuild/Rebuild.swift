package import Config
package import Core
internal import Credentials
package import Destinations
package import Linux
internal import Staging
internal import Store
internal import Transport
internal import Watch

/// Makes a new database from the folders, the staging folder and the content of the destinations.
///
/// It reads all readable rows of the old database, and moves it aside at the end. A crash at any point leaves either
/// the old one as it was, refused by every start, or the new one in its place; running it again is always right.
package final class Rebuild: Sendable {
    let context: Context
    let sources: SourceFolders
    let mediaReading: MediaReading
    let assets: NewAssetBuilder
    let inventory: RemoteInventory
    let options: RebuildOptions
    private let transport: Transport
    private let onProgress: @Sendable (String) -> Void

    /// Runs the whole rebuild.
    ///
    /// - Parameter progress: Called now and then with the progress, for a person.
    /// - Throws: ``RebuildError``; `StateLockedError` while a daemon runs; `UnusableStateError`; `SystemError`; a destination's
    ///   error about its settings.
    package static func run(
        _ written: Settings, kinds: [DestinationDefinition], options: RebuildOptions,
        clocks: any Clocks = SystemClocks(),
        log: Log, progress: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws -> RebuildReport {
        let state = written.state
        if !options.isTrial, let earlier = try await blocking({ try StateFiles.finishRebuild(in: state) }) {
            var report = RebuildReport()
            report.finishedEarlier = true
            report.setAside = earlier?.display
            return report
        }
        // A rebuild does not accept a directory that the daemon has refused.
        let remembered = try await blocking { StateFiles.folderIdentities(in: state) }
        let settings = try await blocking {
            CardFolders.expand(written, known: StateFiles.cards(in: state)).settings
        }
        let sources = SourceFolders(remembered: remembered ?? [:])
        sources.apply(settings.presentFolders.map(\.watch))
        for folder in settings.presentFolders where !options.isForced {
            let rule = folder.watch
            let missing = try await blocking { MountCheck(sources[rule.path], [rule.requirement]).missing() }
            if let missing {
                throw RebuildError.folderAway(rule.name, rule.path, missing)
            }
        }
        let staging = StagingArea(settings.staging)
        let store = try await Store.openNew(
            state, clocks: clocks, sorting: UploadSort(settings), isTrial: options.isTrial)
        do {
            let transport = Transport()
            var runtime = RuntimeConfiguration(
                settings: settings, staging: staging, destinations: [:], since: clocks.wall())
            let factory = DestinationFactory(
                kinds: kinds, transport: transport, secrets: SecretReader(), clocks: clocks, log: log)
            for destination in settings.destinations {
                runtime.destinations[destination.name] = try factory.make(destination)
            }
            let cards = settings.folders.filter { $0.card != nil }
            try await store.write { tx in
                for folder in cards {
                    if let card = folder.card { try tx.folders.remember(card, folderAt: folder.watch.path) }
                }
            }
            for folder in settings.folders {
                guard let identity = remembered?[folder.watch.path] else { continue }
                try await store.write { try $0.folders.remember(identity, at: folder.watch.path) }
            }
            let context = Context(
                store: store, clocks: clocks, log: log, configuration: CurrentConfiguration(runtime))
            let rebuild = Rebuild(context, sources, options, transport, progress)
            var report = try await rebuild.work(
                unknown: settings.presentFolders.filter { remembered?[$0.watch.path] == nil })
            report.troubles += settings.patternFolders.compactMap { missingCards(of: $0, in: settings) }
            await transport.stop()
            return report
        } catch {
            // The next rebuild replaces anything left of it; the first error is the one that counts.
            try? await store.discard()
            throw error
        }
    }

    /// Words about cards whose files could not be looked at. Unlike another folder, a card does not stop a rebuild: it
    /// may never come back.
    private static func missingCards(of folder: FolderSettings, in settings: Settings) -> String? {
        let cards = settings.folders.compactMap(\.card).filter { $0.pattern == folder.watch.name }
        let away = cards.filter { !$0.isMounted }.map(\.name)
        if away.isEmpty && !cards.isEmpty { return nil }
        let names = away.isEmpty ? "" : ": " + away.prefix(20).joined(separator: ", ") + (away.count > 20 ? " …" : "")
        return
            "folder `\(folder.watch.name)`: files on cards that are not mounted now count as new later, and are sent "
            + "again to a destination that cannot say what it has; mount the cards that are meant, and run "
            + "`sluice rebuild --force --yes` again before the daemon starts\(names)"
    }

    private init(
        _ context: Context, _ sources: SourceFolders, _ options: RebuildOptions, _ transport: Transport,
        _ tell: @escaping @Sendable (String) -> Void
    ) {
        self.context = context
        self.sources = sources
        mediaReading = MediaReading()
        self.options = options
        self.transport = transport
        self.onProgress = tell
        assets = NewAssetBuilder(
            configuration: context.configuration, sources: sources, mediaReading: mediaReading)
        inventory = RemoteInventory(context.destinations, context.settings, options, clocks: context.clocks)
    }

    /// - Parameter unknown: Folders whose directories are not recorded in the old database.
    private func work(unknown: [FolderSettings]) async throws -> RebuildReport {
        let (state, staging) = (context.settings.state, context.staging)
        let copies = try await blocking { try staging.copies() }
        let problem = try await blocking { try StateFiles.problem(in: state, copies: { copies.count }) }
        if problem == nil && !options.isForced { throw RebuildError.isWell(state.appending("sluice.db")) }
        // Copies and caught sources have numbers of the old database, which no new asset may get.
        try await context.store.write { try $0.assets.reserveNumbers(upTo: (copies.last ?? 0) + 1_000_000) }

        var found = Found()
        let told = try await context.store.salvage(from: state)
        if told.rows > 0 { onProgress("\(told.rows) rows of the old database are readable") }
        if try await blocking({ try StateFiles.hasCompleteLog(in: state) }) { await inventory.trustLog() }
        if let pauses = try await blocking({ StateFiles.pauses(in: state) }) {
            for pause in pauses { try await context.store.write { try $0.pauses.set(pause) } }
        } else {
            found.troubles.append("cannot read the pauses that were set: set them again before uploads start")
        }
        if try await !context.store.salvageLedger(from: state), context.settings.hasQuotas {
            found.troubles.append(
                "the record of bytes sent so far is incomplete: quotas count too little until their next period starts")
        }
        for (index, copy) in copies.enumerated() {
            if index % 100 == 0 { onProgress("copy \(index + 1) of \(copies.count)") }
            try await importCopy(copy, &found)
        }
        try await importFolders(&found)
        let units = try await found.units.united(in: sources)
        for folder in unknown {
            let path = folder.watch.path
            // A folder that does not exist yet may become anything.
            guard let owner = try? await blocking({ [sources] in try sources[path].owner() }) else {
                continue
            }
            found.troubles.append(
                "the identity of the directory of folder \(folder.watch.name) is lost: the directory at \(path.display) now, "
                    + "of user \(UserDatabase.shown(owner)), is accepted")
        }
        try await context.store.write { tx in
            try tx.restoredFiles.unite(units)
        }
        for folder in context.settings.folders {
            try await context.store.write { try $0.folders.recordWatched([folder.watch.name]) }
        }

        try await context.store.write { try $0.evidence.drop() }
        var report = await inventory.report
        report.salvaged = told.rows
        report.trial = options.isTrial
        report.problem = problem ?? "nothing; --force"
        (report.files, report.bytes, report.copies) = (found.files, found.bytes, found.placed)
        (report.givenBack, report.troubles) = (found.returnedSources, found.troubles)
        let loose = found.loose.values.flatMap { $0 }.map(\.copy).sorted()
        if options.isTrial {
            report.unmatched = loose.map { staging.path(FilePath("\($0)")).display }
            try await context.store.discard()
            return report
        }
        let moment = LocalTime(context.clocks.wall()).formatted("%Y%m%d-%H%M%S")
        report.setAside = try await context.store.install(moment: moment)?.display
        // Last: if a start comes before this, it sets aside a copy that is still among the others.
        report.unmatched = try await blocking { try loose.map { try staging.setAside(FilePath("\($0)")).display } }
        return report
    }

    /// The files and copies that were found so far.
    struct Found {
        struct Place: Hashable {
            let folder: String
            let relative: FilePath
        }
        var files = 0
        var bytes: Int64 = 0
        var placed = 0
        /// Sources whose version is the one in a staged copy.
        var covered: [Place: FileStatus] = [:]
        /// Copies without a record of their origin, by their size.
        var loose: [Int64: [(copy: Int64, sha256: [UInt8])]] = [:]
        var returnedSources: [String] = []
        var troubles: [String] = []
        var units = RestoredUnits()
    }

    /// Records files, and notes which of them travel together.
    func restore(_ files: [RestoredFile], _ found: inout Found) async throws {
        // A file of a group that nothing is known of waits for the others: the first scan takes it up.
        let files = files.filter {
            context.configuration.folder($0.arrival.file.folder)?.group == nil || !$0.isNew
        }
        let assets = try await context.store.write { try $0.restoredFiles.record(files) }
        for (file, asset) in zip(files, assets) {
            let settled = file.arrival.file
            guard let rule = context.configuration.folder(settled.folder)?.group else { continue }
            await found.units.add(asset, settled, rule, in: sources)
        }
    }

    // MARK: Folders

    private static let batch = 64
    /// Parallel questions: enough to hide the latency, few enough for a small server.
    private static let questions = 4

    private func importFolders(_ found: inout Found) async throws {
        var survey = FolderSurvey(
            rules: context.settings.presentFolders.map(\.watch), in: sources, clocks: context.clocks)
        while true {
            let (next, piece) = try await blocking { [survey] in
                var survey = survey
                let piece = survey.next()
                return (survey, piece)
            }
            survey = next
            guard let piece else { return }
            found.troubles += piece.troubles
            for (asset, path) in piece.caught {
                found.troubles.append(
                    "\(path.display) has the name that the release of asset \(asset) gave to its source, and no record says "
                        + "which name it had before: rename it by hand")
            }
            for some in piece.files.pieces(of: Self.batch) {
                try await importFiles(Array(some), &found)
                onProgress("\(found.files) files found in the folders")
            }
        }
    }

    private func importFiles(_ files: [SettledFile], _ found: inout Found) async throws {
        var wanted: [(file: SettledFile, copy: Int64?, sha256: [UInt8]?)] = []
        var skipped: [FileIdentity] = []
        for file in files {
            found.files += 1
            found.bytes += file.status.size
            guard let folder = context.configuration.folder(file.folder) else { continue }
            if found.covered[Found.Place(folder: file.folder, relative: file.relative)] == file.status { continue }
            let isLeftAlone = try await context.store.read { try $0.evidence.find(file.folder, file.relative, "") }
                .contains {
                    $0.stage == .skipped
                        && $0.fits(size: file.status.size, modified: file.status.modified, sha256: nil)
                }
            var isTaken = true
            if folder.routes.contains(where: { $0.when != nil }) {
                isTaken = !assets.routes(for: file, folder, await assets.facts(of: file)).isEmpty
            }
            if isLeftAlone || !isTaken || file.status.size == 0 && folder.empty == .skip {
                skipped.append(file.identity)
                continue
            }
            let candidates = found.loose[file.status.size] ?? []
            var sha256: [UInt8]?
            // The content of an exported source is nowhere else: its size and time have to decide.
            if folder.export == nil, await inventory.canQuery(folder.uploadTo) || !candidates.isEmpty {
                do { sha256 = try await digest(of: file) } catch let error as SystemError {
                    found.troubles.append("\(error)")
                }
                // The file is changing, so its final content was never sent: the first scan takes it up.
                if sha256 == nil { continue }
            }
            var copy: Int64?
            if let index = candidates.firstIndex(where: { $0.sha256 == sha256 }) {
                copy = found.loose[file.status.size]?.remove(at: index).copy
                found.placed += 1
            }
            wanted.append((file, copy, sha256))
        }
        if !skipped.isEmpty { try await context.store.write { [skipped] tx in try tx.tombstones.skip(skipped) } }
        let restored = try await withThrowingTaskGroup(of: (Int, RestoredFile).self) { group in
            var results: [(Int, RestoredFile)] = []
            for (index, entry) in wanted.enumerated() {
                if index >= Self.questions, let done = try await group.next() { results.append(done) }
                group.addTask { (index, try await self.restored(entry.file, copy: entry.copy, entry.sha256)) }
            }
            for try await done in group { results.append(done) }
            return results.sorted { $0.0 < $1.0 }.map(\.1)
        }
        if !restored.isEmpty { try await restore(restored, &found) }
        CrashPoint.reached("rebuild-restored")
    }

    private func restored(_ file: SettledFile, copy: Int64?, _ sha256: [UInt8]?) async throws -> RestoredFile {
        let folder = context.configuration.folder(file.folder)
        let facts = await assets.facts(of: file)
        // `take` has checked the folder before.
        var arrival =
            folder.map { assets.arrival(of: file, $0, to: assets.routes(for: file, $0, facts), facts: facts) }
            ?? NewAsset(file: file, action: .keep, priority: 0, orders: [])
        let source = sources.source(file.path)
        // Only for the question: nothing of it is read or sent.
        let staged = sha256.map { StagedFile(path: file.path.shown, size: file.status.size, sha256: $0) }
        var uploads: [RestoredFile.Upload] = []
        for order in arrival.orders {
            uploads.append(
                await inventory.resolveKnowledge(
                    of: order, id: nil, staged, size: file.status.size, modified: file.status.modified,
                    try await context.store.read {
                        try $0.evidence.find(file.folder, file.relative, order.destination)
                    },
                    mayBeOld: copy == nil && folder?.watch.existing == .skip))
        }
        if uploads.contains(where: { $0.knowledge.isAssumed }) { arrival.action = .leave }
        var restored = RestoredFile(arrival: arrival, copy: copy, sha256: sha256, uploads: uploads)
        if copy != nil {
            let reading = mediaReading
            restored.media = try await blocking {
                reading.facts(of: source, orOf: nil, named: file.relative.name, probes: false)
            }
        }
        return restored
    }

    /// - Returns: `nil` for a file that changes while it is read.
    private func digest(of file: SettledFile) async throws -> [UInt8]? {
        let source = sources.source(file.path)
        return try await blocking {
            let sha256 = try contentDigest(of: source)
            return try source.statusIfPresent() == file.status ? sha256 : nil
        }
    }
}
