internal import Core
internal import Store

/// The step that an account has reserved on disk, and the bytes that were sent and received since it was opened.
struct ReservedStep {
    /// Durable, and counted as sent until it is settled.
    private(set) var reservation: StoredReservation?
    /// The part of the cost that is not in the ledger yet.
    private(set) var unentered = Spending.none
    /// All bytes that were sent and received, over all steps.
    private(set) var total = Spending.none
    /// Bytes of the step that a renewal which is not on disk yet gives back: they may not be sent any more.
    private(set) var returned: Int64 = 0
    /// Whether a quota counts received bytes.
    private(set) var countsReceived: Bool
    private var pace: SendRate

    init(_ reservation: StoredReservation?, countsReceived: Bool, at now: MonotonicTime) {
        self.reservation = reservation
        self.countsReceived = countsReceived
        pace = SendRate(at: now)
    }

    /// Reserved bytes to be sent.
    var bytes: Int64 { reservation?.spending.bytes ?? 0 }
    /// Reserved bytes that may still be sent; negative when more was sent.
    var left: Int64 { bytes - unentered.bytes - returned }
    /// Reserved bytes to be received.
    var receivedBytes: Int64 { reservation?.spending.received ?? 0 }
    /// Reserved bytes that may still be received; negative when more was received.
    var receivedLeft: Int64 { receivedBytes - unentered.received }
    /// Whether more was received than reserved, and counts.
    var isFull: Bool { countsReceived && unentered.received > 0 && receivedLeft <= 0 }

    mutating func spend(_ bytes: Int64) {
        unentered.bytes += bytes
        total.bytes += bytes
        pace.spend(bytes)
    }

    mutating func receive(_ bytes: Int64) {
        unentered.received += bytes
        total.received += bytes
    }

    /// The size of the next step, for an account that sends `requests` requests at once.
    ///
    /// It is the most that a crash may lose: the bytes of two seconds besides those in flight, and at least the bytes
    /// that its requests need to begin.
    func nextSize(requests: Int, at now: MonotonicTime) -> Int64 {
        let underWay = QuotaAccount.margin * Int64(max(0, requests))
        return max(QuotaAccount.minRequest + underWay, min(Ledger.step, 2 * pace.rate(at: now) + underWay))
    }

    /// The step of another size that is to replace this one; `nil` where this one is good enough.
    ///
    /// - Parameters:
    ///   - target: The size of the next step, at most what the account is going to send.
    ///   - mayShrink: Whether bytes that were reserved without a quota are given back.
    ///   - need: The reason why the account has requested it; `nil` where another account has.
    ///   - isForced: Whether it is charged to other quotas, and replaced also where it is good enough.
    func replacement(
        upTo target: Int64, mayShrink: Bool, need: AccountRenewals.Need?, isForced: Bool = false
    ) -> (kept: Int64, wanted: Int64)? {
        let left = max(0, left)
        let kept = mayShrink && left > 2 * target && need == nil ? target : left
        let wanted = need == .sending ? max(target - left, QuotaAccount.margin) : max(0, target - left)
        return isForced || need != nil || kept < left || wanted > target / 16 ? (kept, wanted) : nil
    }

    mutating func setCountsReceived(_ counts: Bool) { countsReceived = counts }

    /// Only `kept` bytes may still be sent until ``endRenewal(_:entered:at:)``.
    mutating func beginRenewal(keeping kept: Int64) { returned = max(0, left) - kept }

    /// The renewal is over.
    ///
    /// - Parameters:
    ///   - renewed: The step that replaces this one; `nil` if there is none.
    ///   - entered: The bytes that were entered into the ledger with it.
    mutating func endRenewal(_ renewed: StoredReservation?, entered: Spending, at now: MonotonicTime) {
        returned = 0
        guard let renewed else { return }
        pace.beginPeriod(at: now)
        reservation = renewed
        unentered.bytes -= entered.bytes
        unentered.received -= entered.received
    }

    /// Removes the reservation, and returns it to be settled.
    mutating func close() -> StoredReservation? {
        defer { reservation = nil }
        return reservation
    }
}
