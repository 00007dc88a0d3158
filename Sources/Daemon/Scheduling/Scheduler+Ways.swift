internal import Config
internal import Core
internal import Linux
internal import Names

// The way of each upload, as an explanation for people.

extension Scheduler {
    /// The way that an upload uses or would use; `nil` where nothing leaves this machine, or where the networks could
    /// not be inspected.
    func choice(of id: String, to destination: String, from folder: String) -> Admission.RouteChoice? {
        admission.choice(to: remote(destination), from: origin(folder, of: id), in: inputs)
    }

    /// The same for each destination, for all folders, with every other way out and the reason why it is not used.
    func choices() async -> [(destination: String, choice: Admission.RouteChoice)] {
        var found: [(destination: String, choice: Admission.RouteChoice)] = []
        for one in house.settings.destinations {
            let (remote, site) = (remote(one.name), house.sites[one.name])
            guard var choice = admission.choice(to: remote, in: inputs) else { continue }
            if case .server(let host, let port)? = site {
                var paths: [NetworkPath]?
                if case .over(let known) = remote.reachability { paths = known }
                // The way is not looked up until a rule depends on it.
                if paths == nil, admission.hardBlockers(on: remote, in: inputs).isEmpty {
                    choice = await Self.kernelsWay(to: host, port) ?? choice
                } else if let paths {
                    choice.refused += await Self.refused(paths, port)
                    if choice.interface == nil, choice.reason == Admission.kernelsChoice, let first = paths.first {
                        choice.interface = await Self.name(of: first.link)
                    }
                }
            }
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

    /// The kernel's way to a name that no rule asks about.
    private static func kernelsWay(to host: String, _ port: UInt16) async -> Admission.RouteChoice? {
        guard let addresses = try? await HostNames.addresses(of: host) else { return nil }
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
