import Core
import Linux
import Synchronization
import TestKit
import Watch

/// A watched folder in a test: records the watcher's reports, and waits for them.
final class Scene: Sendable {
    struct Reports: Sendable {
        var settled: [SettledFile] = []
        /// The identities that a daemon would have recorded.
        var known: Set<FileIdentity> = []
        var skipped: [SettledFile] = []
        var scanned: [String] = []
        var log: [String] = []
        /// Sizes of the batches.
        var batches: [Int] = []
        var asked = 0
    }

    struct TimeLimit: Error, CustomStringConvertible { let description: String }

    private struct Waiter {
        let id: UInt64
        let isMet: @Sendable (Reports) -> Bool
        let continuation: CheckedContinuation<Void, any Error>
    }

    private let content = Mutex<(reports: Reports, waiters: [Waiter], next: UInt64, notes: Int)>((Reports(), [], 0, 0))

    var reports: Reports { content.withLock { $0.reports } }
    var names: [String] { reports.settled.map(\.relative.display).sorted() }

    func note(_ change: @Sendable (inout Reports) -> Void) {
        let met = content.withLock { content in
            change(&content.reports)
            content.notes += 1
            let reports = content.reports
            let met = content.waiters.filter { $0.isMet(reports) }
            content.waiters.removeAll { waiter in met.contains { $0.id == waiter.id } }
            return met
        }
        for waiter in met { waiter.continuation.resume() }
    }

    /// Returns when `isMet` is true; throws after 20 seconds without a report.
    func wait(_ what: String, until isMet: @escaping @Sendable (Reports) -> Bool) async throws {
        let id = content.withLock { content in
            content.next += 1
            return content.next
        }
        let limit = Task {
            // Thousands of files take longer than that on a loaded machine: as long as reports come, the test goes on.
            var seen = -1
            while case let notes = content.withLock({ $0.notes }), notes != seen {
                seen = notes
                try await Task.sleep(for: .seconds(20 * Patience.factor))
            }
            let late = content.withLock { content in
                defer { content.waiters.removeAll { $0.id == id } }
                return content.waiters.filter { $0.id == id }
            }
            for waiter in late { waiter.continuation.resume(throwing: TimeLimit(description: "\(what): \(reports)")) }
        }
        defer { limit.cancel() }
        try await withCheckedThrowingContinuation { continuation in
            let isNow = content.withLock { content in
                if isMet(content.reports) { return true }
                content.waiters.append(Waiter(id: id, isMet: isMet, continuation: continuation))
                return false
            }
            if isNow { continuation.resume() }
        }
    }

    func settled(_ names: String...) async throws { try await settled(names) }

    /// Waits until exactly these files have been passed on.
    func settled(_ names: [String]) async throws {
        let wanted = names.sorted()
        do {
            try await wait("the expected files have settled") { reports in
                reports.settled.map(\.relative.display).sorted() == wanted
            }
        } catch {
            let reports = reports
            let got = reports.settled.map(\.relative.display).sorted()
            let difference = got.difference(from: wanted).map { "\($0)" }
            throw TimeLimit(description: "settled \(got.count) of \(wanted.count): \(difference) \(reports.log)")
        }
    }

    /// Watches while `body` runs, which begins when every existing folder has been scanned once.
    ///
    /// - Parameter known: For `nil` the files that have been passed on are known.
    func watch(
        _ rules: [WatchRule], skipExisting: Set<String> = [], pace: WatchLimits = .quick, absent: Set<String> = [],
        known: @escaping @Sendable (FileIdentity) -> Bool? = { _ in nil },
        onLog: @escaping @Sendable (String) -> Void = { _ in }, onSettled: @escaping @Sendable () async -> Void = {},
        _ body: @Sendable (Watcher) async throws -> Void
    ) async throws {
        let watcher = Watcher(
            rules: rules, skipExisting: skipExisting, pace: pace, clocks: SystemClocks(),
            isKnown: { [self] identities in
                note { $0.asked += identities.count }
                let record = reports.known
                return identities.map { known($0) ?? record.contains($0) }
            },
            log: { [self] line in
                note { $0.log.append(line.text) }
                onLog(line.text)
            })
        let running = Task {
            try await watcher.run(
                onSettled: { [self] files in
                    note {
                        $0.settled += files
                        $0.known.formUnion(files.map(\.identity))
                        $0.batches.append(files.count)
                    }
                    await onSettled()
                },
                onSkipped: { [self] files in
                    note {
                        $0.skipped += files
                        $0.known.formUnion(files.map(\.identity))
                    }
                },
                onScanned: { [self] folders in note { $0.scanned += folders } }, onRest: {})
        }
        do {
            let there = rules.map(\.name).filter { !absent.contains($0) }.sorted()
            try await wait("all first scans have ended") { $0.scanned.sorted() == there }
            try await body(watcher)
        } catch {
            running.cancel()
            _ = await running.result
            throw error
        }
        running.cancel()
        try await running.value
    }
}

extension WatchLimits {
    /// Short enough to wait for, long enough to distinguish one from the other.
    static var quick: WatchLimits {
        var pace = WatchLimits()
        pace.quiet.closed = .milliseconds(40)
        pace.quiet.unsure = .milliseconds(160)
        pace.quiet.withoutEvents = .milliseconds(240)
        pace.quiet.busyFirst = .milliseconds(20)
        pace.quiet.busyMost = .milliseconds(80)
        pace.poll = .milliseconds(100)
        pace.pollMost = .milliseconds(400)
        pace.absent = .milliseconds(50)
        return pace
    }
}
