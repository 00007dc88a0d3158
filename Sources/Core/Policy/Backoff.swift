/// The wait after a failure: twice as long each time, up to a ceiling.
///
/// The wait is a random time between half of that and all of it, so that machines which lost the same server do not
/// come back in the same second. There is no last attempt unless ``attempts`` is set.
package struct Backoff: Hashable, Sendable {
    package var first: Duration
    package var ceiling: Duration
    /// How often the remote may refuse one upload; `nil` for no end.
    package var attempts: Int?
    /// How long one upload may fail while the remote accepts no byte of it; `nil` for no end.
    package var giveUpAfter: Duration?

    package init(
        first: Duration = .seconds(5), ceiling: Duration = .seconds(1800), attempts: Int? = nil,
        giveUpAfter: Duration? = nil
    ) {
        self.first = first
        self.ceiling = ceiling
        self.attempts = attempts
        self.giveUpAfter = giveUpAfter
    }

    /// The wait of an upload whose attempts begin at the first byte each time: one second for each MB that was sent in
    /// waste, at most ``ceiling``.
    package func wait(afterWasting bytes: Int64) -> Duration { min(.milliseconds(max(0, bytes) / 1000), ceiling) }

    /// The wait before a file is sent again from its first byte, after the remote has lost it twice in one attempt.
    /// Such a loss uses no attempt. Since each one costs all bytes of the file, the waits grow from a minute to an
    /// hour.
    ///
    /// - Parameter losses: Number of losses so far, two for each wait.
    package static func ofLosses(_ losses: Int64) -> Duration {
        min(.seconds(60) * (1 << min(max(0, losses - 2) / 2, 10)), .seconds(3600))
    }

    /// - Parameters:
    ///   - failures: Failures in a row, counted from 1.
    ///   - luck: 0 for the shortest wait, 1 for the longest. The caller draws it, so that randomness comes from
    ///     outside, like time.
    package func wait(afterFailures failures: Int, jitter: Double) -> Duration {
        var longest = first
        for _ in 1..<max(1, min(failures, 64)) where longest < ceiling { longest = longest * 2 }
        longest = min(longest, ceiling)
        return longest * (0.5 + 0.5 * min(max(jitter, 0), 1))
    }
}
