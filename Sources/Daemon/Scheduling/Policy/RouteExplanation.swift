internal import Config
internal import Core
internal import Linux
internal import Names
internal import Store

// The route of each upload, as an explanation for people.

extension PolicySnapshot {
    /// The route that an upload uses or would use; `nil` where nothing leaves this machine, or where the networks could
    /// not be inspected.
    func routeChoice(of upload: UploadRecord) -> Admission.RouteChoice? {
        choice(to: destination(upload.destination), from: folder(of: upload))
    }

    /// The same for a destination and all folders, with every other route and the reason why it is not used. Queries
    /// the kernel.
    ///
    /// - Parameter looksUpNames: Whether the addresses of a name without a network rule may be looked up, which sends
    ///   queries. Otherwise that route is not known.
    func explainedRoute(
        to name: String, at site: DestinationSite?, looksUpNames: Bool = true
    ) async -> Admission.RouteChoice? {
        let state = destination(name)
        guard var choice = self.choice(to: state, from: nil) else { return nil }
        guard case .server(let host, let port, let family)? = site else { return choice }
        var paths: [NetworkPath]?
        if case .over(let known) = state.reachability { paths = known }
        // The route is not looked up until a rule depends on it.
        if paths == nil, looksUpNames, blockers(at: name).isEmpty {
            return await Self.kernelsRoute(to: host, port, family) ?? choice
        }
        guard let paths else { return choice }
        choice.refused += await Self.refused(paths, port)
        if choice.interface == nil, choice.reason == Admission.kernelsChoice, let first = paths.first {
            choice.interface = await Self.name(of: first.link)
        }
        return choice
    }

    /// ``explainedRoute(to:at:looksUpNames:)`` of each destination.
    func explainedRoutes(
        _ sites: [String: DestinationSite], looksUpNames: Bool = true
    ) async -> [(destination: String, choice: Admission.RouteChoice)] {
        var found: [(destination: String, choice: Admission.RouteChoice)] = []
        for one in settings.destinations {
            guard let choice = await explainedRoute(to: one.name, at: sites[one.name], looksUpNames: looksUpNames)
            else { continue }
            found.append((one.name, choice))
        }
        return found
    }

    private static func refused(_ paths: [NetworkPath], _ port: UInt16) async -> [Admission.RouteChoice.Refused] {
        // This is only an explanation: facts that cannot be found out are left out.
        (try? await blocking {
            try NetworkInspection(metering: Metering(links: try Links.all()), gatewaysMatter: false).refusals(
                paths, port: port)
        }) ?? []
    }

    private static func name(of link: Int32) async -> String? {
        try? await blocking { try Links.all().first { $0.index == link }?.name }
    }

    /// The kernel's route to a name without a network rule.
    private static func kernelsRoute(
        to host: String, _ port: UInt16, _ family: AddressFamily
    ) async -> Admission.RouteChoice? {
        guard let addresses = try? await SystemResolver.addresses(of: host).filter(family.includes) else { return nil }
        let found = try? await blocking { () -> (name: String, path: NetworkPath)? in
            var inspection = try NetworkInspection(metering: Metering(links: try Links.all()), gatewaysMatter: false)
            guard case .over(let paths) = try inspection.reachability(addresses, port), let path = paths.first else {
                return nil
            }
            return (inspection.metering.links[path.link]?.name ?? "\(path.link)", path)
        }
        guard let found = found.flatMap({ $0 }) else { return nil }
        return Admission.RouteChoice(
            interface: found.name, source: found.path.source, reason: Admission.kernelsChoice)
    }
}
