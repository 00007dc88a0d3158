/// The power source of a machine with a battery.
package struct Power: Hashable, Sendable {
    /// No external source feeds it.
    package var isOnBattery: Bool
    /// The charge of its batteries, 0 to 100; `nil` where they do not report it.
    package var percent: Int?
    /// The level for `battery_below`. On battery, a rising level counts only ``hysteresis`` later. Otherwise
    /// a level that wavers around a limit, as it does when the load changes, would stop and start uploads again and
    /// again.
    package private(set) var levelWithHysteresis: Int?
    /// When this state was first seen.
    package var since: WallTime

    /// In per cent.
    static let hysteresis = 2

    /// - Parameter before: The previous state.
    package init(isOnBattery: Bool, percent: Int?, since: WallTime, after before: Power? = nil) {
        self.isOnBattery = isOnBattery
        self.percent = percent
        self.since = since
        levelWithHysteresis = percent
        if isOnBattery, let percent, let last = before?.levelWithHysteresis {
            levelWithHysteresis = min(percent, max(last, percent - Self.hysteresis))
        }
    }

    package func isSame(as other: Power) -> Bool { isOnBattery == other.isOnBattery && percent == other.percent }

    /// A source that feeds the machine, or a battery, as the kernel reports it
    /// (Documentation/ABI/testing/sysfs-class-power).
    package enum Supply: Hashable, Sendable {
        /// An external source.
        case outer(isOnline: Bool)
        case battery(isDraining: Bool, percent: Int?)
    }

    /// - Parameter before: The previous state.
    /// - Returns: `nil` where there is no battery, so that no rule applies.
    package init?(_ supplies: [Supply], at now: WallTime, after before: Power? = nil) {
        var (isFed, hasBattery, isDraining) = (false, false, false)
        var levels: [Int] = []
        for supply in supplies {
            switch supply {
            case .outer(let isOnline): isFed = isFed || isOnline
            case .battery(let drains, let percent):
                hasBattery = true
                isDraining = isDraining || drains
                if let percent { levels.append(min(max(percent, 0), 100)) }
            }
        }
        guard hasBattery else { return nil }
        // A full battery may feed the machine while its charger pauses, so the external source decides.
        self.init(
            isOnBattery: !isFed && isDraining, percent: levels.isEmpty ? nil : levels.reduce(0, +) / levels.count,
            since: now, after: before)
    }
}

extension PolicyRules {
    /// Whether a rule depends on the power source.
    package var dependsOnPower: Bool { conditions.contains(where: \.dependsOnPower) }
}
