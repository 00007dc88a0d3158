package import Config
package import Core
internal import Linux
internal import Synchronization

/// Checks the present state of the sources of `busy`.
package struct BusyProbe: Sendable {
    /// Checks a source, with a time limit. `nil` if the task was cancelled.
    let check: @Sendable (BusySource, Duration) async -> BusyAnswer.Answer?

    /// For tests, which supply the answers.
    init(ask: @escaping @Sendable (BusySource, Duration) async -> BusyAnswer.Answer?) { self.check = ask }

    package init() {
        let disks = Disks()
        check = { source, timeout in
            switch source {
            case .file(let path): await Self.status(at: path, disks.disk(of: path, timeout))
            case .command(let words): await Self.run(words, within: timeout)
            }
        }
    }

    /// The present answer of a source, in words for `check`.
    package static func report(_ rule: BusyRule) async -> (isFree: Bool, text: String) {
        let (source, name) = (rule.source, rule.source.name)
        let timeout = source.isFile ? BusyStates.fileCheck.timeout : rule.timeout
        switch await BusyProbe().check(source, timeout) {
        case .free?:
            let says = source.isFile ? "does not exist" : "reports not busy"
            return (true, "`\(name)` \(says): it blocks no upload now")
        case .busy?:
            let says = source.isFile ? "exists" : "reports busy"
            return (false, "`\(name)` \(says): uploads wait now")
        case .unknown(let problem, let remedy)?:
            return (false, "`\(name)` \(problem), which counts as busy, so uploads wait; \(remedy)")
        case nil: return (false, "the check of `\(name)` did not finish")
        }
    }

    /// A file on a server that is gone may block its inspection for ever.
    private final class Disks: Sendable {
        private let disks = Mutex<[FilePath: SlowDisk]>([:])

        func disk(of path: FilePath, _ timeout: Duration) -> SlowDisk {
            disks.withLock { disks in
                let disk = disks[path] ?? SlowDisk(timeout: timeout)
                disks[path] = disk
                return disk
            }
        }
    }

    /// Any entry under the name counts, also a link that leads nowhere: some programs create their lock files so.
    private static func status(at path: FilePath, _ disk: SlowDisk) async -> BusyAnswer.Answer? {
        do {
            return try await disk.run { _ in try FileStatus.ifPresent(at: path) != nil } ? .busy : .free
        } catch is CancellationError {
            return nil
        } catch is SlowDisk.TimeoutError {
            return .unknown(
                problem: "cannot be checked because its disk does not respond",
                remedy: "check the server that it is on")
        } catch {
            let reason = (error as? SystemError)?.reason ?? "\(error)"
            return .unknown(
                problem: "cannot be checked (\(reason))",
                remedy: "give the daemon's user access to \(path.parent.display)")
        }
    }

    /// Its output is discarded.
    private static func run(_ words: [String], within limit: Duration) async -> BusyAnswer.Answer? {
        let stop = StopFlag()
        let ending: Program.Ending
        do {
            ending = try await withTaskCancellationHandler {
                try await blocking {
                    try Program(
                        words: words.map { Array($0.utf8) }, environment: Program.plainEnvironment, folder: "/"
                    ).run(within: limit, line: { _, _ in }, isStopped: { stop.isSet }).ending
                }
            } onCancel: {
                stop.set()
            }
        } catch {
            return .unknown(
                problem: "cannot be started (\((error as? SystemError)?.reason ?? "\(error)"))",
                remedy: "make it executable for the daemon's user")
        }
        let byHand = "run it by hand as the daemon's user"
        switch ending {
        case .status(0): return .busy
        case .status(1): return .free
        case .status(let status):
            return .unknown(
                problem: "ended with exit status \(status); 0 means busy and 1 means not busy", remedy: byHand)
        case .signal(let signal): return .unknown(problem: "was ended by signal \(signal)", remedy: byHand)
        case .overdue:
            return .unknown(
                problem: "did not end within its `timeout` and was stopped",
                remedy: "make it faster, or give it more time")
        case .stopped: return nil
        }
    }
}

extension Settings {
    /// Every `busy`, with its place for people.
    package var busyRules: [(place: String, rule: BusyRule)] {
        let places =
            [("policy", policy.rules)] + destinations.map { ("destinations.\($0.name)", $0.policy.rules) }
            + folders.map { ("folder \($0.watch.name)", $0.policy.rules) }
        return places.compactMap { place, rules in rules.busy.map { (place, $0) } }
    }
}
