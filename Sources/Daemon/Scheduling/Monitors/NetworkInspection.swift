internal import API
internal import Core
internal import Linux
internal import Names

/// One inspection of the routes: finds the routes to a destination. Queries the kernel, which may take a few
/// milliseconds.
struct NetworkInspection {
    let metering: Metering
    /// Whether rules identify networks by the hardware addresses of their gateways.
    let gatewaysMatter: Bool
    private(set) var isUnfinished = false
    /// The routers that packets would be sent to, each with its hardware address where known; only where gateways
    /// matter.
    private(set) var routers: [Neighbour: HardwareAddress?] = [:]
    private var mounts: MountTable?
    private var servers: [IPAddress]?

    init(metering: Metering, gatewaysMatter: Bool) throws {
        var metering = metering
        for link in metering.links.values where link.isTunnel {
            // For links that do not report where their packets go, the worst way is assumed.
            metering.carriers[link.index] = try TunnelRoutes.carriers(of: link.index)
        }
        self.metering = metering
        self.gatewaysMatter = gatewaysMatter
    }

    /// The links that carry bytes out of this machine, ascending.
    private var outward: [NetworkLink] {
        metering.links.values.filter { $0.isUsable && $0.medium != .loopback }.sorted { $0.index < $1.index }
    }

    /// Whether some link is up and has an address: hosts on that link may be reached.
    var leadsAnywhere: Bool { outward.contains { $0.leadsOut || $0.addresses.contains { !$0.address.isLinkLocal } } }

    /// The ways to everywhere: first the kernel's choice.
    mutating func defaultPaths() throws -> [NetworkPath] {
        // Addresses that belong to no host (RFC 5737, RFC 3849), so their routes are those to everywhere.
        try paths(to: ["192.0.2.1", "2001:db8::1"].compactMap { IPAddress($0) }, port: nil).map { path in
            var path = path
            path.isOnLink = nil
            return path
        }
    }

    /// The ways to another machine whose address is not known: those to everywhere. Where there are none, each link with
    /// an address, because the machine may be in its network.
    mutating func possiblePaths() throws -> [NetworkPath] {
        let paths = try defaultPaths()
        if !paths.isEmpty { return paths }
        return outward.filter { $0.addresses.contains { !$0.address.isLinkLocal } }.map { NetworkPath(link: $0.index) }
    }

    /// The DNS servers, each over the first of its ways that bytes may use.
    mutating func nameServers(_ mayGo: ([NetworkPath]) -> Bool) throws -> NameServers {
        let all = servers ?? NameServers.configured()
        servers = all
        let own = Set(metering.links.values.flatMap(\.addresses).map(\.address))
        var found = NameServers()
        for server in all {
            if server.isLoopback || own.contains(server) {
                found.hasLocal = true
                continue
            }
            let path = try paths(to: [server], port: 53).first { mayGo([$0]) }
            if let name = path.flatMap({ metering.links[$0.link]?.name }) {
                found.interfaces[server] = name
            } else {
                found.forbidden.append(server)
            }
        }
        return found
    }

    mutating func reachability(_ addresses: [IPAddress], _ port: UInt16) throws -> Reachability {
        let paths = try paths(to: addresses, port: port)
        if !paths.isEmpty { return .over(paths) }
        let names = addresses.map(\.description).joined(separator: ", ")
        if isUnfinished { return .offline("the gateway to \(names) does not respond") }
        return .offline(
            outward.isEmpty ? "no network interface is up" : "no route of this machine leads to \(names)")
    }

    /// First the paths that the kernel chooses, then the equal ones.
    private mutating func paths(to addresses: [IPAddress], port: UInt16?) throws -> [NetworkPath] {
        let links = outward.filter(\.leadsOut).map(\.index)
        var (chosen, equal): ([NetworkPath], [NetworkPath]) = ([], [])
        for address in addresses {
            let candidates = try RouteCandidates.candidates(to: address, port: port, over: links)
            if let first = candidates.first, let path = try path(of: first, to: address) { chosen.append(path) }
            for candidate in candidates.dropFirst() {
                guard var path = try path(of: candidate, to: address) else { continue }
                path.isOwn = false
                equal.append(path)
            }
        }
        var paths: [NetworkPath] = []
        for path in chosen + equal {
            guard let known = paths.firstIndex(where: { $0.link == path.link }) else {
                paths.append(path)
                continue
            }
            if path.isEncapsulated { paths[known].isEncapsulated = true }
            if path.isOnLink != paths[known].isOnLink { paths[known].isOnLink = nil }
            paths[known].others += path.others.filter { !paths[known].others.contains($0) }
        }
        return paths
    }

    /// Why links that lead out, but are no way to the address of these paths, may not be chosen: words that follow the
    /// link's name.
    func refusals(_ paths: [NetworkPath], port: UInt16?) throws -> [Admission.RouteChoice.Refused] {
        guard let own = paths.first, let address = own.destination else { return [] }
        let name = metering.links[own.link]?.name ?? "\(own.link)"
        let others = outward.filter { link in link.leadsOut && !paths.contains { $0.link == link.index } }
        let refusals = try RouteCandidates.refusals(to: address, port: port, over: others.map(\.index))
        return others.compactMap { link in
            refusals[link.index].map {
                Admission.RouteChoice.Refused(interface: link.name, reason: $0.words(own: name, address))
            }
        }
    }

    private mutating func path(of candidate: RouteCandidates.Candidate, to address: IPAddress) throws -> NetworkPath? {
        let route = candidate.route
        if route.isDead { return nil }
        if gatewaysMatter, let router = route.router { routers[router] = .some(route.gatewayHardware) }
        if gatewaysMatter, route.gateway != nil, route.gatewayHardware == nil,
            metering.links[route.link]?.medium == .ethernet
        {
            // Without the hardware address it is unknown which network this is. A gateway that cannot be queried stays
            // unknown, and so closed.
            try? Routes.probeGateway(of: route)
            isUnfinished = true
            return nil
        }
        var path = route.path
        (path.metric, path.source, path.destination) = (candidate.metric, route.source, address)
        (path.isEncapsulated, path.others) = (candidate.isEncapsulated, candidate.others)
        // A route without a gateway may also lead to addresses elsewhere, as through a tunnel.
        path.isOnLink =
            route.gateway == nil
            && metering.links[route.link].map { $0.addresses.contains { $0.contains(address) } } ?? false
        return path
    }

    /// - Parameter cost: The cost that a person has configured.
    mutating func reachability(folder path: FilePath, _ cost: Metered?) -> Reachability {
        // A configured cost is more reliable than the mount table: for a disk behind a modem, for example.
        if let cost { return .mount(cost, text: "set by `network: \(cost.rawValue)` of the destination") }
        let mounts = mounts ?? MountTable()
        self.mounts = mounts
        guard let point = mounts.place(of: path).slow else { return .local }
        return .mount(
            .unknown,
            text: "\(point.display) is on another machine, and the route to it is unknown; set `network: unmetered` or "
                + "`network: metered` at the destination")
    }
}

extension RouteCandidates.Refusal {
    /// - Parameter own: The interface that the kernel chooses.
    fileprivate func words(own: String, _ address: IPAddress) -> String {
        switch self {
        case .ownIsByRule: "a rule (`ip rule`) routes \(address) over \(own), and Sluice does not bypass such a route"
        case .ruleMayLead:
            "a rule (`ip rule`) by mark or port may route \(address) over another interface than \(own), and Sluice does not bypass such a route"
        case .ownIsTunnel: "the kernel routes \(address) over \(own), a tunnel, and Sluice does not bypass a tunnel"
        case .ownIsEncapsulated:
            "the kernel routes \(address) over \(own), to which an IPsec policy applies, and Sluice does not bypass such a route"
        case .encapsulated: "an IPsec policy applies to packets to \(address) over it"
        case .ownIsInside: "\(address) is on this machine"
        case .noRoute: "no route over it leads to \(address)"
        case .dead: "it is down, or has no carrier"
        case .unequal:
            "its route to \(address) differs from the kernel's route over \(own): it is for other addresses, or in another table"
        }
    }
}
