internal import Core
internal import Notices
internal import Store

/// The notices that wait for one hook, and when to try each. A value: the loop passes each event to it.
///
/// One notice at a time is sent to a hook. Notices of one upload are sent in order. If one notice alone fails, notices
/// of other uploads continue. If several in a row fail, the hook is left alone for a while, and then tried with one
/// notice.
struct HookQueue: Sendable {
    struct Waiting: Sendable, Hashable {
        let seq: Int64
        let at: WallTime
        let upload: String?
        var tries: Int
        /// Failed tries that only this notice caused, as far as is known: notices with fewer are sent first.
        var consecutiveFailures = 0
        /// The time of queuing, converted to the clock of this run.
        let queuedAt: MonotonicTime
        /// The earliest time for the next try.
        var due: MonotonicTime
    }

    /// The most notices that wait for one hook; beyond that the oldest is dropped.
    static let capacity = 1000
    /// The number of events that are read at once.
    static let batch = 200

    private(set) var hook: Hook
    /// In the order of their numbers.
    private(set) var waiting: [Waiting] = []
    /// The number of the event that is being sent.
    private(set) var running: Int64?
    /// Failed tries since the last success, and the notices that failed.
    private(set) var failures = 0
    private var failed: Set<Int64> = []
    /// The hook is left alone until then.
    private var until: MonotonicTime?
    /// The reason for the last failure; `nil` after a success.
    private(set) var trouble: Hold?
    private var lastFailure: DeliveryFailure?
    /// The hold that keeps all notices from being sent.
    private(set) var hold: Hold?
    /// Notices that were delivered or refused, and that the store still has to remove.
    private(set) var delivered: Set<Int64> = []
    private(set) var lastDelivered: WallTime?
    /// Counters since the start.
    private(set) var (deliveredCount, abandonedCount, droppedCount) = (0, 0, 0)
    /// Whether notices are being dropped, and this was logged.
    private(set) var isOverfull = false

    init(_ hook: Hook) { self.hook = hook }

    var oldest: WallTime? { waiting.first?.at }

    /// The notices to drop when this many are added.
    func overflow(adding count: Int) -> [Int64] {
        waiting.filter { $0.seq != running }.prefix(max(0, waiting.count + count - Self.capacity)).map(\.seq)
    }

    /// Whether the hook accepts notices, and has enough of them queued for now: the others can wait in the event store.
    var isBehind: Bool { failures == 0 && hold == nil && waiting.count > Self.capacity - Self.batch }

    mutating func add(_ new: [Waiting]) { waiting += new }

    /// - Returns: How many of them still existed, and whether the overflow is new and should be logged.
    mutating func drop(_ gone: [Int64]) -> (count: Int, isNew: Bool) {
        let before = waiting.count
        forget(gone.filter { !delivered.contains($0) })
        let count = before - waiting.count
        droppedCount += count
        if count == 0 { return (0, false) }
        defer { isOverfull = true }
        return (count, !isOverfull)
    }

    mutating func forget(_ gone: [Int64]) {
        let gone = Set(gone)
        waiting.removeAll { gone.contains($0.seq) }
        delivered.subtract(gone)
        failed.subtract(gone)
        if waiting.count < Self.capacity / 2 { isOverfull = false }
    }

    /// The notice to try now: the oldest one, except for notices that fail while others succeed.
    func next(at now: MonotonicTime) -> Waiting? {
        candidates.filter { isDue($0, at: now) }.min {
            ($0.consecutiveFailures, $0.seq) < ($1.consecutiveFailures, $1.seq)
        }
    }

    /// The time of the next try if nothing else happens.
    var nextTry: MonotonicTime? { candidates.map(moment).min() }

    /// The first notice of each upload.
    private var candidates: [Waiting] {
        if running != nil { return [] }
        var seen: Set<String> = []
        return waiting.filter { one in
            if delivered.contains(one.seq) { return false }
            guard let upload = one.upload else { return true }
            return seen.insert(upload).inserted
        }
    }

    private func moment(_ one: Waiting) -> MonotonicTime {
        // The failure of a single notice delays only that notice.
        guard let until, failed.count > 1 || failed.contains(one.seq) else { return one.due }
        return max(until, one.due)
    }

    private func isDue(_ one: Waiting, at now: MonotonicTime) -> Bool { moment(one) <= now }

    /// Policy holds all notices; `nil`: it permits them.
    mutating func held(by hold: Hold?) { self.hold = hold }

    mutating func begin(_ seq: Int64) { running = seq }

    /// Ends a try whose result is unknown.
    mutating func stopped() { running = nil }

    mutating func succeeded(_ seq: Int64, at wall: WallTime, _ now: MonotonicTime) {
        running = nil
        // Other notices failed before because the hook could not be reached.
        if failed.count > 1 {
            for index in waiting.indices {
                waiting[index].due = min(waiting[index].due, now)
                waiting[index].consecutiveFailures = 0
            }
        }
        (failures, failed, until, trouble) = (0, [], nil, nil)
        delivered.insert(seq)
        lastDelivered = wall
        deliveredCount += 1
    }

    /// Ends a try that was refused for good, which shows that the hook can be reached. The notice is given up.
    mutating func refused(_ seq: Int64, _ reason: String, at wall: WallTime) {
        running = nil
        (failures, failed, until) = (0, [], nil)
        trouble = Hold(.backoff, since: wall, text: reason)
        delivered.insert(seq)
        abandonedCount += 1
    }

    /// Gives up notices that the store has removed.
    mutating func abandon(_ gone: [Int64]) {
        forget(gone)
        abandonedCount += gone.count
    }

    /// - Returns: The notice after the failure; `nil` when it is gone. And whether the reason differs from the one
    ///   before.
    mutating func failed(
        _ seq: Int64, _ reason: String, because failure: DeliveryFailure, after: Duration?, at wall: WallTime,
        _ now: MonotonicTime,
        jitter: Double
    ) -> (notice: Waiting?, isNew: Bool) {
        running = nil
        failures += 1
        failed.insert(seq)
        let isNew = trouble == nil || failure != lastFailure
        lastFailure = failure
        let wait = after ?? hook.retry.wait(afterFailures: failures, jitter: jitter)
        until = now.advanced(by: wait)
        trouble = Hold(.backoff, since: trouble?.since ?? wall, until: wall.advanced(by: wait), text: reason)
        guard let index = waiting.firstIndex(where: { $0.seq == seq }) else { return (nil, isNew) }
        waiting[index].tries += 1
        waiting[index].consecutiveFailures += 1
        let own = after ?? hook.retry.wait(afterFailures: waiting[index].tries, jitter: jitter)
        waiting[index].due = now.advanced(by: own)
        return (waiting[index], isNew)
    }

    /// Notices that have failed for too long, or too often.
    func noticesToGiveUp(at now: MonotonicTime) -> [Int64] {
        if failures == 0 { return [] }
        return waiting.filter { one in
            if one.seq == running || delivered.contains(one.seq) { return false }
            let hasNoTriesLeft = hook.retry.attempts.map { one.tries >= $0 } ?? false
            return hasNoTriesLeft
                || (now.since(one.queuedAt) >= hook.giveUpAfter && (one.tries > 0 || failed.count > 1))
        }.map(\.seq)
    }

    /// Applies a new configuration: failed notices may succeed now.
    mutating func apply(_ hook: Hook, at now: MonotonicTime) {
        if self.hook == hook { return }
        self.hook = hook
        (failures, failed, until, trouble, hold) = (0, [], nil, nil, nil)
        for index in waiting.indices { waiting[index].due = now }
    }
}
