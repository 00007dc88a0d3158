// Guesses about the cost of an interface from its own properties, if no other source determines it.

extension Metering {
    /// - Parameter isCarried: The interface stands on others, which decide where it gives no sign of its own.
    func guess(_ link: NetworkLink, isCarried: Bool) -> Opinion? {
        func says(_ metered: Metered, _ text: String) -> Opinion {
            Opinion(metered: metered, source: .guess, text: "\(link.name) \(text)")
        }
        if link.medium == .loopback { return says(.unmetered, "does not leave this machine") }
        if let sign = link.signOfModem { return says(.metered, "is a modem (\(sign))") }
        if link.medium == .ppp || link.name.hasPrefix("ppp") {
            return says(.metered, "is a dialled connection: a modem, or DSL")
        }
        if link.name.hasPrefix("bnep") || link.deviceType == "bluetooth" {
            return says(.metered, "goes through a phone over Bluetooth")
        }
        if isCarried { return nil }
        if let driver = link.driver, let sign = link.signOfPhone {
            return says(.metered, "is a phone on USB (driver \(driver)\(sign))")
        }
        if let address = link.addressOfHotspot { return says(.metered, "is in a phone's hotspot (address \(address))") }
        if let driver = link.driver, NetworkLink.phoneDrivers.contains(driver) {
            return says(.unknown, "is a phone on USB or an adapter (driver \(driver)), and it is unknown which")
        }
        if link.isWireless { return says(.unknown, "is Wi-Fi, and the network behind it is unknown") }
        if link.isTunnel { return says(.unknown, "is a tunnel, and it is unknown what carries it") }
        if link.kind == "veth" {
            return says(.unknown, "leads into a container or out of one, and it is unknown where to")
        }
        if link.isMadeBySoftware {
            return says(.unknown, "is made by software (\(link.kind ?? "")), and it is unknown what carries it")
        }
        // Where /sys is not visible, Wi-Fi would look the same except for its driver.
        if link.medium == .ethernet, link.hasDevice || link.driver != nil { return says(.unmetered, "is wired") }
        return says(.unknown, "is of a kind whose cost is unknown")
    }
}

extension NetworkLink {
    /// Drivers of modems (drivers/net/usb and drivers/net/wwan of the kernel).
    private static let modemDrivers: Set<String> = [
        "qmi_wwan", "cdc_mbim", "option", "huawei_cdc_ncm", "sierra_net", "hso", "mhi_wwan_mbim", "mhi_net", "iosm",
        "mtk_t7xx", "bam-dmux",
    ]
    /// Drivers of phones that share their connection, and of USB adapters that use the same protocols.
    static let phoneDrivers: Set<String> = ["rndis_host", "cdc_ether", "cdc_ncm", "cdc_eem", "ipheth"]

    /// The property that shows that it is a modem.
    var signOfModem: String? {
        if deviceType == "wwan" { return "DEVTYPE wwan" }
        if let driver, Self.modemDrivers.contains(driver) { return "driver \(driver)" }
        if kind == "wwan" || kind == "rmnet" { return "kind \(kind ?? "")" }
        if name.hasPrefix("wwan") { return "by its name" }
        return nil
    }

    /// The property besides the driver that shows that it is a phone; empty where the driver is enough.
    fileprivate var signOfPhone: String? {
        guard let driver, Self.phoneDrivers.contains(driver) else { return nil }
        // Only iPhones use this driver.
        if driver == "ipheth" { return "" }
        if let address = address(in: Self.usbTethering) ?? addressOfHotspot { return ", address \(address)" }
        // Phones make up their address; adapters have their maker's. The kernel names the former usb0 and the latter
        // eth0 for the same reason (drivers/net/usb/usbnet.c).
        if let hardwareAddress, hardwareAddress.isMadeUp { return ", locally administered address \(hardwareAddress)" }
        if name.hasPrefix("usb") { return ", by its name" }
        return nil
    }

    /// Its address, if phones assign such addresses in their hotspot.
    fileprivate var addressOfHotspot: IPSubnet? {
        guard isWireless || isOnUSB else { return nil }
        // iPhones use this network, with this length; a company's network may be larger.
        if let address = address(in: Self.iPhone), address.prefix == 28 { return address }
        return isWireless ? address(in: Self.androidHotspot) : nil
    }

    private func address(in subnet: IPSubnet?) -> IPSubnet? {
        addresses.first { subnet?.contains($0.address) == true }
    }

    private static let iPhone = IPSubnet("172.20.10.0/28")
    /// Android up to 10; later versions choose at random.
    private static let androidHotspot = IPSubnet("192.168.43.0/24")
    private static let usbTethering = IPSubnet("192.168.42.0/24")

    /// Whether it puts packets into other packets, which leave by some other interface.
    package var isTunnel: Bool {
        let kinds: Set<String> = [
            "tun", "wireguard", "amneziawg", "ovpn", "gre", "gretap", "erspan", "ip6gre", "ip6gretap", "ip6erspan",
            "ipip", "ip6tnl", "sit", "vti", "vti6", "xfrm", "vxlan", "geneve", "bareudp", "gtp", "l2tp", "fou", "amt",
        ]
        return kind.map { kinds.contains($0) } ?? false
    }

    /// A container or a virtual machine, which is attached to a bridge because it sends over it.
    package var isGuest: Bool { kind == "veth" || kind == "tun" || kind == "macvtap" }

    /// Whether its costs are those of another interface.
    var isMadeBySoftware: Bool { kind != nil && !hasDevice && signOfModem == nil }
}
