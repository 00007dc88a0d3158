internal import Core

/// The sending rate.
struct SendRate {
    /// Shorter periods say little: at first a whole buffer leaves at once.
    private static let minPeriod = Duration.milliseconds(500)
    private var since: MonotonicTime
    private var sent: Int64 = 0
    private var rate: Int64 = 0

    init(at now: MonotonicTime) { since = now }

    mutating func spend(_ bytes: Int64) { sent = sent.addingClamped(bytes) }

    /// The recent rate in bytes a second.
    func rate(at now: MonotonicTime) -> Int64 {
        let elapsed = now.since(since)
        let current = max(0, sent) / max(1, max(elapsed, Self.minPeriod).inMilliseconds) * 1000
        return elapsed < Self.minPeriod ? max(rate, current) : current
    }

    /// Begins a new period with a new step.
    mutating func beginPeriod(at now: MonotonicTime) {
        guard now.since(since) >= Self.minPeriod else { return }
        rate = rate(at: now)
        (since, sent) = (now, 0)
    }
}
