internal import Config
internal import Core
internal import Linux
internal import Store
internal import Synchronization

/// What was spent of every quota, and who may spend more: the book in memory, and the ledger on disk behind it.
final class Ledger: Sendable {
    /// The most that is reserved at a time where a quota counts bytes: what a crash may cost it for each transfer.
    static let step: Int64 = 8 << 20
    /// Less than that is no answer.
    private static let leastAnswer: Int64 = 1 << 10

    let clocks: any Clocks
    let counters: Counters
    let renewals = Renewals()
    let open = OpenAccounts()
    private let store: Store
    private let log: Log
    private let current: Mutex<Current>

    private struct Current {
        var book: QuotaBook
        /// Numbers of what is being reserved and has none of the store's yet.
        var provisional: Int64 = -1
        /// Since when quotas are used up, as the store has it; `nil` before it was read.
        var usedUp: [QuotaBook.UsedUp: WallTime]?
        /// What was told of how full quotas are, as the store has it; `nil` before it was read.
        var marks: QuotaMarks?
        /// It is being written; and something came meanwhile.
        var isTelling = false
        var isToTell = false
        /// What accounts may still reserve, whoever else comes: in the book, and not on disk.
        var promises: [ObjectIdentifier: (number: Int64, bytes: Int64)] = [:]

        mutating func promise(_ bytes: Int64, to account: Account, at now: WallTime) {
            let id = ObjectIdentifier(account)
            if let before = promises.removeValue(forKey: id) { book.settle(before.number, .none, at: now) }
            guard bytes > 0 else { return }
            provisional -= 1
            let spending = Spending(bytes: bytes, received: Spending.received(for: bytes))
            book.open(provisional, spending, for: account.kind, at: now)
            promises[id] = (provisional, bytes)
        }
    }

    /// Charges every account with all that has been sent for it by now.
    private let charging = Mutex<(@Sendable () async -> Void)?>(nil)

    /// - Parameter charge: Charges every account with all that has been sent for it by now, which is noticed now and then else.
    func set(charging charge: @escaping @Sendable () async -> Void) { charging.withLock { $0 = charge } }

    /// What the links have sent and received so far; `nil` where nobody tells.
    func linksNow() -> LinkBytes? { store.linksNow() }

    func chargeAll() async { await charging.withLock { $0 }?() }

    init(store: Store, clocks: any Clocks, log: Log, settings: Settings, counters: Counters = Counters()) {
        self.counters = counters
        self.store = store
        self.clocks = clocks
        self.log = log
        current = Mutex(Current(book: settings.book(after: nil)))
    }

    /// How every quota stands.
    var book: QuotaBook { current.withLock { $0.book } }

    /// Other rules count from now on. What is under way stays reserved.
    func take(_ settings: Settings) {
        current.withLock { $0.book = settings.book(after: $0.book) }
        // What is reserved without a quota is more than a new one may leave.
        renewals.next(in: self)
    }

    /// Whether any quota counts the bytes of such work: also where a person lets it off.
    func countsBytes(of kind: QuotaBook.Class) -> Bool { current.withLock { $0.book.room(for: kind).bytes != nil } }

    /// Whether any quota counts what comes in for such work.
    func countsReceived(of kind: QuotaBook.Class) -> Bool { current.withLock { $0.book.countsReceived(of: kind) } }

    /// The zone is another one: what its days have used up is read anew with the next look.
    func zoneChanged() { current.withLock { $0.book.zoneChanged() } }

    /// Looks at the clock, and reads what it does not know yet.
    func look() async throws {
        let recounts = current.withLock { $0.book.advance(to: clocks.wall(), in: .local) }
        // Another stretch, perhaps an earlier one: what is dated later than now is to age from here on.
        if !recounts.isEmpty { try await store.redateLedger() }
        for recount in recounts {
            let spent = try await store.spent(
                since: recount.since, destination: recount.destination, folder: recount.folder,
                networks: recount.isMetered ? [.metered] : NetworkClass.counting)
            current.withLock { $0.book.recount(recount, spent: spent, at: clocks.wall()) }
        }
        try await rememberUsedUp()
        try await tellMarks()
    }

    /// That a quota is used up since the morning is so after a restart as well.
    private func rememberUsedUp() async throws {
        if current.withLock({ $0.usedUp }) == nil {
            let known = try await store.quotasUsedUp()
            current.withLock { current in
                current.usedUp = known
                current.book.remember(known)
            }
        }
        let (now, kept) = current.withLock { ($0.book.usedUp, $0.usedUp) }
        if now == kept { return }
        try await store.keep(quotasUsedUp: now)
        current.withLock { $0.usedUp = now }
    }

    /// Tells which shares of quotas were reached since it looked last: an event each, and a line in the log.
    ///
    /// - Throws: `StoreError` when it cannot be written; then it is told by the next call.
    func tellMarks() async throws {
        let isOwn = current.withLock { current in
            defer { (current.isTelling, current.isToTell) = (true, true) }
            return !current.isTelling
        }
        // Whoever tells looks once more.
        guard isOwn else { return }
        do { try await tellAll() } catch {
            current.withLock { $0.isTelling = false }
            throw error
        }
    }

    private func tellAll() async throws {
        if current.withLock({ $0.marks == nil }) {
            let known = try await store.quotaMarks()
            current.withLock { $0.marks = known }
        }
        while let (reached, marks) = takeMarks() {
            if marks == current.withLock({ $0.marks }) { continue }
            try await store.tell(reached, marks)
            current.withLock { $0.marks = marks }
            for one in reached {
                log.notice(
                    "a share of a quota is used",
                    [
                        "place": one.place.words, "quota": one.text, "percent": "\(one.threshold)",
                        "used": "\(one.used)", "limit": "\(one.limit)", "until": one.stretch.upperBound.description,
                    ])
            }
        }
    }

    /// `nil`: nothing came since the last time.
    private func takeMarks() -> ([QuotaMarks.Reached], QuotaMarks)? {
        current.withLock { current in
            guard current.isToTell, var marks = current.marks else {
                // Before anybody else asks.
                current.isTelling = false
                return nil
            }
            current.isToTell = false
            let reached = marks.take(current.book)
            return (reached, marks)
        }
    }

    // MARK: Reserving

    /// What a file may send first, as a reservation for the store's own transaction; counted at once. `nil`: there is no room.
    ///
    /// - Parameters:
    ///   - isBegun: It has its place in the quotas of files.
    ///   - isExcused: A person lets it off its quotas.
    func first(
        _ key: SpendingAccount, _ kind: QuotaBook.Class, size: Int64, isBegun: Bool, isExcused: Bool
    ) -> (number: Int64, Reservation)? {
        let whole = Account.expected(size).addingClamped(Account.margin)
        // Where no quota counts bytes, nothing is lost by a step for the whole file, and none has to be renewed.
        let wanted = countsBytes(of: kind) ? min(Account.least, whole) : whole
        return reserve(key, kind, wanted, files: isBegun ? 0 : 1, isExcused: isExcused)
    }

    /// Bytes that may be reserved beyond what is; `nil` for any number.
    func room(for account: Account) -> Int64? {
        account.isExcused ? nil : current.withLock { $0.book.room(for: account.kind).bytes }
    }

    /// Keeps so many bytes for an account beyond what it has reserved, in place of what it was promised before: while the work
    /// runs, and not over a restart, which would count for sent what nobody sent.
    ///
    /// - Returns: The quota that leaves less than that; `nil` when it is promised.
    @discardableResult
    func promise(_ bytes: Int64, to account: Account) -> QuotaBook.Line? {
        current.withLock { current in
            let more = bytes - (current.promises[ObjectIdentifier(account)]?.bytes ?? 0)
            let room = current.book.room(for: account.kind)
            if more > 0, let left = room.bytes, more > left { return room.binding }
            // Where nothing counts bytes there is nothing to be kept.
            current.promise(room.bytes == nil ? 0 : bytes, to: account, at: clocks.wall())
            return nil
        }
    }

    private func reserve(
        _ key: SpendingAccount, _ kind: QuotaBook.Class, _ wanted: Int64, files: Int64, keeping: Spending = .none,
        isExcused: Bool, by account: Account? = nil
    ) -> (number: Int64, Reservation)? {
        current.withLock { current in
            let room = isExcused ? QuotaBook.Room() : current.book.room(for: kind)
            let promised = account.flatMap { current.promises[ObjectIdentifier($0)]?.bytes } ?? 0
            let bytes = min(wanted, (room.bytes ?? .max).addingClamped(promised))
            // With less than that no request gets anywhere.
            guard promised > 0 || bytes >= min(wanted, Quota.least), files == 0 || room.files ?? 1 >= files else {
                return nil
            }
            if let account, promised > 0 { current.promise(promised - bytes, to: account, at: clocks.wall()) }
            // As much of what comes back as there is room for; what came since the last step is not in the way of the next one.
            let answers = Spending.received(for: bytes.addingClamped(keeping.bytes)) - keeping.received
            // After the promise was taken back, which had set that aside.
            let most = isExcused ? .max : current.book.room(for: kind).received(beside: bytes)
            // With hardly anything no answer gets anywhere.
            if bytes == 0, most < min(answers, Self.leastAnswer) { return nil }
            let spending = Spending(bytes: bytes, received: min(max(0, answers), most), files: files)
            current.provisional -= 1
            current.book.open(current.provisional, spending, for: kind, at: clocks.wall())
            return (current.provisional, Reservation(key, spending + keeping))
        }
    }

    /// What was reserved under a number of this process now stands on disk, or does not.
    func took(_ number: Int64, as step: ReservedStep?, _ kind: QuotaBook.Class) {
        let now = clocks.wall()
        current.withLock { current in
            current.book.settle(number, .none, at: now)
            if let step { current.book.open(step.id, step.spending, for: kind, at: now) }
        }
    }

    /// Enters what was sent of steps and opens the next ones, with what is kept of the old and what is wanted beyond that, as far as it is
    /// to be had: one transaction for all.
    ///
    /// - Returns: A step for each; `nil` where there is no more to be had.
    /// - Throws: `StoreError` when they cannot be written.
    func renew(_ renewals: [Renewal], after links: LinkBytes?) async throws -> [ReservedStep?] {
        var next: [ReservedStep?] = renewals.map { _ in nil }
        var taken: [(index: Int, number: Int64)] = []
        var payments: [Payment] = []
        var reservations: [Reservation] = []
        for (index, renewal) in renewals.enumerated() {
            let account = renewal.account
            let kept = Spending(
                bytes: renewal.kept, received: renewal.keptReceived, files: renewal.step?.spending.files ?? 0)
            guard
                let (number, reservation) = reserve(
                    account.key, account.kind, renewal.wanted, files: 0, keeping: kept, isExcused: account.isExcused,
                    by: account)
            else { continue }
            taken.append((index, number))
            // A folder tells what it has written when it is asked for its next note: what it wrote since was before any moment now.
            let since: Reservation.Since = .counted(account.countsNotes ? nil : links)
            reservations.append(Reservation(reservation.account, reservation.spending, since: since))
            if let step = renewal.step { payments.append(Payment(settling: step, renewal.spent)) }
        }
        defer {
            let now = clocks.wall()
            current.withLock { current in
                for (index, number) in taken {
                    current.book.settle(number, .none, at: now)
                    guard let step = next[index] else { continue }
                    let renewal = renewals[index]
                    if let before = renewal.step {
                        current.book.settle(before.id, renewal.spent, at: now)
                    }
                    current.book.open(step.id, step.spending, for: renewal.account.kind, at: now)
                }
            }
        }
        for (one, step) in zip(taken, try await store.pay(payments, reserving: reservations)) { next[one.index] = step }
        return next
    }

    /// A payment for a step was entered.
    func settled(_ payment: Payment) {
        guard let step = payment.step else { return }
        let now = clocks.wall()
        current.withLock { $0.book.settle(step.id, payment.spending, at: now) }
    }

    /// A payment was entered.
    func entered(_ payment: Payment, for account: Account) {
        if payment.step != nil { return settled(payment) }
        if account.isFree { return }
        let now = clocks.wall()
        current.withLock { $0.book.spend(payment.spending, for: account.kind, at: now) }
    }

    /// Ends work that belongs to no file.
    func close(_ account: Account) async throws {
        guard let payment = await account.closing() else { return }
        try await store.pay([payment])
        entered(payment, for: account)
        try await tellMarks()
    }
}

extension NetworkClass {
    /// What quotas count: all that may have left this machine.
    static let counting: Set<NetworkClass> = Set(allCases).subtracting([.local])
}

extension Settings {
    fileprivate func book(after earlier: QuotaBook?) -> QuotaBook {
        QuotaBook(
            policy: policy.rules, destinations: destinations.map { ($0.name, $0.policy.rules) },
            folders: folders.map { ($0.watch.name, $0.policy.rules) }, least: Quota.least,
            after: earlier)
    }
}
