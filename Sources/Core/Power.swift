/// What `on_battery` says: what may go while the machine runs on its battery.
package enum BatteryUse: String, Hashable, Sendable, CaseIterable { case allow, pause }

/// What a machine with a battery runs on.
package struct Power: Hashable, Sendable {
    /// Nothing feeds it from outside.
    package var isOnBattery: Bool
    /// How full its batteries are, 0 to 100; `nil` where they do not say.
    package var percent: Int?
    /// When it was first seen to be so.
    package var since: WallTime

    package init(isOnBattery: Bool, percent: Int?, since: WallTime) {
        self.isOnBattery = isOnBattery
        self.percent = percent
        self.since = since
    }

    package func isSame(as other: Power) -> Bool { isOnBattery == other.isOnBattery && percent == other.percent }

    /// One thing that feeds the machine or that it runs on, as the kernel tells of it
    /// (Documentation/ABI/testing/sysfs-class-power).
    package enum Supply: Hashable, Sendable {
        /// From outside.
        case outer(isOnline: Bool)
        case battery(isDraining: Bool, percent: Int?)
    }

    /// - Returns: `nil` where there is no battery, and nothing to hold.
    package init?(_ supplies: [Supply], at now: WallTime) {
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
            since: now)
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
        if let minBattery, let percent = power.percent, percent < minBattery {
            holds.append(
                Hold(
                    .power, since: power.since,
                    text: "the battery is at \(percent) %: `min_battery: \(minBattery)%` of \(place)"))
        }
        return holds
    }
}
