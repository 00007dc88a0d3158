package import Config
package import Core
package import Linux
internal import Names

/// The cost of this machine's networks and the routes to each destination, for a command, before any byte is sent.
package struct StandaloneNetworkReport: Sendable {
    package struct Interface: Hashable, Sendable {
        package var name: String
        /// Whether it can carry bytes now.
        package var isUsable: Bool
        /// One sentence: `metered: wwan0 is a modem (DEVTYPE wwan)`.
        package var reason: String
        /// The line of YAML under `policy.networks` that would change this judgement.
        package var remedy: String?
        /// The rule that forbids it.
        package var forbidden: String?
        /// Destinations whose bytes would leave by this interface now.
        package var carries: [String] = []
    }

    package var interfaces: [Interface] = []
    /// The hold on all uploads to a destination now, by its name.
    package var holds: [(destination: String, hold: Hold)] = []
    /// Rules of destinations that have no effect there, and why.
    package var withoutEffect: [(destination: String, words: String)] = []
    /// Rules that name no network of this machine, but are close to one.
    package var misnamed: [NetworkNames.SuspectedTypo] = []
    /// The DNS servers of this machine, where some rule depends on the network.
    package var nameServers: [IPAddress] = []
    /// The DNS servers that run on this machine, and ask others by ways of their own.
    package var localNameServers: [IPAddress] = []
    /// The DNS servers that no allowed way leads to, by the destination that would need them.
    package var unreachableNameServers: [String: [IPAddress]] = [:]
    /// The way to each destination, as far as it can be seen, with every other way out.
    package var choices: [(destination: String, choice: Admission.RouteChoice)] = []
    /// Facts that could not be found out.
    package var troubles: [String] = []
    /// The cost of the networks; `nil` when they could not be inspected.
    private(set) var metering: Metering?
    private var reaches: [String: Reachability] = [:]
    /// What network managers say.
    private var managerReport = NetworkReport()

    /// - Parameter sites: The location of each destination, as far as the destination could be made.
    package static func make(_ settings: Settings, _ sites: [String: DestinationSite]) async -> StandaloneNetworkReport
    {
        var networkReport = StandaloneNetworkReport()
        var report = NetworkReport()
        let namesWiFi = settings.allRules.contains(where: \.namesWiFi)
        do { report = try await managers(hearingWiFi: namesWiFi) } catch {
            networkReport.troubles.append("cannot query NetworkManager: \(error)")
        }
        networkReport.managerReport = report
        var addresses: [String: [IPAddress]] = [:]
        let isHeld = settings.allRules.contains(where: \.dependsOnNetwork)
        for (name, site) in sites {
            guard case .server(let host, _, _) = site, addresses[host] == nil else { continue }
            // Errors are dropped here: a request to this address reports the same, in more detail.
            guard isHeld, IPAddress(host) == nil else {
                addresses[host] = try? await SystemResolver.addresses(of: host)
                continue
            }
            if let servers = try? await nameServers(for: name, networkReport.policy(settings), report) {
                if servers.interfaces.isEmpty, !servers.hasLocal, !servers.forbidden.isEmpty {
                    networkReport.unreachableNameServers[name] = servers.forbidden
                }
                addresses[host] = try? await DNSLookup.resolve(host, servers).addresses
            }
        }
        let known = addresses
        do {
            let namesGateways = settings.allRules.contains(where: \.namesGateways)
            let (metering, reaches, defaultPaths, refused) = try await blocking { [report] in
                var inspection = try NetworkInspection(
                    metering: Metering(links: try Links.all(), report: report), gatewaysMatter: false)
                var reaches: [String: Reachability] = [:]
                for (name, site) in sites {
                    switch site {
                    case .here: reaches[name] = .local
                    case .folder(let path, let cost): reaches[name] = inspection.reachability(folder: path, cost)
                    case .server(let host, let port, let family):
                        let usable = (known[host] ?? []).filter(family.includes)
                        reaches[name] =
                            usable.isEmpty
                            ? .over(try inspection.possiblePaths()) : try inspection.reachability(usable, port)
                    case .addresses(let addresses, let port):
                        reaches[name] = try inspection.reachability(addresses, port)
                    case .anywhere: reaches[name] = .over(try inspection.possiblePaths())
                    }
                }
                let refused = try reaches.compactMap { name, reachability in
                    if case .over(let paths) = reachability, case .server(_, let port, _)? = sites[name] {
                        (name, try inspection.refusals(paths, port: port))
                    } else {
                        nil
                    }
                }
                return (inspection.metering, reaches, namesGateways ? try inspection.defaultPaths() : [], refused)
            }
            (networkReport.metering, networkReport.reaches) = (metering, reaches)
            networkReport.judge(metering, sites, settings)
            if isHeld {
                let own = Set(metering.links.values.flatMap(\.addresses).map(\.address))
                networkReport.nameServers = NameServers.configured()
                networkReport.localNameServers = networkReport.nameServers.filter { $0.isLoopback || own.contains($0) }
            }
            let others = Dictionary(refused, uniquingKeysWith: { $1 })
            for number in networkReport.choices.indices {
                networkReport.choices[number].choice.refused += others[networkReport.choices[number].destination] ?? []
            }
            networkReport.misnamed = networkReport.names(defaultPaths, report.networkManager.visibleSSIDs)
                .suspectedTypos(
                    in: settings.networkRules)
        } catch { networkReport.troubles.append("cannot read the state of the networks: \(error)") }
        return networkReport
    }

    /// The DNS servers that requests of a command to a destination or hook may ask; `nil` where no rule depends on
    /// networks.
    ///
    /// - Parameter network: With `any`, only networks that are not allowed at all are avoided.
    /// - Throws: Where the routes cannot be read: then none may be asked.
    func nameServers(
        for name: String, _ network: HookNetwork, _ settings: Settings
    ) async throws -> NameServers? {
        guard settings.allRules.contains(where: \.dependsOnNetwork) else { return nil }
        let policy = policy(settings, reaching: name)
        if network == .policy { return try await Self.nameServers(for: name, policy, managerReport) }
        let rules = policy.destination(name).rules.networks
        return try await blocking { [managerReport] in
            var inspection = try NetworkInspection(
                metering: Metering(links: try Links.all(), report: managerReport), gatewaysMatter: false)
            var metering = inspection.metering
            metering.rules = [settings.policy.rules.networks, rules]
            return try inspection.nameServers { [metering] paths in
                paths.contains { metering.judgement(of: $0).forbidden == nil }
            }
        }
    }

    /// The permitted DNS servers for a destination.
    private static func nameServers(
        for name: String, _ policy: PolicySnapshot, _ report: NetworkReport
    ) async throws -> NameServers {
        try await blocking {
            var inspection = try NetworkInspection(
                metering: Metering(links: try Links.all(), report: report), gatewaysMatter: false)
            let metering = inspection.metering
            return try inspection.nameServers { policy.allowsNameQueries(name, metering, $0) }
        }
    }

    /// The names that rules may use.
    ///
    /// - Parameters:
    ///   - defaultPaths: Paths out of this machine, besides those to destinations.
    ///   - heard: The names of Wi-Fi networks within reach.
    private func names(_ defaultPaths: [NetworkPath], _ heard: Set<[UInt8]>) -> NetworkNames {
        let links = metering?.links.values.sorted { $0.index < $1.index } ?? []
        let paths = reaches.values.flatMap { reachability -> [NetworkPath] in
            if case .over(let paths) = reachability { paths } else { [] }
        }
        return NetworkNames(
            interfaces: links.map(\.name),
            ssids: links.compactMap(\.writableSSID) + heard.compactMap(NetworkLink.writable).sorted(),
            gateways: (defaultPaths + paths).compactMap(\.gateway))
    }

    /// Records the interface that each destination is known to use.
    mutating func note(_ interfaces: [String: String]) {
        for index in self.interfaces.indices {
            let name = self.interfaces[index].name
            self.interfaces[index].carries = interfaces.filter { $0.value == name }.map(\.key).sorted()
        }
    }

    /// The report of NetworkManager and ModemManager; empty where they do not run.
    ///
    /// - Parameter hearingWiFi: Whether to include the Wi-Fi networks within reach.
    /// - Throws: When there is no thread or descriptor to ask with.
    package static func managers(hearingWiFi: Bool = false) async throws -> NetworkReport {
        let events = try NetworkManagerEvents(listsWiFi: hearingWiFi)
        let (reports, told) = AsyncStream<NetworkReport>.makeStream()
        let listening = Task { try await events.run { told.yield($0) } }
        defer { events.stop() }
        var first = NetworkReport()
        for await report in reports {
            first = report
            break
        }
        events.stop()
        try await listening.value
        return first
    }

    /// The state of policy, as far as it can be seen without a daemon.
    ///
    /// - Parameters:
    ///   - account: A hook that has to be reached besides the destinations.
    ///   - facts: Facts besides those about networks.
    func policy(
        _ settings: Settings, reaching account: String? = nil, _ facts: SchedulerFacts = SchedulerFacts()
    ) -> PolicySnapshot {
        let unseen = Reachability.unseen(troubles.last ?? "the state of the networks was not read")
        var reaches = reaches
        for name in settings.destinations.map(\.name) + [account].compactMap({ $0 }) where reaches[name] == nil {
            reaches[name] = unseen
        }
        return PolicySnapshot(standalone: settings, reaches, metering, facts, clocks: SystemClocks())
    }

    private mutating func judge(_ metering: Metering, _ sites: [String: DestinationSite], _ settings: Settings) {
        var metering = metering
        let policy = policy(settings)
        var carries: [Int32: [String]] = [:]
        for destination in settings.destinations {
            guard let reachability = reaches[destination.name], let site = sites[destination.name] else { continue }
            withoutEffect += destination.policy.rules.withoutEffect(at: site, reachability).map {
                (destination.name, $0)
            }
            let state = policy.destination(destination.name)
            if let choice = policy.choice(to: state, from: nil) { choices.append((destination.name, choice)) }
            switch policy.routeDecision(to: state, from: nil) {
            case .closed(let found, _): if let hold = found.first { holds.append((destination.name, hold)) }
            case .open(let route):
                guard case .over(let paths) = reachability else { continue }
                let path = paths.first { metering.links[$0.link]?.name == route.interface } ?? paths.first
                if let path { carries[path.link, default: []].append(destination.name) }
            }
        }
        metering.rules = [settings.policy.rules.networks]
        for link in metering.links.values.sorted(by: { $0.index < $1.index }) where link.medium != .loopback {
            let judgement = metering.judgement(of: NetworkPath(link: link.index))
            interfaces.append(
                Interface(
                    name: link.name, isUsable: link.isUsable, reason: judgement.reason, remedy: judgement.remedy,
                    forbidden: judgement.forbidden, carries: carries[link.index] ?? []))
        }
    }
}
