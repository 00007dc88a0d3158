internal import Config
internal import Core
internal import Linux
internal import Staging
internal import Store
internal import Synchronization

/// Copies every recorded asset into staging: some copies at a time, small ones in batches that share one sync of the
/// folder and one transaction. Exports have a worker of their own, since a command may take hours. A file that is
/// uploaded in place is only digested.
actor Stager {
    let house: House
    /// Tells `Watch` that a file has to settle again.
    let reconsider: @Sendable (_ folder: String, _ relative: FilePath) -> Void
    private var underWay: Set<Int64> = []
    /// The number of files that are being handed over as bytes.
    var receptions = 0
    /// Ends when the leftovers of a crash are removed, so that no new copy can be mistaken for one.
    let swept = AsyncBroadcast()
    /// Assets under way that are only being examined, and may have to wait for space.
    private var considered: Set<Int64> = []
    /// Whether a worker met an examined asset, and left the assets behind it until there is a decision.
    private var isPassedOver = false
    /// The latest answer about the space, by the time of asking, with the value of `redeemed` at that time.
    private var lastLook: SpaceQuery?
    private var looks = 0
    /// Flags that stop the copying of a batch, by its assets.
    private var stops: [Int64: StopFlag] = [:]
    /// Space promised to copies in progress.
    var promised = StagingBudget.Promise()
    /// Space whose promise has ended, in total since the start.
    var redeemed = StagingBudget.Promise()
    /// Assets whose source cannot be read now, and when they are tried again.
    var deferred: [Int64: Deferral] = [:]
    /// Turns of the folders, so that a folder with many files does not delay another's. Continues where the last run
    /// stopped; `nil` before that is read.
    private var turns: FolderTurns?
    /// How often in a row an asset's source had changed when its copy was made.
    var changes: [Int64: Int] = [:]
    /// Folders whose settings block all of their files.
    var troubled: Set<String> = []
    /// The staging folder refused a copy: it is not tried again before this.
    var blockedUntil: MonotonicTime?
    /// Whether the cache lacks space for the next file: of those to be exported, and of the others. It ends when no
    /// file has an obstacle, not with each file that fits.
    private var shortage = (exports: false, copies: false)
    var isShort: Bool { shortage.exports || shortage.copies }
    private let workers: [Worker]
    let unsettledBell = AsyncSignal()

    private struct Worker: Sendable {
        let signal: AsyncSignal
        /// From 0; workers from `staging.concurrency` on are idle.
        let number: Int
        let exports: Bool
    }

    struct Deferral {
        var until: MonotonicTime
        var failures: Int
        let exports: Bool
        let folder: String
    }

    private struct SpaceQuery {
        /// The order of asking.
        let number: Int
        let room: StagingBudget
        /// The answer may or may not include copies made since then.
        let redeemed: StagingBudget.Promise
    }

    /// An asset with reserved space for its copy.
    struct CopyJob: Sendable {
        let asset: AssetRecord
        let promise: StagingBudget.Promise
    }

    /// Larger files are copied alone.
    static let smallFile: Int64 = 1 << 20
    private static let batchFiles = 64
    private static let batchTime: Duration = .milliseconds(50)
    /// The interval between tries of a staging folder that does not work or has no space.
    static let blockTime: Duration = .seconds(10)
    /// The largest `staging.concurrency`.
    private static let mostWorkers = 8

    init(house: House, reconsider: @escaping @Sendable (String, FilePath) -> Void) {
        self.house = house
        workers =
            (0..<Self.mostWorkers).map { Worker(signal: AsyncSignal(house.rest), number: $0, exports: false) } + [
                Worker(signal: AsyncSignal(house.rest), number: 0, exports: true)
            ]
        self.reconsider = reconsider
    }

    /// Copies until the task is cancelled.
    func run() async throws {
        try await Sweep(house: house).run()
        swept.end()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in workers { group.addTask { try await self.work(worker) } }
            group.addTask { try await self.lookAfterUnsettled() }
            group.addTask {
                while !Task.isCancelled {
                    await self.house.stagingSignal.wait()
                    let count = self.house.settings.staging.concurrency
                    for worker in self.workers where worker.number < count { worker.signal.signal() }
                }
            }
            try await group.next()
            group.cancelAll()
        }
    }

    private func work(_ worker: Worker) async throws {
        while !Task.isCancelled {
            if worker.number >= house.settings.staging.concurrency {
                await worker.signal.wait()
                continue
            }
            do {
                let batch = try await nextBatch(exports: worker.exports)
                if batch.isEmpty {
                    await worker.signal.wait(atMost: nextDeadline())
                } else {
                    await copy(batch)
                }
            } catch let error as StoreError {
                house.stateFailed(error)
                await worker.signal.wait(atMost: .seconds(5))
            }
        }
    }

    /// One large asset or several small ones, with reserved space. Empty when there is none or no space.
    private func nextBatch(exports: Bool) async throws -> [CopyJob] {
        let now = house.clocks.monotonic()
        if let blockedUntil, blockedUntil > now { return [] }
        let waiting = deferred.filter { $0.value.until > now }.map(\.key)
        let kept = turns == nil ? try await house.store.turns(of: .copies) : FolderTurns()
        // Another worker may have read it meanwhile.
        let turns = self.turns ?? kept
        self.turns = turns
        let candidates = try await house.store.arrived(
            limit: Self.batchFiles, except: underWay.subtracting(considered).union(waiting), exports: exports,
            turns: turns)
        forgetDeferred(except: candidates, exports, now)
        if candidates.isEmpty && underWay.isEmpty {
            noteShortage(false, exports)
            if deferred.isEmpty && !isShort { clearTrouble() }
        }
        if candidates.allSatisfy({ underWay.contains($0.id) }) { return [] }
        guard try await lookAtRoom() else { return [] }
        var batch: [CopyJob] = []
        var obstacle: (text: String, news: String)?
        // Other workers ran during the wait for the answer, which may or may not include their copies. If another
        // worker examines an earlier asset, the assets behind it would take its space.
        var ahead: Set<Int64> = []
        var isLeft = false
        var isLess = false
        for asset in candidates {
            if underWay.contains(asset.id) {
                if considered.contains(asset.id), obstacle == nil { ahead.insert(asset.id) }
                continue
            }
            let isSmall = asset.size <= Self.smallFile && !exports
            if !batch.isEmpty && !isSmall { continue }
            let takesRoom = asset.stagingMode != .inPlace
            if takesRoom && !ahead.isEmpty {
                isLeft = true
                continue
            }
            // Assets behind one that waits for space would take that space.
            if takesRoom && obstacle != nil { continue }
            if takesRoom, let cap = house.settings.staging.maxSize, asset.size > cap {
                consider(asset.id)
                defer { endConsidering(asset.id) }
                try await refuse(asset, tooLarge(asset, cap), isGone: false)
                isLess = true
                continue
            }
            var promise = StagingBudget.Promise()
            if takesRoom {
                promise = StagingBudget.Promise(size: asset.size, need: asset.size)
                if !exports, self.obstacle(for: asset, promise) != nil {
                    // The copy may need less than the size; asked only now, since it costs calls for each file.
                    consider(asset.id)
                    defer { endConsidering(asset.id) }
                    promise.need = await need(of: asset)
                }
                obstacle = self.obstacle(for: asset, promise)
                if obstacle != nil { continue }
            }
            underWay.insert(asset.id)
            self.turns?.took(asset.folder)
            promised = promised + promise
            batch.append(CopyJob(asset: asset, promise: promise))
            if !isSmall { break }
        }
        if isLeft {
            if ahead.isDisjoint(with: considered) {
                // Another worker decided meanwhile, without knowing that assets were left behind it.
                house.stagingSignal.signal()
            } else {
                isPassedOver = true
            }
        } else if let obstacle {
            noteShortage(true, exports)
            wait(obstacle.text, news: obstacle.news)
        } else if batch.count == candidates.count {
            noteShortage(false, exports)
        }
        // The asset that others were left for does not wait, and an asset behind it does.
        if isPassedOver, isLess || !batch.isEmpty {
            isPassedOver = false
            house.stagingSignal.signal()
        }
        return batch
    }

    /// - Returns: Whether the folder could be asked.
    private func lookAtRoom() async throws -> Bool {
        looks += 1
        let (number, before) = (looks, redeemed)
        guard let room = try await room() else { return false }
        // A later question may have been answered first.
        if number > lastLook?.number ?? 0 { lastLook = SpaceQuery(number: number, room: room, redeemed: before) }
        return true
    }

    /// Uses the latest answer, also for a worker that has waited since its own: files removed meanwhile count for the
    /// next asset, and not for one that another worker finds behind it.
    private func obstacle(for asset: AssetRecord, _ promise: StagingBudget.Promise) -> (text: String, news: String)? {
        guard let lastLook else { return nil }
        return lastLook.room.obstacle(
            for: asset.path.shown, size: asset.size, need: promise.need, promised + redeemed - lastLook.redeemed)
    }

    /// Keeps other workers from this asset during the wait for an answer about it.
    private func consider(_ asset: Int64) {
        underWay.insert(asset)
        considered.insert(asset)
    }

    private func endConsidering(_ asset: Int64) {
        underWay.remove(asset)
        considered.remove(asset)
    }

    private func noteShortage(_ isOn: Bool, _ exports: Bool) {
        let wasShort = isShort
        if exports { shortage.exports = isOn } else { shortage.copies = isOn }
        if wasShort && !isShort { clearTrouble() }
    }

    private func need(of asset: AssetRecord) async -> Int64 {
        let (staging, method, source) = (house.staging, method(for: asset), house.source(of: asset))
        // The closure throws nothing.
        return (try? await blocking { staging.need(of: source, size: asset.size, by: method) }) ?? asset.size
    }

    /// How copies of a folder's files are made.
    func method(for asset: AssetRecord) -> StagingArea.Method? {
        house.folder(asset.folder)?.copy.map(StagingArea.Method.init)
    }

    /// Forgets deferred assets that no longer wait: cancelled, or retried under another number.
    private func forgetDeferred(except candidates: [AssetRecord], _ exports: Bool, _ now: MonotonicTime) {
        if deferred.isEmpty || candidates.count >= Self.batchFiles { return }
        let kept = Set(candidates.map(\.id)).union(underWay)
        for (id, entry) in deferred where entry.exports == exports && entry.until <= now && !kept.contains(id) {
            forgetDeferral(id)
        }
    }

    /// Ends the deferral of an asset.
    func forgetDeferral(_ asset: Int64) {
        deferred[asset] = nil
        _ = house.stagingHolds.clear("\(asset)")
    }

    func clearTrouble() {
        if house.troubles.clear("staging") { house.log.notice("staging goes on") }
    }

    private func tooLarge(_ asset: AssetRecord, _ cap: Int64) -> Failure {
        Failure(
            .config, code: "larger_than_staging",
            message:
                "\(asset.path.display) has \(shownBytes(asset.size)), more than staging.max_size (\(shownBytes(cap))) allows: raise it",
            at: house.clocks.wall(), retryable: false)
    }

    /// - Returns: `nil` when the folder cannot be asked, which is reported.
    func room() async throws -> StagingBudget? {
        let settings = house.settings.staging
        let used = try await house.store.stagedBytes()
        let staging = house.staging
        do {
            let free = try await blocking { try Self.freeSpace(of: staging) }
            return StagingBudget(
                folder: staging.folder, used: used, free: free, cap: settings.maxSize, keepFree: settings.keepFree)
        } catch {
            wait("the staging folder cannot be asked for its space (`staging.path`): \(error)")
            return nil
        }
    }

    private static func freeSpace(of staging: StagingArea) throws(SystemError) -> Int64 {
        do { return try staging.free() } catch {
            guard error.isMissing else { throw error }
            // The folder was removed. Waiting for a person to make it again would help no upload.
            try staging.restore()
            return try staging.free()
        }
    }

    /// - Parameters:
    ///   - news: The part of the text whose change is logged; the whole text by default.
    ///   - until: When it is tried again; `nil` where space has to be freed, at an unknown time.
    func wait(_ text: String, news: String? = nil, until: WallTime? = nil) {
        let hold = Hold(.disk, since: house.clocks.wall(), until: until, text: text)
        if house.troubles.set("staging", hold, news: news) { house.log.warning("staging waits", ["reason": text]) }
    }

    /// Whether all workers have finished their work.
    var isAtRest: Bool { underWay.isEmpty && receptions == 0 && workers.allSatisfy(\.signal.isWaiting) }

    func nextDeadline() -> Duration? {
        let times = deferred.values.map(\.until) + (blockedUntil.map { [$0] } ?? [])
        // Never at once: a due asset may lack space.
        var earliest = times.min().map { max(.seconds(1), $0.since(house.clocks.monotonic())) }
        // Other programs may free space too, without notice.
        if house.troubles["staging"] != nil { earliest = min(earliest ?? Self.blockTime, Self.blockTime) }
        return earliest
    }

    private func copy(_ batch: [CopyJob]) async {
        let isCancelled = StopFlag()
        // Only for a file that is copied alone: in a batch it would stop the others too, and a batch is soon over.
        if batch.count == 1 { stops[batch[0].asset.id] = isCancelled }
        let started = house.clocks.monotonic()
        let (clocks, maker) = (house.clocks, await maker(of: batch.map(\.asset), isCancelled))
        // Only for the batch's time, so that the first of many small files does not wait for all.
        let results = await withTaskCancellationHandler {
            await
                (try? blocking { () -> [(AssetRecord, CopyResult)] in
                    withLowPriority { () -> [(AssetRecord, CopyResult)] in
                        var results: [(AssetRecord, CopyResult)] = []
                        for asset in batch.map(\.asset) {
                            let isLate = !results.isEmpty && clocks.monotonic().since(started) > Self.batchTime
                            if isCancelled.isSet || isLate { break }
                            let result = maker.make(asset)
                            results.append((asset, result))
                            // The next one would fail in the same way.
                            if case .failed(let error) = result, error.isOfStaging { break }
                        }
                        return results
                    }
                }) ?? []  // the closure throws nothing
        } onCancel: {
            isCancelled.set()
        }
        for ticket in batch { house.making.end(ticket.asset.id) }
        await finish(results)
        for ticket in batch {
            underWay.remove(ticket.asset.id)
            stops[ticket.asset.id] = nil
            promised = promised - ticket.promise
            redeemed = redeemed + ticket.promise
        }
        house.stagingSignal.signal()
    }

    /// The settings changed: a folder that refused a copy is asked again, and so is a command that was missing.
    func reconsiderRoom() {
        blockedUntil = nil
        let now = house.clocks.monotonic()
        for id in deferred.keys { deferred[id]?.until = now }
        // Errors in settings that remain are reported again; those of removed folders are not.
        for folder in troubled { _ = house.troubles.clear(Self.trouble(of: folder)) }
        troubled = []
    }

    /// Stops copies that no upload waits for any more, since the uploads were cancelled.
    func reconsider() async {
        for (id, flag) in stops {
            // If the state cannot be read, the copy is made, which is harmless.
            if let asset = try? await house.store.asset(id), asset.state != .arrived { flag.set() }
        }
        for id in changes.keys {
            if let asset = try? await house.store.asset(id), asset.state == .dropped { changes[id] = nil }
        }
    }
}
