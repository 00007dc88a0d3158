/// The bytes that the running requests of one account are still going to send.
struct RequestNeeds {
    /// The remaining cost of the running requests.
    private(set) var needed: Int64 = 0
    /// The running requests.
    private(set) var requests = 0
    /// The remaining cost of the requests that were allowed as a whole.
    private(set) var reserved: Int64 = 0
    private var openReservations = 0
    /// The cost of the request that was refused last.
    private(set) var missingBytes: Int64?

    /// Bytes that may already be in flight, for all running requests; never more than there is to send.
    var underWay: Int64 {
        min(QuotaAccount.margin * Int64(max(1, requests)), openReservations > 0 ? reserved : needed)
    }

    /// Whether another request may begin when `left` reserved bytes may still be sent.
    ///
    /// - Parameter wanted: The bytes that it needs to begin.
    func allowsRequest(needing wanted: Int64, left: Int64) -> Bool {
        // Bytes in flight of other requests of the same work are not available. Bytes of requests that were allowed as
        // a whole are reserved for all of them.
        if openReservations > 0 {
            left >= min(QuotaAccount.margin * Int64(requests + 1), max(reserved, min(wanted, QuotaAccount.request)))
        } else {
            left - (requests > 0 ? underWay : 0) >= wanted
        }
    }

    mutating func beginRequest(costing cost: Int64) {
        needed += cost
        requests += 1
    }

    mutating func endRequest() {
        requests -= 1
        if requests == 0 { needed = 0 }
    }

    mutating func spend(_ bytes: Int64) {
        needed = max(0, needed - bytes)
        reserved = max(0, reserved - bytes)
    }

    /// Allows a request as a whole.
    mutating func reserve(_ cost: Int64) {
        reserved += cost
        openReservations += 1
    }

    /// A request that was allowed as a whole is over.
    ///
    /// - Parameter unused: The bytes of its body, with their overhead, that it did not send.
    mutating func endReservation(unused: Int64) {
        guard openReservations > 0 else { return }
        openReservations -= 1
        // The overhead of a single request is unknown: its unused part stays reserved until the other requests are
        // over.
        reserved = openReservations == 0 ? 0 : max(0, reserved - unused)
    }

    /// A request of this cost was refused.
    mutating func refuse(_ cost: Int64) { missingBytes = cost }
}
