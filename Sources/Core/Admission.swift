/// Whether uploads of one class (a folder to a destination) may start now, and if not, why not.
///
/// A pure function of the configuration and the world: no clock, file or socket. `until` of a hold is when to ask again.
package struct Admission: Hashable, Sendable {
    /// Uploads at the same time, over all destinations.
    package var total: Int

    package init(total: Int) { self.total = total }

    /// A pause that a person set: of everything, a folder or a destination.
    package struct Pause: Hashable, Sendable {
        package var since: WallTime
        package var until: WallTime?

        package init(since: WallTime, until: WallTime?) {
            self.since = since
            self.until = until
        }
    }

    /// What the daemon knows when it asks.
    package struct World: Hashable, Sendable {
        package var now: WallTime
        package var monotonic: MonotonicTime
        /// Uploads under way in all.
        package var running: Int
        package var everything: Pause?

        package init(now: WallTime, monotonic: MonotonicTime, running: Int, everything: Pause?) {
            self.now = now
            self.monotonic = monotonic
            self.running = running
            self.everything = everything
        }
    }

    /// One destination as it stands.
    package struct Remote: Hashable, Sendable {
        package var name: String
        package var slots: Int
        package var running: Int
        package var pause: Pause?
        package var health: DestinationHealth

        package init(name: String, slots: Int, running: Int, pause: Pause?, health: DestinationHealth) {
            self.name = name
            self.slots = slots
            self.running = running
            self.pause = pause
            self.health = health
        }
    }

    package enum Verdict: Hashable, Sendable {
        /// That many more may start.
        case go(Int)
        /// Nothing is in the way but the slots that are taken.
        case busy
        case wait([Hold])
    }

    package func verdict(for remote: Remote, in world: World) -> Verdict {
        var holds: [Hold] = []
        if let pause = world.everything {
            holds.append(Hold(.global, since: pause.since, until: pause.until, text: "everything is paused"))
        }
        if let pause = remote.pause {
            holds.append(
                Hold(.global, since: pause.since, until: pause.until, text: "destination \(remote.name) is paused"))
        }
        if let hold = remote.health.hold(now: world.now, monotonic: world.monotonic) { holds.append(hold) }
        if !holds.isEmpty { return .wait(holds) }
        // A destination that was down is tried with one upload at a time until one gets an answer.
        let slots = remote.health.isProbing ? 1 : remote.slots
        let free = min(slots - remote.running, total - world.running)
        return free > 0 ? .go(free) : .busy
    }
}

/// Whether a destination answers. A value: the daemon tells it what happened and asks it what may happen.
package struct DestinationHealth: Hashable, Sendable {
    /// The trouble, from its first failure to the first success.
    package struct Trouble: Hashable, Sendable {
        package var kind: Hold.Kind
        package var text: String
        package var since: WallTime
        /// In a row, counted from 1.
        package var failures: Int
        /// The next probe may start then.
        package var probeAt: MonotonicTime
        /// The same moment for people.
        package var probeAtWall: WallTime
    }

    package private(set) var trouble: Trouble?

    package init() {}

    /// Down, and the time for a probe may have come.
    package var isProbing: Bool { trouble != nil }

    package func hold(now: WallTime, monotonic: MonotonicTime) -> Hold? {
        guard let trouble, monotonic < trouble.probeAt else { return nil }
        return Hold(trouble.kind, since: trouble.since, until: trouble.probeAtWall, text: trouble.text)
    }

    package mutating func succeeded() { trouble = nil }

    /// The network, clock or settings changed: look again at once.
    package mutating func reconsider(monotonic: MonotonicTime) { trouble?.probeAt = monotonic }

    /// - Parameters:
    ///   - wait: How long until the next probe.
    package mutating func failed(
        _ kind: Hold.Kind, text: String, wait: Duration, now: WallTime, monotonic: MonotonicTime
    ) {
        trouble = Trouble(
            kind: kind, text: text, since: trouble?.since ?? now, failures: (trouble?.failures ?? 0) + 1,
            probeAt: monotonic.advanced(by: wait), probeAtWall: now.advanced(by: wait))
    }

    /// The kind of hold and the wait that a failed upload means for its destination; `nil` when only the upload is at
    /// fault.
    ///
    /// | remedy | hold | wait |
    /// |---|---|---|
    /// | hold destination | `destination` | what the server asked for, else the backoff, at most 5 min |
    /// | rate limit | `rate_limit` | what the server asked for, else the backoff |
    /// | authenticate | `auth` | 15 min |
    /// | misconfigured | `destination` | the backoff |
    package static func hold(
        for remedy: Remedy, failures: Int, backoff: Backoff, luck: Double
    ) -> (kind: Hold.Kind, wait: Duration)? {
        let wait = backoff.wait(afterFailures: failures, luck: luck)
        switch remedy {
        case .holdDestination(let after): return (.destination, after ?? min(wait, .seconds(300)))
        case .rateLimit(let after): return (.rateLimit, after ?? wait)
        case .authenticate: return (.auth, .seconds(900))
        case .misconfigured: return (.destination, wait)
        case .again, .restage, .giveUp: return nil
        }
    }
}
