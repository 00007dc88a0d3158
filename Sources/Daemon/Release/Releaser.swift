internal import Config
internal import Core
internal import Linux
internal import Staging
internal import Store

/// Releases verified assets: the source by its configured action, then the staged copy.
///
/// Every step can be repeated: a step that a crash left half done is found by its state and finished.
actor Releaser {
    let context: Context
    private let stateHealth: StateHealth
    let locator: SourceLocator
    /// Folders with verified sources that stay, since it is unknown whether a program has them open for writing.
    let unsureReleases: Alerts
    private let signal: AsyncSignal
    let writers: any WriterDetecting
    /// Requests from `Watch` that a file settles again.
    private let reconsider: @Sendable (_ folder: String, _ relative: FilePath) -> Void
    var deferrals = ReleaseDeferrals() { didSet { if deferrals.takeWake() { signal.signal() } } }
    /// How often disks were reported to be back.
    private var returns = 0
    /// Folders for which it was logged that their moves are copies.
    private var copiedFolders: Set<String> = []
    /// The error of the last pass, which is logged once.
    private var complaint: String?
    /// Whether the sources kept by earlier runs were reviewed.
    private var hasReviewed = false

    /// Assets whose copies are removed in one transaction.
    private static let together = 64
    /// Sources released at a time: their transactions and folder syncs overlap.
    private static let width = 16
    /// Numbers of assets in one query.
    private static let page = 1_024

    /// - Parameter writers: Finds programs that have a file open for writing.
    init(
        context: Context, stateHealth: StateHealth, locator: SourceLocator, unsureReleases: Alerts,
        signal: AsyncSignal, writers: any WriterDetecting,
        reconsider: @escaping @Sendable (String, FilePath) -> Void
    ) {
        (self.context, self.stateHealth, self.locator) = (context, stateHealth, locator)
        (self.unsureReleases, self.signal) = (unsureReleases, signal)
        self.reconsider = reconsider
        self.writers = writers
    }

    func run() async throws {
        while !Task.isCancelled {
            do {
                if !hasReviewed {
                    try await reviewKept()
                    hasReviewed = true
                }
                try await runCycle()
                await signal.wait(atMost: nextDeadline())
                complaint = nil
            } catch let error as StoreError {
                stateHealth.failed(error)
                await signal.wait(atMost: .seconds(5))
            } catch {
                if complaint != "\(error)" { context.log.error("cannot release sources", ["reason": "\(error)"]) }
                complaint = "\(error)"
                await signal.wait(atMost: .seconds(5))
            }
        }
    }

    /// The disk of these folders is present again: their releases are tried at once, and their failures are forgotten.
    func retry(_ folders: Set<String>) async throws {
        deferrals.end(of: folders)
        returns += 1
        // The commit wakes the loop.
        try await context.store.write { try $0.releases.clearNotes(of: folders) }
    }

    private func runCycle() async throws {
        var cursor: Int64 = 0
        var seen: Set<Int64> = []
        while !Task.isCancelled {
            let after = cursor
            let found = try await context.store.read { try $0.releases.dueAssets(limit: Self.page, after: after) }
            guard let last = found.last else {
                deferrals.forget(except: seen)
                return
            }
            seen.formUnion(found)
            cursor = last
            let now = context.clocks.monotonic()
            // Only assets that are due are read: an absent disk may have deferred a hundred thousand.
            let due = found.filter { !deferrals.isWaiting($0, at: now) }
            for some in due.pieces(of: Self.together) where !Task.isCancelled {
                // Those before them may have found that their disk is away.
                let left = some.filter { !deferrals.isWaiting($0, at: context.clocks.monotonic()) }
                try await release(context.store.read { try $0.releases.releasable(left) })
            }
        }
    }

    /// The next step for an asset.
    private enum NextStep {
        /// Some of its uploads are still to come.
        case nothing
        /// The source stays in place or is gone. This is recorded unless it was before.
        case dropCopy(SourceState?)
        /// The source stays, regardless of other kept ones.
        case keepSource
        case release(SourceRelease.Act)
    }

    private func release(_ found: [(asset: AssetRecord, verdict: ReleaseVerdict)]) async throws {
        var alone: [(AssetRecord, SourceRelease.Act)] = []
        var together: [(asset: AssetRecord, source: SourceState?)] = []
        var kept: [String: [(asset: AssetRecord, source: SourceState?)]] = [:]
        for (asset, verdict) in found {
            switch nextStep(asset, verdict) {
            case .nothing: try await context.store.write { try $0.releases.clearDue(asset.id) }
            case .dropCopy(let state):
                if verdict != .release, try await rescue(asset) { continue }
                together.append((asset, state))
            case .keepSource:
                if try await rescue(asset) { continue }
                kept[try await reason(asset), default: []].append((asset, .kept))
            case .release(let act): alone.append((asset, act))
            }
        }
        try await dropCopies(together)
        for (reason, ends) in kept { try await dropCopies(ends, note: reason) }
        for some in alone.pieces(of: Self.width) where !Task.isCancelled {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (asset, act) in some { group.addTask { try await self.release(asset, act) } }
                try await group.waitForAll()
            }
        }
    }

    private func nextStep(_ asset: AssetRecord, _ verdict: ReleaseVerdict) -> NextStep {
        switch verdict {
        case .keepBoth: return .nothing
        case .dropCopy: return .dropCopy(nil)
        case .keepSource:
            return asset.sourceState == .released || asset.sourceState == .kept ? .dropCopy(nil) : .keepSource
        case .release:
            if asset.sourceState == .released || asset.sourceState == .kept { return .dropCopy(nil) }
            // The copy was the only file.
            if asset.stagingMode == .received { return .dropCopy(.released) }
            switch asset.action {
            case .keep, .leave: return .dropCopy(.kept)
            case .delete: return .release(.delete)
            case .move(let template): return .release(.move(to: asset.moveTarget(template)))
            }
        }
    }

    private func dropCopies(_ ends: [(asset: AssetRecord, source: SourceState?)], note: String? = nil) async throws {
        if ends.isEmpty { return }
        let (staging, names) = (context.staging, ends.map(\.asset.stagedName))
        try await blocking { for name in names { try staging.remove(name) } }
        try await context.store.write { tx in try tx.releases.finish(ends.map { ($0.asset.id, $0.source) }, note: note)
        }
        for (asset, _) in ends { deferrals.end(asset.id, at: context.clocks.monotonic()) }
    }

    /// The reason why a source stays though no upload of it is to come.
    private func reason(_ asset: AssetRecord) async throws -> String {
        let uploads = try await context.store.read { try $0.uploads.of(asset.id) }
        if uploads.contains(where: { $0.ending == .failed }) { return "an upload of it has failed" }
        return uploads.contains { $0.ending == .cancelled && $0.isSkipped }
            ? "`before_upload` skipped it" : "an upload of it has expired"
    }

    /// Keeps the copy of a file that was sent nowhere if it may be all that is left: the source is gone, is another
    /// file now, or cannot be read.
    ///
    /// - Returns: Whether there was such a copy, and the release is over or waits. A copy that cannot be moved stays,
    ///   and delays no other release.
    private func rescue(_ asset: AssetRecord) async throws -> Bool {
        guard asset.state == .staged, asset.stagingMode != .inPlace else { return false }
        // One destination has it.
        if try await context.store.read({ try $0.uploads.of(asset.id) }).contains(where: { $0.ending == .completed }) {
            return false
        }
        let (staging, name, leaf) = (context.staging, asset.stagedName, asset.identity.relative.name)
        let identity = (asset.stagingMode == .export ? asset.sourceSHA256 : asset.sha256).map { sha256 in
            SourceRelease.AssetIdentity(
                id: asset.id, source: locator.source(of: asset), size: asset.size, modified: asset.identity.modified,
                inode: asset.identity.inode, changed: asset.changed, sha256: sha256, takenAt: asset.arrivedAt)
        }
        let found: FilePath?
        let isChanged: Bool
        do {
            (found, isChanged) = try await blocking { () throws -> (FilePath?, Bool) in
                // A source that cannot be read may be absent.
                let isAsked = asset.stagingMode != .received
                let trusted = identity?.mayHideWrite() == true ? nil : asset.changed
                let inPlaceState = isAsked ? try? identity?.inPlaceState(trusting: trusted) : nil
                if case .same? = inPlaceState { return (nil, false) }
                return (
                    try staging.rescue(name, leaf: leaf), inPlaceState == .changed && identity?.isReplaced() == true
                )
            }
        } catch let error as SystemError {
            try await postpone(asset, "cannot move its copy, which is the only one left, to a safe place: \(error)")
            return true
        }
        guard let place = found else { return false }
        CrashPoint.reached("copy-rescued")
        let isReceived = asset.stagingMode == .received
        let why = isReceived ? "it has no other source" : "its source is gone or has changed"
        let note = "it was uploaded to no destination, and \(why): its copy is \(place.display)"
        try await context.store.write { try $0.releases.finish(asset.id, .kept, note: note, isChanged: isChanged) }
        deferrals.end(asset.id, at: context.clocks.monotonic())
        context.log.warning(
            "kept the copy of a file that was uploaded to no destination, because \(why)",
            ["path": asset.path.display, "copy": place.display])
        if isChanged { settleAgain(asset) }
        return true
    }

    /// The result of releasing a source.
    private enum SourceEnd {
        /// The release is over.
        ///
        /// - Parameter isChanged: Another version has its name, to be taken up.
        case over(SourceState, note: String, isChanged: Bool = false)
        /// To be tried again; the copy stays while the source may still turn out to be another file.
        case waits
        /// To be tried again when its disk is back; the copy must not fill the cache until then.
        case away(String)
    }

    private func release(_ asset: AssetRecord, _ act: SourceRelease.Act) async throws {
        let before = returns
        switch try await releaseSource(asset, act) {
        case .waits: return
        case .away(let reason):
            try await removeCopy(asset)
            if asset.state != .dropped {
                try await context.store.write { try $0.releases.recordDroppedCopy(asset.id) }
            }
            // If the disk has come back meanwhile, the next cycle tries it.
            if returns == before { try await waitForDisk(asset, reason) }
        case .over(let state, let note, let isChanged):
            try await removeCopy(asset)
            // One record for both: after a crash before it, the next run finds source and copy gone and writes it then.
            try await context.store.write { try $0.releases.finish(asset.id, state, note: note, isChanged: isChanged) }
            report(asset, state, note)
            deferrals.end(asset.id, at: context.clocks.monotonic())
            if isChanged { settleAgain(asset) }
        }
    }

    /// Lets the file that has the source's name now settle as a new one. After a crash before that, the scan at start
    /// finds it as unknown.
    private func settleAgain(_ asset: AssetRecord) {
        CrashPoint.reached("source-changed")
        context.log.notice(
            "the file is uploaded as a new version when it has settled",
            ["folder": asset.folder, "path": asset.path.display])
        reconsider(asset.folder, asset.identity.relative)
    }

    private func removeCopy(_ asset: AssetRecord) async throws {
        let (staging, name) = (context.staging, asset.stagedName)
        try await blocking { try staging.remove(name) }
    }

    private func releaseSource(_ asset: AssetRecord, _ act: SourceRelease.Act) async throws -> SourceEnd {
        let isExport = asset.stagingMode == .export
        // The source's own digest, which differs from that of the uploaded file after an export.
        guard let sha256 = isExport ? asset.sourceSHA256 : asset.sha256 else {
            // It is to be copied again, or that was given up.
            if asset.state == .arrived || asset.state == .unsettled { return .waits }
            return .over(.kept, note: "its content was not recorded" + (isExport ? " when it was exported" : ""))
        }
        let token = try await context.store.write { try $0.releases.begin(asset.id, token: .random()) }
        CrashPoint.reached("release-begun")
        let identity = SourceRelease.AssetIdentity(
            id: asset.id, source: locator.source(of: asset), size: asset.size, modified: asset.identity.modified,
            inode: asset.identity.inode, changed: asset.changed, sha256: sha256, takenAt: asset.arrivedAt)
        do {
            var result = try await run(identity, act, token, .stop, of: asset)
            var plan: UnsureReleasePlan?
            if case .unsure(let doubt) = result {
                let found = try await unsurePlan(for: asset, doubt)
                plan = found
                if let inDoubt = found.inDoubt { result = try await run(identity, act, token, inDoubt, of: asset) }
            }
            switch result {
            case nil: return .away("\(asset.root.display) is not mounted as it was when the file was found")
            case .released(let note, let isCopied):
                if isCopied { logCopied(asset.folder) }
                return .over(.released, note: note)
            case .gone where try await context.store.read { try $0.assets.hasNewerVersion(asset) }:
                return .over(.kept, note: "a newer version replaced it, and that version is gone")
            case .gone: return .over(.released, note: "the source no longer existed")
            case .kept(let reason): return .over(.kept, note: reason)
            case .changed(let reason): return .over(.kept, note: reason, isChanged: true)
            case .later(let reason): try await postpone(asset, reason)
            case .unsure(let doubt):
                // The two questions about writers had different answers: the release is tried again.
                guard let plan else { break }
                return try await applyUnsureRule(asset, doubt, plan)
            }
        } catch let error as SystemError {
            if let reason = try await blocking({ [locator] in locator.absence(of: asset, after: error) }) {
                return .away(reason)
            }
            try await postpone(asset, ReleaseAdvice.text(after: error, for: asset))
        }
        return .waits
    }

    /// - Returns: `nil` when the disk of the source is absent.
    private func run(
        _ identity: SourceRelease.AssetIdentity, _ act: SourceRelease.Act, _ token: ReleaseToken,
        _ inDoubt: SourceRelease.InDoubt, of asset: AssetRecord
    ) async throws -> SourceRelease.Result? {
        let release = SourceRelease(identity, act, token: token, inDoubt: inDoubt, writers: writers)
        return try await blocking { [locator] () -> SourceRelease.Result? in
            if try locator.whereabouts(of: asset) == .away { return nil }
            let result = try release.run()
            // Its disk may have disappeared at this moment, and another one may have a file with its name.
            switch result {
            case .gone: return try locator.whereabouts(of: asset) == .gone ? result : nil
            case .kept, .changed: return try locator.isOnOtherDisk(asset) ? nil : result
            case .released, .later, .unsure: return result
            }
        }
    }

    /// Keeps the source, or waits, according to the folder's `release_unsure`.
    private func applyUnsureRule(
        _ asset: AssetRecord, _ doubt: WriterSearch.Doubt, _ plan: UnsureReleasePlan
    ) async throws -> SourceEnd {
        let reason = UnsureReleaseTexts.reason(doubt)
        switch plan {
        case .go: break
        case .keep:
            logKept(asset.folder, doubt)
            return .over(.kept, note: UnsureReleaseTexts.note(doubt))
        case .wait(let time):
            let until = context.clocks.monotonic().advanced(by: time)
            deferrals.wait(asset, until: until, at: context.clocks.monotonic())
            // Its uploads are verified: the copy would only fill the cache until then.
            try await removeCopy(asset)
            try await context.store.write { try $0.releases.recordDroppedCopy(asset.id) }
            try await note(
                "\(reason): it is released when it has not changed for a while (release_unsure: after)", asset)
        }
        return .waits
    }

    /// Logged once for a folder: its moves read and write every byte again.
    private func logCopied(_ folder: String) {
        guard copiedFolders.insert(folder).inserted else { return }
        context.log.notice(
            "verified sources move to another file system: each is copied, compared and then deleted",
            ["folder": folder])
    }

    private func report(_ asset: AssetRecord, _ state: SourceState, _ note: String) {
        if state == .released {
            context.log.info("source released", ["path": asset.path.display, "result": note])
        } else {
            context.log.warning("source kept", ["path": asset.path.display, "reason": note])
        }
    }

    private func postpone(_ asset: AssetRecord, _ reason: String, isReported: Bool = false) async throws {
        let deferral = deferrals.failed(asset, at: context.clocks.monotonic(), jitter: Random.jitter())
        try await note(reason, asset)
        if !isReported, deferral.shouldLog {
            context.log.warning(
                "source not released yet",
                ["path": asset.path.display, "reason": reason, "failures": "\(deferral.failures)"])
        }
    }

    private func waitForDisk(_ asset: AssetRecord, _ reason: String) async throws {
        locator.diskIsAway(asset.folder, reason)
        if !deferrals.isDiskAway(of: asset, at: context.clocks.monotonic()) {
            let before = returns
            let isAway = try await blocking { [locator] in locator.isDiskAway(of: asset) }
            if returns != before { return }
            // Only this source is away.
            if !isAway { return try await postpone(asset, reason, isReported: true) }
        }
        deferrals.waitForDisk(asset, at: context.clocks.monotonic(), jitter: Random.jitter())
        try await note(reason, asset)
    }

    func nextDeadline() -> Duration? { deferrals.nextDeadline(at: context.clocks.monotonic()) }

    private func note(_ reason: String, _ asset: AssetRecord) async throws {
        guard asset.sourceNote != reason else { return }
        try await context.store.write { try $0.releases.recordFailure(asset.id, note: reason) }
    }
}
