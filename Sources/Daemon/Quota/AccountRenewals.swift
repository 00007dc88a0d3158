/// The renewals of one account's step: whether it waits for one, is part of one, or gets no more.
struct AccountRenewals {
    /// What an account requests a renewal for.
    enum Need {
        /// Too little is left to be sent.
        case sending
        /// Enough can still be sent, and only received bytes need more.
        case answers
    }

    /// The reason for which the account waits for the next renewal; `nil` while it does not.
    private var awaited: Need?
    /// Whether its step is being renewed.
    private(set) var isRenewing = false
    /// Renewals that have ended.
    private(set) var ended = 0
    /// Whether no more can be reserved.
    private(set) var isLast = false
    /// Whether the account's work is over: no more is requested.
    private(set) var isClosed = false

    /// Whether no renewal gives it more.
    var isOver: Bool { isLast || isClosed }

    /// Records that the account needs a renewal.
    ///
    /// - Returns: Whether a renewal has to be scheduled for that.
    mutating func request(for need: Need) -> Bool {
        if isRenewing || isOver { return false }
        if awaited != nil {
            if need == .sending { awaited = .sending }
            return false
        }
        awaited = need
        return true
    }

    /// The reason of the account's own request, which a renewal takes part in now; `nil` if it has none.
    mutating func takeRequest() -> Need? {
        defer { awaited = nil }
        return awaited
    }

    mutating func begin() { isRenewing = true }

    /// The account's part in a renewal is over.
    mutating func end() {
        isRenewing = false
        ended += 1
    }

    /// A renewal that the account needed gave it nothing.
    mutating func exhaust() { isLast = true }

    /// The quota has promised more to the account.
    mutating func resume() { isLast = false }

    mutating func close() { isClosed = true }
}
