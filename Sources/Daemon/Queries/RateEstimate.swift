internal import API
internal import Core
internal import Store

/// The rate at which a plan assumes that bytes of files get to a destination.
struct RateEstimate: Hashable {
    /// The last measurement, in bytes a second.
    var measured: Int64?
    /// The rate of the busiest hour of the last week.
    var used: Int64?

    func view(of destination: String) -> PlanRateView {
        // The recent measurement may have been limited by a rule that ends; a rate that was reached once can be reached
        // again.
        if let measured, measured >= used ?? 0 {
            return PlanRateView(destination: destination, rate: measured, source: "measured")
        }
        return PlanRateView(destination: destination, rate: used, source: used == nil ? "unknown" : "usage")
    }

    /// An hour with less traffic was mostly idle, on any line: it does not show the line's speed.
    private static let minTraffic: Int64 = 64 << 20

    /// Bytes of files a second to each destination, in its busiest hour. Too low if part of that hour was idle.
    static func bestHours(_ usage: [UsageRow]) -> [String: Int64] {
        var hours: [String: [WallTime: Int64]] = [:]
        for row in usage { hours[row.account.destination, default: [:]][row.at, default: 0] += row.spending.bytes }
        return hours.compactMapValues { hours in
            guard let most = hours.values.max(), most >= minTraffic else { return nil }
            return most / (100 + Plan.overhead) * 100 / 3600
        }
    }
}
