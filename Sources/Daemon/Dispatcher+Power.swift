internal import Config
internal import Core
internal import Linux
internal import Store

// What the machine runs on.

extension Dispatcher {
    /// Between two looks while something waits or runs: the kernel tells of a battery's level only when it is asked.
    static let powerLook: Duration = .seconds(60)

    private var dependsOnPower: Bool { house.settings.allRules.contains(where: \.dependsOnPower) }

    func lookAtPower() async {
        guard dependsOnPower else {
            power = nil
            return
        }
        let supplies = powerSupplies
        do {
            let found = Power(
                try await blocking { try supplies.all() }, at: house.clocks.wall(), after: power)
            if let found, let power, found.isSame(as: power) { return }
            power = found
            powerTrouble = nil
        } catch {
            // What is not known holds nothing: there may be no battery at all.
            power = nil
            if powerTrouble != "\(error)" {
                house.log.warning("what the machine runs on is not known", ["reason": "\(error)"])
            }
            powerTrouble = "\(error)"
        }
    }

    /// When to look again; `nil` when nothing would follow from it.
    func nextPowerLook() async throws -> Duration? {
        guard power != nil, dependsOnPower else { return nil }
        let isWaiting = try await house.store.classes().contains { !$0.state.isTerminal }
        return isWaiting || !transfers.isEmpty ? Self.powerLook : nil
    }

    /// For tests, which make up what the machine runs on.
    func read(_ supplies: PowerSupplies) { powerSupplies = supplies }
}
