/// Shares of quotas that were reached and reported. Each is reported once for a quota and a period of its calendar.
///
/// A quota that a reload makes larger or smaller is the same quota. If a share of the new limit is reached that was not
/// reached of the old one, it is reported, once for each limit.
package struct QuotaThresholds: Hashable, Sendable, Codable {
    /// Percent of a limit.
    package static let thresholds: [Int64] = [80, 100]
    /// Number of remembered periods; the clock may go back to one of them.
    static let capacity = 200

    /// A share that was reached now.
    package struct Reached: Hashable, Sendable {
        package var place: RulePlace
        package var quota: Quota
        /// The quota in words: `20 GB a day`.
        package var text: String
        /// `bytes` or `files`.
        package var counts: String
        package var threshold: Int64
        package var used: Int64
        package var limit: Int64
        package var stretch: Range<WallTime>

        package init(
            place: RulePlace, quota: Quota, text: String, counts: String, threshold: Int64, used: Int64,
            limit: Int64, stretch: Range<WallTime>
        ) {
            (self.place, self.quota, self.text, self.counts) = (place, quota, text, counts)
            (self.threshold, self.used, self.limit, self.stretch) = (threshold, used, limit, stretch)
        }

        /// Rounded down.
        package var percent: Int64 { Int64(Int128(used) * 100 / Int128(max(1, limit))) }
    }

    /// One limit of a quota in one period.
    private struct Stretch: Hashable, Sendable, Codable {
        var name: String
        /// Its beginning and end, ms since 1970.
        var from: Int64
        var until: Int64
        /// The largest share of the limit that it has now.
        var level: Int64
        var reported: Set<Reported>
    }

    private struct Reported: Hashable, Sendable, Codable {
        var limit: Int64
        var threshold: Int64
    }

    private var stretches: [Stretch] = []
    var count: Int { stretches.count }

    package init() {}

    /// Returns the shares in `quotas` that are reached and were not reported yet; they count as reported from now on.
    package mutating func update(_ quotas: QuotaState) -> [Reached] {
        var reached: [Reached] = []
        for line in quotas.lines {
            guard let spent = line.spent, let stretch = line.stretch else { continue }
            let (quota, least) = (line.quota, line.least)
            if let limit = quota.bytes, let text = quota.byteWords {
                let used = quota.direction.bytes(of: spent)
                // The rest is too small to be of use.
                let isUsedUp = quota.direction.sendable(of: max(0, limit - min(limit, used))) < least
                reached += evaluate(
                    line, text, "bytes", "\(quota.direction.rawValue) bytes", used, of: limit, stretch, isUsedUp)
            }
            if let limit = quota.files, let text = quota.fileWords {
                reached += evaluate(line, text, "files", "files", spent.files, of: limit, stretch, false)
            }
        }
        if stretches.count > Self.capacity {
            stretches = Array(stretches.sorted { $0.until > $1.until }.prefix(Self.capacity))
        }
        return reached
    }

    private mutating func evaluate(
        _ line: QuotaState.Line, _ text: String, _ counts: String, _ what: String, _ used: Int64, of limit: Int64,
        _ stretch: Range<WallTime>, _ isUsedUp: Bool
    ) -> [Reached] {
        // A quota of zero is used up from the start.
        guard limit > 0 else { return [] }
        let level =
            Self.thresholds.last { $0 == 100 && isUsedUp || Int128(used) * 100 >= Int128(limit) * Int128($0) } ?? 0
        let name = "\(line.place.words): \(what) \(line.quota.period.name) \(line.quota.name ?? "any")"
        let from = stretch.lowerBound.milliseconds
        var index = stretches.firstIndex { $0.name == name && $0.from == from }
        if index == nil, level > 0 {
            index = stretches.count
            stretches.append(
                Stretch(name: name, from: from, until: stretch.upperBound.milliseconds, level: 0, reported: []))
        }
        guard let index else { return [] }
        let before = stretches[index].level
        if before != level { stretches[index].level = level }
        return Self.thresholds.filter { $0 <= level }.compactMap { threshold in
            // A share that was reached of an earlier limit is not reported again.
            let isNew = stretches[index].reported.insert(Reported(limit: limit, threshold: threshold)).inserted
            guard isNew, threshold > before else { return nil }
            return Reached(
                place: line.place, quota: line.quota, text: text, counts: counts, threshold: threshold, used: used,
                limit: limit, stretch: stretch)
        }
    }
}

extension Period {
    /// Distinguishes it from every other one.
    fileprivate var name: String {
        switch self {
        case .hour: "hour"
        case .day: "day"
        case .week(let first): "week \(first.rawValue)"
        case .month(let first): "month \(first)"
        }
    }
}
