internal import Config
internal import Core
internal import Linux
internal import Store

// The power supply of the machine.

/// Reads the power supplies for the dispatcher, and reports when they change.
struct PowerWatch {
    var supplies = PowerSupplies()
    /// The class of devices whose events are heard.
    var subsystem = "power_supply"
    /// `nil` while no rule depends on power.
    var news: DeviceEvents?
    /// The logged reasons why nothing is known, and why no events are heard.
    var trouble: String?
    var newsTrouble: String?
}

extension Scheduler {
    /// The interval between readings while uploads wait or run: some drivers do not report a battery's level on their
    /// own.
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
            // An unknown supply holds nothing: there may be no battery at all.
            power = nil
            if powerWatch.trouble != "\(error)" {
                house.log.warning("what the machine runs on is not known", ["reason": "\(error)"])
            }
            powerWatch.trouble = "\(error)"
        }
    }

    /// Started before the first reading, so that no change is missed.
    private func listenToPower() {
        if powerWatch.news != nil { return }
        do {
            powerWatch.news = try DeviceEvents(of: powerWatch.subsystem, threadName: "power-news") {
                [signal = house.schedulingSignal] in
                signal.signal()
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

    /// When to read again; `nil` when nothing would follow from it.
    func nextPowerCheck() async throws -> Duration? {
        guard power != nil, dependsOnPower else { return nil }
        let isWaiting = try await house.store.classes().contains { !$0.state.isTerminal }
        return isWaiting || !transfers.isEmpty ? Self.powerLook : nil
    }

    /// For tests, which supply the state of the power.
    ///
    /// - Parameter subsystem: The class of devices whose events replace those of batteries.
    func read(_ supplies: PowerSupplies, newsOf subsystem: String = "power_supply") {
        powerWatch.supplies = supplies
        powerWatch.subsystem = subsystem
        powerWatch.news = nil
    }
}
