/// NetworkManager's D-Bus interface (its reference manual, "D-Bus API Reference").
extension BusService {
    private static let manager = "org.freedesktop.NetworkManager"
    private static let managerPath = "/org/freedesktop/NetworkManager"
    private static let device = "org.freedesktop.NetworkManager.Device"
    private static let wireless = "org.freedesktop.NetworkManager.Device.Wireless"
    private static let accessPoint = "org.freedesktop.NetworkManager.AccessPoint"
    private static let connection = "org.freedesktop.NetworkManager.Connection.Active"
    private static let wifi: UInt32 = 2  // NM_DEVICE_TYPE_WIFI

    /// For each device. A town has more access points, and a rule cannot mean all of them.
    private static let maxAccessPoints = 64

    private static func accessPoints(_ path: String, _ known: Answers) -> [String] {
        Array((known.properties(path, wireless)["AccessPoints"]?.objects ?? []).prefix(maxAccessPoints))
    }

    /// Devices come and go with the manager's property `Devices`. There is no subscription to the wireless interface of
    /// a device, since its bit rate changes every few seconds; another network also changes the state of the device.
    ///
    /// - Parameter listsWiFi: Also the names of all Wi-Fis within reach: a question for each of them.
    static func networkManager(listsWiFi: Bool = false) -> BusService {
        BusService(
            name: manager, root: BusQuestion(path: managerPath, interface: manager),
            matchRules: [manager, device, connection].map {
                "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',arg0='\($0)'"
            },
            questions: { known in
                devices(known).flatMap { path -> [BusQuestion] in
                    let properties = known.properties(path, device)
                    var questions = [BusQuestion(path: path, interface: device)]
                    if let active = properties["ActiveConnection"]?.object {
                        questions.append(BusQuestion(path: active, interface: connection))
                    }
                    if properties["DeviceType"]?.unsigned == wifi {
                        questions.append(BusQuestion(path: path, interface: wireless))
                        let active = [known.properties(path, wireless)["ActiveAccessPoint"]?.object].compactMap { $0 }
                        let points = active + (listsWiFi ? accessPoints(path, known) : [])
                        questions += points.map { BusQuestion(path: $0, interface: accessPoint) }
                    }
                    return questions
                }
            }, isOneWhole: false,
            names: Set([
                "Devices", "Connectivity", "Startup", "Interface", "IpInterface", "Metered", "DeviceType",
                "ActiveConnection", "Id", "Uuid", "ActiveAccessPoint", "Ssid",
            ]).union(listsWiFi ? ["AccessPoints"] : []))
    }

    private static func devices(_ known: Answers) -> [String] {
        known.properties(managerPath, manager)["Devices"]?.objects ?? []
    }

    static func readNetworkManager(_ mirror: ServiceMirror) -> NetworkReport.NetworkManager {
        let known = mirror.answers
        let general = known.properties(managerPath, manager)
        var report = NetworkReport.NetworkManager(isRunning: true)
        report.isStarting = general["Startup"]?.boolValue ?? false
        report.connectivity = general["Connectivity"]?.unsigned.flatMap { .init(rawValue: $0) } ?? .unknown
        for path in devices(known) {
            let properties = known.properties(path, device)
            // A modem's control device has another name than the interface that it brings up.
            let names = [properties["IpInterface"]?.string, properties["Interface"]?.string]
            guard let name = names.compactMap({ $0 }).first(where: { !$0.isEmpty }) else { continue }
            var found = NetworkReport.Device()
            found.metered = properties["Metered"]?.unsigned.flatMap { .init(rawValue: $0) } ?? .unknown
            if let active = properties["ActiveConnection"]?.object {
                let profile = known.properties(active, connection)
                if let id = profile["Id"]?.string, let uuid = profile["Uuid"]?.string {
                    found.connection = .init(id: id, uuid: uuid)
                }
            }
            if let point = known.properties(path, wireless)["ActiveAccessPoint"]?.object,
                case .bytes(let ssid) = known.properties(point, accessPoint)["Ssid"], !ssid.isEmpty
            {
                found.ssid = ssid
            }
            for point in accessPoints(path, known) {
                if case .bytes(let ssid) = known.properties(point, accessPoint)["Ssid"], !ssid.isEmpty {
                    report.visibleSSIDs.insert(ssid)
                }
            }
            report.devices[name] = report.devices[name].map { stricter($0, found) } ?? found
        }
        return report
    }

    /// Several devices may share an interface's name: an Open vSwitch bridge and its port. The one that counts as
    /// metered is used.
    private static func stricter(_ a: NetworkReport.Device, _ b: NetworkReport.Device) -> NetworkReport.Device {
        let order: [NetworkReport.Metered] = [.yes, .guessedYes, .no, .guessedNo, .unknown]
        for metered in order {
            if a.metered == metered { return a }
            if b.metered == metered { return b }
        }
        return a
    }
}
