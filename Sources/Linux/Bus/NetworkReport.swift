/// What NetworkManager and ModemManager say of the network, as far as they are there.
///
/// Names of interfaces are the kernel's.
package struct NetworkReport: Hashable, Sendable {
    package var networkManager = NetworkManager()
    package var modemManager = ModemManager()
    /// Why nobody can be asked, for a person; `nil` while the bus is there.
    package var trouble: String?

    package init() {}

    /// `NMMetered` of NetworkManager's D-Bus interface.
    package enum Metered: UInt32, Hashable, Sendable, CaseIterable {
        /// No opinion; also of a device that is not connected.
        case unknown
        /// Said by a person, in the profile of the connection.
        case yes, no
        /// What NetworkManager makes of the kind of connection and of what the network says of itself.
        case guessedYes, guessedNo
    }

    /// `NMConnectivityState` of NetworkManager's D-Bus interface.
    package enum Connectivity: UInt32, Hashable, Sendable, CaseIterable {
        /// It does not check, as on most servers: it may well work.
        case unknown
        case none
        /// A page that wants a person to log in.
        case portal
        /// A network that leads nowhere.
        case limited
        case full
    }

    package struct NetworkManager: Hashable, Sendable {
        /// It runs, and has answered.
        package var isRunning = false
        /// It has not yet looked at every device: what it has no opinion of, it may have one of soon.
        package var isStarting = false
        /// By the interface that carries their packets. See ``NetworkReport/metered(_:)``.
        package var devices: [String: Device] = [:]
        package var connectivity = Connectivity.unknown
        /// The names of Wi-Fis within reach, as of the last scan; only where they were asked for.
        package var heard: Set<[UInt8]> = []
        /// It runs and does not answer, for a person.
        package var trouble: String?
    }

    package struct Device: Hashable, Sendable {
        package var metered = Metered.unknown
        /// The profile that is in use; `nil` when the device is not connected.
        package var connection: Connection?
        /// The Wi-Fi network's name, which is bytes.
        package var ssid: [UInt8]?
        /// Said by a NetworkManager that runs, and not by one that is gone or has just been started again.
        package var isCurrent = true
    }

    package struct Connection: Hashable, Sendable {
        package var id: String
        package var uuid: String
    }

    package struct ModemManager: Hashable, Sendable {
        /// It runs, and has answered.
        package var isRunning = false
        /// The connected ones, by the interface that carries their packets. While it does not run, and until it has found a modem
        /// again, what it said last: see ``NetworkReport/bearer(_:)``.
        package var bearers: [String: Bearer] = [:]
        /// It runs and does not answer, for a person.
        package var trouble: String?
    }

    /// A data connection of a modem.
    package struct Bearer: Hashable, Sendable {
        /// In a network that is not the subscriber's own; `nil` when the modem does not say.
        package var isRoaming: Bool?
        /// The network's country and operator (MCC and MNC), as `26201`.
        package var operatorCode: String?
        /// Said by a ModemManager that runs, and not by one that is gone or has just been started again.
        package var isCurrent = true
    }

    /// What NetworkManager says of an interface.
    ///
    /// A service that is restarted is gone for a moment, and the network stays what it was. So what it said last holds until it
    /// says something else, but as a warning and not as a permission: *metered* stays, *not metered* is unknown.
    package func metered(_ interface: String) -> Metered {
        guard let device = networkManager.devices[interface] else { return .unknown }
        let permits = device.metered == .no || device.metered == .guessedNo
        return permits && !device.isCurrent ? .unknown : device.metered
    }

    /// The modem's connection that an interface belongs to, if it is one. As with ``metered(_:)``, *at home* does not
    /// outlive the service.
    package func bearer(_ interface: String) -> Bearer? {
        guard var bearer = modemManager.bearers[interface] else { return nil }
        if !bearer.isCurrent && bearer.isRoaming == false { bearer.isRoaming = nil }
        return bearer
    }
}

extension NetworkReport.NetworkManager {
    mutating func goAway(_ trouble: String?) {
        (isRunning, isStarting, connectivity, heard, self.trouble) = (false, false, .unknown, [], trouble)
        for name in devices.keys { devices[name]?.isCurrent = false }
    }

    /// While it starts, what it has no opinion of yet is as it was before.
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
    mutating func goAway(_ trouble: String?) {
        (isRunning, self.trouble) = (false, trouble)
        for name in bearers.keys { bearers[name]?.isCurrent = false }
    }

    /// One that has just been started looks for its modems for many seconds, while their connections go on: until it knows
    /// what became of an interface, that is as it was before.
    ///
    /// - Parameter found: The interfaces whose modems it has looked at.
    func completed(by earlier: Self, found: Set<String>) -> Self {
        var whole = self
        for (name, bearer) in earlier.bearers where !bearer.isCurrent && bearers[name] == nil && !found.contains(name) {
            whole.bearers[name] = bearer
        }
        return whole
    }
}
