package import Core
package import Linux

/// Bytes to be reserved.
package struct Reservation: Sendable, Hashable {
    package var account: SpendingAccount
    package var spending: Spending

    /// The time when the last byte was counted that is entered as spent. The bytes that links have sent since then
    /// limit the bytes that may have left of this reservation.
    package enum Since: Sendable, Hashable {
        /// No bytes were sent before.
        case now
        /// The links' counters at that time; `nil` where they are not known.
        case counted(LinkBytes?)
    }

    package var since: Since

    package init(_ account: SpendingAccount, _ spending: Spending, since: Since = .now) {
        self.account = account
        self.spending = spending
        self.since = since
    }

    /// As text, for a later start that may give some of it back.
    func links(_ now: () -> LinkBytes?) -> String? {
        switch since {
        case .now: now()?.text
        case .counted(let links): links?.text
        }
    }
}

/// A reservation that is to be settled.
package struct StoredReservation: Sendable, Hashable {
    /// Never used again.
    package let id: Int64
    package let account: SpendingAccount
    package let spending: Spending
}

/// Sent bytes that are to be entered.
package struct Payment: Sendable, Hashable {
    /// `nil` if nothing was reserved.
    package let step: StoredReservation?
    package let account: SpendingAccount
    package let spending: Spending

    /// Bytes that were sent without a reservation.
    package init(_ account: SpendingAccount, _ spending: Spending) {
        step = nil
        self.account = account
        self.spending = spending
    }

    /// Replaces the reservation by the bytes that were sent: fewer, or more.
    package init(closing step: StoredReservation, _ actual: Spending) {
        self.step = step
        account = step.account
        spending = actual
    }
}
