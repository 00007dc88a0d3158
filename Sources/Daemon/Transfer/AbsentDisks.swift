internal import Core
internal import Linux
internal import Store
internal import Synchronization

/// Disks that are away while their files are uploaded in place. The uploads from a disk wait together, and are tried when
/// the disk is there again: it is looked for now and then, and may be reported to be back.
final class AbsentDisks: Sendable {
    private struct Wait: Sendable {
        let disk: DiskWork
        /// One of its files.
        let asset: AssetRecord
        /// When the uploads of the disk began to wait, and until when they do.
        var began: MonotonicTime
        var end: MonotonicTime
        /// When the disk is looked for; `nil` once it was there, while its uploads are tried.
        var next: MonotonicTime?
        /// How often in a row the disk was found to be away.
        var failures: Int
        /// The number of its last change. Between a change and what is stored for it another one may come.
        var change = 0

        mutating func countFailure(at now: MonotonicTime) {
            failures += 1
            next = now.advanced(by: AbsentDisks.backoff.wait(afterFailures: failures, jitter: Random.jitter()))
        }
    }

    private struct State {
        /// Few.
        var waits: [Wait] = []
        var changes = 0
        /// Ends of waits that are to be ended now, where that could not be stored.
        var unended: [MonotonicTime] = []

        subscript(disk: DiskWork) -> Wait? {
            get { waits.first { $0.disk == disk } }
            set {
                waits.removeAll { $0.disk == disk }
                if let newValue { waits.append(newValue) }
            }
        }

        /// - Returns: The number of this change; `nil` where no upload waits for the disk.
        mutating func recordChange(of disk: DiskWork) -> Int? {
            guard var wait = self[disk] else { return nil }
            changes += 1
            wait.change = changes
            self[disk] = wait
            return changes
        }
    }

    private static let backoff = Backoff(first: .seconds(10), ceiling: .seconds(600))
    /// The uploads of a disk wait this long if nothing ends that. Each time writes a row for each of them.
    private static let longestWait: Duration = .seconds(7200)
    /// Uploads that find their disk away within this time were started together. Later ones were told to try: so were
    /// others.
    private static let startTime: Duration = .seconds(5)

    private let context: Context
    private let locator: SourceLocator
    private let holds: StagingHolds
    private let stateHealth: StateHealth
    private let signal: AsyncSignal
    private let state = Mutex(State())

    init(
        context: Context, locator: SourceLocator, holds: StagingHolds, stateHealth: StateHealth, signal: AsyncSignal
    ) {
        (self.context, self.locator, self.holds) = (context, locator, holds)
        (self.stateHealth, self.signal) = (stateHealth, signal)
    }

    /// Looks for the disks until the task is cancelled.
    func run() async throws {
        while !Task.isCancelled {
            await signal.wait(atMost: nextDeadline())
            do { try await endWaits() } catch let error as StoreError { stateHealth.failed(error) }
            let now = context.clocks.monotonic()
            let due = state.withLock { $0.waits.filter { $0.next.map { $0 <= now } ?? false } }
            for wait in due {
                // The closure throws nothing.
                let isAway = (try? await blocking { [locator] in locator.isDiskAway(of: wait.asset) }) ?? true
                do { isAway ? lookAgain(for: wait.disk) : try await tryUploads(of: wait.disk) } catch let error
                    as StoreError
                {
                    stateHealth.failed(error)
                    lookAgain(for: wait.disk)
                }
            }
        }
    }

    /// When a disk is looked for.
    func nextDeadline() -> Duration? {
        let (next, isUnended) = state.withLock { ($0.waits.compactMap(\.next).min(), !$0.unended.isEmpty) }
        let wait = next.map { max(.milliseconds(10), $0.since(context.clocks.monotonic())) }
        return isUnended ? min(wait ?? Self.startTime, Self.startTime) : wait
    }

    /// An attempt has found that the disk of an asset is away.
    ///
    /// - Returns: When this upload is tried again. The end of the attempt may be stored after the disk has come back, so
    ///   this is not the time until which the others wait.
    func wait(_ asset: AssetRecord, _ reason: String) async throws -> MonotonicTime {
        let (disk, now) = (DiskWork(.uploadInPlace, on: asset), context.clocks.monotonic())
        let since = context.clocks.wall()
        func hold(until next: MonotonicTime) -> Hold {
            Hold(.absent, since: since, until: since.advanced(by: next.since(now)), text: reason)
        }
        let (wait, known, isStarted) = state.withLock { state in
            let known = state[disk]
            let isStarted = known.map { $0.next != nil && now.since($0.began) < Self.startTime } ?? false
            var wait = known ?? Wait(disk: disk, asset: asset, began: now, end: now, next: nil, failures: 0)
            if !isStarted {
                wait.began = now
                // The rows that wait until then already are not written again.
                if wait.end.since(now) < Self.longestWait / 2 { wait.end = now.advanced(by: Self.longestWait) }
                if wait.next.map({ $0 <= now }) ?? true { wait.countFailure(at: now) }
                state.changes += 1
                wait.change = state.changes
            }
            state[disk] = wait
            holds.add([asset.id], to: disk, hold(until: wait.next ?? now))
            return (wait, known, isStarted)
        }
        let next = wait.next ?? now
        if isStarted { return next.advanced(by: .seconds(1)) }
        signal.signal()
        let others: [Int64]
        do {
            others = try await context.store.write {
                try $0.waits.waitForDisk(of: asset, until: wait.end, before: known?.end)
            }
        } catch {
            // The others may wait until the earlier end, which nothing would end any more. They are tried, and wait again.
            state.withLock { $0.unended.append(known?.end ?? wait.end) }
            signal.signal()
            throw error
        }
        let isCurrent = state.withLock { state in
            let isCurrent = state[disk]?.change == wait.change
            if isCurrent { holds.add(Set(others), to: disk, hold(until: next)) }
            return isCurrent
        }
        if isCurrent { return next.advanced(by: .seconds(1)) }
        // The disk came back meanwhile.
        state.withLock { $0.unended.append(wait.end) }
        signal.signal()
        return now
    }

    private func endWaits() async throws {
        let ends = state.withLock(\.unended)
        if ends.isEmpty { return }
        try await context.store.write { tx in for end in ends { try tx.waits.end(until: end) } }
        state.withLock { state in state.unended.removeAll { ends.contains($0) } }
    }

    /// The source of an asset was read.
    func recordRead(_ asset: AssetRecord) async throws {
        let disk = DiskWork(.uploadInPlace, on: asset)
        guard state.withLock({ $0[disk] }) != nil else { return }
        try await tryUploads(of: disk)
        forget(disk)
    }

    /// The disks of these folders are back: their uploads are tried at once.
    func recordReturn(of folders: Set<String>) async throws {
        let disks = state.withLock { $0.waits.map(\.disk).filter { folders.contains($0.folder) } }
        for disk in disks { try await tryUploads(of: disk) }
        // Single files may wait, too.
        try await context.store.write { try $0.waits.end(from: folders, becauseOf: .absence) }
        for disk in disks { forget(disk) }
    }

    private func tryUploads(of disk: DiskWork) async throws {
        let (end, change) = state.withLock { state in
            let change = state.recordChange(of: disk)
            return (state[disk]?.end, change)
        }
        guard let end else { return }
        try await context.store.write { try $0.waits.end(until: end) }
        // Not before: an error leaves everything as it is. An attempt may have found meanwhile that the disk is away
        // again.
        state.withLock { state in
            guard state[disk]?.change == change else { return }
            state[disk]?.next = nil
            holds.clear(disk)
        }
    }

    /// The disk is there. An attempt may have found meanwhile that it is away again.
    private func forget(_ disk: DiskWork) {
        state.withLock { state in if state[disk]?.next == nil { state[disk] = nil } }
    }

    private func lookAgain(for disk: DiskWork) {
        let now = context.clocks.monotonic()
        let next = state.withLock { state in
            if state[disk]?.next != nil { state[disk]?.countFailure(at: now) }
            return state[disk]?.next
        }
        if let next { holds.extend(disk, until: context.clocks.wall().advanced(by: next.since(now))) }
    }
}
