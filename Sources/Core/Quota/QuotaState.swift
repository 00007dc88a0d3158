/// The usage of every quota in its present period of the calendar, and the rest that may still be sent.
///
/// A value without a clock or a file: the ledger on disk is the truth, and this value was read from it and is kept up
/// to date. A quota that is not read yet counts as used up. The state never under-reports: the reservation of a
/// transfer (``open(_:_:for:at:)``) counts until it is settled, also beyond the end of a period.
package struct QuotaState: Hashable, Sendable {
    /// The class of traffic to be sent: destination, folder, and the conditions that apply to it.
    package struct Class: Hashable, Sendable {
        package var destination: String
        /// `nil`: traffic for no file, such as a check of whether the destination is reachable.
        package var folder: String?
        /// The quotas with conditions that count it.
        package var quotas: Set<QuotaName>

        package init(_ destination: String, from folder: String?, _ quotas: Set<QuotaName> = []) {
            self.destination = destination
            self.folder = folder
            self.quotas = quotas
        }
    }

    /// One quota and its present usage.
    package struct Line: Hashable, Sendable {
        package let place: RulePlace
        package let quota: Quota
        /// The present period; `nil` before the clock was first read.
        package fileprivate(set) var stretch: Range<WallTime>?
        /// Usage in this period, without reservations; `nil` until it is read from the ledger.
        package fileprivate(set) var spent: Spending?
        /// Reservations of running transfers.
        package fileprivate(set) var reserved = Spending.none
        /// Usage that was added while the ledger is being read: the ledger's answer may be older.
        fileprivate var meanwhile = Spending.none
        /// A rest smaller than this is of no use, and counts as zero.
        let least: Int64
        fileprivate var bytesUsedUp: WallTime?
        fileprivate var filesUsedUp: WallTime?
    }

    /// A sum that has to be read from the ledger, and passed to ``recount(_:spent:at:)``.
    package struct Recount: Hashable, Sendable {
        fileprivate var line: Int
        /// Everything that was sent since then.
        package var since: WallTime
        /// Only traffic to it; `nil` for all.
        package var destination: String?
        /// Only traffic from it; `nil` for all.
        package var folder: String?
        /// Only traffic that this quota with a condition has counted.
        package var name: QuotaName?
        /// It includes the bytes of other programs.
        package var countsInterfaces = false
    }

    /// The amount that may still be sent.
    package struct Remaining: Hashable, Sendable {
        /// Bytes that may be sent, including the bytes that come back for them; `nil`: no quota counts bytes.
        package var bytes: Int64?
        /// The rest of the quotas that count received bytes, and of those that count both; `nil`: there is none.
        fileprivate var (received, both): (Int64?, Int64?) = (nil, nil)
        /// Files that may be begun; `nil`: no quota counts files.
        package var files: Int64?
        /// The quota that leaves the fewest bytes.
        package var binding: Line?

        /// The amount without a quota.
        package init() {}

        /// The most that may be reserved for received bytes in addition to this many sent bytes.
        package func received(beside bytes: Int64) -> Int64 {
            max(0, min(received ?? .max, both.map { $0 - bytes } ?? .max))
        }
    }

    package private(set) var lines: [Line]
    private var steps: [Int64: Step] = [:]

    private struct Step: Hashable, Sendable {
        var spending: Spending
        var kind: Class
    }

    /// - Parameters:
    ///   - least: A rest of a quota that is smaller than this counts as used up.
    ///   - earlier: The state that this one replaces after a reload. Its counted usage need not be read again, and its
    ///     reservations stay.
    package init(
        policy: PolicyRules, destinations: [(name: String, rules: PolicyRules)] = [],
        folders: [(name: String, rules: PolicyRules)] = [], least: Int64 = 0, after earlier: QuotaState? = nil
    ) {
        let places: [(RulePlace, PolicyRules)] =
            [(.policy, policy)] + destinations.map { (.destination($0.name), $0.rules) }
            + folders.map { (.folder($0.name), $0.rules) }
        lines = places.flatMap { place, rules in rules.quotas.map { Line(place: place, quota: $0, least: least) } }
        guard let earlier else { return }
        steps = earlier.steps
        for number in lines.indices {
            let line = lines[number]
            if let same = earlier.lines.first(where: { $0.place == line.place && $0.quota == line.quota }) {
                lines[number] = same
            } else {
                lines[number].reserved = steps.values.filter { line.counts($0.kind) }.map(\.spending).reduce(.none, +)
            }
        }
    }

    // MARK: Time

    /// Advances the periods to the present time.
    ///
    /// - Returns: The sums to be read: all quotas whose period changes, forward or back. A new period may contain usage
    ///   already, from before the clock was wrong for a while. In a simulation the caller answers with zero.
    package mutating func advance(to now: WallTime, in zone: Zone) -> [Recount] {
        for number in lines.indices {
            let stretch = lines[number].stretch
            if let stretch, stretch.contains(now) {
                lines[number].note(at: now)
                continue
            }
            let next = lines[number].quota.period.interval(around: now, in: zone)
            lines[number].begin(next, at: now)
        }
        return lines.indices.compactMap { number in
            let line = lines[number]
            guard line.spent == nil, let since = line.stretch?.lowerBound else { return nil }
            var recount = Recount(
                line: number, since: since, name: line.name, countsInterfaces: line.quota.count == .interface)
            switch line.place {
            case .policy: break
            case .destination(let name): recount.destination = name
            case .folder(let name): recount.folder = name
            }
            return recount
        }
    }

    /// Days begin at other moments from now on: every period is computed and counted again.
    package mutating func zoneChanged() {
        for number in lines.indices { lines[number].clearStretch() }
    }

    /// Applies the ledger's answer. The ledger records a step before this state does, both when it starts and when it
    /// is settled. So an answer in between counts the step at most twice, and never misses it: usage that was added
    /// while the ledger was read is added to the answer.
    ///
    /// - Parameter spent: The usage in the ledger, without reservations.
    package mutating func recount(_ recount: Recount, spent: Spending, at now: WallTime) {
        // The answer belongs to another state, or to the time before the clock was set again.
        guard lines.indices.contains(recount.line), lines[recount.line].stretch?.lowerBound == recount.since else {
            return
        }
        lines[recount.line].spent = spent + lines[recount.line].meanwhile
        lines[recount.line].meanwhile = .none
        lines[recount.line].note(at: now)
    }

    /// Since when quotas are used up, each with its period. The caller stores it over a restart.
    package var usedUp: [ExhaustedQuota: WallTime] {
        var all: [ExhaustedQuota: WallTime] = [:]
        // A reservation may be returned in a moment.
        for line in lines where line.spent != nil && line.reserved == .none {
            guard let stretch = line.stretch?.lowerBound else { continue }
            for (words, since) in [(line.quota.byteWords, line.bytesUsedUp), (line.quota.fileWords, line.filesUsedUp)] {
                guard let words, let since else { continue }
                all[ExhaustedQuota(quota: "\(line.place.words): \(words)", stretch: stretch)] = since
            }
        }
        return all
    }

    /// A quota that is used up.
    package struct ExhaustedQuota: Hashable, Sendable {
        /// Its place and its limit, for people.
        package var quota: String
        /// The beginning of its period.
        package var stretch: WallTime

        package init(quota: String, stretch: WallTime) {
            self.quota = quota
            self.stretch = stretch
        }
    }

    /// Restores since when quotas are used up that were so before this state existed.
    package mutating func restoreExhausted(_ known: [ExhaustedQuota: WallTime]) {
        for number in lines.indices {
            guard let stretch = lines[number].stretch?.lowerBound else { continue }
            func earlier(_ words: String?, _ since: WallTime?) -> WallTime? {
                guard let words, let since else { return since }
                let before = known[ExhaustedQuota(quota: "\(lines[number].place.words): \(words)", stretch: stretch)]
                return before.map { min($0, since) } ?? since
            }
            lines[number].bytesUsedUp = earlier(lines[number].quota.byteWords, lines[number].bytesUsedUp)
            lines[number].filesUsedUp = earlier(lines[number].quota.fileWords, lines[number].filesUsedUp)
        }
    }

    /// When the first hold ends without an event.
    package var nextChange: WallTime? {
        lines.flatMap { $0.holds(isStarting: true) }.compactMap(\.until).min()
    }

    // MARK: Spending

    /// Counts bytes that were sent without a reservation.
    package mutating func spend(_ spending: Spending, for kind: Class, at now: WallTime) {
        change(kind, at: now) { $0.add(spending) }
    }

    /// Counts bytes of other programs.
    package mutating func spend(_ spending: Spending, for name: QuotaName, at now: WallTime) {
        for number in lines.indices where lines[number].name == name {
            lines[number].add(spending)
            lines[number].note(at: now)
        }
    }

    /// Counts the bytes that a transfer may send next as if they were sent.
    ///
    /// - Parameter step: Its number in the ledger.
    package mutating func open(_ step: Int64, _ spending: Spending, for kind: Class, at now: WallTime) {
        guard steps.updateValue(Step(spending: spending, kind: kind), forKey: step) == nil else { return }
        change(kind, at: now) { $0.reserved += spending }
    }

    /// Replaces a reservation by the bytes that were sent: in today's period, regardless of when it began.
    package mutating func close(_ step: Int64, _ actual: Spending, at now: WallTime) {
        guard let open = steps.removeValue(forKey: step) else { return }
        change(open.kind, at: now) { line in
            line.reserved.bytes -= open.spending.bytes
            line.reserved.received -= open.spending.received
            line.reserved.files -= open.spending.files
            line.add(actual)
        }
    }

    /// Returns the reserved bytes, for a plan, which spends them itself on running uploads. Their files stay counted.
    mutating func releaseReservations(at now: WallTime) {
        for (step, reserved) in steps { close(step, Spending(files: reserved.spending.files), at: now) }
    }

    private mutating func change(_ kind: Class, at now: WallTime, _ body: (inout Line) -> Void) {
        for number in lines.indices where lines[number].counts(kind) {
            body(&lines[number])
            lines[number].note(at: now)
        }
    }

    // MARK: Answers

    /// The quotas that are used up, as of the last call of ``advance(to:in:)``.
    ///
    /// - Parameter isStarting: Whether a new upload may begin. A running one continues with its reservation.
    package func holds(for kind: Class, isStarting: Bool = true) -> [Hold] {
        let holds = lines.filter { $0.counts(kind) }.flatMap { $0.holds(isStarting: isStarting) }
        // Traffic for no file does not begin a file.
        return kind.folder == nil ? holds.filter { !$0.holdsOnlyNewUploads } : holds
    }

    /// Whether any quota counts received bytes for such traffic.
    package func countsReceived(of kind: Class) -> Bool {
        lines.contains { $0.quota.bytes != nil && $0.quota.direction != .sent && $0.counts(kind) }
    }

    /// The bytes that each of these quotas with conditions leaves; `nil`: none of them counts bytes.
    package func remaining(of names: Set<QuotaName>) -> Int64? {
        lines.filter { $0.name.map(names.contains) ?? false }.compactMap(\.sendable).min()
    }

    /// The class that a reservation is charged to; `nil` for one that is settled.
    package func kind(ofStep step: Int64) -> Class? { steps[step]?.kind }

    /// The usage of a quota was set by a person: it is read again.
    package mutating func clearUsage(of name: QuotaName) {
        for number in lines.indices where lines[number].name == name { lines[number].clearStretch() }
    }

    /// The amount that may be reserved now: the rest of the tightest quota.
    package func remaining(for kind: Class) -> Remaining {
        var remaining = Remaining()
        for line in lines where line.counts(kind) {
            if let left = line.sendable, remaining.bytes.map({ left < $0 }) ?? true {
                remaining.bytes = left
                remaining.binding = line
            }
            switch line.quota.direction {
            case .sent: break
            case .received: remaining.received = [remaining.received, line.unspent].compactMap { $0 }.min()
            case .both: remaining.both = [remaining.both, line.unspent].compactMap { $0 }.min()
            }
            if let left = line.filesLeft { remaining.files = min(left, remaining.files ?? .max) }
        }
        return remaining
    }
}

extension QuotaState.Line {
    /// The rest without reservations; `nil`: bytes are not counted.
    package var bytesLeft: Int64? {
        unspent.map { sendable == 0 ? 0 : $0 }
    }
    /// Bytes that may be sent with the rest: where received bytes count, a different number.
    package var sendable: Int64? {
        unspent.map { left in
            let sendable = quota.direction.sendable(of: left)
            return sendable < least ? 0 : sendable
        }
    }
    /// Like ``bytesLeft``, also where it is too little to be of use.
    var unspent: Int64? { left(quota.bytes, used, max(0, quota.direction.bytes(of: reserved))) }
    /// Counted bytes, without reservations; `nil` until they are read.
    package var used: Int64? { spent.map { quota.direction.bytes(of: $0) } }
    /// Files that may be begun; `nil`: files are not counted.
    package var filesLeft: Int64? { left(quota.files, spent?.files, reserved.files) }

    private func left(_ limit: Int64?, _ spent: Int64?, _ reserved: Int64) -> Int64? {
        guard let limit else { return nil }
        guard let spent else { return 0 }
        return max(0, limit - min(limit, spent) - max(0, reserved))
    }

    /// The name of its count; only with a condition.
    package var name: QuotaName? { quota.when == nil ? nil : quota.name.map { QuotaName(place, $0) } }

    func counts(_ kind: QuotaState.Class) -> Bool {
        if let name, !kind.quotas.contains(name) { return false }
        return switch place {
        case .policy: true
        case .destination(let name): name == kind.destination
        case .folder(let name): name == kind.folder
        }
    }

    fileprivate mutating func add(_ spending: Spending) {
        if spent == nil { meanwhile += spending } else { spent? += spending }
    }

    fileprivate mutating func clearStretch() { (stretch, spent, meanwhile) = (nil, nil, .none) }

    fileprivate mutating func begin(_ stretch: Range<WallTime>, at now: WallTime) {
        self.stretch = stretch
        spent = nil
        meanwhile = .none
        if quota.bytes != 0 { bytesUsedUp = nil }
        if quota.files != 0 { filesUsedUp = nil }
        note(at: now)
    }

    /// Records since when it is used up. A moment in the future is corrected, where the clock was set back.
    fileprivate mutating func note(at now: WallTime) {
        bytesUsedUp = bytesLeft == 0 ? min(bytesUsedUp ?? now, now) : nil
        filesUsedUp = filesLeft == 0 ? min(filesUsedUp ?? now, now) : nil
    }

    func holds(isStarting: Bool) -> [Hold] {
        guard let spent else {
            return [
                Hold(
                    .quota, since: bytesUsedUp ?? filesUsedUp ?? WallTime(milliseconds: 0),
                    text: "the usage of the quota of \(place.words) has not been read yet")
            ]
        }
        var holds: [Hold] = []
        // A quota of zero is zero tomorrow, too.
        if let limit = quota.bytes, let words = quota.byteWords,
            isStarting ? bytesLeft == 0 : quota.direction.bytes(of: spent) >= limit, let since = bytesUsedUp
        {
            let underWay = quota.direction.bytes(of: reserved)
            holds.append(
                hold(
                    since, limit, words, "\(shownBytes(quota.direction.bytes(of: spent))) \(quota.direction.words)",
                    underWay > 0 ? shownBytes(underWay) : nil,
                    left: unspent.flatMap { $0 > 0 ? shownBytes($0) : nil }))
        }
        if isStarting, let limit = quota.files, let words = quota.fileWords, filesLeft == 0, let since = filesUsedUp {
            var hold = hold(since, limit, words, "\(spent.files) sent", reserved.files > 0 ? "\(reserved.files)" : nil)
            hold.holdsOnlyNewUploads = true
            holds.append(hold)
        }
        return holds
    }

    /// For people: `the quota of policy`.
    private var title: String {
        "the quota \(quota.name.map { "`\($0)` " } ?? "")of \(place.words)"
            + (quota.name == nil || quota.place.isEmpty ? "" : " (\(quota.place))")
    }

    private func hold(
        _ since: WallTime, _ limit: Int64, _ words: String, _ spent: String, _ reserved: String?, left: String? = nil
    ) -> Hold {
        let text =
            limit == 0
            ? "\(title) allows nothing: \(words) (`quotas`)"
            : "\(title) is used up: \(words) (`quotas`), \(spent)"
                + (reserved.map { ", \($0) under way" } ?? "")
                + (left.map { "; the \($0) that are left are too little to start with" } ?? "")
        return Hold(.quota, since: since, until: limit == 0 ? nil : stretch?.upperBound, text: text)
    }
}
