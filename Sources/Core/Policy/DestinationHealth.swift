/// Whether a destination responds. A value: the daemon passes events to it and queries when an upload may be tried.
package struct DestinationHealth: Hashable, Sendable {
    /// The trouble, from its first failure to the first success.
    package struct Trouble: Hashable, Sendable {
        package var kind: Hold.Kind
        package var text: String
        /// The rule for its next try, for people; `nil`: there is none to name.
        package var rule: String?
        package var since: WallTime
        /// Failures in a row, counted from 1.
        package var failures: Int
        /// The time from which the next probe may start.
        package var probeAt: MonotonicTime
        /// The same moment for people.
        package var probeAtWall: WallTime
    }

    package private(set) var trouble: Trouble?

    package init() {}

    /// The trouble as a hold: it stays until an upload succeeds, also during a probe.
    package var currentHold: Hold? {
        trouble.map { trouble in
            Hold(
                trouble.kind, since: trouble.since, until: trouble.probeAtWall,
                text: trouble.text + (trouble.rule.map { "; \($0)" } ?? ""))
        }
    }

    package func mayProbe(at now: MonotonicTime) -> Bool { trouble.map { now >= $0.probeAt } ?? true }

    package mutating func succeeded() { trouble = nil }

    /// The network, clock or settings changed: the next probe is due at once.
    package mutating func scheduleProbe(at: MonotonicTime) { trouble?.probeAt = at }

    /// Moves the next probe forward to this time, where it was to start later.
    package mutating func probe(within wait: Duration, now: WallTime, monotonic: MonotonicTime) {
        guard let trouble, trouble.probeAt > monotonic.advanced(by: wait) else { return }
        self.trouble?.probeAt = monotonic.advanced(by: wait)
        self.trouble?.probeAtWall = now.advanced(by: wait)
    }

    /// - Parameters:
    ///   - rule: The rule that sets the wait, for people.
    ///   - wait: Time until the next probe.
    package mutating func failed(
        _ kind: Hold.Kind, text: String, by rule: String? = nil, wait: Duration, now: WallTime, monotonic: MonotonicTime
    ) {
        // A full destination after a long silence is a new trouble, and so is silence after a full destination.
        let same = trouble.flatMap { ($0.kind == .quota) == (kind == .quota) ? $0 : nil }
        trouble = Trouble(
            kind: kind, text: text, rule: rule, since: same?.since ?? now,
            failures: failures(isFull: kind == .quota, at: monotonic), probeAt: monotonic.advanced(by: wait),
            probeAtWall: now.advanced(by: wait))
    }

    /// How many failures in a row this makes, counted from 1 with the present one. A failure before the next probe is
    /// due is of an upload that ran beside the one that failed: both are one failure of the destination.
    ///
    /// - Parameter isFull: The destination has no space.
    package func failures(isFull: Bool, at now: MonotonicTime) -> Int {
        guard let trouble, (trouble.kind == .quota) == isFull else { return 1 }
        return mayProbe(at: now) ? trouble.failures + 1 : trouble.failures
    }

    /// How often a full destination is queried again: after 5 minutes, and at most an hour apart; more often where
    /// `retry` sets a shorter maximum.
    package static func backoffWhenFull(_ retry: Backoff) -> Backoff {
        Backoff(first: min(.seconds(300), retry.ceiling), ceiling: min(.seconds(3600), retry.ceiling))
    }

    /// The longest time between two tries of a destination that does not answer, unless it names another.
    package static let longestProbeWait = Duration.seconds(300)
    /// Time until a refused credential is read again.
    package static let credentialRetryWait = Duration.seconds(900)

    /// The kind of hold and the wait that a failed upload causes for its destination; `nil` when only the upload is at
    /// fault.
    ///
    /// | remedy | hold | wait |
    /// |---|---|---|
    /// | hold destination | `destination` | what the server asked for, else the backoff, at most 5 min |
    /// | out of space | `quota` | what the server asked for, else ``backoffWhenFull(_:)`` |
    /// | rate limit | `rate_limit` | what the server asked for, else the backoff |
    /// | authenticate | `auth` | 15 min |
    /// | misconfigured | `destination` | the backoff |
    package static func hold(
        for remedy: Remedy, failures: Int, backoff: Backoff, jitter: Double
    ) -> (kind: Hold.Kind, wait: Duration)? {
        let wait = backoff.wait(afterFailures: failures, jitter: jitter)
        switch remedy {
        case .holdDestination(let after): return (.destination, after ?? min(wait, longestProbeWait))
        case .outOfSpace(let after):
            return (.quota, after ?? backoffWhenFull(backoff).wait(afterFailures: failures, jitter: jitter))
        case .rateLimit(let after): return (.rateLimit, after ?? wait)
        case .authenticate: return (.auth, credentialRetryWait)
        case .misconfigured: return (.destination, wait)
        case .retry, .refused, .pending, .lackQuota, .restage, .failUpload: return nil
        }
    }
}
