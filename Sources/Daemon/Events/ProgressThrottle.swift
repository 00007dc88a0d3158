internal import Core

/// Whose progress is told to one reader now: of each upload seldom enough to be read, and of all of them together too.
///
/// Endings and changes of state do not pass here: they are always told.
struct ProgressThrottle {
    /// How far an upload is.
    struct Progress: Hashable {
        var id: String
        /// Bytes.
        var sent: Int64
        var total: Int64
    }

    /// Between two looks.
    static let tick: Duration = .milliseconds(500)
    /// Of all uploads together, 20 a second.
    static let mostAtOnce = 10
    /// Less than a thousandth is told only so long after what was told before.
    static let rest: Duration = .seconds(1)

    private var told: [String: (sent: Int64, at: MonotonicTime)] = [:]

    /// - Returns: Those to be told now, the ones that were told longest ago first. They count as told.
    mutating func due(_ running: [Progress], now: MonotonicTime) -> [String] {
        let there = Set(running.map(\.id))
        told = told.filter { there.contains($0.key) }
        let due = running.filter { progress in
            guard let last = told[progress.id] else { return true }
            let change = abs(progress.sent - last.sent)
            return change > 0 && (change >= max(1, progress.total / 1000) || now.since(last.at) >= Self.rest)
        }
        // Who was never told comes first; among equals the order of those that run.
        let ages = due.enumerated().map { (age: told[$1.id]?.at.nanoseconds ?? .min, index: $0, progress: $1) }
        let chosen = ages.sorted { ($0.age, $0.index) < ($1.age, $1.index) }.prefix(Self.mostAtOnce).map(\.progress)
        for progress in chosen { told[progress.id] = (progress.sent, now) }
        return chosen.map(\.id)
    }
}
