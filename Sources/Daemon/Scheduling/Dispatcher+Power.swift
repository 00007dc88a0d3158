internal import Config
internal import Core
internal import Linux
internal import Store

// What the machine runs on.

/// Where that is read, and who tells when it changes.
struct PowerWatch {
    var supplies = PowerSupplies()
    /// The class of devices whose news are heard.
    var subsystem = "power_supply"
    /// `nil` while nobody needs to know.
    var news: DeviceNews?
    /// Why nothing is known, and why nobody tells, as it was said.
    var trouble: String?
    var newsTrouble: String?
}

extension Dispatcher {
    /// Between two looks while something waits or runs: not every driver tells of a battery's level without being asked.
    static let powerLook: Duration = .seconds(60)

    private var dependsOnPower: Bool { house.settings.allRules.contains(where: \.dependsOnPower) }

    func lookAtPower() async {
        guard dependsOnPower else {
            power = nil
            powerWatch.news = nil
            return
        }
        listenToPower()
        let supplies = powerWatch.supplies
        do {
            let found = Power(
                try await blocking { try supplies.all() }, at: house.clocks.wall(), after: power)
            if let found, let power, found.isSame(as: power) { return }
            power = found
            powerWatch.trouble = nil
        } catch {
            // What is not known holds nothing: there may be no battery at all.
            power = nil
            if powerWatch.trouble != "\(error)" {
                house.log.warning("what the machine runs on is not known", ["reason": "\(error)"])
            }
            powerWatch.trouble = "\(error)"
        }
    }

    /// From before the first look on, so that nothing is missed.
    private func listenToPower() {
        if powerWatch.news != nil { return }
        do {
            powerWatch.news = try DeviceNews(of: powerWatch.subsystem, threadName: "power-news") {
                [bell = house.dispatchBell] in
                bell.ring()
            }
            powerWatch.newsTrouble = nil
        } catch {
            if powerWatch.newsTrouble != "\(error)" {
                house.log.warning(
                    "a machine that goes on its battery will be noticed up to a minute late", ["reason": "\(error)"])
            }
            powerWatch.newsTrouble = "\(error)"
        }
    }

    /// When to look again; `nil` when nothing would follow from it.
    func nextPowerLook() async throws -> Duration? {
        guard power != nil, dependsOnPower else { return nil }
        let isWaiting = try await house.store.classes().contains { !$0.state.isTerminal }
        return isWaiting || !transfers.isEmpty ? Self.powerLook : nil
    }

    /// For tests, which make up what the machine runs on.
    ///
    /// - Parameter subsystem: Whose devices' news stand for those of batteries.
    func read(_ supplies: PowerSupplies, newsOf subsystem: String = "power_supply") {
        powerWatch.supplies = supplies
        powerWatch.subsystem = subsystem
        powerWatch.news = nil
    }
}
