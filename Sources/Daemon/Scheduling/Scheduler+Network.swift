internal import Config
internal import Core
internal import Linux
internal import Names
internal import Store

// The interfaces that bytes may use now, and the consequences when that changes.

extension Scheduler {
    /// The route to a destination, and since when it holds.
    struct Reached: Sendable {
        var reachability: Reachability
        var way: Admission.RouteDecision
        var since: WallTime

        var isUnseen: Bool { if case .unseen = reachability { true } else { false } }
    }

    /// Whether some rule depends on the cost of bytes.
    private var dependsOnNetwork: Bool { house.settings.allRules.contains(where: \.dependsOnNetwork) }

    /// Listens to the networks until ``Networks/stop()``, and inspects them for the first time.
    func beginNetwork() async {
        do {
            try networks.listen { [weak self] kind in
                Task { await self?.networkChanged(kind) }
            }
        } catch {
            house.log.warning("changes of the network will not be noticed", ["reason": "\(error)"])
        }
        await lookAtNetwork()
    }

    /// Handles a change of the networks.
    func networkChanged(_ kind: NetworkEvents.Kind) async {
        if kind == .mayForbid { return await lookAtNetwork() }
        if isNetworkDue { return }
        isNetworkDue = true
        // An improvement arrives in many pieces: a link, its addresses, its routes.
        lookLater(.milliseconds(250))
    }

    /// A destination could not be reached. If its interface is fixed, it may be reachable by another one by now.
    func doubtNetwork() {
        if network == nil { return }
        networks.doubtNames()
        lookLater(.milliseconds(250))
    }

    private static let nameServerPause: Duration = .seconds(10)

    /// - Parameter before: Run just before the inspection.
    private func lookLater(_ wait: Duration, before: (@Sendable (isolated Scheduler) -> Void)? = nil) {
        _ = Alarms.shared.set(after: wait) { [weak self] in
            Task {
                guard let self else { return }
                await before?(self)
                await self.lookAtNetwork()
            }
        }
    }

    /// Inspects the networks, stops transfers that may not continue, and wakes uploads that may be sent now.
    func lookAtNetwork() async {
        isNetworkDue = false
        if isLooking {
            looksAgain = true
            return
        }
        isLooking = true
        repeat {
            looksAgain = false
            let depends = dependsOnNetwork
            networks.listenToManagers(depends)
            let rules = house.settings.allRules
            let (admission, inputs) = (admission, inputs)
            let sites = house.sites
            let remotes = Dictionary(sites.keys.map { ($0, remote($0)) }, uniquingKeysWith: { $1 })
            let picture = await networks.inspect(
                at: sites, depends: depends,
                gatewaysMatter: rules.contains { $0.networks.contains { $0.gateway != nil } }
            ) { name, metering, paths in
                guard var remote = remotes[name] else { return false }
                var inputs = inputs
                inputs.network = metering
                remote.reachability = .over(paths)
                if case .open = admission.way(to: remote, in: inputs) { return true }
                return false
            }
            await take(picture)
        } while looksAgain
        isLooking = false
    }

    private func take(_ picture: NetworkPicture) async {
        network = picture.metering
        if let nameServers = picture.nameServers {
            house.bandwidth.set(nameServers: nameServers)
        } else if !dependsOnNetwork {
            // The last rule that needed them is gone: the system looks names up again.
            house.bandwidth.set(nameServers: [:])
        }
        if let addresses = picture.addresses {
            let lost = self.addresses.subtracting(addresses)
            self.addresses = addresses
            if !lost.isEmpty { loseAddresses(lost) }
        }
        let now = house.clocks.wall()
        var changed: Set<String> = []
        let sites = house.sites
        for name in sites.keys {
            let reachability = picture.reaches[name] ?? reached[name]?.reachability ?? .unseen(Admission.notLookedAt)
            var now = Reached(reachability: reachability, way: .open(.local), since: now)
            // With a fixed time, so that the results can be compared.
            var remote = remote(name)
            (remote.reachability, remote.reachabilitySince) = (reachability, WallTime(milliseconds: 0))
            now.way = admission.way(to: remote, in: inputs)
            guard let before = reached[name], before.way == now.way else {
                if reached[name] != nil { changed.insert(name) }
                tell(name, now, after: reached[name])
                reached[name] = now
                continue
            }
            reached[name]?.reachability = reachability
        }
        reached = reached.filter { sites[$0.key] != nil }
        setLimits()
        let approved = reached.values.compactMap { now -> String? in
            if case .open(let route) = now.way { route.interface } else { nil }
        }
        // An interface that is no longer approved loses its idle connections, and requests that belong to no transfer.
        await close(interfaces: stopForbidden().union(lent.subtracting(approved)))
        if picture.isUnfinished, unfinishedLooks < 50 {
            unfinishedLooks += 1
            lookLater(.milliseconds(100))
        } else if !picture.isUnfinished {
            unfinishedLooks = 0
        }
        if picture.waitsForNameServer, !looksForNameServer {
            // Programs write the file without notice, and perhaps in place.
            looksForNameServer = true
            lookLater(Self.nameServerPause) { $0.looksForNameServer = false }
        }
        if changed.isEmpty { return }
        for signal in [house.removalSignal, house.hookSignal] { signal.signal() }
        do { try await reconsider(changed) } catch {
            house.log.debug("waits go on as they were", ["reason": "\(error)"])
        }
    }

    private func tell(_ name: String, _ now: Reached, after before: Reached?) {
        // Before the first answer there is no news, and the first answer is no news either.
        if now.isUnseen, before == nil { return }
        switch now.way {
        case .open(let route):
            guard let interface = route.interface else {
                if let before, case .closed = before.way, !before.isUnseen {
                    house.log.notice("the network is there again", ["destination": name])
                }
                return
            }
            house.log.notice(
                "a way is open", ["destination": name, "interface": interface, "reason": route.reason])
        case .closed(let holds, _):
            guard let hold = holds.first else { return }
            house.log.notice(
                "no way is open", ["destination": name, "hold": hold.kind.rawValue, "reason": hold.text])
        }
    }

    /// Closes the connections over interfaces that nothing uses any more. Queries about holds wait for it, so that no
    /// byte is sent after a hold was reported.
    private func close(interfaces: Set<String>) async {
        let used = Set(transfers.values.filter { !$0.task.isCancelled }.compactMap(\.route.interface))
        let idle = interfaces.subtracting(used)
        if idle.isEmpty { return }
        lent.subtract(idle)
        let closeInterface = closeInterface
        let task = Task { for interface in idle { await closeInterface(interface) } }
        closing = task
        await task.value
    }

    /// The transfer's connections have lost their local address. The transfer has not failed, and starts again from its
    /// checkpoint.
    func addressLost(_ number: Int) {
        guard let transfer = transfers[number], !transfer.task.isCancelled else { return }
        house.log.notice("this machine's address has changed", ["destination": transfer.destination])
        transfer.task.cancel()
    }

    /// The way for files of a folder, or for requests that belong to no folder.
    func way(to destination: String, from folder: String?) -> Admission.RouteDecision {
        admission.way(to: remote(destination), from: folder.map { origin($0) }, in: inputs)
    }

    /// The interface of each destination, where it is known and fixed.
    var interfaces: [String: String] {
        house.destinations.keys.reduce(into: [:]) { found, name in
            if case .open(let route)? = reached[name]?.way, let interface = route.interface {
                found[name] = interface
            }
        }
    }

    /// The permission for requests that belong to no file; `nil` where no way is open. Its account has to be closed.
    func permit(to destination: String) -> TransferPermit? {
        guard case .open(let route) = way(to: destination, from: nil) else { return nil }
        return permit(to: destination, by: route)
    }

    /// - Parameter isExcused: Neither its quotas nor a rate limit hold it. Its bytes are counted nevertheless.
    func permit(to destination: String, by route: Admission.Route, isExempt: Bool = false) -> TransferPermit {
        let account = QuotaAccount(
            SpendingAccount(destination: destination, folder: nil, network: route.ledger),
            QuotaState.Class(destination, from: nil, isMetered: route.countsAsMetered), step: nil,
            isExempt: isExempt, isFree: route.ledger == .local, in: house.ledger)
        var permit =
            isExempt
            ? house.bandwidth.freeLane(to: destination, route)
            : house.bandwidth.permit(to: destination, from: nil, route)
        permit.account = account
        if let interface = permit.interface { lent.insert(interface) }
        return permit
    }

    /// Routes and quota reservations for the next files to a destination.
    ///
    /// - Parameter excuses: The rules that a person waived for this one upload.
    func reservations(for destination: String, excusing exemptions: Set<Exemption> = []) -> ReservationBatch {
        let folders = house.settings.folders.map { folder in
            var origin = origin(folder.watch.name)
            origin.exempt.formUnion(exemptions)
            return (folder.watch.name, origin)
        }
        return ReservationBatch(
            destination: destination, admission: admission, inputs: inputs, remote: remote(destination),
            origins: Dictionary(folders, uniquingKeysWith: { $1 }),
            countsNotes: house.destinations[destination]?.site.isFolder ?? false, ledger: house.ledger)
    }

    /// Whether a transfer may continue on its way, and no other way avoids the cost of it.
    func mayGoOn(_ transfer: Transfer) -> Bool {
        let folders = Set(transfer.folders.values)
        let remote = remote(transfer.destination)
        let origin = folders.count == 1 ? origins(of: transfer).first : nil
        var own = remote
        if let interface = transfer.route.interface, case .over(let paths) = remote.reachability {
            let same = paths.filter { network?.links[$0.link]?.name == interface }
            if same.isEmpty { return false }
            own.reachability = .over(same)
        }
        guard case .open(let route) = admission.way(to: own, from: origin, in: inputs),
            route.isSame(as: transfer.route)
        else { return false }
        if !route.countsAsMetered { return true }
        guard case .open(let best) = admission.way(to: remote, from: origin, in: inputs) else { return true }
        return best.countsAsMetered
    }
}

extension Admission.Route {
    /// Whether the two make no difference for a running transfer.
    func isSame(as other: Self) -> Bool {
        interface == other.interface && countsAsMetered == other.countsAsMetered && cost == other.cost
    }
}

extension Settings {
    /// Limits in bytes a second over metered networks, by their places in the configuration.
    var meteredLimits: [String: Int64?] {
        var limits: [String: Int64?] = ["policy": policy.rules.meteredLimit]
        for destination in destinations {
            limits["destinations.\(destination.name)"] = .some(destination.policy.rules.meteredLimit)
        }
        for folder in folders { limits["folder \(folder.watch.name)"] = .some(folder.policy.rules.meteredLimit) }
        return limits
    }
}

extension PolicyOverrides {
    /// Whether a folder has rules of its own that cannot be applied to files which travel with those of other folders.
    var goesAlone: Bool { concurrency != nil || beforeUpload != nil || rules.dependsOnNetwork }
}
