internal import Core

/// Decides which progress events one reader gets now: rarely enough to be readable, for each upload and for all
/// together.
///
/// Ends and changes of state do not pass here: they are always sent.
struct ProgressThrottle {
    /// The progress of an upload.
    struct Progress: Hashable {
        var id: String
        /// In bytes.
        var sent: Int64
        var total: Int64
    }

    /// The interval between checks.
    static let tick: Duration = .milliseconds(500)
    /// The most in one check: 20 a second for all uploads together.
    static let maxPerCheck = 10
    /// A change of less than a thousandth is sent only this long after the event before.
    static let rest: Duration = .seconds(1)

    private var lastReports: [String: (sent: Int64, at: MonotonicTime)] = [:]

    /// - Returns: The uploads to report now, the one that was reported longest ago first. They count as reported.
    mutating func due(_ running: [Progress], now: MonotonicTime) -> [String] {
        let there = Set(running.map(\.id))
        lastReports = lastReports.filter { there.contains($0.key) }
        let due = running.filter { progress in
            guard let last = lastReports[progress.id] else { return true }
            let change = abs(progress.sent - last.sent)
            return change > 0 && (change >= max(1, progress.total / 1000) || now.since(last.at) >= Self.rest)
        }
        // An upload that was never reported comes first; among equals the order of the running uploads counts.
        let ages = due.enumerated().map { (age: lastReports[$1.id]?.at.nanoseconds ?? .min, index: $0, progress: $1) }
        let chosen = ages.sorted { ($0.age, $0.index) < ($1.age, $1.index) }.prefix(Self.maxPerCheck).map(\.progress)
        for progress in chosen { lastReports[progress.id] = (progress.sent, now) }
        return chosen.map(\.id)
    }
}
