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
    /// The quotas with conditions that count it, also when it is settled.
    package var quotas: Set<QuotaName>

    package init(
        _ account: SpendingAccount, _ spending: Spending, since: Since = .now, quotas: Set<QuotaName> = []
    ) {
        self.account = account
        self.spending = spending
        self.since = since
        self.quotas = quotas
    }

    /// The names of the quotas as text: one in each line; `nil` for none.
    var quotasText: String? {
        quotas.isEmpty ? nil : quotas.map(\.key).sorted().joined(separator: "\n")
    }

    /// see ``quotasText``.
    static func quotas(inText text: String?) -> Set<QuotaName> {
        Set((text ?? "").split(separator: "\n").compactMap { QuotaName(key: $0) })
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
    /// The quotas with conditions that count bytes without a reservation.
    package let quotas: Set<QuotaName>

    /// Bytes that were sent without a reservation.
    package init(_ account: SpendingAccount, _ spending: Spending, quotas: Set<QuotaName> = []) {
        step = nil
        self.quotas = quotas
        self.account = account
        self.spending = spending
    }

    /// Replaces the reservation by the bytes that were sent: fewer, or more.
    package init(closing step: StoredReservation, _ actual: Spending) {
        self.step = step
        quotas = []
        account = step.account
        spending = actual
    }
}
