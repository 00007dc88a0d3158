internal import Config
internal import Core
internal import Linux

/// The scheduler's facts about each destination besides its configuration: whether it responds, whether it accepts the
/// key, and how much space it has.
struct DestinationTracker: Sendable, RecordsChanges {
    private struct Entry: Sendable {
        /// `nil` until something happened there.
        var health: DestinationHealth?
        /// How often the destination changed: the verdict of an attempt counts only for the generation that it used.
        var generation = 0
        /// The code of the failure that was logged last.
        var lastLoggedCode: Failure.Code?
        /// How many uploads it has accepted since the start.
        var completedCount = 0
        /// When it accepted an upload last, with the present settings.
        var lastAccepted: WallTime?
        /// The refusals of its key.
        var keyRefusals: KeyRefusals?
        /// Uploads that wait because the key was refused.
        var waitingForKey: Set<String> = []
        /// Uploads that were tried at once when the key was accepted again.
        var triedAgain: Set<String> = []
        /// Commands of a person to try it.
        var commandCount = 0
        /// Uploads that a person wants to be tried, the first one first.
        var requested: [String] = []
        /// The known space there.
        var capacity: RemoteCapacity?
        /// The question for the free space that is under way.
        var capacityQuery: Task<Void, Never>?
    }

    var changes: FactChanges = []
    private var entries: [String: Entry] = [:]

    // MARK: Configuration

    func generation(of name: String) -> Int { entries[name]?.generation ?? 0 }

    /// Drops the facts about destinations whose settings have changed, and all about removed ones.
    mutating func apply(changed: Set<String>, present: some Collection<String>) {
        for name in changed {
            entries[name, default: Entry()].generation += 1
            entries[name]?.health = nil
            entries[name]?.keyRefusals = nil
            entries[name]?.lastAccepted = nil
            entries[name]?.capacity = nil
            entries[name]?.capacityQuery?.cancel()
        }
        let present = Set(present)
        for name in entries.keys where !present.contains(name) { entries[name]?.capacity = nil }
    }

    /// Destinations that refused their credential, also for single uploads only, are tried again at once: the credential
    /// may be another one.
    ///
    /// - Returns: These destinations.
    mutating func reconsiderRefused(at now: MonotonicTime) -> [String] {
        let refused = entries.filter { name, entry in
            entry.health?.trouble?.kind == .auth || !refusedUploads(at: name).isEmpty
        }.map(\.key)
        for name in refused {
            if trouble(of: name)?.kind == .auth { entries[name]?.health?.scheduleProbe(at: now) }
            entries[name]?.keyRefusals = nil
        }
        return refused
    }

    /// A destination is tried again at once: it may work again.
    mutating func reconsider(_ name: String, at now: MonotonicTime) {
        entries[name]?.health?.scheduleProbe(at: now)
        entries[name]?.capacity?.markStale()
        changes.insert(.scheduling)
    }

    // MARK: Health

    func health(of name: String) -> DestinationHealth { entries[name]?.health ?? DestinationHealth() }
    func trouble(of name: String) -> DestinationHealth.Trouble? { entries[name]?.health?.trouble }

    /// The times of the next probes.
    var probes: [MonotonicTime] { entries.values.compactMap { $0.health?.trouble?.probeAt } }

    /// Records that a destination works.
    mutating func succeeded(_ name: String) {
        entries[name]?.health?.succeeded()
        entries[name]?.requested = []
    }

    /// Records that a destination has accepted an upload.
    mutating func accepted(_ name: String, at now: WallTime) {
        entries[name, default: Entry()].completedCount += 1
        entries[name]?.lastAccepted = now
        entries[name]?.keyRefusals?.accept()
    }

    func completedCount(of name: String) -> Int { entries[name]?.completedCount ?? 0 }

    /// A failure of a destination as a whole.
    struct Fault {
        var failure: Failure
        let remedy: Remedy
        /// Whether the destination has answered, and is not full.
        let isUp: Bool
        let retry: Backoff
        /// An upper limit for the wait, where other facts allow an earlier try.
        var longestWait: Duration?
        /// Further facts, for people.
        var note: String?
    }

    /// Records why no upload is sent to a destination.
    ///
    /// - Parameter rule: The configuration key that determines the next try, for people.
    /// - Returns: The hold, how long the destination is left alone, and whether that is to be logged; `nil` when only
    ///   the upload is at fault.
    mutating func hold(
        _ name: String, _ fault: Fault, by rule: String? = nil, now: WallTime, monotonic: MonotonicTime
    ) -> (kind: Hold.Kind, wait: Duration, isNew: Bool)? {
        var health = health(of: name)
        let isFull = if case .outOfSpace = fault.remedy { true } else { false }
        guard
            var hold = DestinationHealth.hold(
                for: fault.remedy, failures: fault.isUp ? 1 : health.failures(isFull: isFull, at: monotonic),
                backoff: fault.retry,
                jitter: Random.jitter())
        else { return nil }
        if let longest = fault.longestWait { hold.wait = min(hold.wait, longest) }
        if isFull { entries[name]?.capacity?.markStale() }
        if fault.isUp { health.succeeded() }
        // Compared by code: the text may name another file each time.
        let code = fault.failure.code
        let isNew = health.trouble?.kind != hold.kind || entries[name]?.lastLoggedCode != code
        health.failed(
            hold.kind, text: fault.failure.message + (fault.note.map { "; \($0)" } ?? ""), by: rule, wait: hold.wait,
            now: now, monotonic: monotonic)
        entries[name, default: Entry()].health = health
        entries[name]?.lastLoggedCode = code
        return (hold.kind, hold.wait, isNew)
    }

    /// Like ``hold(_:_:by:now:monotonic:)``, with the rule for people, and logged.
    ///
    /// - Parameter keys: The configuration keys of its credentials.
    mutating func hold(
        _ name: String, _ fault: Fault, _ keys: [String], now: WallTime, monotonic: MonotonicTime, _ log: Log
    ) -> (kind: Hold.Kind, wait: Duration)? {
        let rule = fault.rule(of: name, keys)
        guard let hold = hold(name, fault, by: rule, now: now, monotonic: monotonic) else { return nil }
        if hold.isNew { AttemptLog(log: log).reportHeld(name, hold.kind, fault.failure, wait: hold.wait) }
        return (hold.kind, hold.wait)
    }

    // MARK: Keys

    private static let beforeTryingKey = Duration.seconds(10)

    /// When to try a refused key with an upload that was not refused; `nil` where there is none, or where enough
    /// uploads were refused.
    func timeToTryKey(of name: String, _ remedy: Remedy, othersWait: Bool) -> Duration? {
        guard case .authenticate = remedy, keyRefusals(of: name)?.isDoubtful == true, othersWait else { return nil }
        return Self.beforeTryingKey
    }

    func keyRefusals(of name: String) -> KeyRefusals? { entries[name]?.keyRefusals }

    /// The uploads that it has refused with its key. While something is wrong with it, another upload probes it.
    func refusedUploads(at name: String) -> Set<String> { keyRefusals(of: name)?.uploads ?? [] }

    /// Uploads that the destination has refused with its key because of their own files.
    func refusedFiles(at name: String) -> Set<String> { keyRefusals(of: name)?.own ?? [] }

    /// Facts for people where a single upload was refused with the key: the file may be at fault. `nil` where several
    /// were refused, or where none was accepted.
    func doubt(ofKeyAt name: String) -> String? {
        guard keyRefusals(of: name)?.onlySuspect != nil, let last = entries[name]?.lastAccepted else { return nil }
        return
            "1 upload is refused, others were accepted until \(last), and the next one shows whether the key is at fault"
    }

    /// Records that an upload was refused with its key.
    mutating func refuseKey(of name: String, for upload: String, othersWait: Bool) -> KeyRefusals.Cause {
        var refusals = keyRefusals(of: name) ?? KeyRefusals()
        defer { entries[name, default: Entry()].keyRefusals = refusals }
        return refusals.refuse(upload, othersWait: othersWait)
    }

    /// Records that an upload waits because its destination refused the key.
    mutating func recordKeyWait(_ upload: String, of name: String) {
        entries[name, default: Entry()].waitingForKey.insert(upload)
    }

    /// Ends the record of the uploads that wait because the destination had refused its key, which it now accepts. The
    /// key may have been corrected, so each of them is tried at once; one that is refused again is not returned again.
    mutating func endWaitsForKey(of name: String) -> Set<String> {
        guard let waiting = entries[name]?.waitingForKey else { return [] }
        let first = waiting.subtracting(entries[name]?.triedAgain ?? [])
        entries[name]?.waitingForKey = []
        entries[name]?.triedAgain.formUnion(first)
        return first
    }

    /// Commands of a person to try the destination. An attempt that began before one of them is repeated when it fails,
    /// because what it used may have been corrected.
    func commandCount(of name: String) -> Int { entries[name]?.commandCount ?? 0 }
    mutating func commanded(_ name: String) { entries[name, default: Entry()].commandCount += 1 }

    /// A person wants these uploads to be tried, because a secret or their files may have been corrected: a destination
    /// that is held is tried with one of them and not with another.
    mutating func request(_ uploads: [String], at name: String, now: MonotonicTime) {
        for upload in uploads { entries[name]?.keyRefusals?.forget(upload) }
        if trouble(of: name) != nil { entries[name]?.requested = uploads }
        reconsider(name, at: now)
    }

    /// Uploads that a person wants to be tried at destinations that are held. A full one is queried for its space
    /// first: an upload that does not fit would waste its bytes.
    var requested: [(destination: String, upload: String)] {
        entries.flatMap { name, entry in
            [nil, .quota].contains(entry.health?.trouble?.kind)
                ? [] : entry.requested.map { (destination: name, upload: $0) }
        }
    }

    /// Records that such an upload is being tried, or cannot be.
    mutating func endRequest(for upload: String, at name: String) {
        entries[name]?.requested.removeAll { $0 == upload }
    }

    /// The destinations whose key is doubted after one or two refusals, and that are not tried before a while.
    func doubtedKeys(at now: MonotonicTime) -> [String] {
        entries.compactMap { name, entry in
            guard let health = entry.health, health.trouble?.kind == .auth, !health.mayProbe(at: now),
                let refusals = entry.keyRefusals, refusals.isDoubtful
            else { return nil }
            return name
        }
    }

    /// A destination whose key is doubted is tried soon with another upload that waits: where only one or two files were
    /// refused, it shows whether the key is at fault.
    mutating func tryKey(of name: String, now: WallTime, monotonic: MonotonicTime) {
        let hasOneSuspect = entries[name]?.keyRefusals?.onlySuspect != nil
        entries[name]?.health?.probe(
            within: hasOneSuspect ? .zero : Self.beforeTryingKey, now: now, monotonic: monotonic)
    }

    // MARK: Space

    func capacity(of name: String) -> RemoteCapacity? { entries[name]?.capacity }
    var capacities: [String: RemoteCapacity] { entries.compactMapValues(\.capacity) }

    /// The hold on the next upload there that does not fit.
    func capacityHold(of name: String) -> Hold? {
        guard let capacity = capacity(of: name), let next = capacity.waiting else { return nil }
        return capacity.hold(at: name, missing: next.missing, name: next.name)
    }

    private func isCapacityDue(_ name: String, at now: MonotonicTime) -> Bool {
        (entries[name]?.capacity ?? RemoteCapacity()).isDue(at: now)
    }

    /// Whether to query its free space before the next upload that has not begun, or to wait for the answer.
    func lacksCapacity(_ name: String, at now: MonotonicTime) -> Bool {
        isQueryingCapacity(name) || isCapacityDue(name, at: now)
    }

    /// Whether to query its free space now. A destination that does not answer is tried with an upload, which reports the
    /// trouble.
    func mayAskForCapacity(_ name: String, at now: MonotonicTime) -> Bool {
        if let trouble = trouble(of: name), trouble.kind != .quota { return false }
        return isCapacityDue(name, at: now)
    }

    /// Whether a query for the destination's free space is running.
    func isQueryingCapacity(_ name: String) -> Bool { entries[name]?.capacityQuery != nil }
    var capacityQueries: [Task<Void, Never>] { entries.values.compactMap(\.capacityQuery) }

    mutating func setCapacityQuery(_ name: String, _ query: Task<Void, Never>) {
        entries[name, default: Entry()].capacityQuery = query
    }

    /// Records that the query has ended, with an answer or without: uploads waited for it.
    mutating func capacityQueryEnded(_ name: String) {
        entries[name]?.capacityQuery = nil
        changes.insert(.scheduling)
    }

    /// Records the answer of a destination about its free space.
    mutating func capacityAnswered(
        _ name: String, _ space: RemoteSpace?, underWay: [Int64], now: WallTime, monotonic: MonotonicTime,
        lasting: Duration
    ) {
        var capacity = capacity(of: name) ?? RemoteCapacity()
        capacity.update(space, underWay: underWay, now: now, monotonic: monotonic, lasting: lasting)
        entries[name, default: Entry()].capacity = capacity
    }

    /// Records that uploads begin, each with the bytes that it still lacks there.
    mutating func reserveCapacity(_ name: String, missing: [Int64]) {
        entries[name]?.capacity?.reserve(missing: missing)
    }

    /// Records the end of an upload; one that was not accepted may have freed space.
    mutating func ended(_ name: String, _ upload: String, isOver: Bool, hasArrived: Bool) {
        if isOver {
            entries[name]?.keyRefusals?.forget(upload)
            entries[name]?.waitingForKey.remove(upload)
            entries[name]?.triedAgain.remove(upload)
        }
        entries[name]?.capacity?.ended(hasArrived: hasArrived)
    }

    /// Ends a refusal for lack of space where an upload waits for more than the reported space: the report is newer than
    /// the refusal, and no upload would probe the destination.
    mutating func endRefusalForSpace(_ name: String) {
        if capacity(of: name)?.waiting != nil, trouble(of: name)?.kind == .quota { succeeded(name) }
    }

    /// Records the next upload that does not fit; `nil` when none waits for space.
    mutating func setCapacityWait(_ name: String, _ next: RemoteCapacity.Waiting?) {
        entries[name]?.capacity?.setWaiting(next)
    }

    /// A file was removed there: uploads that wait for space may continue.
    mutating func freedSpace(_ name: String) {
        guard entries[name]?.capacity != nil || trouble(of: name)?.kind == .quota else { return }
        entries[name]?.capacity?.markStale()
        changes.insert(.scheduling)
    }
}
