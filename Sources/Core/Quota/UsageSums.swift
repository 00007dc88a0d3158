/// The usage of one hour, or of one day long ago, of one account.
package struct UsageRow: Hashable, Sendable {
    /// When the period began.
    package var at: WallTime
    package var account: SpendingAccount
    package var spending: Spending

    package init(at: WallTime, account: SpendingAccount, spending: Spending) {
        self.at = at
        self.account = account
        self.spending = spending
    }
}

/// How sums are grouped.
package enum UsageGrouping: String, Hashable, Sendable, Codable, CaseIterable {
    case destination, folder, network

    /// Empty for traffic without a file.
    func name(of account: SpendingAccount) -> String {
        switch self {
        case .destination: account.destination
        case .folder: account.folder ?? ""
        case .network: account.network.rawValue
        }
    }
}

/// The usage of a period of the calendar.
package struct UsageSum: Hashable, Sendable {
    package var stretch: Range<WallTime>
    package var total: Spending
    /// By the names of a grouping, sorted by bytes, the most first; empty without one.
    package var parts: [(name: String, spending: Spending)] { named.sorted(by: Self.isBefore).map { ($0, $1) } }
    private var named: [String: Spending] = [:]

    private static func isBefore(_ a: (key: String, value: Spending), _ b: (key: String, value: Spending)) -> Bool {
        a.value.bytes != b.value.bytes ? a.value.bytes > b.value.bytes : a.key < b.key
    }

    /// The last periods up to now, the oldest first.
    package static func stretches(of period: Period, _ count: Int, upTo now: WallTime, in zone: Zone) -> [Range<
        WallTime
    >] {
        var stretches: [Range<WallTime>] = []
        var moment = now
        for _ in 0..<count {
            let stretch = period.interval(around: moment, in: zone)
            stretches.append(stretch)
            moment = WallTime(milliseconds: stretch.lowerBound.milliseconds - 1)
        }
        return stretches.reversed()
    }

    /// - Parameter stretches: Sorted, the oldest first, without gaps.
    package static func sums(
        of rows: some Sequence<UsageRow>, in stretches: [Range<WallTime>], by grouping: UsageGrouping?
    ) -> [UsageSum] {
        var sums = stretches.map { UsageSum(stretch: $0, total: .none) }
        for row in rows {
            // The last one that begins before it.
            var (low, high) = (0, sums.count)
            while low < high {
                let middle = (low + high) / 2
                if sums[middle].stretch.lowerBound <= row.at { low = middle + 1 } else { high = middle }
            }
            let index = low - 1
            guard index >= 0, sums[index].stretch.contains(row.at) else { continue }
            sums[index].total += row.spending
            if let grouping { sums[index].named[grouping.name(of: row.account), default: .none] += row.spending }
        }
        return sums
    }
}
