internal import Core
internal import Linux

/// The temperature of the machine, as far as a rule depends on it.
struct TemperatureMonitor: Sendable, RecordsChanges {
    /// The interval between readings while uploads wait or run: the kernel reports no change on its own.
    static let interval: Duration = .seconds(15)

    enum Reading: Hashable, Sendable {
        /// No rule depends on it.
        case notNeeded
        /// The hottest sensor in degrees Celsius; `nil` where none can be read.
        case hottest(Int?)
    }

    var changes: FactChanges = []
    /// Unreadable while no rule depends on it.
    private(set) var temperature = Temperature.unreadable {
        didSet { if temperature != oldValue { changes.insert(.policy) } }
    }
    /// The last state that was read, so that a sensor that fails once does not end the hysteresis.
    private var lastRead = Temperature.unreadable
    private let zones: ThermalZones
    /// Whether the log has said that no sensor can be read.
    private var isUnreadable = false

    /// - Parameter zones: Where the sensors are read.
    init(_ zones: ThermalZones = ThermalZones()) { self.zones = zones }

    /// Whether a rule depends on the temperature.
    static func isNeeded(by rules: [PolicyRules]) -> Bool {
        rules.contains { $0.conditions.contains(where: \.dependsOnTemperature) }
    }

    /// Reads the sensors if one of these rules depends on them.
    func reading(for rules: [PolicyRules]) async -> Reading {
        guard Self.isNeeded(by: rules) else { return .notNeeded }
        return .hottest(try? await blocking { zones.hottest })
    }

    mutating func record(_ reading: Reading, _ log: Log) {
        guard case .hottest(let degrees) = reading else {
            (temperature, lastRead, isUnreadable) = (.unreadable, .unreadable, false)
            return
        }
        temperature = Temperature(degrees, after: lastRead)
        if degrees != nil { lastRead = temperature }
        if degrees == nil, !isUnreadable {
            log.warning(
                "cannot read a temperature sensor, so rules with `hotter_than` apply",
                ["folder": "/sys/class/thermal"])
        }
        isUnreadable = degrees == nil
    }
}
