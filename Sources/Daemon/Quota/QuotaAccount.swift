internal import Core
internal import Store
internal import Synchronization
internal import Transport

/// The bytes that one transfer or request has sent and may still send: its page of the ledger.
///
/// Bytes leave only while they are reserved on disk. When little is left, the next step is requested during the
/// transfer. When nothing is left, bodies wait. When the quota is exhausted, the work is stopped.
final class QuotaAccount: Sendable {
    private struct State {
        var step: ReservedStep
        var needs = RequestNeeds()
        var renewals = AccountRenewals()
        var hasBegun = false
        /// Other quotas count it than those that its step is charged to.
        var isRecharged = false
        var onEnd: (@Sendable ((any Error)?) -> Void)?

        /// Whether less is left than may be in flight.
        var isLow: Bool { step.left < needs.underWay || step.isFull }
        /// What an account with this little left needs first.
        var need: AccountRenewals.Need { step.left >= needs.underWay ? .answers : .sending }
    }

    let key: SpendingAccount
    /// The class that its next reservation is charged to.
    var kind: QuotaState.Class { currentKind.withLock { $0 } }
    private let currentKind: Mutex<QuotaState.Class>
    /// Whether nothing is reserved for it: its bytes stay on this machine.
    let isFree: Bool
    /// Whether a person waived its quotas. Its bytes are counted nevertheless.
    var isExempt: Bool { exemption.load(ordering: .relaxed) }
    /// Whether its bytes bypass our sockets: the destination reports how many it has sent.
    let countsNotes: Bool
    /// The limit that bodies draw from: open while enough is reserved.
    let throttle: Throttle
    /// The bytes that it will send, as far as is known.
    private let expected: Int64
    /// Whether nothing is known of that: each step is reserved as if much followed.
    private let isOpenEnded: Bool
    private let exemption: Atomic<Bool>
    private let ledger: Ledger
    private let counted: ByteCounter
    private let arrived: ByteCounter
    private let state: Mutex<State>

    /// The bytes of one request that may be in flight when bodies must wait: the socket's unsent 128 KiB, the
    /// library's buffer, and bytes that were not charged yet.
    static let margin: Int64 = 256 << 10
    /// The least that a request needs to begin.
    static let minRequest = request + margin
    static let request = IndivisibleRequest.request
    /// A remainder this small for answers is soon used up.
    private static let minAnswer: Int64 = 4 << 10
    /// Minimum body size when a quota truncates a request.
    private static let minPiece: Int64 = 32 << 10

    /// The size of a body whose size is unknown: more than any connection carries.
    static let unknownLength: Int64 = 1 << 40

    /// - Parameters:
    ///   - size: Size of the content to send; 0 for requests without content.
    ///   - isOpenEnded: Whether the size is unknown.
    init(
        _ key: SpendingAccount, _ kind: QuotaState.Class, size: Int64 = 0, step: StoredReservation?,
        isExempt: Bool = false,
        isFree: Bool, countsNotes: Bool = false, isOpenEnded: Bool = false, in ledger: Ledger
    ) {
        self.isOpenEnded = isOpenEnded
        self.key = key
        currentKind = Mutex(kind)
        expected = Self.expected(size)
        self.isFree = isFree
        exemption = Atomic(isExempt)
        self.countsNotes = countsNotes
        self.ledger = ledger
        (counted, arrived) = ledger.counters.network(key)
        throttle = Throttle(clocks: ledger.clocks)
        state = Mutex(
            State(
                step: ReservedStep(
                    step, countsReceived: ledger.countsReceived(of: kind), at: ledger.clocks.monotonic())))
        ledger.open.add(self)
        if !isFree { ledger.renewals.add(self) }
    }

    deinit {
        ledger.open.remove(ObjectIdentifier(self))
        ledger.renewals.remove(ObjectIdentifier(self))
    }

    /// The cost of a file of this size, with the overhead of its requests.
    static func expected(_ size: Int64) -> Int64 { cost(ofBody: size) + 3 * request }

    private static func cost(ofBody count: Int64) -> Int64 { IndivisibleRequest.cost(ofBody: count) }

    /// Its quotas are not waived any more. What it has reserved stays; what it reserves from now on comes out of them.
    func endExemption() { exemption.store(false, ordering: .relaxed) }

    /// These quotas with conditions count it from now on: its next step is charged to them, and soon replaces the
    /// present one. Where they lack the bytes for that, its work ends.
    func setQuotas(_ quotas: Set<QuotaName>) {
        let isOther = currentKind.withLock { kind in
            defer { kind.quotas = quotas }
            return kind.quotas != quotas
        }
        if isOther { recharge() }
    }

    /// Its next step soon replaces the present one. Where its quotas lack the bytes for that, its work ends.
    func recharge() {
        if isFree { return }
        state.withLock { $0.isRecharged = true }
        ledger.renewals.next(in: ledger)
    }

    /// All bytes that it has sent.
    var total: Int64 { state.withLock { $0.step.total.bytes } }
    /// All bytes that it has sent and received.
    var cost: Spending { state.withLock { $0.step.total } }
    /// The part of the cost that is not in the ledger yet.
    var unentered: Spending { state.withLock { $0.step.unentered } }

    /// Sets the closure that ends the work when no more may be sent, or when reserving failed.
    func setEndHandler(_ end: @escaping @Sendable ((any Error)?) -> Void) { state.withLock { $0.onEnd = end } }

    /// Counts bytes that were sent. From any thread; cheap.
    func spend(_ bytes: Int64) {
        counted.add(bytes)
        ledger.recent.add(Spending(bytes: bytes), of: key)
        let isOver = state.withLock { state -> Bool in
            state.step.spend(bytes)
            if isFree { return false }
            state.needs.spend(bytes)
            if state.isLow { throttle.rate = 0 }
            // All bytes of a small file are reserved at first. For others the next step is requested as late as the
            // disk's speed allows, so that the disk is synced rarely.
            let step = state.step.bytes
            let reserve = min(max(step / 8, state.needs.underWay + step / 16), rest(state))
            if state.isLow || state.step.left < reserve { askForMore(&state, for: .sending) }
            return state.isLow && state.renewals.isLast
        }
        if isOver { end(nil) }
    }

    /// Counts bytes that were received. From any thread; cheap.
    func receive(_ bytes: Int64) {
        arrived.add(bytes)
        ledger.recent.add(Spending(received: bytes), of: key)
        let isOver = state.withLock { state -> Bool in
            state.step.receive(bytes)
            if isFree { return false }
            if state.step.isFull { throttle.rate = 0 }
            // An answer may be longer than expected. Where no quota counts it, a long one is entered now and then.
            let reserve =
                isOpenEnded && !state.step.countsReceived
                ? -Ledger.step : max(state.step.receivedBytes / 8, Self.minAnswer)
            if state.step.receivedLeft < reserve {
                askForMore(&state, for: state.need)
            }
            return state.step.isFull && state.renewals.isLast
        }
        if isOver { end(nil) }
    }

    /// The bytes that it is still going to send, as far as is known.
    private func rest(_ state: borrowing State) -> Int64 {
        isOpenEnded ? Ledger.step : expected - state.step.total.bytes
    }

    /// How much of a body may be sent in one request: all of it, or the remainder of the quota where that is less. This
    /// also uses the quota's last bytes. A body that is stopped only at the quota's end would lose its bytes in flight.
    func allowance(for body: Int64) -> Int64 {
        guard !isFree, let remaining = ledger.remaining(for: self) else { return body }
        let available = state.withLock { max(0, $0.step.left) }.addingClamped(remaining)
        if Self.cost(ofBody: body) <= available { return body }
        let piece = (available - Self.request) / 17 * 16
        return piece < Self.minPiece ? body : piece
    }

    /// Returns when enough is reserved for a request, or for the start of its body. Has to be followed by ``ended()``.
    ///
    /// - Throws: `CancellationError` when no more can be reserved, after the work was stopped.
    func prepare(for body: Int64) async throws {
        if isFree { return }
        let cost = Self.cost(ofBody: body)
        let wanted = min(cost, Self.request + Self.margin)
        while true {
            let (isEnough, isLast, next) = state.withLock { state -> (Bool, Bool, Task<Void, Never>?) in
                let isEnough = state.needs.allowsRequest(needing: wanted, left: state.step.left)
                if isEnough, !state.step.isFull {
                    state.needs.beginRequest(costing: cost)
                    throttle.rate = nil
                    return (true, false, nil)
                }
                askForMore(&state, for: isEnough ? .answers : .sending)
                // Once it is closed, no more is requested.
                return (false, state.renewals.isOver, state.renewals.isLast ? nil : ledger.renewals.last)
            }
            if isEnough { return }
            if isLast {
                end(nil)
                throw CancellationError()
            }
            await next?.value
        }
    }

    /// Ends a request that ``prepare(for:)`` allowed.
    func ended() {
        if isFree { return }
        state.withLock { $0.needs.endRequest() }
    }

    /// Reserves the whole cost of a request with a body of this size: in memory, and on disk step by step as it is
    /// sent.
    ///
    /// - Returns: The reason why it may not begin; `nil` when it may. In that case ``returnReservation(for:sent:)`` has
    ///   to follow.
    func reserve(for body: Int64) async -> Shortage? {
        if isFree || isExempt { return nil }
        let cost = Self.cost(ofBody: body)
        while true {
            // Within one lock: bytes that are counted in between would be missing at the end of the request.
            let (line, own, renewals) = state.withLock { state in
                let own = max(0, state.step.left) - state.needs.reserved
                let line = ledger.promise(cost - own, to: self)
                if line == nil {
                    state.needs.reserve(cost)
                    state.renewals.resume()
                }
                return (line, own, state.renewals.ended)
            }
            guard let line else { return nil }
            // The quota lacks what a renewal has reserved for this account and has not given to it yet.
            let (isRenewing, isRenewed) = state.withLock {
                ($0.renewals.isRenewing, $0.renewals.ended != renewals)
            }
            if isRenewed { continue }
            guard isRenewing, let renewal = ledger.renewals.last else {
                state.withLock { $0.needs.refuse(cost) }
                return shortage(line, cost, own)
            }
            await renewal.value
        }
    }

    /// The bytes that its quotas must have left before another try is useful; `nil` where none was short.
    var missingBytes: Int64? { state.withLock { $0.needs.missingBytes } }

    /// Frees the part of a reservation that its request did not use.
    func returnReservation(for body: Int64, sent: Int64) {
        if isFree || isExempt { return }
        let unused = Self.cost(ofBody: body) - Self.cost(ofBody: min(body, max(0, sent)))
        state.withLock { $0.needs.endReservation(unused: unused) }
    }

    /// - Parameter own: Bytes that are already reserved for this work and not for running requests.
    private func shortage(_ line: QuotaState.Line, _ cost: Int64, _ own: Int64) -> Shortage {
        let now = ledger.clocks.wall()
        let end = line.stretch?.upperBound ?? now.advanced(by: .seconds(60))
        func inQuota(_ bytes: Int64, answer: Int64? = nil) -> Int64 {
            let received = Spending.received(for: bytes)
            return line.quota.direction.bytes(of: Spending(bytes: bytes, received: answer ?? received))
        }
        var text =
            "\(shownBytes((line.bytesLeft ?? 0).addingClamped(inQuota(max(0, own), answer: 0)))) of \(line.quota.byteWords ?? "") of \(line.place.words) remain, and the next piece, "
            + "which cannot be split, takes \(shownBytes(inQuota(cost))) including protocol overhead"
        if line.neverAllows(cost) {
            text = line.neverSentText(IndivisibleRequest(costing: cost), to: key.destination)
        }
        return Shortage(text: text, after: .milliseconds(max(1000, end.milliseconds - now.milliseconds)))
    }

    private func end(_ error: (any Error)?) { state.withLock { $0.onEnd }?(error) }

    private func askForMore(_ state: inout State, for need: AccountRenewals.Need) {
        if state.renewals.request(for: need) { ledger.renewals.next(in: ledger) }
    }

    /// The part of this account in a renewal, which other accounts may have requested; `nil`: it has enough. Has to be
    /// followed by ``endRenewal(_:_:_:)``.
    func beginRenewal() -> Renewal? {
        let kind = kind
        let countsBytes = ledger.countsBytes(of: kind)
        let countsReceived = ledger.countsReceived(of: kind)
        let now = ledger.clocks.monotonic()
        return state.withLock { state in
            let need = state.renewals.takeRequest()
            let isRecharged = state.isRecharged
            state.isRecharged = false
            state.step.setCountsReceived(countsReceived)
            if state.renewals.isOver { return nil }
            // No more than it is going to need.
            let whole = max(rest(state), 0).addingClamped(Self.margin)
            let next = state.step.nextSize(requests: state.needs.requests, at: now)
            // A reservation that was made without a quota is too large under one.
            guard
                let (kept, wanted) = state.step.replacement(
                    upTo: countsBytes ? min(whole, next) : whole, mayShrink: countsBytes, need: need,
                    isForced: isRecharged)
            else { return nil }
            state.renewals.begin()
            let renewal = Renewal(
                account: self, kind: kind, isRecharged: isRecharged, step: state.step.reservation,
                spent: state.step.unentered, kept: kept,
                keptReceived: max(0, state.step.receivedLeft), wanted: wanted, isNeeded: need != nil)
            state.step.beginRenewal(keeping: kept)
            return renewal
        }
    }

    func endRenewal(_ renewal: Renewal, _ more: StoredReservation?, _ failure: (any Error)?) {
        let now = ledger.clocks.monotonic()
        let isOver = state.withLock { state -> Bool in
            state.renewals.end()
            state.step.endRenewal(more, entered: renewal.spent, at: now)
            // What it has left is not charged to the quotas that count it.
            if more == nil, renewal.isRecharged {
                state.renewals.exhaust()
                return true
            }
            // An account that did not request the renewal first uses its remaining bytes, and then requests more.
            if more == nil, renewal.isNeeded {
                state.renewals.exhaust()
                return failure != nil || state.isLow
            }
            if state.isLow {
                askForMore(&state, for: more == nil ? .sending : state.need)
            } else {
                throttle.rate = nil
            }
            return false
        }
        if isOver { end(failure) }
    }

    /// Records whether its file has begun, according to the state on disk. If so, the file counts in the quotas of
    /// files, however it ends. A file that never reached its destination does not count.
    func note(isBegun: Bool) { state.withLock { $0.hasBegun = isBegun } }

    /// The payment to enter when the work is over. To be called once, when nothing is being sent any more.
    ///
    /// - Parameter hasArrived: Whether its file has arrived, even if it is not recorded as begun.
    func closing(hasArrived: Bool = false) async -> Payment? {
        let isRenewing = state.withLock { state in
            state.renewals.close()
            return state.renewals.isRenewing
        }
        if isRenewing { await ledger.renewals.last?.value }
        ledger.open.remove(ObjectIdentifier(self))
        ledger.renewals.remove(ObjectIdentifier(self))
        ledger.promise(0, to: self)
        let (step, spent) = state.withLock { state in
            let step = state.step.close()
            // Nothing is reserved for bytes that stay on this machine, and no file for an upload that had begun before.
            let files = step?.spending.files ?? 1
            var spent = state.step.unentered
            spent.files = hasArrived || state.hasBegun ? files : 0
            return (step, spent)
        }
        if let step { return Payment(closing: step, spent) }
        return spent == .none ? nil : Payment(key, spent, quotas: kind.quotas)
    }
}
