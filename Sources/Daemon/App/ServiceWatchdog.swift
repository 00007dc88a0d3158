internal import Core
internal import Linux
internal import Store
internal import Synchronization
internal import Watch

/// Reports to the service manager that the daemon works.
///
/// One task asks each essential loop, reports when all have answered, and sleeps. No timer reports by itself: a loop that
/// hangs ends the reports, and the manager restarts the daemon.
struct ServiceWatchdog: Sendable {
    struct Loop: Sendable {
        /// For the log.
        let name: String
        /// Returns when the loop has begun a turn since the call, or when the task is cancelled.
        let confirmTurn: @Sendable () async -> Void
    }

    let loops: [Loop]
    /// The time between a report and the next questions.
    let pause: Duration
    let log: Log
    var sleep: @Sendable (Duration) async throws -> Void = { try await Alarms.shared.sleep(for: $0) }

    /// Reports until the task is cancelled.
    ///
    /// - Parameter report: Called each time that all loops have answered; must not wait.
    func run(report: @Sendable () -> Void) async {
        while true {
            await confirmAll()
            if Task.isCancelled { return }
            report()
            // Fails only when the task is cancelled.
            do { try await sleep(pause) } catch { return }
        }
    }

    /// Returns when every loop has answered, or when the task is cancelled. Names the loops that are late in the log: a
    /// restart follows if they do not answer.
    private func confirmAll() async {
        let answers = Answers(missing: Set(loops.map(\.name)))
        await withTaskGroup(of: Bool.self) { group in
            for loop in loops {
                group.addTask {
                    await loop.confirmTurn()
                    answers.note(loop.name)
                    return true
                }
            }
            group.addTask { [self] in
                // A cancelled sleep means that all have answered.
                do { try await sleep(pause) } catch { return false }
                reportLate(answers.passLimit())
                return false
            }
            var missing = loops.count
            while missing > 0, let isAnswer = await group.next() { missing -= isAnswer ? 1 : 0 }
            group.cancelAll()
        }
        if answers.isLate, !Task.isCancelled {
            inBackground { [log] in log.notice("all parts of the daemon answer again") }
        }
    }

    private func reportLate(_ names: [String]) {
        // The log may be what a loop waits for.
        inBackground { [log, pause] in
            log.error(
                "a part of the daemon does not answer; the service manager restarts the daemon if that lasts",
                ["parts": names.joined(separator: ", "), "asked_ago": "\(pause.inSeconds)s"])
        }
    }
}

/// The answers to one round of questions.
private final class Answers: Sendable {
    private let state: Mutex<(missing: Set<String>, isLate: Bool)>

    init(missing: Set<String>) { state = Mutex((missing, false)) }

    /// Whether the time for the answers was over before all had come.
    var isLate: Bool { state.withLock { $0.isLate } }

    func note(_ loop: String) { _ = state.withLock { $0.missing.remove(loop) } }

    /// - Returns: The loops that have not answered in time.
    func passLimit() -> [String] {
        state.withLock { state in
            state.isLate = true
            return state.missing.sorted()
        }
    }
}

extension Daemon {
    /// Calls `report` about every `pause` until the task is cancelled, but only after the scheduler, the watching thread
    /// and the database have each taken a turn since the call before.
    package func reportProgress(every pause: Duration, _ report: @Sendable () -> Void) async {
        let loops = [
            ServiceWatchdog.Loop(name: "scheduler") { [scheduler, signals] in
                await scheduler.turns.confirm { signals.scheduling.signal() }
            },
            ServiceWatchdog.Loop(name: "watcher") { [watcher] in await watcher.confirmTurn() },
            ServiceWatchdog.Loop(name: "database") { [store = context.store] in await store.confirmTurn() },
        ]
        await ServiceWatchdog(loops: loops, pause: pause, log: context.log).run(report: report)
    }
}
