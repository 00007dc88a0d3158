package import Core
package import Linux

/// Notices files of the configured folders that are new and have stopped growing.
///
/// Events of the kernel only say where to look. Directory listings show the files: at the start, after events were
/// lost, when a folder appears, and once an hour. One thread does all of it, except for file systems that may not
/// answer (``WatchThreads``). It never waits for the receiver of the files: while that is busy, events are still read and scans
/// pause.
package final class Watcher: Sendable {
    /// Answers for each identity whether it is recorded already, so that the file need not settle again. As many
    /// answers as questions.
    package typealias Filter = @Sendable (PackedFileVersions) async throws -> [Bool]

    private let folders: SourceFolders
    private let pace: WatchLimits
    private let clocks: any Clocks
    private let isKnown: Filter
    private let log: @Sendable (WatchLogEntry) -> Void
    private let threads: WatchThreads
    private let threadEvents = AsyncStream.makeStream(of: ThreadEvent.self)

    /// Messages of the watching threads and of callers to ``run(onSettled:onSkipped:onScanned:onRest:onMounts:onStateChange:)``.
    private enum ThreadEvent: Sendable {
        /// Members that need a thread.
        case added([WatchThreads.Member])
        /// Whether the file system at a mount point does not answer.
        case stuck(FilePath, Bool)
    }

    /// A query of a watching thread whether files are known.
    private struct Query: Sendable {
        let sender: Mailbox
        let identities: PackedFileVersions
    }

    /// A delivery of a watching thread.
    private struct SentDelivery: Sendable {
        let sender: Mailbox
        let delivery: Mailbox.Delivery
    }

    /// - Parameters:
    ///   - rules: In the order of the configuration: the first that takes a name gets the file.
    ///   - folders: Gives access to everything in the folders.
    ///   - skipExisting: Names of folders whose first scan in this run is to be reported as skipped.
    ///   - log: Called on a watching thread, one sentence at a time.
    package init(
        rules: [WatchRule], in folders: SourceFolders = SourceFolders(), skipExisting: Set<String> = [],
        pace: WatchLimits = WatchLimits(), clocks: any Clocks,
        isKnown: @escaping Filter, log: @escaping @Sendable (WatchLogEntry) -> Void
    ) {
        self.folders = folders
        self.pace = pace
        self.clocks = clocks
        self.isKnown = isKnown
        self.log = log
        let events = threadEvents.continuation
        threads = WatchThreads(rules: rules, skipping: skipExisting) { key in
            Mailbox(
                states: [],
                watchdog: Watchdog(timeout: pace.timeout, clocks: clocks) { events.yield(.stuck(key, $0)) })
        }
    }

    /// Watches until the task is cancelled. Must be called only once.
    ///
    /// - Parameters:
    ///   - onSettled: Takes settled files, at most ``WatchLimits/batch``, none of them known. No more come before it
    ///     returns. A file may come again while its last version is still being processed.
    ///   - onSkipped: Takes files that were in a folder of `skipExisting` before anything happened to them.
    ///   - onScanned: Called when the first scans of folders are over; all their skipped files were reported before.
    ///   - onRest: Called on any thread when ``isAtRest`` may have become true; without it that is never reported.
    ///   - onMounts: Called on the watching thread after a file system was mounted or unmounted.
    ///   - onStateChange: Called on any thread when ``states()`` has changed.
    /// - Throws: Any error of a closure or the filter. The watcher has stopped then.
    package func run(
        onSettled: @escaping @Sendable ([SettledFile]) async throws -> Void,
        onSkipped: @escaping @Sendable ([SettledFile]) async throws -> Void = { _ in },
        onScanned: @escaping @Sendable ([String]) async throws -> Void = { _ in },
        onRest: (@Sendable () -> Void)? = nil, onMounts: (@Sendable () -> Void)? = nil,
        onStateChange: (@Sendable () -> Void)? = nil
    ) async throws {
        folders.apply(threads.rules)
        // Before the first lease: the signal's default is to end the process.
        Lease.ignoreSignal()
        let (queries, query) = AsyncStream.makeStream(of: Query.self)
        let (deliveries, deliver) = AsyncStream.makeStream(of: SentDelivery.self)
        let others = ConditionLock(0)
        let work: @Sendable (WatchThreads.Member, EventFD) -> Void = { [self] member, signal in
            let skipping = threads.skipping
            WatchLoop(
                rules: threads.rules.map { CompiledRule($0, skipsExisting: skipping.contains($0.name)) },
                ours: member.folderPaths,
                folders: folders, pace: pace, clocks: clocks, mailbox: member.mailbox, signal: signal,
                handlers: WatchLoop.Handlers(
                    query: { query.yield(Query(sender: member.mailbox, identities: $0)) },
                    deliver: { deliver.yield(SentDelivery(sender: member.mailbox, delivery: $0)) }, onRest: onRest,
                    onMounts: member.key == nil
                        ? {
                            self.start(self.threads.reassign())
                            onMounts?()
                        } : nil,
                    onStateChange: onStateChange),
                log: log
            ).run()
        }
        start(threads.reassign())
        let signal = try EventFD()
        guard let common = threads.members.first(where: { $0.key == nil }) else { return }
        common.mailbox.connect(signal)
        try await withThrowingTaskGroup(of: Void.self) { [self] group in
            group.addTask {
                try await onLongThread(named: "sluice-watch") { work(common, signal) }
                query.finish()
                deliver.finish()
                self.threadEvents.continuation.finish()
            }
            group.addTask { [self] in
                for await query in queries {
                    query.sender.post(.known(try await isKnown(query.identities)))
                }
            }
            group.addTask { [self] in
                for await sent in deliveries {
                    switch sent.delivery {
                    case .settled(let files):
                        let known = try await isKnown(PackedFileVersions(files.lazy.map(\.identity)))
                        let new = zip(files, known).filter { !$0.1 }.map(\.0)
                        if !new.isEmpty { try await onSettled(new) }
                    case .skipped(let files): try await onSkipped(files)
                    case .scanned(let folders):
                        try await onScanned(folders)
                        threads.noteScanned(folders)
                    }
                    sent.sender.post(.delivered)
                }
            }
            group.addTask { [self] in
                for await event in threadEvents.stream {
                    switch event {
                    case .added(let members): for member in members { startThread(of: member, others, work) }
                    case .stuck(let place, let isStuck):
                        logStuck(place, isStuck)
                        onRest?()
                        onStateChange?()
                    }
                }
            }
            do {
                try await withTaskCancellationHandler {
                    while try await group.next() != nil {}
                } onCancel: {
                    stop()
                }
            } catch {
                stop()
                // An error of a closure after our own cancellation is expected.
                if !Task.isCancelled { throw error }
            }
        }
        // A thread that hangs in its file system is left behind: its deliveries are not read any more.
        try await blocking { _ = others.wait(atMost: .milliseconds(500)) { $0 == 0 ? () : nil } }
    }

    /// Starts a thread that is not joined in the end, since it may never return.
    private func startThread(
        of member: WatchThreads.Member, _ others: ConditionLock<Int>,
        _ work: @escaping @Sendable (WatchThreads.Member, EventFD) -> Void
    ) {
        guard let key = member.key else { return }
        do throws(SystemError) {
            let signal = try EventFD()
            member.mailbox.connect(signal)
            others.withLock { $0 += 1 }
            do throws(SystemError) {
                try Linux.startThread("sluice-watch+") {
                    work(member, signal)
                    others.change { $0 -= 1 }
                }
            } catch {
                others.change { $0 -= 1 }
                throw error
            }
        } catch {
            threads.remove(key)
            log(
                WatchLogEntry(
                    .warning,
                    "cannot watch the folders on \(key.display) (\(error)); will retry when mounts change"))
        }
    }

    private func start(_ members: [WatchThreads.Member]) {
        if !members.isEmpty { threadEvents.continuation.yield(.added(members)) }
    }

    private func logStuck(_ place: FilePath, _ isStuck: Bool) {
        if isStuck {
            log(
                WatchLogEntry(
                    .warning,
                    "\(place.display) has not responded for \(words(pace.timeout)); only the folders there wait"
                ))
        } else {
            log(WatchLogEntry(.notice, "\(place.display) responds again"))
        }
    }

    private func stop() { for member in threads.members { member.mailbox.post(.stop) } }

    /// Scans every folder from the top, or those with these names.
    ///
    /// - Returns: The time. A folder has been scanned when its state's `scannedSince` has reached it.
    @discardableResult
    package func rescan(_ folders: Set<String>? = nil) -> MonotonicTime {
        let now = clocks.monotonic()
        for member in threads.members { member.mailbox.post(.rescan(folders)) }
        return now
    }

    /// Replaces the watched folders. Unchanged folders are left alone: their watches, and the files that settle in
    /// them. The others are scanned from the top, so that nothing is missed in between.
    ///
    /// - Parameter skipExisting: Names of folders whose next first scan is to be reported as skipped.
    package func change(_ rules: [WatchRule], skipExisting: Set<String> = []) {
        folders.apply(rules)
        start(threads.change(rules, skipping: skipExisting))
    }

    /// Lets a file settle again that was passed on and turned out to be changing still.
    ///
    /// It comes once more only if the filter does not know it: remove it from the record first.
    package func reconsider(folder: String, relative: FilePath) {
        for member in threads.members { member.mailbox.post(.reconsider(folder: folder, relative: relative)) }
    }

    /// Whether every folder was scanned or cannot be, every settled file was taken, and every other file was seen to
    /// change or to be open for writing, so that its end cannot be predicted.
    package var isAtRest: Bool {
        threads.members.allSatisfy { $0.mailbox.isAtRest || $0.mailbox.watchdog?.stuckFor != nil }
    }

    /// Returns when the watching thread has begun a turn since the call, or when the task is cancelled. Threads of file
    /// systems that may not answer are not asked: ``states()`` reports these, and the others work without them.
    package func confirmTurn() async {
        guard let common = threads.members.first(where: { $0.key == nil })?.mailbox else { return }
        await common.turns.confirm { common.wake() }
    }

    /// One for each rule, in their order. At most a fifth of a second old.
    package func states() -> [WatchState] {
        let members = threads.members
        if members.count == 1 { return members[0].mailbox.board.states }
        var states: [String: WatchState] = [:]
        for member in members {
            let stuck = member.mailbox.watchdog?.stuckFor
            for var state in member.mailbox.board.states where member.folderPaths.contains(state.path) {
                if let stuck {
                    state.condition = .failed("its file system has not responded for \(words(stuck))")
                    state.isStuck = true
                }
                states[state.folder] = state
            }
        }
        return threads.rules.map { rule in
            if let state = states[rule.name] { return state }
            let member = members.first { $0.folderPaths.contains(rule.path) }
            guard let stuck = member?.mailbox.watchdog?.stuckFor else { return WatchState(rule, .scanning) }
            var state = WatchState(rule, .failed("its file system has not responded for \(words(stuck))"))
            state.isStuck = true
            return state
        }
    }

    /// The files that have been waiting longest, at most 100.
    package func settlingFiles() -> [WaitingFile] {
        Array(threads.members.flatMap { $0.mailbox.board.waiting }.sorted { $0.since < $1.since }.prefix(100))
    }

    /// The number of times that the kernel has lost events since the start.
    package func overflows() -> Int { threads.members.reduce(0) { $0 + $1.mailbox.board.overflows } }
}
