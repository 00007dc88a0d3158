internal import Config
internal import Core
internal import Linux
internal import Store
internal import Synchronization

/// The bytes spent of every quota, and the accounts that may spend more: the state in memory, and the ledger on disk
/// behind it.
final class Ledger: Sendable {
    /// The most that is reserved at once where a quota counts bytes: a crash may cost this for each transfer.
    static let step: Int64 = 8 << 20
    static let countedAtStart = "the last run was killed: counted the bytes that the links sent until its end"
    static let countedAllAtStart =
        "the last run was killed: counted all bytes that were reserved for it, since the links do not tell how many of "
        + "them were sent"
    /// No answer is shorter than that.
    private static let minAnswer: Int64 = 1 << 10

    let clocks: any Clocks
    let counters: Counters
    let renewals = Renewals()
    let open = OpenAccounts()
    let recent: RecentTraffic
    /// Set when bytes are reserved in a quota that counts those of other programs.
    private let counting: AsyncSignal
    private let store: Store
    private let log: Log
    private let current: Mutex<Current>

    private struct Current {
        var quotas: QuotaState
        /// The last temporary number for a reservation that has no number of the store yet.
        var provisional: Int64 = -1
        /// The times since which quotas are used up, as stored; `nil` before the first read.
        var usedUp: [QuotaState.ExhaustedQuota: WallTime]?
        /// The shares of quotas that were reported, as stored; `nil` before the first read.
        var marks: QuotaThresholds?
        /// Whether reports are being written, and whether there are new ones.
        var isReporting = false
        var hasNewReports = false
        /// Whether the bytes of other programs are counted up to now, or nearly.
        var knowsInterfaces = false
        /// Bytes that accounts may still reserve before all others: in memory, and not on disk.
        var promises: [ObjectIdentifier: (number: Int64, bytes: Int64)] = [:]

        mutating func promise(_ bytes: Int64, to account: QuotaAccount, at now: WallTime) {
            let id = ObjectIdentifier(account)
            if let before = promises.removeValue(forKey: id) { quotas.close(before.number, .none, at: now) }
            guard bytes > 0 else { return }
            provisional -= 1
            let spending = Spending(bytes: bytes, received: Spending.received(for: bytes))
            quotas.open(provisional, spending, for: account.kind, at: now)
            promises[id] = (provisional, bytes)
        }
    }

    /// Charges every account with all bytes that have been sent for it by now.
    private let charging = Mutex<(@Sendable () async -> Void)?>(nil)

    /// - Parameter charge: Charges every account with all bytes that have been sent for it by now. At other times that
    ///   happens only now and then.
    func set(charging charge: @escaping @Sendable () async -> Void) { charging.withLock { $0 = charge } }

    /// The bytes that the links have sent and received so far; `nil` where they are not known.
    func currentLinkBytes() -> LinkBytes? { store.currentLinkBytes() }

    func chargeAll() async { await charging.withLock { $0 }?() }

    init(
        store: Store, clocks: any Clocks, log: Log, settings: Settings, counters: Counters = Counters(),
        counting: AsyncSignal = AsyncSignal()
    ) {
        (self.counters, self.counting) = (counters, counting)
        (self.store, self.clocks, self.log) = (store, clocks, log)
        recent = RecentTraffic(clocks: clocks)
        current = Mutex(Current(quotas: settings.quotas(after: nil)))
    }

    /// The state of every quota.
    var quotas: QuotaState { current.withLock { $0.quotas } }

    /// Puts new rules in force. Bytes of running work stay reserved.
    func apply(_ settings: Settings) {
        current.withLock { $0.quotas = settings.quotas(after: $0.quotas) }
        // A reservation that was made without a quota may be larger than a new quota allows.
        renewals.next(in: self)
    }

    /// Whether any quota counts the bytes of such work: also where a person waived it.
    func countsBytes(of kind: QuotaState.Class) -> Bool {
        current.withLock { $0.quotas.remaining(for: kind).bytes != nil }
    }

    /// Whether any quota counts received bytes for such work.
    func countsReceived(of kind: QuotaState.Class) -> Bool { current.withLock { $0.quotas.countsReceived(of: kind) } }

    /// The time zone has changed: the spending of its days is read again on the next refresh.
    func zoneChanged() { current.withLock { $0.quotas.zoneChanged() } }

    /// Sets the usage of a quota with a condition in its present period, without reservations.
    ///
    /// - Parameter counts: `bytes` or `files`; the other of them stays.
    /// - Returns: The usage before.
    func set(
        _ recount: QuotaState.Recount, of line: QuotaState.Line, counts: String, to used: Int64, by who: String
    ) async throws -> Int64 {
        let direction = line.quota.direction
        let before = try await store.write { tx -> Int64 in
            var spending = try tx.ledger.spent(for: recount)
            let before = counts == "files" ? spending.files : direction.bytes(of: spending)
            switch (counts, direction) {
            case ("files", _): spending.files = used
            case (_, .sent): spending.bytes = used
            case (_, .received): spending.received = used
            case (_, .both): (spending.bytes, spending.received) = (used, 0)
            }
            try tx.ledger.set(recount, to: spending)
            try tx.events.append(
                .usageSet(line.place, name: line.quota.name ?? "", counts: counts, from: before, to: used, by: who))
            return before
        }
        if let name = recount.name { current.withLock { $0.quotas.clearUsage(of: name) } }
        return before
    }

    /// Whether the bytes of other programs were counted since the start.
    var knowsInterfaces: Bool { current.withLock { $0.knowsInterfaces } }

    /// Whether bytes are reserved now in a quota that counts those of other programs.
    var countsInterfacesNow: Bool {
        current.withLock { current in
            current.quotas.lines.contains { $0.quota.count == .interface && $0.reserved != .none }
        }
    }

    /// Enters what other programs have sent and received over the interfaces of quotas that count them.
    ///
    /// - Parameters:
    ///   - counters: Those of all links now.
    ///   - links: By quota, the numbers of the links that it counts.
    ///   - latest: The latest reading, up to which nothing has changed.
    func enterTraffic(
        of counters: LinkBytes, _ links: [QuotaName: Set<Int32>], since latest: LinkBytes?
    ) async throws -> InterfaceComparison {
        let comparison = try await store.write { tx in
            try tx.ledger.interfaces.compare(counters, links, since: latest)
        }
        let entered = comparison.entered
        let now = clocks.wall()
        let exceeded = current.withLock { current in
            current.knowsInterfaces = true
            for (name, spending) in entered { current.quotas.spend(spending, for: name, at: now) }
            return current.quotas.exceededByOthers
        }
        if !exceeded.isEmpty { open.withdraw(from: exceeded) }
        if !entered.isEmpty { try await reportMarks() }
        return comparison
    }

    /// Advances to the present time, and reads the spending that it does not know yet.
    func refresh() async throws {
        let recounts = current.withLock { $0.quotas.advance(to: clocks.wall(), in: .local) }
        // A different period, perhaps an earlier one: entries with a later date than now age from here on.
        if !recounts.isEmpty { try await store.redateLedger() }
        for recount in recounts where !recount.countsInterfaces || knowsInterfaces {
            let spent = try await store.read { try $0.ledger.spent(for: recount) }
            current.withLock { $0.quotas.recount(recount, spent: spent, at: clocks.wall()) }
        }
        try await rememberUsedUp()
        try await reportMarks()
    }

    /// A quota that has been used up since the morning stays used up after a restart.
    private func rememberUsedUp() async throws {
        if current.withLock({ $0.usedUp }) == nil {
            let known = try await store.read { try $0.settings.quotasUsedUp() }
            current.withLock { current in
                current.usedUp = known
                current.quotas.restoreExhausted(known)
            }
        }
        let (now, kept) = current.withLock { ($0.quotas.usedUp, $0.usedUp) }
        if now == kept { return }
        try await store.write { try $0.settings.store(quotasUsedUp: now) }
        current.withLock { $0.usedUp = now }
    }

    /// Reports the shares of quotas that were reached since the last call: each as an event and a line in the log.
    ///
    /// - Throws: `StoreError` when they cannot be written; then the next call reports them.
    func reportMarks() async throws {
        let isOwn = current.withLock { current in
            defer { (current.isReporting, current.hasNewReports) = (true, true) }
            return !current.isReporting
        }
        // The call that is already reporting checks once more.
        guard isOwn else { return }
        do { try await reportAllMarks() } catch {
            current.withLock { $0.isReporting = false }
            throw error
        }
    }

    private func reportAllMarks() async throws {
        if current.withLock({ $0.marks == nil }) {
            let known = try await store.read { try $0.settings.quotaMarks() }
            current.withLock { $0.marks = known }
        }
        while let (reached, marks) = nextMarks() {
            if marks == current.withLock({ $0.marks }) { continue }
            try await store.write { try $0.settings.announce(reached, marks) }
            current.withLock { $0.marks = marks }
            for one in reached {
                log.notice(
                    "a quota has reached a threshold",
                    [
                        "place": one.place.words, "quota": one.text, "percent": "\(one.threshold)",
                        "used": "\(one.used)", "limit": "\(one.limit)", "until": one.stretch.upperBound.description,
                    ])
            }
        }
    }

    /// `nil`: nothing new since the last time.
    private func nextMarks() -> ([QuotaThresholds.Reached], QuotaThresholds)? {
        current.withLock { current in
            guard current.hasNewReports, var marks = current.marks else {
                // Within the same lock, before another caller checks it.
                current.isReporting = false
                return nil
            }
            current.hasNewReports = false
            let reached = marks.update(current.quotas)
            return (reached, marks)
        }
    }

    // MARK: Reserving

    /// The first reservation for a file, to be stored in the store's own transaction; counted at once. `nil`: the
    /// quotas leave too little.
    ///
    /// - Parameters:
    ///   - isBegun: Whether the file already counts in the quotas of files.
    ///   - isExempt: Whether a person waived its quotas.
    func reserveFirst(
        _ key: SpendingAccount, _ kind: QuotaState.Class, size: Int64, isBegun: Bool, isExempt: Bool
    ) -> (number: Int64, Reservation)? {
        let whole = QuotaAccount.expected(size).addingClamped(QuotaAccount.margin)
        // Where no quota counts bytes, a step for the whole file costs nothing, and no step has to be renewed.
        let wanted = countsBytes(of: kind) ? min(QuotaAccount.minRequest, whole) : whole
        return reserve(key, kind, wanted, files: isBegun ? 0 : 1, isExempt: isExempt)
    }

    /// Bytes that may be reserved in addition; `nil` for any number.
    func remaining(for account: QuotaAccount) -> Int64? {
        account.isExempt ? nil : current.withLock { $0.quotas.remaining(for: account.kind).bytes }
    }

    /// Keeps this many bytes for an account in addition to its reservation, in place of its earlier promise. A promise
    /// lasts while the work runs and not over a restart: after one it would count bytes as sent that were never sent.
    ///
    /// - Returns: The quota that leaves less than that; `nil` when the bytes are promised.
    @discardableResult
    func promise(_ bytes: Int64, to account: QuotaAccount) -> QuotaState.Line? {
        current.withLock { current in
            let more = bytes - (current.promises[ObjectIdentifier(account)]?.bytes ?? 0)
            let remaining = current.quotas.remaining(for: account.kind)
            if more > 0, let left = remaining.bytes, more > left { return remaining.binding }
            // Where no quota counts bytes, nothing has to be kept.
            current.promise(remaining.bytes == nil ? 0 : bytes, to: account, at: clocks.wall())
            return nil
        }
    }

    private func reserve(
        _ key: SpendingAccount, _ kind: QuotaState.Class, _ wanted: Int64, files: Int64, kept: Spending = .none,
        isExempt: Bool, by account: QuotaAccount? = nil
    ) -> (number: Int64, Reservation)? {
        current.withLock { current in
            let remaining = isExempt ? QuotaState.Remaining() : current.quotas.remaining(for: kind)
            let promised = account.flatMap { current.promises[ObjectIdentifier($0)]?.bytes } ?? 0
            let bytes = min(wanted, (remaining.bytes ?? .max).addingClamped(promised))
            // No request succeeds with less than that.
            guard promised > 0 || bytes >= min(wanted, Quota.minUsable), files == 0 || remaining.files ?? 1 >= files
            else {
                return nil
            }
            if let account, promised > 0 { current.promise(promised - bytes, to: account, at: clocks.wall()) }
            // As much for answers as the quota allows; bytes received since the last step do not reduce the next one.
            let answers = Spending.received(for: bytes.addingClamped(kept.bytes)) - kept.received
            // Computed after the promise was taken back, which had included it.
            let most = isExempt ? .max : current.quotas.remaining(for: kind).received(beside: bytes)
            // With almost nothing left, no answer succeeds.
            if bytes == 0, most < min(answers, Self.minAnswer) { return nil }
            let spending = Spending(bytes: bytes, received: min(max(0, answers), most), files: files)
            current.provisional -= 1
            current.quotas.open(current.provisional, spending, for: kind, at: clocks.wall())
            if current.quotas.countsInterfaces(kind) { counting.signal() }
            return (current.provisional, Reservation(key, spending + kept, quotas: kind.quotas))
        }
    }

    /// Replaces a reservation with a temporary number by the stored one, or removes it where storing failed.
    func replaceProvisional(_ number: Int64, as step: StoredReservation?, _ kind: QuotaState.Class) {
        let now = clocks.wall()
        current.withLock { current in
            current.quotas.close(number, .none, at: now)
            if let step { current.quotas.open(step.id, step.spending, for: kind, at: now) }
        }
    }

    /// Enters the bytes that were sent from steps, and opens the next steps with the kept and the wanted bytes, as far
    /// as the quotas allow: one transaction for all.
    ///
    /// - Returns: A step for each; `nil` if nothing more can be reserved.
    /// - Throws: `StoreError` when they cannot be written.
    func renew(_ renewals: [Renewal], after links: LinkBytes?) async throws -> [StoredReservation?] {
        var next: [StoredReservation?] = renewals.map { _ in nil }
        var taken: [(index: Int, number: Int64)] = []
        var payments: [Payment] = []
        var reservations: [Reservation] = []
        for (index, renewal) in renewals.enumerated() {
            let account = renewal.account
            let kept = Spending(
                bytes: renewal.kept, received: renewal.keptReceived, files: renewal.step?.spending.files ?? 0)
            guard
                mayRecharge(renewal),
                let (number, reservation) = reserve(
                    account.key, renewal.kind, renewal.wanted, files: 0, kept: kept, isExempt: account.isExempt,
                    by: account)
            else { continue }
            taken.append((index, number))
            // A folder reports its written bytes when it is asked for its next note: bytes written since then precede
            // any moment now.
            let since: Reservation.Since = .counted(account.countsNotes ? nil : links)
            reservations.append(
                Reservation(
                    reservation.account, reservation.spending, since: since, quotas: reservation.quotas))
            if let step = renewal.step { payments.append(Payment(closing: step, renewal.spent)) }
        }
        defer {
            let now = clocks.wall()
            current.withLock { current in
                for (index, number) in taken {
                    current.quotas.close(number, .none, at: now)
                    guard let step = next[index] else { continue }
                    let renewal = renewals[index]
                    if let before = renewal.step {
                        current.quotas.close(before.id, renewal.spent, at: now)
                    }
                    current.quotas.open(step.id, step.spending, for: renewal.kind, at: now)
                }
            }
        }
        for (one, step) in zip(
            taken,
            try await store.write { [payments, reservations] tx in try tx.ledger.pay(payments, reserving: reservations)
            })
        {
            next[one.index] = step
        }
        return next
    }

    /// Whether the quotas that an account's step is not charged to yet have room for the bytes that stay reserved, and
    /// others have not used those of the quotas that it is charged to.
    private func mayRecharge(_ renewal: Renewal) -> Bool {
        guard renewal.isRecharged, !renewal.account.isExempt, let step = renewal.step else { return true }
        return current.withLock { current in
            let charged = current.quotas.kind(ofStep: step.id)?.quotas ?? []
            if !current.quotas.exceededByOthers.isDisjoint(with: charged) { return false }
            let left = current.quotas.remaining(of: renewal.kind.quotas.subtracting(charged))
            return left.map { $0 >= renewal.kept.addingClamped(renewal.wanted) } ?? true
        }
    }

    /// Called when a payment for a step was entered.
    func enter(_ payment: Payment) {
        guard let step = payment.step else { return }
        let now = clocks.wall()
        current.withLock { $0.quotas.close(step.id, payment.spending, at: now) }
    }

    /// Called when a payment was entered.
    func recordPayment(_ payment: Payment, for account: QuotaAccount) {
        if payment.step != nil { return enter(payment) }
        if account.isFree { return }
        let now = clocks.wall()
        current.withLock { $0.quotas.spend(payment.spending, for: account.kind, at: now) }
    }

    /// Ends work that belongs to no file.
    func close(_ account: QuotaAccount) async throws {
        guard let payment = await account.closing() else { return }
        try await store.write { try $0.ledger.pay([payment]) }
        recordPayment(payment, for: account)
        try await reportMarks()
    }
}
