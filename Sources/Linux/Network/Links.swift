package import Core
internal import Glibc

/// The network interfaces of this machine, or of the container that the process is in (rtnetlink(7), sysfs). Needs no
/// privileges.
///
/// It is a snapshot; ``NetworkEvents`` reports when it is out of date.
package enum Links {
    /// All of them, by number.
    package static func all() throws(SystemError) -> [NetworkLink] {
        try all(devices: LinkDevices())
    }

    /// - Parameter devices: Sysfs data of each.
    static func all(devices: LinkDevices) throws(SystemError) -> [NetworkLink] {
        let socket = try NetlinkSocket()
        let found = Dictionary(try facts(by: socket).map { ($0.index, $0) }, uniquingKeysWith: { $1 })
        let addresses = try addresses(by: socket)
        let outgoing = try Routes.outgoing(by: socket)
        let wireless = Wireless.names()
        let numbers = Dictionary(found.values.map { ($0.name, $0.index) }, uniquingKeysWith: { first, _ in first })

        var links: [NetworkLink] = []
        for facts in found.values.sorted(by: { $0.index < $1.index }) {
            let device = devices.device(named: facts.name, index: facts.index)
            var link = facts.link
            link.deviceType = device.type
            link.driver = device.driver
            link.hasDevice = device.isReal
            link.isOnUSB = device.isOnUSB
            link.isWireless = device.isWireless || wireless[facts.index] != nil
            link.ssid = wireless[facts.index]?.ssid
            link.addresses = addresses[facts.index] ?? []
            link.leadsOut = outgoing.contains(facts.index)
            var lower = Set(found.values.filter { $0.master == facts.index }.map(\.index))
            if let below = facts.below, found[below] != nil { lower.insert(below) }
            lower.formUnion(device.lower.compactMap { numbers[$0] })
            link.lower = lower.sorted()
            links.append(link)
        }
        return links
    }

    private static func facts(by socket: borrowing NetlinkSocket) throws(SystemError) -> [LinkMessage] {
        let question = NetlinkRequest(
            Netlink.Kind.getLink, dump: true, header: [0, 0, 0, 0] + raw(Int32(0)) + raw(UInt64(0)))
        return try socket.query(question, about: "links").compactMap { LinkMessage($0) }
    }

    /// The ports of a bridge, the slaves of a bond.
    static func ports(of index: Int32, by socket: borrowing NetlinkSocket) throws(SystemError) -> [LinkMessage] {
        try facts(by: socket).filter { $0.master == index }
    }

    /// One of them; `nil` when it does not exist.
    static func facts(of index: Int32, by socket: borrowing NetlinkSocket) throws(SystemError) -> LinkMessage? {
        let question = NetlinkRequest(
            Netlink.Kind.getLink, header: [0, 0, 0, 0] + raw(index) + raw(UInt64(0)))
        do {
            return try socket.query(question, about: "interface \(index)").lazy.compactMap { LinkMessage($0) }.first
        } catch {
            if error.code == ENODEV { return nil }
            throw error
        }
    }

    private static func addresses(by socket: borrowing NetlinkSocket) throws(SystemError) -> [Int32: [IPSubnet]] {
        let question = NetlinkRequest(Netlink.Kind.getAddress, dump: true, header: [0, 0, 0, 0] + raw(UInt32(0)))
        let addresses = try socket.query(question, about: "addresses").compactMap { address(in: $0) }
        return Dictionary(grouping: addresses, by: \.link).mapValues { $0.map(\.address) }
    }

    /// The contents of a message about an address (`struct ifaddrmsg`).
    static func address(in message: NetlinkMessage) -> (link: Int32, address: IPSubnet)? {
        guard message.type == Netlink.Kind.newAddress, let length = message.body.number(at: 1, as: UInt8.self),
            let link = message.body.number(at: 4, as: Int32.self)
        else { return nil }
        let attributes = message.attributes(after: 8)
        // On a point-to-point link the first is the other end's address, and the second our own.
        guard let bytes = attributes[2] ?? attributes[1], let address = IPAddress(bytes),
            let subnet = IPSubnet(address, prefix: Int(length))
        else { return nil }
        return (link, subnet)
    }
}

/// The contents of a message about an interface (`struct ifinfomsg`, linux/if_link.h).
struct LinkMessage: Hashable {
    var index: Int32
    var name: FilePath
    var medium: NetworkLink.Medium
    var isUsable: Bool
    var kind: String?
    var hardwareAddress: HardwareAddress?
    var master: Int32?
    /// The interface below; `nil` if there is none, or if it is in another namespace.
    var below: Int32?
    /// For a tunnel, the target of its packets.
    var tunnelEnds: TunnelEnds?
    var peer: IPAddress? { tunnelEnds?.peer }
    /// Bytes that a tunnel adds to a packet, without its own IP header; `nil` if it is no tunnel.
    var tunnelHeader: Int64?
    /// The longest packet that it accepts.
    var mtu: UInt32?
    /// The message only reports events of a Wi-Fi driver, such as scans.
    var isWirelessEvent: Bool

    /// - Returns: `nil` when it is another message or too short.
    init?(_ message: NetlinkMessage) {
        guard message.type == Netlink.Kind.newLink || message.type == Netlink.Kind.deleteLink,
            let family = message.body.first, family == UInt8(AF_UNSPEC),
            let type = message.body.number(at: 2, as: UInt16.self),
            let index = message.body.number(at: 4, as: Int32.self),
            let flags = message.body.number(at: 8, as: UInt32.self)
        else { return nil }
        let attributes = message.attributes(after: 16)
        self.index = index
        name = FilePath(bytes: attributes.text(3) ?? [])
        medium = NetworkLink.Medium(type)
        // RFC 2863 by way of Documentation/networking/operstates.rst: 6 is up, and 0 is unknown.
        let state = attributes.number(16, as: UInt8.self) ?? 0
        let isRunning = flags & 0x41 == 0x41
        isUsable = isRunning && (state == 6 || state == 0)
        kind = attributes.nested(18)?.text(1).map { printable(String(decoding: $0, as: UTF8.self)) }
        hardwareAddress = attributes[1].flatMap { HardwareAddress($0) }
        master = attributes.number(10, as: Int32.self)
        // The other end of a veth does not carry it, and a number from another namespace has no meaning here.
        let isElsewhere = attributes.contains(37) || kind == "veth"
        below = isElsewhere ? nil : attributes.number(5, as: Int32.self).flatMap { $0 == index || $0 == 0 ? nil : $0 }
        isWirelessEvent = attributes.contains(11)
        mtu = attributes.number(4, as: UInt32.self)
        let data = attributes.nested(18)?.nested(2)
        tunnelEnds = kind.flatMap { TunnelEnds(kind: $0, data) }
        tunnelHeader = kind.flatMap { TunnelHeader.length(kind: $0, data) }
    }

    /// As far as netlink reports it.
    var link: NetworkLink {
        var link = NetworkLink(index: index, name: name.display)
        link.isUsable = isUsable
        link.medium = medium
        link.kind = kind
        link.hardwareAddress = hardwareAddress
        link.peer = peer
        return link
    }
}

extension NetworkLink.Medium {
    /// - Parameter type: `ARPHRD_…` of linux/if_arp.h.
    fileprivate init(_ type: UInt16) {
        switch type {
        case 1: self = .ethernet
        case 512: self = .ppp
        case 519, 0xFFFE: self = .bare
        case 772: self = .loopback
        default: self = .other(type)
        }
    }
}
