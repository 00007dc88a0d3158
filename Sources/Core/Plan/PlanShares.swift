/// Shares the rates among running uploads: equally, as far as their limits allow.
enum PlanShares {
    /// A limit on the sum of several classes.
    struct Cap: Hashable {
        /// Bytes a second.
        var rate: Double
        /// Indices of classes.
        var members: [Int]
    }

    /// Bytes a second for each upload of a class. All grow alike until a limit is reached; classes under that limit
    /// stay there, and the others continue to grow. A class without a limit gets nothing: its speed is unknown.
    ///
    /// - Parameter counts: Number of running uploads, by class.
    static func speeds(_ counts: [Int], _ caps: [Cap]) -> [Double] {
        var speeds = [Double](repeating: 0, count: counts.count)
        var isOpen = counts.map { $0 > 0 }
        while true {
            var lowest: (level: Double, cap: Cap)?
            for cap in caps {
                var (open, taken) = (0, 0.0)
                for member in cap.members {
                    if isOpen[member] {
                        open += counts[member]
                    } else {
                        taken += speeds[member] * Double(counts[member])
                    }
                }
                if open == 0 { continue }
                let level = max(0, cap.rate - taken) / Double(open)
                if lowest.map({ level < $0.level }) ?? true { lowest = (level, cap) }
            }
            guard let lowest else { return speeds }
            for member in lowest.cap.members where isOpen[member] {
                speeds[member] = lowest.level
                isOpen[member] = false
            }
        }
    }
}
