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
    let context: Context
    let stateHealth: StateHealth
    let locator: SourceLocator
    let mediaReading: MediaReading
    let making: LiveStaging
    /// Gives commands of exports with `network: policy` their part of the network.
    let policed: PolicedPrograms
    let troubles: Alerts
    let stagingHolds: StagingHolds
    let signal: AsyncSignal
    /// Requests from `Watch` that a file settles again.
    let reconsider: @Sendable (_ folder: String, _ relative: FilePath) -> Void
    /// The number of files that are being handed over as bytes.
    var receptionCount = 0
    /// Ends when the leftovers of a crash are removed, so that no new copy can be mistaken for one.
    let swept = AsyncBroadcast()
    /// Decides which assets are copied next, and reserves their space. Files that are handed over as bytes reserve
    /// theirs here too.
    var admission = StagingAdmission() { didSet { if admission.takeWake() { signal.signal() } } }
    /// Flags that stop the copying of a batch, by its assets.
    private var stops: [Int64: StopFlag] = [:]
    var deferrals = CopyDeferrals() { didSet { if deferrals.takeWake() { signal.signal() } } }
    /// How often files that wait were to be tried at once. A file that was found missing before is tried again.
    var retries = 0
    /// Turns of the folders, so that a folder with many files does not delay another's. Continues where the last run
    /// stopped; `nil` before that is read.
    private var turns: FolderTurns?
    var isShort: Bool { admission.isShort }
    private let workers: [Worker]
    let unsettledSignal: AsyncSignal
    private let sizeLimits: SizeLimits

    private struct Worker: Sendable {
        let signal: AsyncSignal
        /// From 0; workers from `staging.concurrency` on are idle.
        let number: Int
        let exports: Bool
    }

    /// An asset with reserved space for its copy.
    struct CopyJob: Sendable {
        let asset: AssetRecord
        let ticket: StagingAdmission.Ticket
    }

    private static let batchFiles = 64
    private static let batchTime: Duration = .milliseconds(50)
    /// The largest `staging.concurrency`.
    private static let maxWorkers = 8

    init(
        context: Context, stateHealth: StateHealth, locator: SourceLocator, mediaReading: MediaReading,
        making: LiveStaging, policed: PolicedPrograms, troubles: Alerts, stagingHolds: StagingHolds, signals: WakeUps,
        reconsider: @escaping @Sendable (String, FilePath) -> Void
    ) {
        (self.context, self.stateHealth, self.locator) = (context, stateHealth, locator)
        (self.mediaReading, self.making, self.troubles) = (mediaReading, making, troubles)
        self.policed = policed
        sizeLimits = SizeLimits(context: context, scheduler: policed.connections.scheduler)
        (self.stagingHolds, signal, unsettledSignal) = (stagingHolds, signals.staging, signals.unsettled)
        workers =
            (0..<Self.maxWorkers).map { Worker(signal: AsyncSignal(signals.rest), number: $0, exports: false) } + [
                Worker(signal: AsyncSignal(signals.rest), number: 0, exports: true)
            ]
        self.reconsider = reconsider
    }

    /// Copies until the task is cancelled.
    func run() async throws {
        try await Sweep(context: context, troubles: troubles).run()
        swept.end()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in workers { group.addTask { try await self.work(worker) } }
            group.addTask { try await self.checkUnsettled() }
            group.addTask {
                while !Task.isCancelled {
                    await self.signal.wait()
                    let count = self.context.settings.staging.concurrency
                    for worker in self.workers where worker.number < count { worker.signal.signal() }
                }
            }
            try await group.next()
            group.cancelAll()
        }
    }

    private func work(_ worker: Worker) async throws {
        while !Task.isCancelled {
            if worker.number >= context.settings.staging.concurrency {
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
                stateHealth.failed(error)
                await worker.signal.wait(atMost: .seconds(5))
            }
        }
    }

    /// One large asset or several small ones, with reserved space. Empty when there is none or no space.
    private func nextBatch(exports: Bool) async throws -> [CopyJob] {
        let now = context.clocks.monotonic()
        if deferrals.isBlocked(at: now) { return [] }
        if exports { await retryHeldExports() }
        let waiting = deferrals.waiting(at: now)
        let kept = turns == nil ? try await context.store.read { try $0.turns.of(.copies) } : FolderTurns()
        // Another worker may have read it meanwhile.
        let turns = self.turns ?? kept
        self.turns = turns
        let assets = try await context.store.read { [admission] tx in
            try tx.staging.waiting(
                limit: Self.batchFiles, except: waiting.union(admission.copying), exports: exports, turns: turns)
        }
        forgetDeferred(except: assets, exports, now)
        if assets.isEmpty && admission.isIdle {
            if admission.endShortage(forExports: exports) { clearTrouble() }
            if deferrals.isEmpty && !isShort { clearTrouble() }
        }
        if assets.allSatisfy({ admission.isUnderWay($0.id) }) { return [] }
        guard try await querySpace() else { return [] }
        return try await withoutTooLarge(try await admit(assets, exports: exports))
    }

    /// Refuses the files that their only destination does not take for their size.
    private func withoutTooLarge(_ jobs: [CopyJob]) async throws -> [CopyJob] {
        var kept: [CopyJob] = []
        for (index, job) in jobs.enumerated() {
            do {
                if let failure = try await sizeLimits.refusal(of: job.asset) {
                    try await refuse(job.asset, failure, isGone: false)
                    admission.end(job.ticket)
                } else {
                    kept.append(job)
                }
            } catch {
                for job in kept + jobs[index...] { admission.end(job.ticket) }
                throw error
            }
        }
        return kept
    }

    /// Makes a pass through the assets. Other workers run while it waits for the answer about one.
    private func admit(_ assets: [AssetRecord], exports: Bool) async throws -> [CopyJob] {
        let byID = Dictionary(assets.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        var pass = StagingAdmission.Pass(
            assets.map { asset in
                StagingAdmission.Candidate(
                    id: asset.id, path: asset.path.shown, size: asset.size,
                    needsSpace: asset.stagingMode != .inPlace)
            }, isForExports: exports)
        do {
            while let step = admission.advance(&pass, maxSize: context.settings.staging.maxSize) {
                switch step {
                case .refuse(let id, let maxSize):
                    if let asset = byID[id] { try await refuse(asset, tooLarge(asset, maxSize), isGone: false) }
                    admission.endRefusal(&pass)
                case .measure(let id):
                    let need = if let asset = byID[id] { await need(of: asset) } else { Int64(0) }
                    admission.endMeasuring(need, &pass)
                case .admit(let id):
                    if let asset = byID[id] { turns?.recordTurn(asset.folder) }
                }
            }
        } catch {
            admission.cancel(&pass)
            throw error
        }
        let result = admission.finish(pass)
        if result.endsShortage { clearTrouble() }
        if let obstacle = result.obstacle { wait(obstacle.text, changeKey: obstacle.changeKey) }
        return result.batch.compactMap { ticket in byID[ticket.id].map { CopyJob(asset: $0, ticket: ticket) } }
    }

    /// - Returns: Whether the folder could be read.
    private func querySpace() async throws -> Bool {
        let query = admission.beginSpaceQuery()
        guard let budget = try await budget() else { return false }
        admission.endSpaceQuery(query, budget)
        return true
    }

    private func need(of asset: AssetRecord) async -> Int64 {
        let (staging, method, source) = (context.staging, method(for: asset), locator.source(of: asset))
        // The closure throws nothing.
        return (try? await blocking { staging.need(of: source, size: asset.size, by: method) }) ?? asset.size
    }

    /// How copies of a folder's files are made.
    func method(for asset: AssetRecord) -> StagingArea.Method? {
        context.configuration.folder(asset.folder)?.copy.map(StagingArea.Method.init)
    }

    /// Forgets deferred assets that no longer wait: cancelled, or retried under another number.
    private func forgetDeferred(except candidates: [AssetRecord], _ exports: Bool, _ now: MonotonicTime) {
        if deferrals.isEmpty || candidates.count >= Self.batchFiles { return }
        let kept = Set(candidates.map(\.id))
        for id in deferrals.due(at: now, exports: exports) where !kept.contains(id) && !admission.isUnderWay(id) {
            forgetDeferral(id)
        }
        for disk in deferrals.disksDue(at: now, exports: exports, without: kept.union(admission.copying)) {
            deferrals.end(disk, at: now)
            stagingHolds.clear(disk)
        }
    }

    /// Ends the deferral of an asset.
    func forgetDeferral(_ asset: Int64) {
        deferrals.end(asset, at: context.clocks.monotonic())
        stagingHolds.clear(asset)
    }

    func clearTrouble() {
        if troubles.clear("staging") { context.log.notice("staging continues") }
    }

    private func tooLarge(_ asset: AssetRecord, _ cap: Int64) -> Failure {
        Failure(
            .config, code: .largerThanStaging,
            message:
                "\(asset.path.display) has \(shownBytes(asset.size)), more than staging.max_size (\(shownBytes(cap))): raise it",
            at: context.clocks.wall(), retryable: false)
    }

    /// - Returns: `nil` if the folder cannot be read, which is reported.
    func budget() async throws -> StagingBudget? {
        let settings = context.settings.staging
        let used = try await context.store.read { try $0.staging.totalBytes() }
        let staging = context.staging
        do {
            let free = try await blocking { try Self.freeSpace(of: staging) }
            return StagingBudget(
                folder: staging.folder, used: used, free: free, cap: settings.maxSize, keepFree: settings.keepFree)
        } catch {
            wait("cannot read the free space of the staging folder (`staging.path`): \(error)")
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
    ///   - changeKey: The part of the text whose change is logged; the whole text by default.
    ///   - until: When it is tried again; `nil` where space has to be freed, at an unknown time.
    func wait(_ text: String, changeKey: String? = nil, until: WallTime? = nil) {
        let hold = Hold(.disk, since: context.clocks.wall(), until: until, text: text)
        if troubles.set("staging", hold, changeKey: changeKey) {
            context.log.warning("staging waits", ["reason": text])
        }
    }

    /// Whether all workers have finished their work.
    var isAtRest: Bool { admission.isIdle && receptionCount == 0 && workers.allSatisfy(\.signal.isWaiting) }

    func nextDeadline() -> Duration? {
        deferrals.nextDeadline(at: context.clocks.monotonic(), isTroubled: troubles["staging"] != nil)
    }

    private func copy(_ batch: [CopyJob]) async {
        let isCancelled = StopFlag()
        // Only for a file that is copied alone: in a batch it would stop the others too, and a batch is soon over.
        if batch.count == 1 { stops[batch[0].asset.id] = isCancelled }
        let started = context.clocks.monotonic()
        let (clocks, maker) = (context.clocks, await maker(of: batch.map(\.asset), isCancelled))
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
        for job in batch { making.end(job.asset.id) }
        await finish(await withHolds(results, maker.gates))
        for job in batch {
            stops[job.asset.id] = nil
            admission.end(job.ticket)
        }
    }

    /// The settings changed: a folder that refused a copy is tried again, and so is a command that was missing.
    func reconsiderSpace() {
        retries += 1
        // Errors in settings that remain are reported again; those of removed folders are not.
        for folder in deferrals.settingsChanged(at: context.clocks.monotonic()) {
            _ = troubles.clear(Self.trouble(of: folder))
        }
    }

    /// Stops copies that no upload waits for any more, since the uploads were cancelled.
    func reconsider() async {
        for (id, flag) in stops {
            // If the state cannot be read, the copy is made, which is harmless.
            if let asset = try? await context.store.read({ try $0.assets.find(id) }), asset.state != .arrived {
                flag.set()
            }
        }
        for id in deferrals.changing {
            if let asset = try? await context.store.read({ try $0.assets.find(id) }), asset.state == .dropped {
                deferrals.forgetChanges(of: id)
            }
        }
    }
}
