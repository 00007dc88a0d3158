/// A person's rule about some networks. All of its conditions must hold; without any, it applies to every network.
package struct NetworkRule: Hashable, Sendable {
    /// The name for conditions. Several rules may have the same one: the network is any of them.
    package var name: String?
    /// A glob for names of interfaces: `wwan*`.
    package var interface: String?
    /// The exact name of a Wi-Fi.
    package var ssid: String?
    /// The hardware address of the route's gateway.
    package var gateway: HardwareAddress?
    /// The network in which the interface has an address.
    package var subnet: IPSubnet?
    /// Whether the modem is in another provider's network. Where that is unknown, a rule that forbids or makes it cost
    /// assumes roaming, and a rule that permits assumes none.
    package var isRoaming: Bool?

    /// `nil` has no opinion, and leaves it to the next rule.
    package var isMetered: Bool?
    package var isAllowed: Bool?

    package init(
        name: String? = nil, interface: String? = nil, ssid: String? = nil, gateway: HardwareAddress? = nil,
        subnet: IPSubnet? = nil,
        isRoaming: Bool? = nil, isMetered: Bool? = nil, isAllowed: Bool? = nil
    ) {
        self.name = name
        self.interface = interface
        self.ssid = ssid
        self.gateway = gateway
        self.subnet = subnet
        self.isRoaming = isRoaming
        self.isMetered = isMetered
        self.isAllowed = isAllowed
    }

    /// - Parameters:
    ///   - roaming: Whether the modem roams; `nil` when that is unknown, or there is no modem.
    ///   - mayRoam: It is a modem with unknown roaming state, and that matters.
    package func matches(
        _ link: NetworkLink, gateway router: HardwareAddress?, isRoaming roaming: Bool? = nil, mayRoam: Bool = false
    ) -> Bool {
        if let interface, !Glob(interface).matches(FilePath(link.name)) { return false }
        if let ssid, link.ssid != Array(ssid.utf8) { return false }
        if let gateway, gateway != router { return false }
        if let subnet, !link.addresses.contains(where: { subnet.contains($0.address) }) { return false }
        if let isRoaming, isRoaming != roaming, roaming != nil || !mayRoam { return false }
        return true
    }

    /// The line of YAML: `{interface: "wwan*", metered: true}`.
    package var yaml: String {
        var fields: [String] = []
        if let name { fields.append("name: \(name)") }
        if let interface { fields.append("interface: \(quoted(interface))") }
        if let ssid { fields.append("ssid: \(quoted(ssid))") }
        if let gateway { fields.append("gateway: \"\(gateway)\"") }
        if let subnet { fields.append("subnet: \"\(subnet)\"") }
        if let isRoaming { fields.append("roaming: \(isRoaming)") }
        if let isMetered { fields.append("metered: \(isMetered)") }
        if let isAllowed { fields.append("allowed: \(isAllowed)") }
        return "{\(fields.joined(separator: ", "))}"
    }

    /// A double-quoted scalar of YAML (1.2, section 7.3.1). It escapes the characters that act on a line or a terminal.
    private func quoted(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            if scalar == "\"" || scalar == "\\" {
                out += "\\"
                out.unicodeScalars.append(scalar)
            } else if printable(String(scalar)) == String(scalar) {
                out.unicodeScalars.append(scalar)
            } else {
                let digits = String(scalar.value, radix: 16)
                out += "\\U" + String(repeating: "0", count: 8 - digits.count) + digits
            }
        }
        return out + "\""
    }
}
