internal import Core
internal import Store
internal import Synchronization
internal import Transport

/// What one piece of work may still send, and has sent: its page of the ledger.
///
/// Bytes leave only while they are reserved on disk. When little is left, the next step is asked for beside the transfer; when
/// nothing is left, bodies wait, and when there is nothing more to be had the work is told to stop.
final class Account: Sendable {
    private struct State {
        /// Durable, and counted as sent until it is settled.
        var step: ReservedStep?
        /// Since that step was opened.
        var sent: Int64 = 0
        var received: Int64 = 0
        var total: Int64 = 0
        var receivedInAll: Int64 = 0
        var pace: Pace
        /// It waits for the next renewal of all, perhaps for nothing but what comes in.
        var hasAsked = false
        var asksForAnswers = false
        /// A quota counts what comes in.
        var countsReceived: Bool
        /// Its step is being renewed.
        var isRenewing = false
        /// Of the step, by a renewal that is not on disk yet: nothing of that may leave any more.
        var givenBack: Int64 = 0
        var isClosed = false
        /// No more is to be had.
        var isLast = false
        /// What the requests that run now may still cost.
        var needed: Int64 = 0
        var requests = 0
        /// What the requests that were let begin whole may still cost.
        var pledged: Int64 = 0
        var pledges = 0
        /// What the request took that was refused last.
        var lacked: Int64?
        var hasBegun = false
        var onEnd: (@Sendable ((any Error)?) -> Void)?

        /// What may still be sent of what is reserved.
        var left: Int64 { (step?.spending.bytes ?? 0) - sent - givenBack }
        /// What may already be on its way, of each request that runs; but no more is than there is to send.
        var underWay: Int64 { min(Account.margin * Int64(max(1, requests)), pledges > 0 ? pledged : needed) }
        /// What may still come in of what is reserved; below 0: more has come.
        var receivedLeft: Int64 { (step?.spending.received ?? 0) - received }
        /// What is on its way is not to be had any more.
        var isLow: Bool { left < underWay || isFull }
        /// More has come in than was set aside for it, and counts.
        var isFull: Bool { countsReceived && received > 0 && receivedLeft <= 0 }

        /// What may be lost in a crash: what it sends in two seconds besides what is on its way, and at least what its requests need to
        /// begin.
        func step(at now: MonotonicTime) -> Int64 {
            let underWay = Account.margin * Int64(max(0, requests))
            return max(Account.least + underWay, min(Ledger.step, 2 * pace.rate(at: now) + underWay))
        }
    }

    /// How fast it sends.
    private struct Pace {
        /// Shorter ones say little: at first a whole buffer leaves at once.
        private static let least = Duration.milliseconds(500)
        private var since: MonotonicTime
        private var sent: Int64 = 0
        private var rate: Int64 = 0

        init(at now: MonotonicTime) { since = now }

        mutating func spend(_ bytes: Int64) { sent = sent.addingClamped(bytes) }

        /// Bytes a second, of late.
        func rate(at now: MonotonicTime) -> Int64 {
            let elapsed = now.since(since)
            let current = max(0, sent) / max(1, max(elapsed, Self.least).inMilliseconds) * 1000
            return elapsed < Self.least ? max(rate, current) : current
        }

        /// A step begins.
        mutating func turn(at now: MonotonicTime) {
            guard now.since(since) >= Self.least else { return }
            rate = rate(at: now)
            (since, sent) = (now, 0)
        }
    }

    let key: SpendingAccount
    let kind: QuotaBook.Class
    /// Nobody reserves for it: what it sends stays on this machine.
    let isFree: Bool
    /// A person lets it off its quotas: it counts all the same.
    let isExcused: Bool
    /// Nothing of it goes through a socket of ours: the destination tells what it has sent.
    let countsNotes: Bool
    /// Bodies draw from it: it is open while enough is reserved.
    let gate: Throttle
    /// What it will send, as far as one can tell.
    private let expected: Int64
    private let ledger: Ledger
    private let counted: ByteCounter
    private let arrived: ByteCounter
    private let state: Mutex<State>

    /// What one request may have on its way when bodies are told to wait: the socket's unsent 128 KiB, the library's buffer, and what was not
    /// charged yet.
    static let margin: Int64 = 256 << 10
    /// The least that a request needs to begin with.
    static let least = request + margin
    static let request = UncutPiece.request
    /// So little is soon there.
    private static let leastAnswer: Int64 = 4 << 10
    /// Of a body that a quota cuts: less is not worth its request.
    private static let leastPiece: Int64 = 32 << 10

    /// - Parameter size: Of what is to be sent; 0 for mere questions.
    init(
        _ key: SpendingAccount, _ kind: QuotaBook.Class, size: Int64 = 0, step: ReservedStep?, isExcused: Bool = false,
        isFree: Bool, countsNotes: Bool = false, in ledger: Ledger
    ) {
        self.key = key
        self.kind = kind
        expected = Self.expected(size)
        self.isFree = isFree
        self.isExcused = isExcused
        self.countsNotes = countsNotes
        self.ledger = ledger
        (counted, arrived) = ledger.counters.network(key)
        gate = Throttle(clocks: ledger.clocks)
        state = Mutex(
            State(
                step: step, pace: Pace(at: ledger.clocks.monotonic()), countsReceived: ledger.countsReceived(of: kind)))
        ledger.open.add(self)
        if !isFree { ledger.renewals.add(self) }
    }

    deinit {
        ledger.open.remove(ObjectIdentifier(self))
        ledger.renewals.remove(ObjectIdentifier(self))
    }

    /// What a file of this size takes, with all that carries it.
    static func expected(_ size: Int64) -> Int64 { cost(ofBody: size) + 3 * request }

    private static func cost(ofBody count: Int64) -> Int64 { UncutPiece.cost(ofBody: count) }

    /// Bytes that it has sent in all.
    var total: Int64 { state.withLock { $0.total } }
    /// The same with what has come in.
    var cost: Spending { state.withLock { Spending(bytes: $0.total, received: $0.receivedInAll) } }
    /// What of that is not entered in the ledger yet.
    var unentered: Spending { state.withLock { Spending(bytes: $0.sent, received: $0.received) } }

    /// What ends the work when nothing more may be sent, or nothing more could be reserved.
    func whenOver(_ end: @escaping @Sendable ((any Error)?) -> Void) { state.withLock { $0.onEnd = end } }

    /// Takes note of bytes that have left. From any thread; cheap.
    func spend(_ bytes: Int64) {
        counted.add(bytes)
        let isOver = state.withLock { state -> Bool in
            state.sent += bytes
            state.total += bytes
            if isFree { return false }
            state.pace.spend(bytes)
            state.needed = max(0, state.needed - bytes)
            state.pledged = max(0, state.pledged - bytes)
            if state.isLow { gate.rate = 0 }
            // The whole of a small file is reserved at first.
            // As late as the disk lets it be, so that the disk is synced seldom.
            let step = state.step?.spending.bytes ?? 0
            if state.isLow || state.left < min(max(step / 8, state.underWay + step / 16), expected - state.total) {
                askForMore(&state)
            }
            return state.isLow && state.isLast
        }
        if isOver { end(nil) }
    }

    /// Takes note of bytes that have come in. From any thread; cheap.
    func receive(_ bytes: Int64) {
        arrived.add(bytes)
        let isOver = state.withLock { state -> Bool in
            state.received += bytes
            state.receivedInAll += bytes
            if isFree { return false }
            if state.isFull { gate.rate = 0 }
            // An answer may be longer than anybody thought.
            if state.receivedLeft < max((state.step?.spending.received ?? 0) / 8, Self.leastAnswer) {
                askForMore(&state, forAnswers: state.left >= state.underWay)
            }
            return state.isFull && state.isLast
        }
        if isOver { end(nil) }
    }

    /// How much of a body may go in one request: all of it, or, where a quota leaves less than that, what it leaves. So its
    /// last bytes are used as well, where a body that is only stopped at its end would lose what was on its way.
    func allowance(for body: Int64) -> Int64 {
        guard !isFree, let room = ledger.room(for: self) else { return body }
        let available = state.withLock { max(0, $0.left) }.addingClamped(room)
        if Self.cost(ofBody: body) <= available { return body }
        let piece = (available - Self.request) / 17 * 16
        return piece < Self.leastPiece ? body : piece
    }

    /// Returns when there is enough for a request, or for the first of its body. To be followed by ``ended()``.
    ///
    /// - Throws: `CancellationError` when there is nothing more to be had, after the work was told to stop.
    func prepare(for body: Int64) async throws {
        if isFree { return }
        let cost = Self.cost(ofBody: body)
        let wanted = min(cost, Self.request + Self.margin)
        while true {
            let (isEnough, isLast, next) = state.withLock { state -> (Bool, Bool, Task<Void, Never>?) in
                // What others of the same work have on their way is theirs. What was pledged is set aside for all of them.
                let isEnough =
                    state.pledges > 0
                    ? state.left
                        >= min(Self.margin * Int64(state.requests + 1), max(state.pledged, min(wanted, Self.request)))
                    : state.left - (state.requests > 0 ? state.underWay : 0) >= wanted
                if isEnough, !state.isFull {
                    state.needed += cost
                    state.requests += 1
                    gate.rate = nil
                    return (true, false, nil)
                }
                askForMore(&state, forAnswers: isEnough)
                // Once it is closed nobody asks for more.
                return (false, state.isLast || state.isClosed, state.isLast ? nil : ledger.renewals.last)
            }
            if isEnough { return }
            if isLast {
                end(nil)
                throw CancellationError()
            }
            await next?.value
        }
    }

    /// A request is over that ``prepare(for:)`` let go.
    func ended() {
        if isFree { return }
        state.withLock { state in
            state.requests -= 1
            if state.requests == 0 { state.needed = 0 }
        }
    }

    /// Sets aside what a request with so long a body takes, whole: in memory, and on disk step by step as it is sent.
    ///
    /// - Returns: Why it may not begin; `nil` when it may. To be followed by ``returnPledge(for:sent:)``.
    func pledge(for body: Int64) -> Shortage? {
        if isFree || isExcused { return nil }
        let cost = Self.cost(ofBody: body)
        let (lacking, own) = state.withLock { ($0.pledged + cost - max(0, $0.left), max(0, $0.left) - $0.pledged) }
        if let line = ledger.promise(lacking, to: self) {
            state.withLock { $0.lacked = cost }
            return shortage(line, cost, own)
        }
        state.withLock { state in
            state.pledged += cost
            state.pledges += 1
            state.isLast = false
        }
        return nil
    }

    /// What has to be left of its quotas before it is worth another look; `nil` where none was short.
    var lacked: Int64? { state.withLock { $0.lacked } }

    /// What a request took less than was set aside for it is free for others.
    func returnPledge(for body: Int64, sent: Int64) {
        if isFree || isExcused { return }
        state.withLock { state in
            guard state.pledges > 0 else { return }
            state.pledges -= 1
            // What carried it is not known of one request alone: what it took less than that stays set aside until the others are over.
            let unused = Self.cost(ofBody: body) - Self.cost(ofBody: min(body, max(0, sent)))
            state.pledged = state.pledges == 0 ? 0 : max(0, state.pledged - unused)
        }
    }

    /// - Parameter own: Reserved for this work already, and not for what it has begun.
    private func shortage(_ line: QuotaBook.Line, _ cost: Int64, _ own: Int64) -> Shortage {
        let now = ledger.clocks.wall()
        let end = line.stretch?.upperBound ?? now.advanced(by: .seconds(60))
        func inQuota(_ bytes: Int64, answer: Int64? = nil) -> Int64 {
            let received = Spending.received(for: bytes)
            return line.quota.direction.bytes(of: Spending(bytes: bytes, received: answer ?? received))
        }
        var text =
            "\(shownBytes((line.bytesLeft ?? 0).addingClamped(inQuota(max(0, own), answer: 0)))) are left of \(line.quota.byteWords ?? "") of \(line.place.words), and the next piece, "
            + "which goes whole or not at all, takes \(shownBytes(inQuota(cost))) with what carries it"
        if line.neverLeaves(cost) {
            text = line.never(UncutPiece(costing: cost), to: key.destination)
        }
        return Shortage(text: text, after: .milliseconds(max(1000, end.milliseconds - now.milliseconds)))
    }

    private func end(_ error: (any Error)?) { state.withLock { $0.onEnd }?(error) }

    /// - Parameter forAnswers: It can send for long, and what comes in needs more.
    private func askForMore(_ state: inout State, forAnswers: Bool = false) {
        guard !state.isRenewing, !state.isLast, !state.isClosed else { return }
        if !forAnswers { state.asksForAnswers = false }
        if state.hasAsked { return }
        state.hasAsked = true
        state.asksForAnswers = forAnswers
        ledger.renewals.next(in: ledger)
    }

    /// What it asks for of a renewal that others may have asked for; `nil`: it has what it needs. To be followed by
    /// ``endRenewal(_:_:_:)``.
    func beginRenewal() -> Renewal? {
        let countsBytes = ledger.countsBytes(of: kind)
        let countsReceived = ledger.countsReceived(of: kind)
        let now = ledger.clocks.monotonic()
        return state.withLock { state in
            let (isNeeded, forAnswers) = (state.hasAsked, state.asksForAnswers)
            (state.hasAsked, state.asksForAnswers) = (false, false)
            state.countsReceived = countsReceived
            guard !state.isClosed, !state.isLast else { return nil }
            // No more than it is going to need.
            let whole = max(expected - state.total, 0).addingClamped(Self.margin)
            let target = countsBytes ? min(whole, state.step(at: now)) : whole
            let left = max(0, state.left)
            // What is reserved without a quota is too much under one.
            let kept = countsBytes && left > 2 * target && !isNeeded ? target : left
            let wanted = isNeeded && !forAnswers ? max(target - left, Self.margin) : max(0, target - left)
            guard isNeeded || kept < left || wanted > target / 16 else { return nil }
            state.isRenewing = true
            state.givenBack = left - kept
            return Renewal(
                account: self, step: state.step, spent: Spending(bytes: state.sent, received: state.received),
                kept: kept, keptReceived: max(0, state.receivedLeft), wanted: wanted, isNeeded: isNeeded)
        }
    }

    func endRenewal(_ renewal: Renewal, _ more: ReservedStep?, _ failure: (any Error)?) {
        let now = ledger.clocks.monotonic()
        let isOver = state.withLock { state -> Bool in
            state.isRenewing = false
            state.givenBack = 0
            if let more {
                state.pace.turn(at: now)
                state.step = more
                state.sent -= renewal.spent.bytes
                state.received -= renewal.spent.received
                if state.isLow {
                    askForMore(&state, forAnswers: state.left >= state.underWay)
                } else {
                    gate.rate = nil
                }
                return false
            }
            // Whoever did not ask goes on with what there is, and asks when that is used.
            if !renewal.isNeeded {
                if state.isLow { askForMore(&state) } else { gate.rate = nil }
                return false
            }
            state.isLast = true
            return failure != nil || state.isLow
        }
        if isOver { end(failure) }
    }

    /// Whether the file that it is about is begun, as the state on disk has it: then its place in the quotas of files is taken,
    /// whatever becomes of it. What never reached its destination has none.
    func note(isBegun: Bool) { state.withLock { $0.hasBegun = isBegun } }

    /// What is to be entered when the work is over. To be called once, when nothing is sent any more.
    ///
    /// - Parameter hasArrived: Its file, whether it is known to have begun or not.
    func closing(hasArrived: Bool = false) async -> Payment? {
        let isRenewing = state.withLock { state in
            state.isClosed = true
            return state.isRenewing
        }
        if isRenewing { await ledger.renewals.last?.value }
        ledger.open.remove(ObjectIdentifier(self))
        ledger.renewals.remove(ObjectIdentifier(self))
        ledger.promise(0, to: self)
        let (step, spent) = state.withLock { state in
            defer { state.step = nil }
            // Nothing is reserved for what stays on this machine; of what was begun before, no file.
            let files = state.step?.spending.files ?? 1
            let begun = hasArrived || state.hasBegun ? files : 0
            return (state.step, Spending(bytes: state.sent, received: state.received, files: begun))
        }
        if let step { return Payment(settling: step, spent) }
        return spent == .none ? nil : Payment(key, spent)
    }
}
