internal import Core
internal import Linux
internal import Names
internal import Synchronization

/// The state of the networks and the routes to each destination, from one inspection.
struct NetworkState: Sendable {
    /// `nil` where no rule depends on the cost of bytes, and where the cost cannot be found out.
    var metering: Metering?
    /// The addresses of this machine; `nil` where they could not be found out.
    var addresses: Set<IPAddress>?
    /// By the name of the destination.
    var reaches: [String: Reachability] = [:]
    /// The permitted DNS servers for each destination that needs them; `nil` if they could not be determined.
    var nameServers: [String: NameServers]?
    /// Whether a question is pending whose answer arrives in a moment by itself, without events.
    var isUnfinished = false
    /// Whether some name waits for a DNS server that no allowed interface leads to: another one may be written into
    /// resolv.conf(5).
    var waitsForNameServer: Bool {
        nameServers?.values.contains { $0.interfaces.isEmpty && !$0.hasLocal && !$0.forbidden.isEmpty } ?? false
    }
}

/// Inspects the networks for the scheduler, and reports when they change. It decides nothing.
///
/// It always listens to the kernel, which causes no wake-up while nothing happens, and reports when a destination can
/// be reached again. It listens to NetworkManager and ModemManager while some rule depends on the cost of bytes.
final class NetworkInspector: Sendable {
    private struct State {
        var onChange: (@Sendable (NetworkEvents.Kind) -> Void)?
        var events: NetworkEvents?
        var managers: NetworkManagerEvents?
        /// `nil` until the managers have answered, or have turned out not to run.
        var report: NetworkReport?
        var names: [String: Name] = [:]
    }

    private struct Name {
        var addresses: [IPAddress]?
        /// `nil` where there is no trouble.
        var trouble: Trouble?
        var askedAt: MonotonicTime
        var isAsked = true
        var asking: Task<Void, Never>?
    }

    private enum Trouble {
        /// No DNS server is permitted, with the reason.
        case forbidden(String)
        case other
    }

    /// The state of the lookup of a destination's host name.
    private enum Answer {
        case known([IPAddress])
        case pending
        case unknown
        case forbidden(String)
    }

    private let state = Mutex(State())
    private let clocks: any Clocks
    private let busAddress: String
    private let names: AddressCache

    private static let nameLifetime: Duration = .seconds(600)
    private static let failureLifetime: Duration = .seconds(30)

    init(clocks: any Clocks, names: AddressCache, busAddress: String) {
        self.clocks = clocks
        self.names = names
        self.busAddress = busAddress
    }

    /// Listens to the kernel, from before the first inspection.
    ///
    /// - Parameter tell: Called for every change, from any source; `mayForbid` has to be handled at once.
    /// - Throws: `SystemError` where listening fails: changes are then not noticed.
    func listen(_ tell: @escaping @Sendable (NetworkEvents.Kind) -> Void) throws {
        state.withLock { $0.onChange = tell }
        let events = try NetworkEvents { [weak self] kind in
            guard let self else { return }
            // In another network the name may have another address.
            if kind == .mayForbid { self.cancelQueries() }
            self.expireNames()
            self.state.withLock { $0.managers }?.checkAgain()
            self.notify(kind)
        }
        state.withLock { $0.events = events }
    }

    /// Starts or stops listening to NetworkManager and ModemManager.
    func listenToManagers(_ isWanted: Bool) {
        let isNew = state.withLock { ($0.managers != nil) != isWanted }
        if !isNew { return }
        guard isWanted else {
            let old = state.withLock { state in
                defer { (state.managers, state.report) = (nil, nil) }
                return state.managers
            }
            old?.stop()
            return
        }
        do {
            let managers = try NetworkManagerEvents(address: busAddress)
            state.withLock { $0.managers = managers }
            Task {
                do {
                    try await managers.run { [weak self] report in
                        guard let self else { return }
                        self.state.withLock { $0.report = report }
                        self.notify(.mayForbid)
                    }
                } catch { self.cannotListen("\(error)") }
            }
        } catch { cannotListen("\(error)") }
    }

    private func cannotListen(_ reason: String) {
        state.withLock { state in
            state.report = NetworkReport()
            state.report?.trouble = reason
        }
        notify(.mayForbid)
    }

    /// A destination could not be reached: its name may have another address by now.
    func expireNames() {
        names.forget()
        state.withLock { state in
            for (name, known) in state.names where !known.isAsked { state.names[name]?.askedAt = .longAgo }
        }
    }

    /// From now on the questions may have to take another route.
    private func cancelQueries() {
        let tasks = state.withLock { $0.names.values.compactMap(\.asking) }
        for task in tasks { task.cancel() }
    }

    private func notify(_ kind: NetworkEvents.Kind) { state.withLock { $0.onChange }?(kind) }

    func stop() {
        let (events, managers) = state.withLock { ($0.events, $0.managers) }
        events?.stop()
        managers?.stop()
        cancelQueries()
    }

    /// The latest report of the managers; `nil` before the first.
    var report: NetworkReport? { state.withLock { $0.report } }

    /// - Parameters:
    ///   - sites: The location of each destination.
    ///   - depends: Whether some rule depends on the cost of bytes.
    ///   - gatewaysMatter: Whether some rule identifies networks by their gateways.
    ///   - mayAsk: Whether bytes might be sent to a destination by some of these interfaces: if by none, its name is
    ///     not looked up either.
    func inspect(
        at sites: [String: DestinationSite], depends: Bool, gatewaysMatter: Bool,
        mayAsk: @escaping @Sendable (String, Metering, [NetworkPath]) -> Bool
    ) async -> NetworkState {
        let report = report
        do {
            return try await blocking { [self] in
                var inspection = try NetworkInspection(
                    metering: Metering(links: try Links.all(), report: report ?? NetworkReport()),
                    gatewaysMatter: gatewaysMatter)
                let metering = inspection.metering
                var networkState = NetworkState(
                    metering: depends ? metering : nil,
                    addresses: Set(metering.links.values.flatMap(\.addresses).map(\.address)))
                // Without a rule that depends on them the system resolves names.
                networkState.nameServers = [:]
                for (name, site) in sites {
                    if depends, report == nil, site.isOverNetwork {
                        networkState.reaches[name] = .unseen("NetworkManager and ModemManager have not answered yet")
                        continue
                    }
                    let mayGo = { paths in mayAsk(name, metering, paths) }
                    var servers = NameServers()
                    if depends, site.isOverNetwork { servers = try inspection.nameServers(mayGo) }
                    if depends { networkState.nameServers?[name] = servers }
                    networkState.reaches[name] = try reachability(
                        site, &inspection, servers, depends: depends, mayAsk: mayGo)
                }
                networkState.isUnfinished = inspection.isUnfinished
                try state.withLock { $0.events }?.follow(
                    inspection.routers, hasOverlay: metering.links.values.contains { $0.kind == "vxlan" })
                return networkState
            }
        } catch {
            return NetworkState(
                metering: nil, reaches: sites.mapValues { _ in .unseen("\(error)") }, nameServers: depends ? nil : [:])
        }
    }

    /// The routes to a server whose addresses are known.
    ///
    /// - Parameter gatewaysMatter: Whether some rule identifies networks by their gateways.
    /// - Returns: Also the addresses that belong to other machines; and whether a question is pending whose answer
    ///   arrives in a moment.
    func find(
        _ addresses: [IPAddress], port: UInt16, gatewaysMatter: Bool
    ) async -> (addresses: [IPAddress], reachability: Reachability, isUnfinished: Bool) {
        let report = report
        do {
            return try await blocking {
                var inspection = try NetworkInspection(
                    metering: Metering(links: try Links.all(), report: report ?? NetworkReport()),
                    gatewaysMatter: gatewaysMatter)
                let own = Set(inspection.metering.links.values.flatMap(\.addresses).map(\.address))
                let others = try addresses.filter { address in
                    // The kernel also keeps addresses to this machine that no interface has.
                    try address.mayBeElsewhere && !own.contains(address) && Routes.route(to: address)?.link != 1
                }
                if others.isEmpty { return ([], .local, false) }
                return (others, try inspection.reachability(others, port), inspection.isUnfinished)
            }
        } catch { return (addresses.filter(\.mayBeElsewhere), .unseen("\(error)"), false) }
    }

    private func reachability(
        _ site: DestinationSite, _ inspection: inout NetworkInspection, _ servers: NameServers, depends: Bool,
        mayAsk: ([NetworkPath]) -> Bool
    ) throws -> Reachability {
        switch site {
        case .here: return .local
        case .folder(let path, let cost): return inspection.reachability(folder: path, cost)
        case .addresses(let addresses, let port): return try inspection.reachability(addresses, port)
        case .anywhere:
            let paths = depends ? try inspection.possiblePaths() : []
            if depends, !paths.isEmpty { return .over(paths) }
            return !depends && inspection.leadsAnywhere ? .any : .offline("no network interface is up")
        case .server(let host, let port, let family):
            if let address = IPAddress(host) { return try inspection.reachability([address], port) }
            if !depends {
                return inspection.leadsAnywhere || host == "localhost"
                    ? .any : .offline("no network interface is up")
            }
            let paths = try inspection.possiblePaths()
            if host != "localhost" {
                if paths.isEmpty { return .offline("no network interface is up") }
                // Its address may turn out to be in the local network, or not.
                let mayAskIf = [true, false].contains { isOnLink in
                    mayAsk(
                        paths.map { path in
                            var path = path
                            path.isOnLink = isOnLink
                            return path
                        })
                }
                if !mayAskIf { return .over(paths) }
            }
            switch answer(host, servers) {
            case .known(let addresses):
                let usable = addresses.filter(family.includes)
                return usable.isEmpty ? .over(paths) : try inspection.reachability(usable, port)
            case .pending: return .offline("DNS lookup of \(printable(host)) is in progress")
            // An attempt to connect reports the reason.
            case .unknown: return .over(paths)
            case .forbidden(let text): return .offline(text)
            }
        }
    }

    /// The known state of a name. Starts a lookup where nothing is known, or the answer is old.
    private func answer(_ host: String, _ servers: NameServers) -> Answer {
        let now = clocks.monotonic()
        let (answer, isToAsk) = state.withLock { state -> (Answer, Bool) in
            guard let known = state.names[host] else {
                state.names[host] = Name(askedAt: now)
                return (.pending, true)
            }
            let answer =
                switch (known.addresses, known.trouble) {
                case (let addresses?, _): Answer.known(addresses)
                case (nil, .forbidden(let text)?): Answer.forbidden(text)
                case (nil, _): known.isAsked ? Answer.pending : .unknown
                }
            var limit = known.addresses == nil ? Self.failureLifetime : Self.nameLifetime
            // A permitted server is available now.
            if case .forbidden? = known.trouble, !servers.interfaces.isEmpty || servers.hasLocal { limit = .zero }
            guard !known.isAsked, now.since(known.askedAt) > limit else { return (answer, false) }
            state.names[host]?.isAsked = true
            state.names[host]?.askedAt = now
            return (answer, true)
        }
        if isToAsk {
            let task = Task { await self.query(host, servers) }
            // If the task has already ended, cancelling it later does nothing.
            state.withLock { $0.names[host]?.asking = task }
        }
        return answer
    }

    private func query(_ host: String, _ servers: NameServers) async {
        let answer: Result<[IPAddress], any Error>
        do { answer = .success(try await names.addresses(of: host, servers, isFresh: true)) } catch {
            answer = .failure(error)
        }
        let isNew = state.withLock { state in
            let before = state.names[host]
            var name = Name(addresses: before?.addresses, askedAt: before?.askedAt ?? .longAgo, isAsked: false)
            switch answer {
            case .success(let addresses): name.addresses = addresses
            // The old addresses stay: an old answer is better than none.
            case .failure(let error as DNSLookup.LookupError):
                name.trouble = if case .notAllowed(let text) = error { .forbidden(text) } else { .other }
            case .failure(is CancellationError): name.askedAt = .longAgo
            case .failure: name.trouble = .other
            }
            state.names[host] = name
            return before?.addresses != name.addresses || before?.addresses == nil
        }
        if isNew { notify(.mayForbid) }
    }
}

extension MonotonicTime {
    fileprivate static let longAgo = MonotonicTime(nanoseconds: Int64.min / 2)
}

extension Metering {
    init(links: [NetworkLink], report: NetworkReport) {
        var modems: [String: ModemBearer] = [:]
        for name in report.modemManager.bearers.keys {
            modems[name] = report.bearer(name).map { ModemBearer(isRoaming: $0.isRoaming) }
        }
        var links = links
        for (index, link) in links.enumerated() where link.ssid == nil {
            // The kernel does not report the SSID to every process.
            if let device = report.networkManager.devices[link.name], device.isCurrent {
                links[index].ssid = device.ssid
            }
        }
        let managed = report.networkManager.devices.keys.map { name in
            (name, NetworkManagerMetered(rawValue: report.metered(name).rawValue) ?? .unknown)
        }
        self.init(links: links, managed: Dictionary(managed, uniquingKeysWith: { $1 }), modems: modems)
    }
}
