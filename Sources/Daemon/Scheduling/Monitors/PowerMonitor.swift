internal import Core
internal import Linux

/// The power supply of the machine, as far as a rule depends on it.
struct PowerMonitor: Sendable, RecordsChanges {
    /// The interval between readings while uploads wait or run: some drivers do not report a battery's level on their
    /// own.
    static let interval: Duration = .seconds(60)

    var changes: FactChanges = []
    /// `nil` without a battery, and while no rule depends on power.
    private(set) var power: Power? { didSet { if power != oldValue { changes.insert(.policy) } } }
    private(set) var supplies: PowerSupplies
    /// The class of devices whose events are received.
    private let subsystem: String
    /// `nil` while no rule depends on power.
    private var events: DeviceEvents?
    /// The logged reasons why the state is unknown, and why no events are received.
    private var readingTrouble: String?
    private var eventsTrouble: String?

    /// - Parameters:
    ///   - supplies: Where the power supplies are read.
    ///   - subsystem: The class of devices whose events report a change.
    init(_ supplies: PowerSupplies = PowerSupplies(), eventsOf subsystem: String = "power_supply") {
        self.supplies = supplies
        self.subsystem = subsystem
    }

    /// Drops the known state and stops receiving events, because no rule depends on power any more.
    mutating func reset() {
        power = nil
        events = nil
    }

    /// Receives the events of power supplies from now on. Called before the first reading, so that no change is missed.
    mutating func listen(_ log: Log, onEvent: @escaping @Sendable () -> Void) {
        if events != nil { return }
        do {
            events = try DeviceEvents(of: subsystem, threadName: "power-events") { onEvent() }
            eventsTrouble = nil
        } catch {
            if eventsTrouble != "\(error)" {
                log.warning(
                    "cannot watch the power supply; a change to battery is noticed up to a minute late",
                    ["reason": "\(error)"])
            }
            eventsTrouble = "\(error)"
        }
    }

    func stop() { events?.stop() }

    /// Wakes the scheduler, which reads the supplies: one of them has reported a change. The change is not known before
    /// that, so no fact records this wake-up.
    mutating func wakeForReading() { changes.insert(.scheduling) }

    /// Records a reading of the supplies.
    mutating func record(_ reading: Result<[Power.Supply], any Error>, at now: WallTime, _ log: Log) {
        switch reading {
        case .success(let supplies):
            let found = Power(supplies, at: now, after: power)
            if let found, let power, found.isSame(as: power) { return }
            power = found
            readingTrouble = nil
        case .failure(let error):
            // An unknown supply holds nothing: there may be no battery at all.
            power = nil
            if readingTrouble != "\(error)" {
                log.warning("cannot determine whether the machine runs on battery", ["reason": "\(error)"])
            }
            readingTrouble = "\(error)"
        }
    }
}
