internal import Config
internal import Core
internal import Linux
internal import Staging
internal import Store
internal import Synchronization

/// Has every recorded asset copied into staging: two copies at a time, small ones in batches that share one sync of
/// the folder and one transaction.
actor Stager {
    let house: House
    /// Tells `Watch` that a file has to settle again.
    private let reconsider: @Sendable (_ folder: String, _ relative: FilePath) -> Void
    private var underWay: Set<Int64> = []
    /// Ends the copying of a batch, by its assets.
    private var stops: [Int64: StopFlag] = [:]
    /// Bytes promised to copies that are being made.
    private var promised: Int64 = 0
    /// Bytes that were promised and are no longer, since the start.
    private var redeemed: Int64 = 0
    /// Assets whose source cannot be read now, and when they are tried again.
    private var deferred: [Int64: (until: MonotonicTime, failures: Int)] = [:]
    /// The staging folder did not take a copy: it is not tried again before this.
    private var blockedUntil: MonotonicTime?
    private let workerBells: [Nudge]
    private let unsettledBell = Nudge()

    /// Larger files are copied alone.
    private static let smallFile: Int64 = 1 << 20
    private static let batchFiles = 64
    private static let batchTime: Duration = .milliseconds(50)
    /// Between two looks at a staging folder that does not work or has no room.
    private static let blockTime: Duration = .seconds(10)

    init(house: House, reconsider: @escaping @Sendable (String, FilePath) -> Void) {
        self.house = house
        workerBells = [Nudge(house.rest), Nudge(house.rest)]
        self.reconsider = reconsider
    }

    /// Copies until the task is cancelled.
    func run() async throws {
        try await Sweep(house: house).run()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for bell in workerBells { group.addTask { try await self.work(bell) } }
            group.addTask { try await self.lookAfterUnsettled() }
            group.addTask {
                while !Task.isCancelled {
                    await self.house.stagerBell.wait()
                    for bell in self.workerBells { bell.ring() }
                }
            }
            try await group.next()
            group.cancelAll()
        }
    }

    private func work(_ bell: Nudge) async throws {
        while !Task.isCancelled {
            do {
                let batch = try await nextBatch()
                if batch.isEmpty {
                    await bell.wait(atMost: nextDeadline())
                } else {
                    await copy(batch)
                }
            } catch let error as StoreError {
                house.stateFailed(error)
                await bell.wait(atMost: .seconds(5))
            }
        }
    }

    /// One large asset, or several small ones, whose room is reserved. Empty when there is none or no room.
    private func nextBatch() async throws -> [AssetRecord] {
        let now = house.clocks.monotonic()
        if let blockedUntil, blockedUntil > now { return [] }
        let waiting = deferred.filter { $0.value.until > now }.map(\.key)
        let candidates = try await house.store.arrived(limit: Self.batchFiles, except: underWay.union(waiting))
        forgetDeferred(except: candidates, now)
        if candidates.isEmpty && underWay.isEmpty && deferred.isEmpty { clearTrouble() }
        if candidates.allSatisfy({ underWay.contains($0.id) }) { return [] }
        let before = redeemed
        guard let room = try await room() else { return [] }
        var batch: [AssetRecord] = []
        // The other worker ran while this one waited for the answer, which may or may not count its copies.
        for asset in candidates where !underWay.contains(asset.id) {
            let isSmall = asset.size <= Self.smallFile
            if !batch.isEmpty && !isSmall { continue }
            if let cap = room.cap, asset.size > cap {
                underWay.insert(asset.id)
                defer { underWay.remove(asset.id) }
                try await refuse(asset, tooLarge(asset, cap), isGone: false)
                continue
            }
            if let obstacle = room.obstacle(for: asset.size, promised + redeemed - before) {
                wait(obstacle.text, news: obstacle.news)
                break
            }
            underWay.insert(asset.id)
            promised += asset.size
            batch.append(asset)
            if !isSmall { break }
        }
        return batch
    }

    /// Forgets assets that were put off and are not waiting any more: cancelled, or retried under another number.
    private func forgetDeferred(except candidates: [AssetRecord], _ now: MonotonicTime) {
        if deferred.isEmpty || candidates.count >= Self.batchFiles { return }
        let kept = Set(candidates.map(\.id)).union(underWay)
        for (id, entry) in deferred where entry.until <= now && !kept.contains(id) { forgetDeferral(id) }
    }

    private func forgetDeferral(_ asset: Int64) {
        deferred[asset] = nil
        _ = house.stagingHolds.clear("\(asset)")
    }

    private func clearTrouble() {
        if house.troubles.clear("staging") { house.log.notice("staging goes on") }
    }

    private func tooLarge(_ asset: AssetRecord, _ cap: Int64) -> Failure {
        Failure(
            .config, code: "larger_than_staging",
            message:
                "\(asset.path.display) has \(asset.size) bytes, more than staging.max_size (\(cap)) allows: raise it",
            at: house.clocks.wall(), retryable: false)
    }

    /// - Returns: `nil` when the folder cannot be asked, which is said.
    private func room() async throws -> StagingRoom? {
        let settings = house.settings.staging
        let used = try await house.store.stagedBytes()
        let staging = house.staging
        do {
            let free = try await blocking { try Self.freeSpace(of: staging) }
            return StagingRoom(
                folder: staging.folder, used: used, free: free, cap: settings.maxSize, keepFree: settings.keepFree)
        } catch {
            wait("the staging folder cannot be asked for its space: \(error)")
            return nil
        }
    }

    private static func freeSpace(of staging: StagingArea) throws(SystemError) -> Int64 {
        do { return try staging.free() } catch {
            guard error.isMissing else { throw error }
            // Somebody removed the folder. Waiting for a person to make it would help nobody.
            try staging.restore()
            return try staging.free()
        }
    }

    /// - Parameter news: What is worth a line in the log when it changes; the text by default.
    private func wait(_ text: String, news: String? = nil) {
        let hold = Hold(.disk, since: house.clocks.wall(), text: text)
        if house.troubles.set("staging", hold, news: news) { house.log.warning("staging waits", ["reason": text]) }
    }

    /// Both workers have done what there was to do.
    var isAtRest: Bool { underWay.isEmpty && workerBells.allSatisfy(\.isWaiting) }

    func nextDeadline() -> Duration? {
        let times = deferred.values.map(\.until) + (blockedUntil.map { [$0] } ?? [])
        // Never at once: what is due may be without room.
        var earliest = times.min().map { max(.seconds(1), $0.since(house.clocks.monotonic())) }
        // Room may also come by what others remove, of which nobody tells.
        if house.troubles["staging"] != nil { earliest = min(earliest ?? Self.blockTime, Self.blockTime) }
        return earliest
    }

    private enum Result: Sendable {
        case copied(StagingArea.FreshCopy)
        case failed(StagingError)
    }

    private func copy(_ batch: [AssetRecord]) async {
        let staging = house.staging
        let isCancelled = StopFlag()
        // Only one that is copied alone: in a batch the others would suffer, and it is over soon.
        if batch.count == 1 { stops[batch[0].id] = isCancelled }
        let started = house.clocks.monotonic()
        let clocks = house.clocks
        let origins = await house.origins(of: batch)
        // Not more than the batch's time, so that the first of many small ones does not wait for all.
        let results = await withTaskCancellationHandler {
            await
                (try? blocking { () -> [(AssetRecord, Result)] in
                    var results: [(AssetRecord, Result)] = []
                    for asset in batch {
                        if isCancelled.isSet || (!results.isEmpty && clocks.monotonic().since(started) > Self.batchTime)
                        {
                            break
                        }
                        do throws(StagingError) {
                            let copy = try staging.copy(
                                asset.path, expecting: asset.identity, changed: asset.changed, as: asset.stagedName,
                                origin: origins[asset.id], isStopped: { isCancelled.isSet })
                            results.append((asset, .copied(copy)))
                        } catch {
                            results.append((asset, .failed(error)))
                            // The next one would meet the same.
                            if error.isOfStaging { break }
                        }
                    }
                    return results
                }) ?? []  // the closure throws nothing
        } onCancel: {
            isCancelled.set()
        }
        await finish(results)
        for asset in batch {
            underWay.remove(asset.id)
            stops[asset.id] = nil
            promised -= asset.size
            redeemed += asset.size
        }
        house.stagerBell.ring()
    }

    /// The limits changed: a folder that did not take a copy is asked again.
    func reconsiderRoom() { blockedUntil = nil }

    /// Ends copies that nobody waits for any more: their uploads were cancelled.
    func reconsider() async {
        for (id, flag) in stops {
            // A state that cannot be read lets the copy be made, which is harmless.
            if let asset = try? await house.store.asset(id), asset.state != .arrived { flag.set() }
        }
    }

    private func finish(_ results: [(AssetRecord, Result)]) async {
        let copied = results.compactMap { asset, result -> Fresh? in
            if case .copied(let copy) = result { (asset, copy) } else { nil }
        }
        do {
            if !copied.isEmpty { try await publish(copied) }
            for case (let asset, .failed(let error)) in results { try await handle(error, asset) }
        } catch let error as StoreError {
            // The assets stay recorded as arrived: they are copied again, but not at once.
            house.stateFailed(error)
            blockedUntil = house.clocks.monotonic().advanced(by: Self.blockTime)
        } catch {
            // As above.
            house.log.error("staged copies could not be recorded", ["reason": "\(error)"])
            block("\(error)")
        }
    }

    private typealias Fresh = (asset: AssetRecord, copy: StagingArea.FreshCopy)

    private func publish(_ copied: [Fresh]) async throws {
        let staging = house.staging
        let copies = copied.map(\.copy)
        do { try await blocking { try staging.publish(copies) } } catch let error as StagingError {
            // What is not whole under its name is copied again.
            if let first = copied.first { try await handle(error, first.asset) }
            return
        }
        let facts = await facts(of: copied.map(\.asset))
        let repeats = Set(
            try await house.store.staged(
                copied.map {
                    Store.Copied(
                        asset: $0.asset.id, sha256: $0.copy.sha256,
                        skipsDuplicates: house.folder($0.asset.folder)?.duplicates == .skip)
                }, facts: facts))
        CrashPoint.reached("staged")
        blockedUntil = nil
        clearTrouble()
        // Cancelled while they were copied: nobody counts on them.
        let owned = try await house.store.owned(copied.map(\.asset.id))
        let stray = copied.map(\.asset).filter { !owned.contains($0.id) }
        if !stray.isEmpty { try await blocking { for asset in stray { try staging.remove(asset.stagedName) } } }
        for (asset, copy) in copied where owned.contains(asset.id) {
            forgetDeferral(asset.id)
            if repeats.contains(asset.id) {
                house.log.info(
                    "not sent again: the same content was uploaded before; the source is kept",
                    ["path": asset.path.display])
            } else {
                house.log.info(
                    "staged", ["path": asset.path.display, "size": "\(asset.size)", "sha256": hexadecimal(copy.sha256)])
            }
        }
        if !repeats.isEmpty { house.releaseBell.ring() }
        house.dispatchBell.ring()
    }

    private func handle(_ error: StagingError, _ asset: AssetRecord) async throws {
        switch error {
        case .stopped:
            // The daemon leaves: the next start sweeps it, and a large file takes its time to go.
            if Task.isCancelled { break }
            let (staging, name) = (house.staging, asset.stagedName)
            try await blocking { try staging.remove(name) }
        case .changed:
            forgetDeferral(asset.id)
            house.log.info("changed while it was copied, waits until it settles again", ["path": asset.path.display])
            try await house.store.unsettle(asset.id)
            unsettledBell.ring()
            reconsider(asset.folder, asset.identity.relative)
        case .missing:
            if try await blocking({ [house] in try SourceHome.isAway(asset, house) }) {
                putOff(asset, .absent, "\(asset.root.display) is not mounted as it was when the file was found")
            } else {
                try await refuse(asset, missing(asset), isGone: true)
            }
        case .full(let error):
            let folder = house.staging.folder
            // What cannot be asked is left out: the error says the most.
            let space = try? await blocking { try Space(at: folder) }
            let left = space.map { ": \($0.free) bytes are free, and \($0.filesFree) more files fit" } ?? ""
            block(
                "no room in \(folder.display) for the next file, of \(asset.size) bytes\(left); \(error)", news: "full")
        case .broken(let error): block("the staging folder does not work: \(error)")
        case .unreadable(let error): putOff(asset, .backoff, "the source cannot be read: \(error)")
        }
    }

    /// The staging folder did not take a copy, so it would not take the next: all wait a little.
    private func block(_ text: String, news: String? = nil) {
        wait(text, news: news)
        blockedUntil = house.clocks.monotonic().advanced(by: Self.blockTime)
    }

    /// One source cannot be copied now: the others go on, and it is tried again.
    private func putOff(_ asset: AssetRecord, _ kind: Hold.Kind, _ reason: String) {
        let failures = (deferred[asset.id]?.failures ?? 0) + 1
        let wait = Backoff(first: .seconds(10), ceiling: .seconds(600)).wait(
            afterFailures: failures, luck: Chance.luck())
        deferred[asset.id] = (house.clocks.monotonic().advanced(by: wait), failures)
        let now = house.clocks.wall()
        _ = house.stagingHolds.set(
            "\(asset.id)", Hold(kind, since: now, until: now.advanced(by: wait), text: reason))
        // The 1st, 2nd, 4th, 8th … time: a folder of another's files must not fill the log.
        if failures & (failures - 1) == 0 {
            house.log.warning(
                "waits for its source, will be tried again",
                ["path": asset.path.display, "reason": reason, "failures": "\(failures)"])
        }
    }

    private func missing(_ asset: AssetRecord) -> Failure {
        Failure(
            .local, code: "source_missing",
            message: "\(asset.path.display) was removed before it could be copied into staging",
            at: house.clocks.wall(), retryable: false)
    }

    private func refuse(_ asset: AssetRecord, _ failure: Failure, isGone: Bool) async throws {
        try await house.store.cannotStage(asset.id, failure, isGone: isGone)
        forgetDeferral(asset.id)
        house.log.warning("not uploaded", ["path": asset.path.display, "reason": failure.message])
    }

    /// A file that changed and then vanished never settles again: its uploads end as `source_missing`.
    private func lookAfterUnsettled() async throws {
        while !Task.isCancelled {
            do {
                let assets = try await house.store.unsettled()
                await unsettledBell.wait(atMost: assets.isEmpty ? nil : .seconds(10))
                for asset in assets {
                    let isGone = try await blocking { [house] in
                        // A folder that is not mounted says nothing about its files.
                        try FileLook.ifPresent(at: asset.path) == nil && !SourceHome.isAway(asset, house)
                    }
                    if isGone { try await refuse(asset, missing(asset), isGone: true) }
                }
            } catch let error as StoreError {
                house.stateFailed(error)
                try await Alarms.shared.sleep(for: .seconds(10))
            } catch {
                house.log.warning("cannot look after changed files", ["reason": "\(error)"])
                try await Alarms.shared.sleep(for: .seconds(10))
            }
        }
    }
}

/// Set once, read from any thread.
final class StopFlag: Sendable {
    private let flag = Atomic(false)
    var isSet: Bool { flag.load(ordering: .relaxed) }
    func set() { flag.store(true, ordering: .relaxed) }
}
