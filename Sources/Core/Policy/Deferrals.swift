/// Work that cannot be done now, by its key: when each piece is tried again, and how often in a row it has failed.
package struct Deferrals<Key: Hashable & Sendable, Detail: Sendable>: Sendable {
    package struct Deferral: Sendable {
        package fileprivate(set) var until: MonotonicTime
        /// Failures in a row; 0 if it waits for another reason.
        package let failures: Int
        package let detail: Detail

        package init(until: MonotonicTime, failures: Int, _ detail: Detail) {
            (self.until, self.failures, self.detail) = (until, failures, detail)
        }

        /// Whether to log the failure: the first, the second, the fourth, the eighth …
        package var shouldLog: Bool { failures & (failures - 1) == 0 }
    }

    private let backoff: Backoff
    private var entries: [Key: Deferral] = [:]
    /// Whether work may be done now that was deferred before.
    private var needsWake = false

    /// - Parameter backoff: The waits after failures.
    package init(_ backoff: Backoff) { self.backoff = backoff }

    package var isEmpty: Bool { entries.isEmpty }
    /// When the first piece is tried again.
    package var next: MonotonicTime? { entries.values.map(\.until).min() }

    /// The pieces that are not to be tried yet.
    package func waiting(at now: MonotonicTime) -> [Key] { entries.filter { $0.value.until > now }.map(\.key) }

    /// The pieces whose time has come.
    package func due(at now: MonotonicTime, where isMeant: (Detail) -> Bool = { _ in true }) -> [Key] {
        entries.filter { $0.value.until <= now && isMeant($0.value.detail) }.map(\.key)
    }

    package func isWaiting(_ key: Key, at now: MonotonicTime) -> Bool { entries[key].map { $0.until > now } ?? false }

    /// All pieces with such a detail.
    package func keys(where isMeant: (Detail) -> Bool) -> [Key] {
        entries.filter { isMeant($0.value.detail) }.map(\.key)
    }

    package func detail(of key: Key) -> Detail? { entries[key]?.detail }

    package func failures(of key: Key) -> Int { entries[key]?.failures ?? 0 }

    /// Records one more failure.
    ///
    /// - Returns: How long the piece waits, and its deferral.
    package mutating func failed(
        _ key: Key, _ detail: Detail, at now: MonotonicTime, jitter: Double
    ) -> (wait: Duration, deferral: Deferral) {
        let failures = failures(of: key) + 1
        let wait = backoff.wait(afterFailures: failures, jitter: jitter)
        let deferral = Deferral(until: now.advanced(by: wait), failures: failures, detail)
        entries[key] = deferral
        return (wait, deferral)
    }

    package mutating func set(_ deferral: Deferral, of key: Key) { entries[key] = deferral }

    /// The piece is done, or has changed.
    package mutating func remove(_ key: Key, at now: MonotonicTime) {
        if let entry = entries.removeValue(forKey: key), entry.until > now { needsWake = true }
    }

    /// Forgets pieces and their failures.
    package mutating func removeAll(where isMeant: (Key, Detail) -> Bool) {
        entries = entries.filter { !isMeant($0.key, $0.value.detail) }
    }

    /// Some pieces are tried at once; their failures count on.
    package mutating func retry(at now: MonotonicTime, where isMeant: (Detail) -> Bool = { _ in true }) {
        for (key, entry) in entries where entry.until > now && isMeant(entry.detail) {
            entries[key]?.until = now
            needsWake = true
        }
    }

    /// - Returns: Whether to wake those who do the work.
    package mutating func takeWake() -> Bool {
        defer { needsWake = false }
        return needsWake
    }
}
