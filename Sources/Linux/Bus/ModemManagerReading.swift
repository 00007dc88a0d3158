/// ModemManager's D-Bus interface (its reference manual, "D-Bus API Reference").
extension BusService {
    private static let modems = "/org/freedesktop/ModemManager1"
    private static let modem = "org.freedesktop.ModemManager1.Modem"
    private static let mobile = "org.freedesktop.ModemManager1.Modem.Modem3gpp"
    private static let bearer = "org.freedesktop.ModemManager1.Bearer"

    /// There is no subscription to a modem's properties, which include the strength of its signal, or to a bearer's,
    /// which count seconds and bytes. A bearer connects and disconnects with the state of its modem.
    static let modemManager = BusService(
        name: "org.freedesktop.ModemManager1", root: BusQuestion(path: modems, interface: nil),
        matchRules: [
            "path='\(modems)',interface='org.freedesktop.DBus.ObjectManager'",
            "interface='\(modem)',member='StateChanged'",
            "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',arg0='\(mobile)'",
        ],
        questions: { known in
            interfaces(known).flatMap { bearers($0) }.map { BusQuestion(path: $0, interface: bearer) }
        }, isOneWhole: true,
        names: [
            modem, mobile, "Bearers", "RegistrationState", "OperatorCode", "Connected", "Interface", "Ports",
            "State",
        ])

    /// The interfaces of each modem, with their properties.
    private static func interfaces(_ known: Answers) -> [[String: BusValue]] {
        guard case .value(let value) = known[modemManager.root] else { return [] }
        return (value.byObject ?? [:]).values.compactMap(\.byName)
    }

    private static func bearers(_ modem: [String: BusValue]) -> [String] {
        modem[Self.modem]?.byName?["Bearers"]?.objects ?? []
    }

    static func readModemManager(_ mirror: ServiceMirror) -> NetworkReport.ModemManager {
        var report = NetworkReport.ModemManager(isRunning: true)
        for modem in interfaces(mirror.answers) {
            let network = modem[mobile]?.byName ?? [:]
            let found = NetworkReport.Bearer(
                isRoaming: network["RegistrationState"]?.unsigned.flatMap(isRoaming),
                operatorCode: network["OperatorCode"]?.string.flatMap { $0.isEmpty ? nil : $0 })
            for path in bearers(modem) {
                let properties = mirror.answers.properties(path, bearer)
                guard properties["Connected"]?.boolValue == true, let name = properties["Interface"]?.string,
                    !name.isEmpty
                else { continue }
                // If two bearers use one interface, the one that costs more counts.
                if report.bearers[name]?.isRoaming != true { report.bearers[name] = found }
            }
        }
        return report
    }

    /// The interfaces of modems that ModemManager has examined: it knows whether they are connected.
    static func foundByModemManager(_ mirror: ServiceMirror) -> Set<String> {
        var found: Set<String> = []
        for case let modem? in interfaces(mirror.answers).map({ $0[Self.modem]?.byName }) {
            // `MMModemState`: below 3 ("disabled") the modem has failed, is unknown, is being examined, or is locked.
            guard let state = modem["State"]?.signed, state >= 3 else { continue }
            found.formUnion((modem["Ports"]?.elements ?? []).compactMap { $0.elements?.first?.string })
        }
        return found
    }

    /// `MMModem3gppRegistrationState`: registered for everything, for messages alone, or for everything except falling
    /// back to calls.
    private static func isRoaming(_ state: UInt32) -> Bool? {
        switch state {
        case 1, 6, 9: false
        case 5, 7, 10: true
        default: nil  // not registered, searching, denied, emergency calls only, unknown
        }
    }
}
