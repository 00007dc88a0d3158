internal import Core
internal import Store

/// What waits for one hook, and which of it is to be tried when. A value: the loop tells it what happened.
///
/// One notice at a time is on its way to a hook. Of one upload they go in their order; where one notice alone fails, those of
/// other uploads go on; where several in a row do, the hook is left alone for a while, and then asked with one.
struct HookLine: Sendable {
    struct Waiting: Sendable, Hashable {
        let seq: Int64
        let at: WallTime
        let upload: String?
        var tries: Int
        /// Tries for which only it was at fault, as far as anybody knows: whoever has fewer goes first.
        var strikes = 0
        /// As if it had been queued then, by the clock of this run.
        let queuedAt: MonotonicTime
        /// Not to be tried before.
        var due: MonotonicTime
    }

    /// The most that waits for one hook; the oldest goes when there is more.
    static let capacity = 1000
    /// Events that are looked at in one go.
    static let batch = 200

    var hook: Hook
    /// By number.
    private(set) var waiting: [Waiting] = []
    /// The event that it is being told of.
    private(set) var running: Int64?
    /// Tries without success since the last one that worked, and which notices they were about.
    private(set) var failures = 0
    private var failed: Set<Int64> = []
    /// The hook is left alone until then.
    private var until: MonotonicTime?
    /// Why the last try failed; `nil` after one that worked.
    private(set) var trouble: Hold?
    private var code = ""
    /// What keeps notices from being sent at all.
    var hold: Hold?
    /// Told already, and still to be forgotten by the store.
    var told: Set<Int64> = []
    var lastTold: WallTime?
    /// Since the start.
    var (toldCount, givenUp, dropped) = (0, 0, 0)
    /// It is losing notices, and said so.
    private(set) var isOverfull = false

    init(_ hook: Hook) { self.hook = hook }

    var oldest: WallTime? { waiting.first?.at }

    /// What it lacks room for when these come.
    func surplus(adding count: Int) -> [Int64] {
        waiting.filter { $0.seq != running }.prefix(max(0, waiting.count + count - Self.capacity)).map(\.seq)
    }

    /// It takes what it is told, and has enough of that for now: more may wait where events are kept.
    var isBehind: Bool { failures == 0 && hold == nil && waiting.count > Self.capacity - Self.batch }

    mutating func add(_ new: [Waiting]) { waiting += new }

    /// - Returns: How many there were still, and whether it is news that there is no room.
    mutating func drop(_ gone: [Int64]) -> (count: Int, isNews: Bool) {
        let before = waiting.count
        forget(gone.filter { !told.contains($0) })
        let count = before - waiting.count
        dropped += count
        if count == 0 { return (0, false) }
        defer { isOverfull = true }
        return (count, !isOverfull)
    }

    mutating func forget(_ gone: [Int64]) {
        let gone = Set(gone)
        waiting.removeAll { gone.contains($0.seq) }
        told.subtract(gone)
        failed.subtract(gone)
        if waiting.count < Self.capacity / 2 { isOverfull = false }
    }

    /// What to try now: the oldest, but for what fails while others do not.
    func next(at now: MonotonicTime) -> Waiting? {
        candidates.filter { isDue($0, at: now) }.min { ($0.strikes, $0.seq) < ($1.strikes, $1.seq) }
    }

    /// When there is something to try, for nothing else happening.
    var nextTry: MonotonicTime? { candidates.map(moment).min() }

    /// The first of each upload.
    private var candidates: [Waiting] {
        if running != nil { return [] }
        var seen: Set<String> = []
        return waiting.filter { one in
            if told.contains(one.seq) { return false }
            guard let upload = one.upload else { return true }
            return seen.insert(upload).inserted
        }
    }

    private func moment(_ one: Waiting) -> MonotonicTime {
        // The trouble of a single notice is its own.
        guard let until, failed.count > 1 || failed.contains(one.seq) else { return one.due }
        return max(until, one.due)
    }

    private func isDue(_ one: Waiting, at now: MonotonicTime) -> Bool { moment(one) <= now }

    mutating func begin(_ seq: Int64) { running = seq }

    /// Nobody knows what came of it.
    mutating func stopped() { running = nil }

    mutating func succeeded(_ seq: Int64, at wall: WallTime, _ now: MonotonicTime) {
        running = nil
        // Others that failed before did so because nobody was there.
        if failed.count > 1 {
            for index in waiting.indices {
                waiting[index].due = min(waiting[index].due, now)
                waiting[index].strikes = 0
            }
        }
        (failures, failed, until, trouble) = (0, [], nil, nil)
        told.insert(seq)
        lastTold = wall
        toldCount += 1
    }

    /// It was refused for good, which says that somebody is there.
    mutating func refused(_ seq: Int64, _ reason: String, at wall: WallTime) {
        running = nil
        (failures, failed, until) = (0, [], nil)
        trouble = Hold(.backoff, since: wall, text: reason)
    }

    /// - Returns: The notice as it is now; `nil` when it is gone. And whether the reason is another one than before.
    mutating func failed(
        _ seq: Int64, _ reason: String, code: String, after: Duration?, at wall: WallTime, _ now: MonotonicTime,
        luck: Double
    ) -> (notice: Waiting?, isNews: Bool) {
        running = nil
        failures += 1
        failed.insert(seq)
        let isNews = trouble == nil || code != self.code
        self.code = code
        let wait = after ?? hook.retry.wait(afterFailures: failures, luck: luck)
        until = now.advanced(by: wait)
        trouble = Hold(.backoff, since: trouble?.since ?? wall, until: wall.advanced(by: wait), text: reason)
        guard let index = waiting.firstIndex(where: { $0.seq == seq }) else { return (nil, isNews) }
        waiting[index].tries += 1
        waiting[index].strikes += 1
        let own = after ?? hook.retry.wait(afterFailures: waiting[index].tries, luck: luck)
        waiting[index].due = now.advanced(by: own)
        return (waiting[index], isNews)
    }

    /// What has failed for too long, or too often.
    func hopeless(at now: MonotonicTime) -> [Int64] {
        if failures == 0 { return [] }
        return waiting.filter { one in
            if one.seq == running || told.contains(one.seq) { return false }
            let isWorn = hook.retry.attempts.map { one.tries >= $0 } ?? false
            return isWorn || (now.since(one.queuedAt) >= hook.giveUpAfter && (one.tries > 0 || failed.count > 1))
        }.map(\.seq)
    }

    /// Another configuration: whatever failed may work now.
    mutating func take(_ hook: Hook, at now: MonotonicTime) {
        if self.hook == hook { return }
        self.hook = hook
        (failures, failed, until, trouble, hold) = (0, [], nil, nil, nil)
        for index in waiting.indices { waiting[index].due = now }
    }
}
