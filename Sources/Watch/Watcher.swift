package import Core
internal import Linux

/// Notices which files of the configured folders are new and have stopped growing.
///
/// Events of the kernel only say where to look; directory listings tell what is there, at the start, after events were
/// lost, when a folder appears, and once an hour. One thread does all of it. It never waits for whoever takes the files:
/// while that is busy, events are still read and scans pause.
package final class Watcher: Sendable {
    /// Which of these are on record already, so that they need not settle again. As many answers as questions.
    package typealias Filter = @Sendable ([StoredIdentity]) async throws -> [Bool]

    private let rules: [WatchRule]
    private let skipExisting: Set<String>
    private let pace: WatchPace
    private let clocks: any Clocks
    private let isKnown: Filter
    private let log: @Sendable (String) -> Void
    private let mailbox: Mailbox

    /// - Parameters:
    ///   - rules: In the order of the configuration: the first that takes a name gets the file.
    ///   - skipExisting: Names of folders whose first scan in this run is to be reported as skipped.
    ///   - log: Called on the watching thread, one sentence at a time.
    package init(
        rules: [WatchRule], skipExisting: Set<String> = [], pace: WatchPace = WatchPace(), clocks: any Clocks,
        isKnown: @escaping Filter, log: @escaping @Sendable (String) -> Void
    ) {
        self.rules = rules
        self.skipExisting = skipExisting
        self.pace = pace
        self.clocks = clocks
        self.isKnown = isKnown
        self.log = log
        mailbox = Mailbox(
            states: rules.map {
                WatchState(
                    folder: $0.name, path: $0.path, condition: .scanning, settling: 0, oldest: nil, unwatched: 0)
            })
    }

    /// Watches until the task is cancelled. To be called once.
    ///
    /// - Parameters:
    ///   - onSettled: Takes files that settled, at most ``WatchPace/batch``, none of them known. No more come before it
    ///     returns. A file may come again while its last version is still on its way.
    ///   - onSkipped: Takes files that stood in a folder of `skipExisting` before anything happened to them.
    ///   - onScanned: The first scans of folders are over; all their skipped files were reported before.
    ///   - onRest: Called on the watching thread when ``isAtRest`` has become true; without it that is never told.
    /// - Throws: What a closure or the filter threw. The watcher has stopped then.
    package func run(
        onSettled: @escaping @Sendable ([SettledFile]) async throws -> Void,
        onSkipped: @escaping @Sendable ([SettledFile]) async throws -> Void = { _ in },
        onScanned: @escaping @Sendable ([String]) async throws -> Void = { _ in },
        onRest: (@Sendable () -> Void)? = nil
    ) async throws {
        // Before the first lease: the signal's default is to end the process.
        Lease.ignoreSignal()
        let bell = try Bell()
        mailbox.connect(bell)
        let (questions, ask) = AsyncStream.makeStream(of: [StoredIdentity].self)
        let (deliveries, deliver) = AsyncStream.makeStream(of: Mailbox.Delivery.self)
        try await withThrowingTaskGroup(of: Void.self) { [self] group in
            group.addTask { [self] in
                try await onLongThread(named: "sluice-watch") { [self] in
                    Lookout(
                        rules: zip(rules, rules.map { skipExisting.contains($0.name) }).map(Rule.init), pace: pace,
                        clocks: clocks, mailbox: mailbox, bell: bell, ask: { ask.yield($0) },
                        deliver: { deliver.yield($0) }, onRest: onRest, log: log
                    ).run()
                }
                ask.finish()
                deliver.finish()
            }
            group.addTask { [self] in
                for await identities in questions { mailbox.post(.answered(try await isKnown(identities))) }
            }
            group.addTask { [self] in
                for await delivery in deliveries {
                    switch delivery {
                    case .settled(let files):
                        let known = try await isKnown(files.map(\.identity))
                        let new = zip(files, known).filter { !$0.1 }.map(\.0)
                        if !new.isEmpty { try await onSettled(new) }
                    case .skipped(let files): try await onSkipped(files)
                    case .scanned(let folders): try await onScanned(folders)
                    }
                    mailbox.post(.delivered)
                }
            }
            do {
                try await withTaskCancellationHandler {
                    while try await group.next() != nil {}
                } onCancel: {
                    mailbox.post(.stop)
                }
            } catch {
                mailbox.post(.stop)
                // A closure that gives up because we were cancelled did what it should.
                if !Task.isCancelled { throw error }
            }
        }
    }

    /// Scans every folder from the top.
    package func rescan() { mailbox.post(.rescan) }

    /// Watches other folders from now on. What did not change is left alone: its watches, and the files that settle in it.
    /// The others are scanned from the top, so that nothing is missed in between.
    ///
    /// - Parameter skipExisting: Names of folders whose next first scan is to be reported as skipped.
    package func change(_ rules: [WatchRule], skipExisting: Set<String> = []) {
        mailbox.post(.change(rules, skipExisting: skipExisting))
    }

    /// Lets a file settle again that was handed on and turned out to be changing still.
    ///
    /// It comes once more only if the filter does not know it: take it off the record first.
    package func reconsider(folder: String, relative: FilePath) {
        mailbox.post(.reconsider(folder: folder, relative: relative))
    }

    /// Every folder was scanned or cannot be, everything that settled was taken, and what has not settled was seen to
    /// change or to be open for writing, so that nobody can say when it will.
    package var isAtRest: Bool { mailbox.isAtRest }

    /// One for each rule, in their order. At most a fifth of a second old.
    package func states() -> [WatchState] { mailbox.board.states }

    /// The files that have been waiting longest, at most 100.
    package func settlingFiles() -> [WaitingFile] { mailbox.board.waiting }

    /// How many times the kernel lost events since the start.
    package func overflows() -> Int { mailbox.board.overflows }
}
