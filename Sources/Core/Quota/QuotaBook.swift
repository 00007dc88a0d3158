/// What was spent of every quota in the stretch of the calendar that it counts now, and so what may still go.
///
/// A value without a clock or a file: the ledger on disk is the truth, and this is what was read from it, kept up to date.
/// What is not read yet counts as used up. Nothing is ever counted below what was spent: what is reserved for a transfer
/// (``open(_:_:for:at:)``) counts until it is settled, also over the end of a stretch.
package struct QuotaBook: Hashable, Sendable {
    /// Where a quota stands.
    package enum Place: Hashable, Sendable {
        case policy
        case destination(String)
        case folder(String)

        /// As holds name it: `destinations.nas`.
        package var words: String {
            switch self {
            case .policy: "policy"
            case .destination(let name): "destinations.\(name)"
            case .folder(let name): "folder \(name)"
            }
        }
    }

    /// What is to be sent: where, for which folder, and over what.
    package struct Class: Hashable, Sendable {
        package var destination: String
        /// `nil`: for no file, such as a look at whether the destination is there.
        package var folder: String?
        /// Whether the network counts as metered.
        package var isMetered: Bool

        package init(_ destination: String, from folder: String?, isMetered: Bool) {
            self.destination = destination
            self.folder = folder
            self.isMetered = isMetered
        }
    }

    /// One quota and how it stands.
    package struct Line: Hashable, Sendable {
        package let place: Place
        package let quota: Quota
        /// `nil` before the first look at the clock.
        package fileprivate(set) var stretch: Range<WallTime>?
        /// In this stretch, without what is reserved; `nil` until it is read from the ledger.
        package fileprivate(set) var spent: Spending?
        /// For what is under way.
        package fileprivate(set) var reserved = Spending.none
        /// What came in while the ledger is being read: the answer may be older.
        fileprivate var meanwhile = Spending.none
        /// Less is too little for anything, and so nothing.
        let least: Int64
        fileprivate var bytesUsedUp: WallTime?
        fileprivate var filesUsedUp: WallTime?
    }

    /// What is to be read from the ledger, and handed to ``recount(_:spent:at:)``.
    package struct Recount: Hashable, Sendable {
        fileprivate var line: Int
        /// The sum of all that was sent since then.
        package var since: WallTime
        /// Only what went there; `nil` for everything.
        package var destination: String?
        /// Only what came from there; `nil` for everything.
        package var folder: String?
        /// Only what went over metered networks.
        package var isMetered: Bool
    }

    /// What may still be sent.
    package struct Room: Hashable, Sendable {
        /// To be sent, with what comes back for it; `nil`: no quota counts bytes.
        package var bytes: Int64?
        /// Left to those that count what comes in, and to those that count both; `nil`: none does.
        fileprivate var (received, both): (Int64?, Int64?) = (nil, nil)
        /// To be begun; `nil`: no quota counts files.
        package var files: Int64?
        /// The quota that leaves the fewest bytes.
        package var binding: Line?

        /// No quota at all.
        package init() {}

        /// The most that may be set aside for what comes in beside so many bytes that are sent.
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
    ///   - least: What is left of a quota that is less than so many bytes counts as used up.
    ///   - earlier: The book that this one takes the place of, after a reload: what is counted already need not be
    ///     read again, and what is under way stays reserved.
    package init(
        policy: PolicyRules, destinations: [(name: String, rules: PolicyRules)] = [],
        folders: [(name: String, rules: PolicyRules)] = [], least: Int64 = 0, after earlier: QuotaBook? = nil
    ) {
        let places: [(Place, PolicyRules)] =
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

    /// Looks at the clock.
    ///
    /// - Returns: What has to be read: all of which a stretch begins, forward or back. One that comes next may hold what was
    ///   sent in it already, before the clock was wrong for a while. Where time is played through, the answer is nothing.
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
            var recount = Recount(line: number, since: since, isMetered: line.quota.network == .metered)
            switch line.place {
            case .policy: break
            case .destination(let name): recount.destination = name
            case .folder(let name): recount.folder = name
            }
            return recount
        }
    }

    /// Days begin at other moments from now on: every stretch is looked up and counted anew.
    package mutating func zoneChanged() {
        for number in lines.indices { lines[number].leaveStretch() }
    }

    /// The ledger is told of a step before the book is, both when it begins and when it is settled. So an answer that comes
    /// in between counts the step twice at most, and never not at all: what came in while it was read is added to it.
    ///
    /// - Parameter spent: As the ledger has it, without what is reserved.
    package mutating func recount(_ recount: Recount, spent: Spending, at now: WallTime) {
        // Asked of another book, or before the clock was set once more: the answer is to another question.
        guard lines.indices.contains(recount.line), lines[recount.line].stretch?.lowerBound == recount.since else {
            return
        }
        lines[recount.line].spent = spent + lines[recount.line].meanwhile
        lines[recount.line].meanwhile = .none
        lines[recount.line].note(at: now)
    }

    /// Since when quotas are used up, each in a stretch of its own: for whoever remembers it over a restart.
    package var usedUp: [UsedUp: WallTime] {
        var all: [UsedUp: WallTime] = [:]
        // What is reserved may come back in a moment.
        for line in lines where line.spent != nil && line.reserved == .none {
            guard let stretch = line.stretch?.lowerBound else { continue }
            for (words, since) in [(line.quota.byteWords, line.bytesUsedUp), (line.quota.fileWords, line.filesUsedUp)] {
                guard let words, let since else { continue }
                all[UsedUp(quota: "\(line.place.words): \(words)", stretch: stretch)] = since
            }
        }
        return all
    }

    /// A quota that is used up.
    package struct UsedUp: Hashable, Sendable {
        /// Its place and what it allows, for people.
        package var quota: String
        /// When the stretch begins in which it is.
        package var stretch: WallTime

        package init(quota: String, stretch: WallTime) {
            self.quota = quota
            self.stretch = stretch
        }
    }

    /// Takes over since when quotas are used up that were so before this book knew of them.
    package mutating func remember(_ known: [UsedUp: WallTime]) {
        for number in lines.indices {
            guard let stretch = lines[number].stretch?.lowerBound else { continue }
            func earlier(_ words: String?, _ since: WallTime?) -> WallTime? {
                guard let words, let since else { return since }
                let before = known[UsedUp(quota: "\(lines[number].place.words): \(words)", stretch: stretch)]
                return before.map { min($0, since) } ?? since
            }
            lines[number].bytesUsedUp = earlier(lines[number].quota.byteWords, lines[number].bytesUsedUp)
            lines[number].filesUsedUp = earlier(lines[number].quota.fileWords, lines[number].filesUsedUp)
        }
    }

    /// When the first hold ends by itself.
    package var nextChange: WallTime? {
        lines.flatMap { $0.holds(isStarting: true) }.compactMap(\.until).min()
    }

    // MARK: Spending

    /// Counts what was sent without being reserved.
    package mutating func spend(_ spending: Spending, for kind: Class, at now: WallTime) {
        change(kind, at: now) { $0.add(spending) }
    }

    /// Counts what a transfer may send next as if it were sent.
    ///
    /// - Parameter step: Its number in the ledger.
    package mutating func open(_ step: Int64, _ spending: Spending, for kind: Class, at now: WallTime) {
        guard steps.updateValue(Step(spending: spending, kind: kind), forKey: step) == nil else { return }
        change(kind, at: now) { $0.reserved += spending }
    }

    /// In place of what was reserved, counts what was sent: in the stretch of today, whenever that was.
    package mutating func settle(_ step: Int64, _ actual: Spending, at now: WallTime) {
        guard let open = steps.removeValue(forKey: step) else { return }
        change(open.kind, at: now) { line in
            line.reserved.bytes -= open.spending.bytes
            line.reserved.received -= open.spending.received
            line.reserved.files -= open.spending.files
            line.add(actual)
        }
    }

    /// Gives back the bytes that are reserved, for a plan, which spends them itself on what is under way. Its files have their places.
    mutating func giveBackReserved(at now: WallTime) {
        for (step, reserved) in steps { settle(step, Spending(files: reserved.spending.files), at: now) }
    }

    private mutating func change(_ kind: Class, at now: WallTime, _ body: (inout Line) -> Void) {
        for number in lines.indices where lines[number].counts(kind) {
            body(&lines[number])
            lines[number].note(at: now)
        }
    }

    // MARK: Answers

    /// The quotas that are used up, as of the last look at the clock.
    ///
    /// - Parameter isStarting: Whether anything may begin. What is under way goes on with what it has reserved.
    package func holds(for kind: Class, isStarting: Bool = true) -> [Hold] {
        let holds = lines.filter { $0.counts(kind) }.flatMap { $0.holds(isStarting: isStarting) }
        // What is for no file is no file to be begun.
        return kind.folder == nil ? holds.filter { !$0.sparesBegun } : holds
    }

    /// Whether any quota counts what comes in for such work.
    package func countsReceived(of kind: Class) -> Bool {
        lines.contains { $0.quota.bytes != nil && $0.quota.direction != .sent && $0.counts(kind) }
    }

    /// What may be reserved now: as much as the tightest of the quotas leaves.
    package func room(for kind: Class) -> Room {
        var room = Room()
        for line in lines where line.counts(kind) {
            if let left = line.sendable, room.bytes.map({ left < $0 }) ?? true {
                room.bytes = left
                room.binding = line
            }
            switch line.quota.direction {
            case .sent: break
            case .received: room.received = [room.received, line.unspent].compactMap { $0 }.min()
            case .both: room.both = [room.both, line.unspent].compactMap { $0 }.min()
            }
            if let left = line.filesLeft { room.files = min(left, room.files ?? .max) }
        }
        return room
    }
}

extension QuotaBook.Line {
    /// Without what is reserved; `nil`: bytes are not counted.
    package var bytesLeft: Int64? {
        unspent.map { sendable == 0 ? 0 : $0 }
    }
    /// Bytes that may be sent with what is left: where what comes in counts, less or more than that.
    package var sendable: Int64? {
        unspent.map { left in
            let sendable = quota.direction.sendable(of: left)
            return sendable < least ? 0 : sendable
        }
    }
    /// As ``bytesLeft``, also where it is too little for anything.
    var unspent: Int64? { left(quota.bytes, used, max(0, quota.direction.bytes(of: reserved))) }
    /// Bytes that count, without what is reserved; `nil` until they are read.
    package var used: Int64? { spent.map { quota.direction.bytes(of: $0) } }
    /// To be begun; `nil`: files are not counted.
    package var filesLeft: Int64? { left(quota.files, spent?.files, reserved.files) }

    private func left(_ limit: Int64?, _ spent: Int64?, _ reserved: Int64) -> Int64? {
        guard let limit else { return nil }
        guard let spent else { return 0 }
        return max(0, limit - min(limit, spent) - max(0, reserved))
    }

    func counts(_ kind: QuotaBook.Class) -> Bool {
        guard quota.counts(isMetered: kind.isMetered) else { return false }
        return switch place {
        case .policy: true
        case .destination(let name): name == kind.destination
        case .folder(let name): name == kind.folder
        }
    }

    fileprivate mutating func add(_ spending: Spending) {
        if spent == nil { meanwhile += spending } else { spent? += spending }
    }

    fileprivate mutating func leaveStretch() { (stretch, spent, meanwhile) = (nil, nil, .none) }

    fileprivate mutating func begin(_ stretch: Range<WallTime>, at now: WallTime) {
        self.stretch = stretch
        spent = nil
        meanwhile = .none
        if quota.bytes != 0 { bytesUsedUp = nil }
        if quota.files != 0 { filesUsedUp = nil }
        note(at: now)
    }

    /// Keeps since when it is used up: not since a moment that is yet to come, where the clock was set back.
    fileprivate mutating func note(at now: WallTime) {
        bytesUsedUp = bytesLeft == 0 ? min(bytesUsedUp ?? now, now) : nil
        filesUsedUp = filesLeft == 0 ? min(filesUsedUp ?? now, now) : nil
    }

    func holds(isStarting: Bool) -> [Hold] {
        guard let spent else {
            return [
                Hold(
                    .quota, since: bytesUsedUp ?? filesUsedUp ?? WallTime(milliseconds: 0),
                    text: "what was spent of the quota of \(place.words) has not been read yet")
            ]
        }
        var holds: [Hold] = []
        // A quota of nothing is one of nothing tomorrow, too.
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
            hold.sparesBegun = true
            holds.append(hold)
        }
        return holds
    }

    private func hold(
        _ since: WallTime, _ limit: Int64, _ words: String, _ spent: String, _ reserved: String?, left: String? = nil
    ) -> Hold {
        let text =
            limit == 0
            ? "the quota of \(place.words) allows nothing: \(words) (`quotas`)"
            : "the quota of \(place.words) is used up: \(words) (`quotas`), \(spent)"
                + (reserved.map { ", \($0) under way" } ?? "")
                + (left.map { "; the \($0) that are left are too little to begin with" } ?? "")
        return Hold(.quota, since: since, until: limit == 0 ? nil : stretch?.upperBound, text: text)
    }
}
