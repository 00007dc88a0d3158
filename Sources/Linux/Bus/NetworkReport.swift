/// The state of the network according to NetworkManager and ModemManager, as far as they exist.
///
/// Names of interfaces are the kernel's.
package struct NetworkReport: Hashable, Sendable {
    package var networkManager = NetworkManager()
    package var modemManager = ModemManager()
    /// Why the services cannot be queried, for a person; `nil` while the bus works.
    package var trouble: String?

    package init() {}

    /// `NMMetered` of NetworkManager's D-Bus interface.
    package enum Metered: UInt32, Hashable, Sendable, CaseIterable {
        /// No opinion; also for a device that is not connected.
        case unknown
        /// Set by a person, in the profile of the connection.
        case yes, no
        /// NetworkManager's guess from the kind of connection and the network's own information.
        case guessedYes, guessedNo
    }

    /// `NMConnectivityState` of NetworkManager's D-Bus interface.
    package enum Connectivity: UInt32, Hashable, Sendable, CaseIterable {
        /// NetworkManager does not check, as on most servers: the network may well work.
        case unknown
        case none
        /// A page requires a person to log in.
        case portal
        /// The network has no connection to the Internet.
        case limited
        case full
    }

    package struct NetworkManager: Hashable, Sendable {
        /// The service runs, and has answered.
        package var isRunning = false
        /// The service has not examined every device yet: a missing opinion may follow soon.
        package var isStarting = false
        /// By the interface that carries their packets. See ``NetworkReport/metered(_:)``.
        package var devices: [String: Device] = [:]
        package var connectivity = Connectivity.unknown
        /// The names of Wi-Fis within reach, as of the last scan; only where they were requested.
        package var visibleSSIDs: Set<[UInt8]> = []
        /// The service runs and does not answer, for a person.
        package var trouble: String?
    }

    package struct Device: Hashable, Sendable {
        package var metered = Metered.unknown
        /// The active profile; `nil` when the device is not connected.
        package var connection: Connection?
        /// The Wi-Fi network's name, which is bytes.
        package var ssid: [UInt8]?
        /// The value comes from a running NetworkManager, and not from before it stopped or was restarted.
        package var isCurrent = true
    }

    package struct Connection: Hashable, Sendable {
        package var id: String
        package var uuid: String
    }

    package struct ModemManager: Hashable, Sendable {
        /// The service runs, and has answered.
        package var isRunning = false
        /// Connected bearers, by the interface that carries their packets. While the service does not run, and until it
        /// has found a modem again, these are the last known values: see ``NetworkReport/bearer(_:)``.
        package var bearers: [String: Bearer] = [:]
        /// The service runs and does not answer, for a person.
        package var trouble: String?
    }

    /// A data connection of a modem.
    package struct Bearer: Hashable, Sendable {
        /// Whether the network is not the subscriber's own; `nil` if the modem does not report it.
        package var isRoaming: Bool?
        /// The network's country and operator (MCC and MNC), as `26201`.
        package var operatorCode: String?
        /// The value comes from a running ModemManager, and not from before it stopped or was restarted.
        package var isCurrent = true
    }

    /// NetworkManager's opinion about an interface.
    ///
    /// A service that is restarted is gone for a moment, while the network stays the same. So its last opinion holds
    /// until there is a new one, but only as a warning and not as a permission: *metered* stays, *not metered* becomes
    /// unknown.
    package func metered(_ interface: String) -> Metered {
        guard let device = networkManager.devices[interface] else { return .unknown }
        let permits = device.metered == .no || device.metered == .guessedNo
        return permits && !device.isCurrent ? .unknown : device.metered
    }

    /// The modem's connection that an interface belongs to, if there is one. As with ``metered(_:)``, *at home* ends
    /// when the service stops.
    package func bearer(_ interface: String) -> Bearer? {
        guard var bearer = modemManager.bearers[interface] else { return nil }
        if !bearer.isCurrent && bearer.isRoaming == false { bearer.isRoaming = nil }
        return bearer
    }
}

extension NetworkReport.NetworkManager {
    mutating func markGone(_ trouble: String?) {
        (isRunning, isStarting, connectivity, visibleSSIDs, self.trouble) = (false, false, .unknown, [], trouble)
        for name in devices.keys { devices[name]?.isCurrent = false }
    }

    /// While the service starts, an opinion that is still missing stays as it was before.
    func completed(by earlier: Self) -> Self {
        guard isStarting else { return self }
        var whole = self
        for (name, device) in earlier.devices where (whole.devices[name]?.metered ?? .unknown) == .unknown {
            whole.devices[name] = device
            whole.devices[name]?.isCurrent = false
        }
        return whole
    }
}

extension NetworkReport.ModemManager {
    mutating func markGone(_ trouble: String?) {
        (isRunning, self.trouble) = (false, trouble)
        for name in bearers.keys { bearers[name]?.isCurrent = false }
    }

    /// A service that has just been started looks for its modems for many seconds, while their connections continue.
    /// Until it knows an interface again, the interface's state stays as it was before.
    ///
    /// - Parameter found: The interfaces whose modems it has examined.
    func completed(by earlier: Self, found: Set<String>) -> Self {
        var whole = self
        for (name, bearer) in earlier.bearers where !bearer.isCurrent && bearers[name] == nil && !found.contains(name) {
            whole.bearers[name] = bearer
        }
        return whole
    }
}
