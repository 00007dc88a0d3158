/// Whether uploads of one class (a folder to a destination) may start now, and if not, why not.
///
/// A pure function of the configuration and the world: no clock, file or socket. `until` of a hold is when to ask again.
package struct Admission: Hashable, Sendable {
    /// Uploads at the same time, over all destinations.
    package var total: Int
    /// What `policy` allows.
    package var rules: PolicyRules

    package init(total: Int, rules: PolicyRules = PolicyRules()) {
        self.total = total
        self.rules = rules
    }

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
    package struct World: Sendable {
        package var now: WallTime
        package var monotonic: MonotonicTime
        /// What the clocks on the wall show.
        package var zone: Zone
        /// Why the wall clock is not to be trusted; `nil` when it is.
        package var clockTrouble: Hold?
        /// Uploads under way in all.
        package var running: Int
        package var everything: Pause?
        /// A person limited all that goes to nothing for a while.
        package var standstill: Pause?
        /// What is known of the networks; `nil` while nobody needs to know.
        package var network: Metering?
        /// What was spent of every quota.
        package var quotas: QuotaBook
        /// What the machine runs on; `nil` without a battery, and while nobody needs to know.
        package var power: Power?
        /// What was heard of each source of `busy` that counts still.
        package var busy: [BusySource: BusyWord]

        package init(
            now: WallTime, monotonic: MonotonicTime, zone: Zone = .utc, clockTrouble: Hold? = nil, running: Int,
            everything: Pause?, network: Metering? = nil, quotas: QuotaBook = QuotaBook(policy: PolicyRules()),
            power: Power? = nil, busy: [BusySource: BusyWord] = [:]
        ) {
            self.now = now
            self.monotonic = monotonic
            self.zone = zone
            self.clockTrouble = clockTrouble
            self.running = running
            self.everything = everything
            self.network = network
            self.quotas = quotas
            self.power = power
            self.busy = busy
        }
    }

    /// One destination as it stands.
    package struct Remote: Hashable, Sendable {
        package var name: String
        package var slots: Int
        package var running: Int
        package var pause: Pause?
        package var health: DestinationHealth
        /// What its own settings allow.
        package var rules: PolicyRules
        package var reach: Reach
        /// Since when that is so, and means what it means.
        package var reachSince: WallTime

        package init(
            name: String, slots: Int, running: Int, pause: Pause?, health: DestinationHealth,
            rules: PolicyRules = PolicyRules(), reach: Reach = .local,
            reachSince: WallTime = WallTime(milliseconds: 0)
        ) {
            self.name = name
            self.slots = slots
            self.running = running
            self.pause = pause
            self.health = health
            self.rules = rules
            self.reach = reach
            self.reachSince = reachSince
        }
    }

    /// One folder as it stands.
    package struct Origin: Hashable, Sendable {
        package var name: String
        package var pause: Pause?
        package var rules: PolicyRules
        /// What a person lets it off, whoever says it.
        package var excused: Set<Excuse>

        package init(
            name: String, pause: Pause? = nil, rules: PolicyRules = PolicyRules(), excused: Set<Excuse> = []
        ) {
            self.name = name
            self.pause = pause
            self.rules = rules
            self.excused = excused
        }
    }

    package enum Verdict: Hashable, Sendable {
        /// That many more may start.
        case go(Int)
        /// Nothing is in the way but the slots that are taken.
        case busy
        case wait([Hold])
    }

    /// What is in the way of uploads to `remote`, whatever slots are free.
    package func holds(for remote: Remote, from folder: Origin? = nil, in world: World) -> [Hold] {
        bans(on: remote, from: folder, in: world) + (remote.health.standing.map { [$0] } ?? [])
    }

    /// What forbids every byte to `remote`: all but its own health, which forbids nothing to a probe.
    ///
    /// - Parameter isUnderWay: For what has begun and has reserved what it sends; its reserve ends it.
    package func bans(
        on remote: Remote, from folder: Origin? = nil, in world: World, isUnderWay: Bool = false
    ) -> [Hold] {
        var holds = [pause(world.everything, "everything"), pause(remote.pause, "destination \(remote.name)")]
            .compactMap { $0 }
        if let still = world.standstill {
            holds.append(
                Hold(
                    .global, since: still.since, until: still.until,
                    text: "`sluice limit 0` lets nothing go; `sluice limit off` ends that"))
        }
        let excused = folder?.excused ?? []
        holds += rules.holds("policy", in: world, excusing: excused)
        holds += remote.rules.holds("destinations.\(remote.name)", in: world, excusing: excused)
        if let folder { holds += bans(on: folder, in: world) }
        let isMetered: Bool?
        switch way(to: remote, from: folder, in: world) {
        case .closed(let more, let countsAsMetered):
            holds += more
            // A quota that is used up holds behind that too, and is shown before the network changes.
            isMetered = countsAsMetered
        case .open(let passage): isMetered = passage.ledger == .local ? nil : passage.countsAsMetered
        }
        // With a clock that is not believed nobody knows what counts, nor until when: its own hold says that.
        if let isMetered, !excused.contains(.quota), world.clockTrouble == nil {
            let kind = QuotaBook.Class(remote.name, from: folder?.name, isMetered: isMetered)
            holds += world.quotas.holds(for: kind, isStarting: !isUnderWay)
        }
        return world.sortedOut(holds)
    }

    /// What forbids uploads from a folder, wherever they go.
    package func bans(on folder: Origin, in world: World) -> [Hold] {
        let holds = [pause(folder.pause, "folder \(folder.name)")].compactMap { $0 }
        return world.sortedOut(holds + folder.rules.holds("folder \(folder.name)", in: world, excusing: folder.excused))
    }

    private func pause(_ pause: Pause?, _ what: String) -> Hold? {
        pause.map { Hold(.global, since: $0.since, until: $0.until, text: "\(what) is paused") }
    }

    /// When a ban may come or go by itself, though nothing else happens: to be asked again then.
    package func nextChange(_ remotes: [Remote], _ folders: [Origin], in world: World) -> WallTime? {
        let pauses = [world.everything, world.standstill] + remotes.map(\.pause) + folders.map(\.pause)
        let times =
            pauses.compactMap { $0?.until }
            + ([rules] + remotes.map(\.rules) + folders.map(\.rules)).compactMap { $0.nextChange(in: world) }
            + [world.clockTrouble?.until, world.quotas.nextChange].compactMap { $0 }
        return times.min()
    }

    /// - Parameter folder: For what comes from there alone, and has a word of its own.
    package func verdict(for remote: Remote, from folder: Origin? = nil, in world: World) -> Verdict {
        let bans = bans(on: remote, from: folder, in: world)
        let room = room(at: remote, in: world)
        if bans.isEmpty { return room }
        guard case .wait(let more) = room else { return .wait(bans) }
        return .wait(bans + more)
    }

    /// What health and slots say of uploads to `remote` that nothing forbids.
    package func room(at remote: Remote, in world: World) -> Verdict {
        // When the time for a probe has come, its trouble is no longer in the way of one upload.
        if let standing = remote.health.standing, !remote.health.mayProbe(at: world.monotonic) {
            return .wait([standing])
        }
        let free = free(for: remote, running: remote.running, inAll: world.running)
        return free > 0 ? .go(free) : .busy
    }

    /// How many more uploads to `remote` there are slots for; 0 or less for none.
    ///
    /// - Parameters:
    ///   - running: To it.
    ///   - all: Over all destinations.
    package func free(for remote: Remote, running: Int, inAll all: Int) -> Int {
        // A destination that was down is tried with one upload at a time until one gets an answer.
        let slots = remote.health.trouble == nil ? remote.slots : 1
        return min(slots - running, total - all)
    }
}

/// Whether a destination answers. A value: the daemon tells it what happened and asks it what may happen.
package struct DestinationHealth: Hashable, Sendable {
    /// The trouble, from its first failure to the first success.
    package struct Trouble: Hashable, Sendable {
        package var kind: Hold.Kind
        package var text: String
        /// By which rule it is tried again, for people; `nil`: there is none to name.
        package var rule: String?
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

    /// The trouble as a hold: it stands until an upload succeeds, also while a probe is under way.
    package var standing: Hold? {
        trouble.map { trouble in
            Hold(
                trouble.kind, since: trouble.since, until: trouble.probeAtWall,
                text: trouble.text + (trouble.rule.map { "; \($0)" } ?? ""))
        }
    }

    package func mayProbe(at now: MonotonicTime) -> Bool { trouble.map { now >= $0.probeAt } ?? true }

    package mutating func succeeded() { trouble = nil }

    /// The network, clock or settings changed: look again at once.
    package mutating func reconsider(monotonic: MonotonicTime) { trouble?.probeAt = monotonic }

    /// The next probe is to start so soon, where it was to start later.
    package mutating func probe(within wait: Duration, now: WallTime, monotonic: MonotonicTime) {
        guard let trouble, trouble.probeAt > monotonic.advanced(by: wait) else { return }
        self.trouble?.probeAt = monotonic.advanced(by: wait)
        self.trouble?.probeAtWall = now.advanced(by: wait)
    }

    /// - Parameters:
    ///   - rule: Which one says how long that is, for people.
    ///   - wait: How long until the next probe.
    package mutating func failed(
        _ kind: Hold.Kind, text: String, by rule: String? = nil, wait: Duration, now: WallTime, monotonic: MonotonicTime
    ) {
        // No room after a long silence is another trouble, which has just begun; so is silence after no room.
        let same = trouble.flatMap { ($0.kind == .quota) == (kind == .quota) ? $0 : nil }
        trouble = Trouble(
            kind: kind, text: text, rule: rule, since: same?.since ?? now, failures: (same?.failures ?? 0) + 1,
            probeAt: monotonic.advanced(by: wait), probeAtWall: now.advanced(by: wait))
    }

    /// How often this has gone on for in a row, counted from 1 with the failure that has just come.
    ///
    /// - Parameter isFull: It has no room.
    package func failures(isFull: Bool) -> Int {
        guard let trouble, (trouble.kind == .quota) == isFull else { return 1 }
        return trouble.failures + 1
    }

    /// How seldom a destination without room is asked again: after 5 minutes, and at most an hour apart; sooner where
    /// `retry` says that nothing waits for longer.
    package static func patience(_ retry: Backoff) -> Backoff {
        Backoff(first: min(.seconds(300), retry.ceiling), ceiling: min(.seconds(3600), retry.ceiling))
    }

    /// The longest time between two tries of a destination that does not answer, unless it names another.
    package static let longestSilence = Duration.seconds(300)
    /// Until a credential that was refused is read again.
    package static let betweenCredentials = Duration.seconds(900)

    /// The kind of hold and the wait that a failed upload means for its destination; `nil` when only the upload is at
    /// fault.
    ///
    /// | remedy | hold | wait |
    /// |---|---|---|
    /// | hold destination | `destination` | what the server asked for, else the backoff, at most 5 min |
    /// | no room | `quota` | what the server asked for, else ``patience(_:)`` |
    /// | rate limit | `rate_limit` | what the server asked for, else the backoff |
    /// | authenticate | `auth` | 15 min |
    /// | misconfigured | `destination` | the backoff |
    package static func hold(
        for remedy: Remedy, failures: Int, backoff: Backoff, luck: Double
    ) -> (kind: Hold.Kind, wait: Duration)? {
        let wait = backoff.wait(afterFailures: failures, luck: luck)
        switch remedy {
        case .holdDestination(let after): return (.destination, after ?? min(wait, longestSilence))
        case .noRoom(let after):
            return (.quota, after ?? patience(backoff).wait(afterFailures: failures, luck: luck))
        case .rateLimit(let after): return (.rateLimit, after ?? wait)
        case .authenticate: return (.auth, betweenCredentials)
        case .misconfigured: return (.destination, wait)
        case .again, .refused, .pending, .restage, .giveUp: return nil
        }
    }
}
