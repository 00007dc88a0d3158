package import Core
internal import Glibc

/// Bytes that tunnels and IPsec add to each packet before it leaves this machine: a link that carries a tunnel carries
/// these bytes as well.
package enum Encapsulation {
    /// More than any single encapsulation is known to add: a program's tunnel over IPv6.
    package static let maxOverhead: Int64 = 40 + 8 + 82

    /// The most bytes that are added to each IP packet of a connection before it leaves the machine.
    ///
    /// The bytes of a program's tunnel are assumed, since they cannot be found out. The route of a tunnel's packets is
    /// followed as far as the kernel reports it.
    ///
    /// - Parameter interface: The interface to which the socket is bound.
    /// - Returns: `nil` for an address of this machine: no packet leaves it.
    package static func overhead(
        to address: IPAddress, port: UInt16, over interface: String?
    ) throws(SystemError) -> Int64? {
        if address.isLoopback { return nil }
        let socket = try NetlinkSocket()
        let bound = interface.map { Int32(clamping: $0.withCString { if_nametoindex($0) }) }
        let question = RouteQuestion(address: address, port: port, link: bound)
        guard let route = try Routes.route(question, by: socket) else { return 0 }
        if route.link == 1 { return nil }
        var total = try overhead(of: route.link, by: socket, seen: [])
        if case .encapsulated(let bytes) = try IPsec.answer(to: address, port: port, over: bound, route, by: socket) {
            total += bytes
        }
        return total
    }

    /// For an interface and those that it stands on.
    private static func overhead(
        of index: Int32, by socket: borrowing NetlinkSocket, seen: Set<Int32>
    ) throws(SystemError) -> Int64 {
        guard !seen.contains(index), seen.count < 8, let link = try Links.facts(of: index, by: socket) else { return 0 }
        let seen = seen.union([index])
        guard let header = link.tunnelHeader else { return try below(link, by: socket, seen: seen) }
        guard let peer = link.peer else {
            // The outer packets leave by no further tunnel, as far as is known.
            return header + (try hasIPv6(by: socket) ? 40 : 20)
        }
        var most: Int64 = 0
        for carrier in try TunnelRoutes.carriers(of: index) ?? [] {
            most = max(most, try overhead(of: carrier.link, by: socket, seen: seen))
        }
        return header + (peer.isIPv6 ? 40 : 20) + most
    }

    /// The largest overhead of the interfaces below one that adds nothing itself.
    private static func below(
        _ link: LinkMessage, by socket: borrowing NetlinkSocket, seen: Set<Int32>
    ) throws(SystemError) -> Int64 {
        if let below = link.below { return try overhead(of: below, by: socket, seen: seen) }
        guard let kind = link.kind, ["bridge", "bond", "team"].contains(kind) else { return 0 }
        var ports = try Links.ports(of: link.index, by: socket)
        // A bridge's guests send over it, and do not carry it, unless there are only guests.
        if ports.contains(where: { !$0.link.isGuest }) { ports.removeAll { $0.link.isGuest } }
        var most: Int64 = 0
        for port in ports { most = max(most, try overhead(of: port.index, by: socket, seen: seen)) }
        return most
    }

    /// Whether a tunnel's packets may leave by IPv6: there is a route that leads everywhere (an address of RFC 3849 is
    /// never assigned).
    private static func hasIPv6(by socket: borrowing NetlinkSocket) throws(SystemError) -> Bool {
        guard let address = IPAddress("2001:db8::1") else { return false }
        guard let route = try Routes.route(RouteQuestion(address: address), by: socket) else { return false }
        return !route.isDead && route.link != 1
    }
}
