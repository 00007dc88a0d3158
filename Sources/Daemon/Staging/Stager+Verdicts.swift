internal import Config
internal import Core
internal import Linux
internal import Staging
internal import Store

// The results of copies, and the reactions to them.

extension Stager {
    func finish(_ results: [(AssetRecord, CopyResult)]) async {
        let copied = results.compactMap { asset, result -> Fresh? in
            if case .ready(let content) = result { (asset, content) } else { nil }
        }
        do {
            if !copied.isEmpty { try await publish(copied) }
            for (asset, result) in results {
                switch result {
                case .ready: break
                case .failed(let error): try await handle(error, asset)
                case .away(let reason): try await waitForDisk(asset, reason, isOfAll: true)
                case .held(let hold): wait(asset, for: hold)
                }
            }
        } catch let error as StoreError {
            // The assets stay recorded as arrived: they are copied again, but not at once.
            stateHealth.failed(error)
            deferrals.block(at: context.clocks.monotonic())
        } catch {
            // The same applies here.
            context.log.error("cannot record staged copies; will retry", ["reason": "\(error)"])
            block("\(error)")
        }
    }

    private typealias Fresh = (asset: AssetRecord, content: PreparedContent)

    private func publish(_ copied: [Fresh]) async throws {
        let staging = context.staging
        let copies = copied.compactMap(\.content.copy)
        do { try await blocking { try staging.publish(copies) } } catch let error as StagingError {
            // A copy that is not complete under its name is made again.
            if let first = copied.first { try await handle(error, first.asset) }
            return
        }
        let facts = await facts(of: copied.map(\.asset))
        let repeats = Set(
            try await context.store.write { tx in
                try tx.staging.record(
                    copied.map {
                        StagedCopy(
                            asset: $0.asset.id, version: $0.asset.version, sha256: $0.content.sha256,
                            parts: $0.content.parts,
                            skipsDuplicates: context.configuration.folder($0.asset.folder)?.duplicates == .skip,
                            export: $0.content.export,
                            releaseToken: $0.content.releaseToken)
                    }, facts: facts)
            })
        CrashPoint.reached("staged")
        deferrals.unblock()
        if !isShort { clearTrouble() }
        // The uploads were cancelled during the copy, or the version was replaced: no upload needs these copies.
        let owned = try await context.store.read { try $0.assets.owned(copied.map(\.asset.id)) }
        let stray = copied.map(\.asset).filter { !owned.contains($0.id) }
        if !stray.isEmpty { try await blocking { for asset in stray { try staging.remove(asset.stagedName) } } }
        for (asset, content) in copied where owned.contains(asset.id) {
            forgetDeferral(asset.id)
            deferrals.endDisk(of: asset.id, at: context.clocks.monotonic())
            stagingHolds.clearStaging(onDiskOf: asset.id)
            deferrals.forgetChanges(of: asset.id)
            endHold(of: asset.folder)
            if repeats.contains(asset.id) {
                context.log.info(
                    "not uploaded again: the same content was uploaded before (see `sluice show`); the source is kept",
                    ["path": asset.path.display])
            } else {
                context.log.info(
                    asset.stagingMode == .inPlace ? "ready for upload in place" : "staged",
                    [
                        "path": asset.path.display, "size": "\(asset.size)",
                        "exported": content.export.map { "\($0.size)" }, "sha256": hexadecimal(content.sha256),
                    ])
            }
        }
    }

    private func handle(_ error: StagingError, _ asset: AssetRecord) async throws {
        switch error {
        case .stopped:
            // The daemon stops: the next start removes the copy, and removing a large file takes time.
            if Task.isCancelled { break }
            let (staging, name) = (context.staging, asset.stagedName)
            try await blocking { try staging.remove(name) }
            context.log.info("copy stopped: its uploads were cancelled", ["path": asset.path.display])
        // A folder that cannot be opened tells nothing.
        case .changed where await (try? blocking({ [locator] in try locator.isOnOtherDisk(asset) })) == true:
            try await waitForDisk(
                asset, "another disk is mounted at \(asset.root.display) than when the file was found")
        case .changed:
            context.log.info(
                "file changed while it was copied; it waits until it settles again", ["path": asset.path.display])
            backOff(asset)
            try await context.store.write { try $0.staging.unsettle(asset.id, version: asset.version) }
            reconsider(asset.folder, asset.identity.relative)
        case .missing:
            let place: SourceLocator.Whereabouts
            do {
                place = try await blocking { [locator] in try locator.whereabouts(of: asset) }
            } catch let error as SystemError { return try await handle(.unreadable(error), asset) }
            switch place {
            case .there: postpone(asset, .absent, "it was missing for a moment", isReported: true)
            case .away:
                try await waitForDisk(asset, "\(asset.root.display) is not mounted as it was when the file was found")
            case .gone: try await refuse(asset, await missing(asset), isGone: true)
            }
        case .full(let error):
            let folder = context.staging.folder
            // Space that cannot be read is left out: the error says the most.
            let space = try? await blocking { try Space(at: folder) }
            let left = space.map { ": \(shownBytes($0.free)) free, room for \($0.filesFree) more files" } ?? ""
            block(
                "not enough space in \(folder.display) (`staging.path`) for \(asset.path.display) (\(shownBytes(asset.size)))\(left); "
                    + "\(error)",
                changeKey: "full")
        case .broken(let error): block("the staging folder does not work (`staging.path`): \(error)")
        case .tooLarge(let error):
            postpone(
                asset, .disk,
                "the staging folder cannot hold a file of \(shownBytes(asset.size)): \(error); FAT ends at 4 GiB, and LimitFSIZE= of the "
                    + "unit may be less: put staging.path on another file system, or set `staging: {copy: in-place}` for the folder"
            )
        case .unreadable(let error):
            if let reason = try await blocking({ [locator] in locator.absence(of: asset, after: error) }) {
                return try await waitForDisk(asset, reason, isOfAll: true)
            }
            postpone(asset, .backoff, "cannot read the source: \(error); \(advice(error, asset))")
        case .cannotShare(_, let error): try await cannotShare(error, asset)
        case .noCommand(let text, let isOfAll):
            try await hold(
                asset, .backoff, isOfAll: isOfAll,
                "export of folder \(asset.folder): \(text); install it or correct export.command, and reload")
        case .commandEnded(let text): postpone(asset, .backoff, text)
        case .commandFailed(let code, let text):
            let failure = Failure(
                .local, code: code, message: "its export failed: \(text)", at: context.clocks.wall(), retryable: true)
            try await refuse(asset, failure, isGone: false)
        }
    }

    private func cannotShare(_ error: SystemError, _ asset: AssetRecord) async throws {
        let staging = context.staging.folder.display
        try await hold(
            asset, .disk, isOfAll: error.isOfFileSystem,
            "copy: reflink is set for folder \(asset.folder), and its files cannot share blocks with \(staging): \(error.reason); "
                + (error.crossesFileSystems
                    ? "they are on different file systems: put staging.path on that of the folder, or set copy: auto"
                    : "reflinks need Btrfs, or XFS made with reflink=1: set copy: auto, or move both to such a file system")
        )
    }

    /// Advice for a person about a source that cannot be read.
    private func advice(_ error: SystemError, _ asset: AssetRecord) -> String {
        if error.isDenied { return "give the daemon's user the right to read it; Sluice retries" }
        if error.isOfDisk { return "its disk may be failing: check the kernel log; Sluice retries" }
        return "Sluice retries"
    }

    /// The name of an obstacle that concerns a whole folder.
    static func trouble(of folder: String) -> String { "staging of \(folder)" }

    /// Files wait for an error in their folder's settings, which is reported once.
    ///
    /// - Parameter isOfAll: It concerns all files of the disk, which wait together.
    private func hold(_ asset: AssetRecord, _ kind: Hold.Kind, isOfAll: Bool, _ reason: String) async throws {
        deferrals.block(folder: asset.folder)
        if troubles.set(Self.trouble(of: asset.folder), Hold(kind, since: context.clocks.wall(), text: reason)) {
            context.log.error("files of a folder wait to be staged", ["folder": asset.folder, "reason": reason])
        }
        if !isOfAll { return postpone(asset, kind, reason, isReported: true) }
        try await waitTogether(asset, kind, reason, since: retries)
    }

    /// The settings of a folder do not block its files any more.
    func endHold(of folder: String) {
        guard troubles.clear(Self.trouble(of: folder)) else { return }
        context.log.notice("files of a folder are staged again", ["folder": folder])
    }

    /// A source that has changed during every copy is copied less and less often.
    private func backOff(_ asset: AssetRecord) {
        stagingHolds.clear(asset.id)
        guard let wait = deferrals.changed(CopyDeferrals.Source(asset), at: context.clocks.monotonic()) else { return }
        let now = context.clocks.wall()
        let reason =
            "it had changed \(wait.count) times in a row while it was copied"
            + (asset.stagingMode == .export ? "; the command of `export` must not write to its source" : "")
        stagingHolds.set(
            asset.id, Hold(.backoff, since: now, until: now.advanced(by: wait.duration), text: reason))
        if wait.shouldLog {
            context.log.warning(
                "file changes during each copy; will copy it less often",
                ["path": asset.path.display, "reason": reason])
        }
    }

    /// A disk is away, or a file of it.
    ///
    /// - Parameter isOfAll: The reason applies to all files of the disk; `false`: this is to be found out.
    private func waitForDisk(_ asset: AssetRecord, _ reason: String, isOfAll: Bool = false) async throws {
        locator.diskIsAway(asset.folder, reason)
        let before = retries
        if deferrals.isWaiting(asset.id, with: DiskWork(staging: asset), at: context.clocks.monotonic()) { return }
        if !isOfAll, !(try await blocking({ [locator] in locator.isDiskAway(of: asset) })) {
            return postpone(asset, .absent, reason, isReported: true)
        }
        try await waitTogether(asset, .absent, reason, since: before)
    }

    /// The files of a disk wait together: there may be a hundred thousand, and each would be tried in vain.
    ///
    /// - Parameter before: The number of retries when the reason was found.
    private func waitTogether(_ asset: AssetRecord, _ kind: Hold.Kind, _ reason: String, since before: Int) async throws
    {
        let disk = DiskWork(staging: asset)
        // Another file of the batch has found it.
        if deferrals.isWaiting(asset.id, with: disk, at: context.clocks.monotonic()) { return }
        let files = Set(try await context.store.read { try $0.staging.waitingOnDisk(of: asset) })
        // The reason may be over by now: the file is tried again at once.
        if retries != before { return }
        let now = context.clocks.monotonic()
        // It was recorded after the others had begun to wait, or is not to be copied any more.
        if deferrals.isWaiting(disk, at: now) || !files.contains(asset.id) {
            if deferrals.isWaiting(asset.id, with: disk, at: now) { return }
            return postpone(asset, kind, reason, isReported: true)
        }
        let wait = deferrals.away(disk, files, at: now, jitter: Random.jitter())
        let since = context.clocks.wall()
        stagingHolds.set(disk, Hold(kind, since: since, until: since.advanced(by: wait), text: reason), of: files)
    }

    // MARK: Exports that policy applies to

    /// A command that failed after policy had refused or stopped a connection of it is run again when that is over.
    ///
    /// - Parameter gates: Those of commands that policy applies to. Their connections have ended when this returns.
    func withHolds(
        _ results: [(AssetRecord, CopyResult)], _ gates: [Int64: ProgramGate]
    ) async -> [(AssetRecord, CopyResult)] {
        var judged: [(AssetRecord, CopyResult)] = []
        for (asset, result) in results {
            let hold = await gates[asset.id]?.finished().hold
            if let hold, case .failed(let error) = result, error.isOfCommand {
                judged.append((asset, .held(hold)))
            } else {
                judged.append((asset, result))
            }
        }
        return judged
    }

    private func wait(_ asset: AssetRecord, for hold: Hold) {
        if deferrals.hold(CopyDeferrals.Source(asset), at: context.clocks.monotonic()) {
            context.log.info(
                "policy holds the command of `export`; the files of the folder wait",
                ["folder": asset.folder, "reason": hold.text])
        }
        stagingHolds.set(asset.id, hold)
    }

    /// Tries the exports that policy held and no longer holds.
    func retryHeldExports() async {
        for folder in deferrals.heldFolders
        where await policed.connections.scheduler.hold(on: .export(folder: folder)) == nil {
            deferrals.endHold(of: folder, at: context.clocks.monotonic())
        }
    }

    /// The disk of these folders is present again: copies that waited for it are tried at once.
    func retry(_ folders: Set<String>) {
        deferrals.retry(folders, at: context.clocks.monotonic())
        retries += 1
    }

    /// The staging folder refused a copy, so it would refuse the next: all copies wait a little.
    private func block(_ text: String, changeKey: String? = nil) {
        wait(text, changeKey: changeKey, until: context.clocks.wall().advanced(by: CopyDeferrals.blockTime))
        deferrals.block(at: context.clocks.monotonic())
    }

    /// One source cannot be copied now: the others continue, and it is tried again.
    private func postpone(_ asset: AssetRecord, _ kind: Hold.Kind, _ reason: String, isReported: Bool = false) {
        let wait = deferrals.failed(
            CopyDeferrals.Source(asset), at: context.clocks.monotonic(), jitter: Random.jitter())
        let now = context.clocks.wall()
        stagingHolds.set(
            asset.id, Hold(kind, since: now, until: now.advanced(by: wait.duration), text: reason))
        if !isReported, wait.shouldLog {
            context.log.warning(
                "cannot stage a file yet; will retry",
                ["path": asset.path.display, "reason": reason, "failures": "\(wait.count)"])
        }
    }

    /// The most bytes of it that were sent to any destination.
    private func sent(of asset: AssetRecord) async throws -> Int64 {
        try await context.store.read { try $0.uploads.of(asset.id) }.map { max($0.sent, $0.acked) }.max() ?? 0
    }

    /// The reason why its earlier copy was given up; `nil` where it had none.
    private func lossOfCopy(of asset: AssetRecord) async throws -> Failure? {
        for upload in try await context.store.read({ try $0.uploads.of(asset.id) }) {
            let last = try await context.store.read { try $0.failures.of(upload.id) }.last?.failure
            if let last, last.isLossOfCopy { return last }
        }
        return nil
    }

    private func missing(_ asset: AssetRecord) async throws -> Failure {
        if asset.stagingMode != .inPlace, asset.stagingMode != .received, let loss = try await lossOfCopy(of: asset) {
            return Failure(
                .local, code: loss.code,
                message:
                    "\(loss.message), and its source \(asset.path.display) is gone, so it cannot be sent: if you have "
                    + "the file, restore it",
                at: context.clocks.wall(), retryable: false)
        }
        let sent = try await sent(of: asset)
        let inPlace =
            sent > 0
            ? "uploaded completely in place: \(shownBytes(min(sent, asset.size))) of \(shownBytes(asset.size)) had been sent, and "
                + "the destination has not confirmed that it has the whole file"
            : "uploaded"
        return Failure(
            .local, code: .sourceMissing,
            message: asset.stagingMode == .received
                ? "the received bytes are gone, and no file exists to read them from again: "
                    + "send them to Sluice once more"
                : "\(asset.path.display) was removed before it could be "
                    + (asset.stagingMode == .inPlace ? inPlace : "copied into staging"),
            at: context.clocks.wall(), retryable: false)
    }

    func refuse(_ asset: AssetRecord, _ failure: Failure, isGone: Bool) async throws {
        guard
            try await context.store.write({
                try $0.staging.fail(asset.id, failure, isGone: isGone, version: asset.version)
            })
        else {
            // The other version that has come meanwhile is tried at once.
            return forgetDeferral(asset.id)
        }
        forgetDeferral(asset.id)
        deferrals.forgetChanges(of: asset.id)
        context.log.warning("file not uploaded", ["path": asset.path.display, "reason": failure.message])
    }

    /// A file that changed and then vanished never settles again: its uploads end as `source_missing`.
    func checkUnsettled() async throws {
        while !Task.isCancelled {
            do {
                let assets = try await context.store.read { try $0.staging.unsettled() }
                await unsettledSignal.wait(atMost: assets.isEmpty ? nil : .seconds(10))
                for asset in assets {
                    let isGone = try await blocking { [locator] () throws -> Bool in
                        // An unmounted folder proves nothing about its files, nor does a disk that fails.
                        do throws(SystemError) {
                            return try locator.whereabouts(of: asset) == .gone
                        } catch {
                            if error.isOfDisk { return false }
                            throw error
                        }
                    }
                    if isGone { try await refuse(asset, await missing(asset), isGone: true) }
                }
            } catch let error as StoreError {
                stateHealth.failed(error)
                try await Alarms.shared.sleep(for: .seconds(10))
            } catch {
                context.log.warning("cannot check changed files; will retry", ["reason": "\(error)"])
                try await Alarms.shared.sleep(for: .seconds(10))
            }
        }
    }
}
