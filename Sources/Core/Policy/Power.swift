/// What `on_battery` says: what may go while the machine runs on its battery.
package enum BatteryUse: String, Hashable, Sendable, CaseIterable { case allow, pause }

/// What a machine with a battery runs on.
package struct Power: Hashable, Sendable {
    /// Nothing feeds it from outside.
    package var isOnBattery: Bool
    /// How full its batteries are, 0 to 100; `nil` where they do not say.
    package var percent: Int?
    /// What counts for ``PolicyRules/minBattery``: on the battery a level that rises counts only ``band`` later, so that one
    /// that wavers about a limit, as it does when the load goes, does not stop and start uploads again and again.
    package private(set) var steady: Int?
    /// When it was first seen to be so.
    package var since: WallTime

    /// Per cent.
    static let band = 2

    /// - Parameter before: What was seen last.
    package init(isOnBattery: Bool, percent: Int?, since: WallTime, after before: Power? = nil) {
        self.isOnBattery = isOnBattery
        self.percent = percent
        self.since = since
        steady = percent
        if isOnBattery, let percent, let last = before?.steady {
            steady = min(percent, max(last, percent - Self.band))
        }
    }

    package func isSame(as other: Power) -> Bool { isOnBattery == other.isOnBattery && percent == other.percent }

    /// One thing that feeds the machine or that it runs on, as the kernel tells of it
    /// (Documentation/ABI/testing/sysfs-class-power).
    package enum Supply: Hashable, Sendable {
        /// From outside.
        case outer(isOnline: Bool)
        case battery(isDraining: Bool, percent: Int?)
    }

    /// - Parameter before: What was seen last.
    /// - Returns: `nil` where there is no battery, and nothing to hold.
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
        // A battery that is full and feeds the machine through a gap of its charger is told by what is outside.
        self.init(
            isOnBattery: !isFed && isDraining, percent: levels.isEmpty ? nil : levels.reduce(0, +) / levels.count,
            since: now, after: before)
    }
}

extension PolicyRules {
    /// Something of it depends on what the machine runs on.
    package var dependsOnPower: Bool { onBattery == .pause || minBattery != nil }

    /// - Parameter place: Where it stands, for people.
    func powerHolds(_ place: String, in world: Admission.World) -> [Hold] {
        guard let power = world.power else { return [] }
        var holds: [Hold] = []
        if onBattery == .pause, power.isOnBattery {
            holds.append(
                Hold(
                    .power, since: power.since, text: "the machine runs on its battery: `on_battery: pause` of \(place)"
                ))
        }
        if let minBattery, let percent = power.percent, let steady = power.steady, steady < minBattery {
            let later = percent < minBattery ? "" : ", and it goes on at \(minBattery + Power.band) %"
            holds.append(
                Hold(
                    .power, since: power.since,
                    text: "the battery is at \(percent) %\(later): `min_battery: \(minBattery)%` of \(place)"))
        }
        return holds
    }
}
