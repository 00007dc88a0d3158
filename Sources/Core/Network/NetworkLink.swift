/// A network interface as the kernel describes it at one moment.
package struct NetworkLink: Hashable, Sendable {
    /// Constant while the interface exists; an interface that reappears gets another one.
    package var index: Int32
    /// In the form of ``FilePath/display``: the name may contain any bytes.
    package var name: String
    /// Whether it can carry bytes now: switched on, with a carrier. Interfaces that do not report it (tunnels, PPP)
    /// count as usable.
    package var isUsable = true
    package var medium: Medium = .ethernet
    /// The kind of a virtual interface: `bridge`, `bond`, `vlan`, `veth`, `wireguard`, `tun`; `nil` for most hardware.
    package var kind: String?
    /// `DEVTYPE` of its uevent: `wwan`, `wlan`, `bluetooth`, `bridge` …
    package var deviceType: String?
    /// The name of the kernel's driver for the hardware.
    package var driver: String?
    /// The interface has hardware.
    package var hasDevice = false
    package var isOnUSB = false
    package var isWireless = false
    package var hardwareAddress: HardwareAddress?
    /// The interfaces that it stands on: the ports of a bridge, the slaves of a bond, the interface of a VLAN.
    /// Ascending.
    package var lower: [Int32] = []
    /// For a tunnel, the address to which its packets are sent; `nil` if the kernel does not report it, as for
    /// WireGuard and for programs.
    package var peer: IPAddress?
    /// Each with the prefix length of its network.
    package var addresses: [IPSubnet] = []
    /// The name of its present Wi-Fi: up to 32 arbitrary bytes.
    package var ssid: [UInt8]?
    /// A route of the machine leads out over it: to a gateway, or to every address.
    package var leadsOut = false

    /// The type of its hardware addresses (`ARPHRD_…`, linux/if_arp.h).
    package enum Medium: Hashable, Sendable {
        /// Wi-Fi, bridges and most virtual interfaces as well.
        case ethernet
        case loopback
        case ppp
        /// Packets without a link header: tunnels, and modems that carry only IP.
        case bare
        case other(UInt16)
    }

    package init(index: Int32, name: String) {
        self.index = index
        self.name = name
    }
}

/// A route by which bytes leave the machine.
package struct NetworkPath: Hashable, Sendable {
    /// The interface's number.
    package var link: Int32
    /// The gateway on that link, when the route has one and it is known.
    package var gateway: HardwareAddress?
    /// The kernel's own choice; otherwise it is equal to the one that the kernel would choose.
    package var isOwn = true
    /// IPsec puts its packets into others, which may leave by another interface.
    package var isEncapsulated = false
    /// Interfaces by which its packets may leave as well: rules (`ip rule`) lead there, and it is unknown whether they
    /// match.
    package var others: [Int32] = []
    /// The metric of its route: among equal routes the smallest comes first.
    package var metric: UInt32 = 0
    /// The source address of its packets on this machine; `nil` where it was not requested.
    package var source: IPAddress?
    /// The address to which it leads; `nil` where it was not requested.
    package var destination: IPAddress?
    /// The destination is in a network of the link, and packets go there without a router; `nil` where its address is
    /// not known.
    package var isOnLink: Bool?

    package init(link: Int32, gateway: HardwareAddress? = nil) {
        self.link = link
        self.gateway = gateway
    }
}
