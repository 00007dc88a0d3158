internal import CLinux
package import Core
internal import Glibc

/// The route of packets to an address, as the kernel would send them now.
package struct NetworkRoute: Hashable, Sendable {
    /// The number of the interface; 1, the loopback one, for the machine's own addresses.
    package var link: Int32
    /// The next hop; `nil` where the destination itself is on the link.
    package var gateway: IPAddress?
    /// `nil` when it is unknown: while nothing was sent to the gateway, and on links without such addresses.
    package var gatewayHardware: HardwareAddress?
    /// The source address of the packets.
    package var source: IPAddress?
    /// Packets go nowhere: the interface is down or has no carrier. The kernel keeps IPv4 routes when a cable is
    /// pulled, and continues to choose them.
    package var isDead: Bool
    /// The longest packet of the route, where the route itself has one.
    var mtu: Int?

    /// The next hop, where that is not the destination itself.
    package var router: Neighbour? { gateway.map { Neighbour(link: link, address: $0) } }

    package var path: NetworkPath { NetworkPath(link: link, gateway: gatewayHardware) }
}

/// A host on a link.
package struct Neighbour: Hashable, Sendable {
    package var link: Int32
    package var address: IPAddress

    package init(link: Int32, address: IPAddress) {
        self.link = link
        self.address = address
    }
}

/// Questions to the kernel about routes (rtnetlink(7)). They need no privileges, and follow policy routing.
///
/// A question is a few datagrams to the kernel and back, but may wait while another process changes the network's
/// configuration.
package enum Routes {
    /// Queries the kernel for the route of packets to `address`.
    ///
    /// - Parameters:
    ///   - port: The TCP port at the destination, which policy routing may use.
    ///   - link: Gives the route of a socket that is bound to this interface (`SO_BINDTODEVICE`).
    /// - Returns: `nil` when there is no route, a route that refuses, no such protocol, or no such interface.
    package static func route(
        to address: IPAddress, port: UInt16? = nil, over link: Int32? = nil
    ) throws(SystemError) -> NetworkRoute? {
        try route(RouteQuestion(address: address, port: port, link: link), by: try NetlinkSocket())
    }

    static func route(
        _ question: RouteQuestion, by socket: borrowing NetlinkSocket
    ) throws(SystemError) -> NetworkRoute? {
        let (address, link) = (question.address, question.link)
        guard let facts = try facts(question, by: socket), let hop = facts.hops.first else { return nil }
        switch facts.type {
        case .blackhole, .unreachable, .prohibit, .throwing: return nil
        case .local:
            return NetworkRoute(link: 1, gateway: nil, gatewayHardware: nil, source: facts.source, isDead: false)
        case .unicast, .other: break
        }
        // For an interface without any route there, the kernel assumes in IPv4 that every host is on its link. Then the
        // table has no entry either.
        if link != nil, hop.gateway == nil, !address.isIPv6, try entry(question, by: socket) == nil { return nil }
        var route = NetworkRoute(
            link: hop.link, gateway: hop.gateway, gatewayHardware: nil, source: facts.source, isDead: hop.isDead)
        route.mtu = facts.mtu
        // The answer itself does not contain the state of the link.
        let isUsable = try Links.facts(of: hop.link, by: socket)?.isUsable ?? false
        if !isUsable { route.isDead = true }
        if let router = route.router { route.gatewayHardware = hardwareAddress(of: router, by: socket) }
        return route
    }

    /// The entry of a table that leads to the answer (`RTM_F_FIB_MATCH`); `nil` when none does.
    static func entry(
        _ question: RouteQuestion, by socket: borrowing NetlinkSocket
    ) throws(SystemError) -> RouteMessage? {
        try facts(question, matching: true, by: socket)
    }

    private static func facts(
        _ question: RouteQuestion, matching: Bool = false, by socket: borrowing NetlinkSocket
    ) throws(SystemError) -> RouteMessage? {
        let answer: [NetlinkMessage]
        do {
            answer = try socket.query(question.request(matching: matching), about: "route to \(question.address)")
        } catch {
            if noRouteErrors.contains(error.code) { return nil }
            throw error
        }
        guard let message = answer.first(where: { $0.type == Netlink.Kind.newRoute }),
            let facts = RouteMessage(message),
            !facts.hops.isEmpty
        else { throw SystemError(call: "netlink", subject: "route to \(question.address)", code: EBADMSG) }
        return facts
    }

    /// Makes the kernel ask a gateway for its hardware address, where that is unknown: it only asks when a packet is
    /// sent. A later ``route(to:port:over:)`` contains the answer, mostly within a millisecond.
    ///
    /// It sends one empty datagram to the gateway itself (UDP port 9, discard), which goes no further, and the question
    /// before it. On links without hardware addresses the datagram would be useless, so the caller must leave those
    /// out.
    package static func probeGateway(of route: NetworkRoute) throws(SystemError) {
        guard let gateway = route.gateway, route.gatewayHardware == nil else { return }
        try systemCall("sendto", on: "gateway \(gateway)") {
            gateway.bytes.withUnsafeBytes { sluice_touch(route.link, $0.baseAddress, $0.count) }
        }
    }

    /// The kernel's entry for the hardware address of a neighbour, without sending a packet on the link.
    static func hardwareAddress(
        of neighbour: Neighbour, by socket: borrowing NetlinkSocket
    ) -> HardwareAddress? {
        let family = UInt8(neighbour.address.isIPv6 ? AF_INET6 : AF_INET)
        var question = NetlinkRequest(
            Netlink.Kind.getNeighbour, header: [family, 0, 0, 0] + raw(neighbour.link) + raw(UInt16(0)) + [0, 0])
        question.add(1, neighbour.address.bytes)
        // For any error here (an unknown address, a kernel before 5.0), the address counts as unknown.
        guard let answer = try? socket.query(question, about: "neighbour \(neighbour.address)") else { return nil }
        return answer.lazy.compactMap { hardwareAddress(in: $0) }.first
    }

    /// The address in a message about a neighbour (`struct ndmsg`, linux/neighbour.h).
    static func hardwareAddress(in message: NetlinkMessage) -> HardwareAddress? {
        guard message.type == Netlink.Kind.newNeighbour, let state = message.body.number(at: 8, as: UInt16.self)
        else { return nil }
        // Reachable, stale, delay, probe, permanent: an address that answered once, or that was configured.
        guard state & (0x02 | 0x04 | 0x08 | 0x10 | 0x80) != 0 else { return nil }
        return message.attributes(after: 12)[2].flatMap { HardwareAddress($0) }
    }

    /// The neighbour in a message.
    static func neighbour(in message: NetlinkMessage) -> Neighbour? {
        guard message.type == Netlink.Kind.newNeighbour, let link = message.body.number(at: 4, as: Int32.self),
            let address = message.attributes(after: 12)[1].flatMap({ IPAddress($0) })
        else { return nil }
        return Neighbour(link: link, address: address)
    }

    /// The interfaces with a route that leads out, to a gateway or to every address.
    static func outgoing(by socket: borrowing NetlinkSocket) throws(SystemError) -> Set<Int32> {
        var found: Set<Int32> = []
        for family in [AF_INET, AF_INET6] {
            let header = [UInt8(family), 0, 0, 0, 0, 0, 0, 0] + raw(UInt32(0))
            let question = NetlinkRequest(Netlink.Kind.getRoute, dump: true, header: header)
            do {
                for message in try socket.query(question, about: "routes") {
                    guard let facts = RouteMessage(message), facts.type == .unicast, !facts.isCloned else { continue }
                    for hop in facts.hops where hop.gateway != nil || facts.length == 0 { found.insert(hop.link) }
                }
            } catch {
                // A kernel without IPv6 has no such routes.
                guard noRouteErrors.contains(error.code) else { throw error }
            }
        }
        return found
    }

    /// The kernel's errors when there is no route, when a route refuses (`EINVAL` for a black hole), or when it does
    /// not support the protocol.
    private static let noRouteErrors: Set<CInt> = [
        ENETUNREACH, EHOSTUNREACH, EACCES, EINVAL, ENETDOWN, ENODEV, EOPNOTSUPP, EAFNOSUPPORT,
    ]

    fileprivate enum Attribute {
        static let destination: UInt16 = 1
        static let source: UInt16 = 2
        static let outgoing: UInt16 = 4
        static let gateway: UInt16 = 5
        static let metric: UInt16 = 6
        static let preferredSource: UInt16 = 7
        /// RTA_METRICS, where 2 is the longest packet (RTAX_MTU).
        static let metrics: UInt16 = 8
        static let multipath: UInt16 = 9
        static let table: UInt16 = 15
        static let via: UInt16 = 18
        static let mark: UInt16 = 16
        static let user: UInt16 = 25
        static let protocolNumber: UInt16 = 27
        static let destinationPort: UInt16 = 29
    }
}

/// A connection whose route is requested.
struct RouteQuestion: Hashable {
    var address: IPAddress
    /// The TCP port at the destination, which policy routing may use.
    var port: UInt16?
    /// The interface to which the socket is bound (`SO_BINDTODEVICE`).
    var link: Int32?
    /// The source address.
    var source: IPAddress?
    /// Its firewall mark.
    var mark: UInt32 = 0
    /// The port is a UDP port.
    var isUDP = false
    /// Its type of service (DSCP), in the upper six bits.
    var service: UInt8 = 0
    /// The kernel sends it on its own behalf, which counts as root's.
    var isKernels = false

    /// - Parameter matching: Queries the table entry of the answer, and not the answer.
    fileprivate func request(matching: Bool) -> NetlinkRequest {
        let family = UInt8(address.isIPv6 ? AF_INET6 : AF_INET)
        let (length, own) = (UInt8(address.bytes.count * 8), UInt8((source?.bytes.count ?? 0) * 8))
        // RTM_F_FIB_MATCH, and RTM_F_LOOKUP_TABLE, without which every table is reported as the main one.
        let flags: UInt32 = matching ? 0x3000 : 0
        var question = NetlinkRequest(
            Netlink.Kind.getRoute, header: [family, length, own, service & 0xFC, 0, 0, 0, 0] + raw(flags))
        question.add(Routes.Attribute.destination, address.bytes)
        if let source { question.add(Routes.Attribute.source, source.bytes) }
        if let link { question.add(Routes.Attribute.outgoing, link) }
        if mark != 0 { question.add(Routes.Attribute.mark, mark) }
        if isKernels { question.add(Routes.Attribute.user, UInt32(0)) }
        if let port {
            question.add(Routes.Attribute.protocolNumber, UInt8(isUDP ? IPPROTO_UDP : IPPROTO_TCP))
            question.add(Routes.Attribute.destinationPort, port.bigEndian)
        }
        return question
    }
}

/// The contents of a message about a route (`struct rtmsg`, rtnetlink(7)).
struct RouteMessage: Hashable {
    enum Kind: UInt8, Hashable {
        case other = 0
        case unicast, local
        case blackhole = 6
        case unreachable, prohibit, throwing
    }
    struct Hop: Hashable {
        var link: Int32
        var gateway: IPAddress?
        var isDead: Bool
    }

    var family: UInt8
    /// Length of the destination's prefix in bits; 0 is every address.
    var length: UInt8
    var type: Kind
    /// The number of its table.
    var table: UInt32
    /// How far away the destination is (`RT_SCOPE_…`).
    var scope: UInt8
    /// Among routes to the same destination in one table, the one with the smallest counts.
    var metric: UInt32
    /// The kernel made it itself, for an address of an interface.
    var isKernelMade: Bool
    /// A cached lookup, and no route of its own.
    var isCloned: Bool
    var hops: [Hop]
    /// ``length`` bits of it count; `nil` for every address.
    var destination: IPAddress?
    var source: IPAddress?
    /// The longest packet that it accepts, from the route itself or as learned on the way.
    var mtu: Int?

    /// - Returns: `nil` when it is another message or too short.
    init?(_ message: NetlinkMessage) {
        guard message.type == Netlink.Kind.newRoute || message.type == Netlink.Kind.deleteRoute,
            let fixed = message.body.number(at: 0, as: UInt64.self),
            let flags = message.body.number(at: 8, as: UInt32.self)
        else { return nil }
        let bytes = raw(fixed)
        family = bytes[0]
        length = bytes[1]
        isKernelMade = bytes[5] == 2
        type = Kind(rawValue: bytes[7]) ?? .other
        isCloned = flags & 0x200 != 0
        let attributes = message.attributes(after: 12)
        table = attributes.number(Routes.Attribute.table, as: UInt32.self) ?? UInt32(bytes[4])
        scope = bytes[6]
        metric = attributes.number(Routes.Attribute.metric, as: UInt32.self) ?? 0
        destination = attributes[Routes.Attribute.destination].flatMap { IPAddress($0) }
        source = attributes[Routes.Attribute.preferredSource].flatMap { IPAddress($0) }
        let limit = attributes.nested(Routes.Attribute.metrics)?.number(2, as: UInt32.self) ?? 0
        mtu = limit > 0 ? Int(limit) : nil
        hops = []
        if let link = attributes.number(Routes.Attribute.outgoing, as: Int32.self) {
            hops.append(
                Hop(link: link, gateway: Self.gateway(in: attributes), isDead: Self.isDead(UInt8(flags & 0xFF))))
        }
        if let several = attributes[Routes.Attribute.multipath] { hops += Self.hops(in: several) }
    }

    /// The hops of a multipath route (`struct rtnexthop`).
    private static func hops(in list: ArraySlice<UInt8>) -> [Hop] {
        var hops: [Hop] = []
        var rest = list
        while let length = rest.number(at: 0, as: UInt16.self), let flags = rest.number(at: 2, as: UInt8.self),
            let link = rest.number(at: 4, as: Int32.self), length >= 8, Int(length) <= rest.count
        {
            let attributes = NetlinkAttributes(rest.prefix(Int(length)).dropFirst(8))
            hops.append(Hop(link: link, gateway: gateway(in: attributes), isDead: isDead(flags)))
            rest = rest.dropFirst((Int(length) + 3) & ~3)
        }
        return hops
    }

    /// A gateway of the route's own family, or of the other one (RFC 5549).
    private static func gateway(in attributes: NetlinkAttributes) -> IPAddress? {
        if let gateway = attributes[Routes.Attribute.gateway] { return IPAddress(gateway) }
        return attributes[Routes.Attribute.via].flatMap { IPAddress($0.dropFirst(2)) }
    }

    /// `RTNH_F_DEAD` or `RTNH_F_LINKDOWN`.
    private static func isDead(_ flags: UInt8) -> Bool { flags & (0x01 | 0x10) != 0 }
}
