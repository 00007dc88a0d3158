/// A network interface as the kernel describes it at one moment.
package struct NetworkLink: Hashable, Sendable {
    /// Stays the same while the interface lives; an interface that comes again gets another one.
    package var index: Int32
    /// As ``FilePath/display`` shows it: whoever may make interfaces may give them any bytes.
    package var name: String
    /// It can carry bytes now: switched on, with a carrier. What does not tell (tunnels, PPP) can.
    package var isUsable = true
    package var medium: Medium = .ethernet
    /// What kind of interface software made it: `bridge`, `bond`, `vlan`, `veth`, `wireguard`, `tun`; `nil` for most hardware.
    package var kind: String?
    /// `DEVTYPE` of its uevent: `wwan`, `wlan`, `bluetooth`, `bridge` …
    package var deviceType: String?
    /// The name of the kernel's driver for the hardware.
    package var driver: String?
    /// There is hardware behind it.
    package var hasDevice = false
    package var isOnUSB = false
    package var isWireless = false
    package var hardwareAddress: HardwareAddress?
    /// The interfaces that it stands on: the ports of a bridge, the slaves of a bond, what a VLAN is on. Ascending.
    package var lower: [Int32] = []
    /// Of a tunnel: the address that its packets are sent to; `nil` where the kernel does not tell, as of WireGuard and of
    /// programs.
    package var peer: IPAddress?
    /// Each with the length of its network.
    package var addresses: [IPSubnet] = []
    /// The name of the Wi-Fi that it is in: up to 32 bytes, of any kind.
    package var ssid: [UInt8]?
    /// Some route of the machine goes out over it: to a gateway, or to everywhere.
    package var leadsOut = false

    /// The type of its hardware addresses (`ARPHRD_…`, linux/if_arp.h).
    package enum Medium: Hashable, Sendable {
        /// Wi-Fi, bridges and most of what is virtual as well.
        case ethernet
        case loopback
        case ppp
        /// Bare packets: tunnels, and modems that carry IP alone.
        case bare
        case other(UInt16)
    }

    package init(index: Int32, name: String) {
        self.index = index
        self.name = name
    }
}

/// Where bytes leave the machine.
package struct NetworkPath: Hashable, Sendable {
    /// The interface's number.
    package var link: Int32
    /// Of the gateway on that link, when the route has one and it is known.
    package var gateway: HardwareAddress?
    /// The kernel would take it by itself; if not it is equal to the one that it would take.
    package var isOwn = true
    /// IPsec puts its packets into others, which may leave by another interface.
    package var isEncapsulated = false
    /// Interfaces by which its packets may leave as well: rules (`ip rule`) lead there, and nobody can tell whether they match.
    package var others: [Int32] = []
    /// Of its route: of equal ones that with the least comes first.
    package var metric: UInt32 = 0
    /// Of this machine, that packets come from; `nil` where that was not asked for.
    package var source: IPAddress?
    /// To which it leads; `nil` where that was not asked for.
    package var destination: IPAddress?

    package init(link: Int32, gateway: HardwareAddress? = nil) {
        self.link = link
        self.gateway = gateway
    }
}
