internal import Core
internal import Linux
internal import Names

/// The networks and the route to each destination, from the last inspection.
struct NetworkMonitor: Sendable, RecordsChanges {
    /// The routes to a destination, the decision of policy about them, and since when it holds.
    struct Reached: Sendable {
        var reachability: Reachability
        /// `nil` where none was needed yet.
        var route: Admission.RouteDecision?
        var since: WallTime

        var isUnseen: Bool { if case .unseen = reachability { true } else { false } }
    }

    var changes: FactChanges = []
    /// The state of the networks; `nil` while no rule depends on it.
    private(set) var metering: Metering? { didSet { if metering != oldValue { changes.insert(.policy) } } }
    /// The route to each destination, to each hook whose bytes policy applies to, and to each server that a program is
    /// connected to.
    private(set) var routes: [String: Reached] = [:]
    /// The addresses of this machine.
    private var addresses: Set<IPAddress> = []
    private var isInspecting = false
    private var inspectsAgain = false
    /// Whether an inspection is about to begin.
    private var isDue = false
    /// Consecutive inspections that have not found out everything.
    private var unfinishedInspections = 0
    /// Whether it will check again in a while for another DNS server.
    private var waitsForNameServer = false
    /// Interfaces that something was sent over since they were closed.
    private var openInterfaces: Set<String> = []
    /// Connections being closed because nothing may leave by their interface any more.
    private(set) var closing: Task<Void, Never>?

    static let nameServerPause: Duration = .seconds(10)

    /// Records that an improvement was reported.
    ///
    /// - Returns: Whether to inspect the networks in a moment; `false` where that is planned already.
    mutating func noteImprovement() -> Bool {
        defer { isDue = true }
        return !isDue
    }

    /// - Returns: Whether to begin an inspection now. One that is under way is repeated at its end.
    mutating func beginInspection() -> Bool {
        isDue = false
        inspectsAgain = isInspecting
        if isInspecting { return false }
        isInspecting = true
        return true
    }

    mutating func beginRound() { inspectsAgain = false }

    /// - Returns: Whether to inspect once more.
    mutating func endRound() -> Bool {
        isInspecting = inspectsAgain
        return inspectsAgain
    }

    /// Records the route to a server that a program wants to connect to. An inspection that is under way does not know
    /// the server: it is repeated.
    mutating func add(_ place: String, _ reachability: Reachability, at now: WallTime) {
        routes[place] = Reached(reachability: reachability, since: now)
        if isInspecting { inspectsAgain = true }
    }

    /// Records the routes that one inspection has found, without a decision.
    mutating func set(_ reaches: [String: Reachability], at now: WallTime) {
        routes = reaches.mapValues { Reached(reachability: $0, since: now) }
        changes.insert(.policy)
    }

    /// - Parameter isForFolders: Whether a folder has rules about networks of its own. These may decide otherwise
    ///   although the route to each destination stays as it is.
    mutating func set(_ metering: Metering?, isForFolders: Bool = false) {
        if isForFolders, metering != self.metering { changes.insert(.scheduling) }
        self.metering = metering
    }

    /// - Returns: The addresses that the machine has lost.
    mutating func set(addresses: Set<IPAddress>) -> Set<IPAddress> {
        defer { self.addresses = addresses }
        return self.addresses.subtracting(addresses)
    }

    /// Records the route to each of these places, as an inspection has found it.
    ///
    /// - Parameter decide: The decision of policy about a place that is reached like this.
    /// - Returns: The places that are reached otherwise than before.
    mutating func apply(
        _ networkState: NetworkState, at names: some Collection<String>, now: WallTime, _ log: Log,
        decide: (_ name: String, Reachability) -> Admission.RouteDecision
    ) -> Set<String> {
        var changed: Set<String> = []
        var isKnown = false
        for name in names {
            let reachability =
                networkState.reaches[name] ?? routes[name]?.reachability ?? .unseen(Admission.notExamined)
            let reached = Reached(reachability: reachability, route: decide(name, reachability), since: now)
            let (isChange, isNew, before) = record(reached, for: name)
            if isNew { report(name, reached, after: before, log) }
            if isChange { changed.insert(name) }
            // The first route too: a notice may wait for it that needs no rule to be fulfilled.
            isKnown = isKnown || isNew
        }
        let names = Set(names)
        routes = routes.filter { names.contains($0.key) }
        if !changed.isEmpty || isKnown { changes.formUnion([.scheduling, .removals, .notices]) }
        return changed
    }

    /// Records the route to a destination.
    ///
    /// - Returns: Whether there was another route before, and whether this is to be logged.
    mutating func record(_ now: Reached, for name: String) -> (isChange: Bool, isNew: Bool, before: Reached?) {
        let before = routes[name]
        if before?.route != now.route || before?.reachability != now.reachability { changes.insert(.policy) }
        if let before, before.route == now.route {
            routes[name]?.reachability = now.reachability
            return (false, false, before)
        }
        routes[name] = now
        // That the routes are known now, as after a start, is no change of the network: it ends no waits.
        if case .unseen? = before?.reachability { return (false, true, before) }
        return (before != nil, true, before)
    }

    /// When to inspect again after an inspection.
    ///
    /// - Returns: `soon`: a question is pending whose answer arrives in a moment. `later`: another DNS server may be
    ///   written into resolv.conf(5), without notice and perhaps in place.
    mutating func finished(_ networkState: NetworkState) -> (soon: Bool, later: Bool) {
        var (soon, later) = (false, false)
        if networkState.isUnfinished, unfinishedInspections < 50 {
            unfinishedInspections += 1
            soon = true
        } else if !networkState.isUnfinished {
            unfinishedInspections = 0
        }
        if networkState.waitsForNameServer, !waitsForNameServer {
            waitsForNameServer = true
            later = true
        }
        return (soon, later)
    }

    mutating func nameServerPauseEnded() { waitsForNameServer = false }

    /// The interface of each route that is open and bound to one.
    var interfaces: [String: String] {
        routes.compactMapValues { reached in
            if case .open(let route) = reached.route { route.interface } else { nil }
        }
    }

    /// Something is sent over an interface.
    mutating func recordUse(_ interface: String?) { if let interface { openInterfaces.insert(interface) } }

    /// The interfaces that were used and that no route is bound to any more.
    var unapproved: Set<String> { openInterfaces.subtracting(interfaces.values) }

    mutating func close(_ interfaces: Set<String>, by task: Task<Void, Never>) {
        openInterfaces.subtract(interfaces)
        closing = task
    }

    /// Logs a route that opens or closes.
    private func report(_ name: String, _ now: Reached, after before: Reached?, _ log: Log) {
        // Neither a state before the first answer nor the first answer is logged.
        if now.isUnseen, before == nil { return }
        switch now.route {
        case .open(let route):
            guard let interface = route.interface else {
                if let before, case .closed = before.route, !before.isUnseen {
                    log.notice("network available again", ["destination": name])
                }
                return
            }
            log.notice("route available", ["destination": name, "interface": interface, "reason": route.reason])
        case .closed(let holds, _):
            guard let hold = holds.first else { return }
            log.notice("no route available", ["destination": name, "hold": hold.kind.rawValue, "reason": hold.text])
        case nil: break
        }
    }
}
