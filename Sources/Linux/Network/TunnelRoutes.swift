package import Core
internal import Glibc

/// The target of a tunnel's packets (`IFLA_INFO_DATA`, linux/if_link.h and linux/if_tunnel.h).
struct TunnelEnds: Hashable {
    var peer: IPAddress?
    /// The source address of its packets; `nil` where the kernel chooses.
    var local: IPAddress?
    /// The UDP port at the other end; `nil` for tunnels without.
    var port: UInt16?
    /// `IPPROTO_…`.
    var transport: UInt8
    /// The firewall mark of its packets.
    var mark: UInt32 = 0
    /// Their type of service; 0 also where it is copied from the inner packet, which has none here.
    var service: UInt8 = 0

    /// - Returns: `nil` for kinds that the kernel does not describe.
    init?(kind: String, _ data: NetlinkAttributes?) {
        guard let data else { return nil }
        func address(_ places: UInt16...) -> IPAddress? {
            places.lazy.compactMap { data[$0].flatMap { IPAddress($0) } }.first { $0.bytes.contains { $0 != 0 } }
        }
        func typeOfService(_ place: UInt16) -> UInt8 {
            let value = data.number(place, as: UInt8.self) ?? 0
            return value & 1 == 0 ? value : 0
        }
        /// From the first word of the IPv6 header.
        func label(_ place: UInt16) -> UInt8 {
            UInt8(truncatingIfNeeded: UInt32(bigEndian: data.number(place, as: UInt32.self) ?? 0) >> 20)
        }
        func port(_ place: UInt16) -> UInt16? { data.number(place, as: UInt16.self).map(UInt16.init(bigEndian:)) }
        switch kind {
        case "vxlan":
            // IFLA_VXLAN_GROUP and _GROUP6, _LOCAL and _LOCAL6, _PORT, _TOS.
            (peer, local, self.port) = (address(2, 16), address(4, 17), port(15))
            (transport, service) = (UInt8(IPPROTO_UDP), typeOfService(6))
        case "geneve":
            // IFLA_GENEVE_REMOTE and _REMOTE6, _PORT, _TOS.
            (peer, self.port, transport) = (address(2, 7), port(5), UInt8(IPPROTO_UDP))
            service = typeOfService(4)
        case "gre", "gretap", "erspan", "ip6gre", "ip6gretap", "ip6erspan":
            // IFLA_GRE_LOCAL, _REMOTE, _FWMARK, _FLOWINFO, _TOS.
            (local, peer, transport) = (address(6), address(7), UInt8(IPPROTO_GRE))
            mark = data.number(20, as: UInt32.self) ?? 0
            service = kind.hasPrefix("ip6") ? label(12) : typeOfService(9)
        case "ipip", "sit", "ip6tnl":
            // IFLA_IPTUN_LOCAL, _REMOTE, _FWMARK, _FLOWINFO, _TOS.
            (local, peer) = (address(2), address(3))
            service = kind == "ip6tnl" ? label(7) : typeOfService(5)
            transport = UInt8(kind == "ipip" ? IPPROTO_IPIP : IPPROTO_IPV6)
            mark = data.number(20, as: UInt32.self) ?? 0
        case "vti", "vti6":
            // IFLA_VTI_LOCAL, _REMOTE, _FWMARK.
            (local, peer, transport) = (address(4), address(5), UInt8(IPPROTO_ESP))
            mark = data.number(6, as: UInt32.self) ?? 0
        default: return nil
        }
    }
}

/// The routes of a tunnel's own packets.
package enum TunnelRoutes {
    /// All routes that carry it: to each of its other ends, and by each rule (`ip rule`) that may apply to its packets.
    ///
    /// - Returns: `nil` where that is unknown: for WireGuard and for programs, or where an end has no route.
    package static func carriers(of index: Int32) throws(SystemError) -> [NetworkPath]? {
        let socket = try NetlinkSocket()
        guard let link = try Links.facts(of: index, by: socket), let ends = link.tunnelEnds else { return nil }
        var peers: [Peer] = ends.peer.map { [Peer(address: $0, port: ends.port, link: link.below)] } ?? []
        if link.kind == "vxlan" {
            guard let more = try forwarding(of: index, ends.port, by: socket) else { return nil }
            peers += more
        }
        if peers.isEmpty { return nil }
        var paths: [NetworkPath] = []
        for peer in Set(peers) {
            var question = RouteQuestion(address: peer.address, link: peer.link, source: ends.local, mark: ends.mark)
            (question.service, question.isKernels) = (ends.service, true)
            if ends.transport == UInt8(IPPROTO_UDP) { (question.port, question.isUDP) = (peer.port, true) }
            guard let route = try Routes.route(question, by: socket), !route.isDead, route.link != 1 else { return nil }
            question.source = question.source ?? route.source
            let flow = RouteRules.Flow(question: question, transport: ends.transport)
            let others = try RouteRules.otherLinks(than: route.link, for: flow, by: socket)
            paths += [route.path] + others.map { NetworkPath(link: $0) }
        }
        return paths
    }

    private struct Peer: Hashable {
        var address: IPAddress
        var port: UInt16?
        /// The interface by which its packets have to leave.
        var link: Int32?
    }

    /// Further ends that a vxlan knows, by the hardware addresses behind them: configured, or learned (bridge-fdb(8)).
    /// ``NetworkEvents`` reports changes.
    ///
    /// - Returns: `nil` where one is a group whose members are unknown.
    private static func forwarding(
        of index: Int32, _ port: UInt16?, by socket: borrowing NetlinkSocket
    ) throws(SystemError) -> [Peer]? {
        // `struct ndmsg`, family AF_BRIDGE.
        let header = [Netlink.bridgeFamily, 0, 0, 0] + raw(index) + raw(UInt16(0)) + [0, 0]
        var peers: [Peer] = []
        let answer: [NetlinkMessage]
        do {
            answer = try socket.query(
                NetlinkRequest(Netlink.Kind.getNeighbour, dump: true, header: header), about: "forwarding of \(index)")
        } catch {
            // If the kernel does not report it, none can be known.
            guard error.code == EOPNOTSUPP || error.code == EINVAL else { throw error }
            return nil
        }
        for message in answer {
            guard message.type == Netlink.Kind.newNeighbour, message.body.first == Netlink.bridgeFamily,
                message.body.number(at: 4, as: Int32.self) == index
            else { continue }
            let attributes = message.attributes(after: 12)
            // NDA_NH_ID: a group of next hops.
            if attributes.contains(13) { return nil }
            // NDA_DST, and NDA_PORT where it differs from the tunnel's.
            guard let address = attributes[1].flatMap({ IPAddress($0) }) else { continue }
            // NDA_IFINDEX. Without it the packets follow the route of the address, also where the tunnel has a link of
            // its own.
            peers.append(
                Peer(
                    address: address, port: attributes.number(6, as: UInt16.self).map(UInt16.init(bigEndian:)) ?? port,
                    link: attributes.number(8, as: Int32.self)))
        }
        return peers
    }
}
