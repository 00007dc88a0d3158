internal import Config
internal import Core
internal import Linux
internal import Names
internal import Store

// The interfaces that bytes may use now, and the consequences when that changes.

extension Dispatcher {
    /// The route to a destination, and since when it holds.
    struct Reached: Sendable {
        var reach: Reach
        var way: Admission.Way
        var since: WallTime

        var isUnseen: Bool { if case .unseen = reach { true } else { false } }
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
    func networkChanged(_ kind: NetworkNews.Kind) async {
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
    private func lookLater(_ wait: Duration, before: (@Sendable (isolated Dispatcher) -> Void)? = nil) {
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
            let (admission, world) = (admission, world)
            let sites = house.sites
            let remotes = Dictionary(sites.keys.map { ($0, remote($0)) }, uniquingKeysWith: { $1 })
            let picture = await networks.look(
                at: sites, depends: depends,
                gatewaysMatter: rules.contains { $0.networks.contains { $0.gateway != nil } }
            ) { name, metering, paths in
                guard var remote = remotes[name] else { return false }
                var world = world
                world.network = metering
                remote.reach = .over(paths)
                if case .open = admission.way(to: remote, in: world) { return true }
                return false
            }
            await take(picture)
        } while looksAgain
        isLooking = false
    }

    private func take(_ picture: NetworkPicture) async {
        network = picture.metering
        if let nameServers = picture.nameServers {
            house.lanes.set(nameServers: nameServers)
        } else if !dependsOnNetwork {
            // The last rule that needed them is gone: the system looks names up again.
            house.lanes.set(nameServers: [:])
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
            let reach = picture.reaches[name] ?? reached[name]?.reach ?? .unseen(Admission.notLookedAt)
            var now = Reached(reach: reach, way: .open(.local), since: now)
            // With a fixed time, so that the results can be compared.
            var remote = remote(name)
            (remote.reach, remote.reachSince) = (reach, WallTime(milliseconds: 0))
            now.way = admission.way(to: remote, in: world)
            guard let before = reached[name], before.way == now.way else {
                if reached[name] != nil { changed.insert(name) }
                tell(name, now, after: reached[name])
                reached[name] = now
                continue
            }
            reached[name]?.reach = reach
        }
        reached = reached.filter { sites[$0.key] != nil }
        setLimits()
        let approved = reached.values.compactMap { now -> String? in
            if case .open(let passage) = now.way { passage.interface } else { nil }
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
        for bell in [house.removalBell, house.hookBell] { bell.ring() }
        do { try await reconsider(changed) } catch {
            house.log.debug("waits go on as they were", ["reason": "\(error)"])
        }
    }

    private func tell(_ name: String, _ now: Reached, after before: Reached?) {
        // Before the first answer there is no news, and the first answer is no news either.
        if now.isUnseen, before == nil { return }
        switch now.way {
        case .open(let passage):
            guard let interface = passage.interface else {
                if let before, case .closed = before.way, !before.isUnseen {
                    house.log.notice("the network is there again", ["destination": name])
                }
                return
            }
            house.log.notice(
                "a way is open", ["destination": name, "interface": interface, "reason": passage.reason])
        case .closed(let holds, _):
            guard let hold = holds.first else { return }
            house.log.notice(
                "no way is open", ["destination": name, "hold": hold.kind.rawValue, "reason": hold.text])
        }
    }

    /// Closes the connections over interfaces that nothing uses any more. Queries about holds wait for it, so that no
    /// byte is sent after a hold was reported.
    private func close(interfaces: Set<String>) async {
        let used = Set(transfers.values.filter { !$0.task.isCancelled }.compactMap(\.passage.interface))
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
    func way(to destination: String, from folder: String?) -> Admission.Way {
        admission.way(to: remote(destination), from: folder.map { origin($0) }, in: world)
    }

    /// The interface of each destination, where it is known and fixed.
    var interfaces: [String: String] {
        house.destinations.keys.reduce(into: [:]) { found, name in
            if case .open(let passage)? = reached[name]?.way, let interface = passage.interface {
                found[name] = interface
            }
        }
    }

    /// The permission for requests that belong to no file; `nil` where no way is open. Its account has to be closed.
    func lane(to destination: String) -> Lane? {
        guard case .open(let passage) = way(to: destination, from: nil) else { return nil }
        return lane(to: destination, by: passage)
    }

    /// - Parameter isExcused: Neither its quotas nor a rate limit hold it. Its bytes are counted nevertheless.
    func lane(to destination: String, by passage: Admission.Passage, isExcused: Bool = false) -> Lane {
        let account = Account(
            SpendingAccount(destination: destination, folder: nil, network: passage.ledger),
            QuotaBook.Class(destination, from: nil, isMetered: passage.countsAsMetered), step: nil,
            isExcused: isExcused, isFree: passage.ledger == .local, in: house.ledger)
        var lane =
            isExcused
            ? house.lanes.freeLane(to: destination, passage)
            : house.lanes.lane(to: destination, from: nil, passage)
        lane.account = account
        if let interface = lane.interface { lent.insert(interface) }
        return lane
    }

    /// Routes and quota reservations for the next files to a destination.
    ///
    /// - Parameter excuses: The rules that a person waived for this one upload.
    func purse(for destination: String, excusing excuses: Set<Excuse> = []) -> Purse {
        let folders = house.settings.folders.map { folder in
            var origin = origin(folder.watch.name)
            origin.excused.formUnion(excuses)
            return (folder.watch.name, origin)
        }
        return Purse(
            destination: destination, admission: admission, world: world, remote: remote(destination),
            origins: Dictionary(folders, uniquingKeysWith: { $1 }),
            countsNotes: house.destinations[destination]?.site.isFolder ?? false, ledger: house.ledger)
    }

    /// Whether a transfer may continue on its way, and no other way avoids the cost of it.
    func mayGoOn(_ transfer: Transfer) -> Bool {
        let folders = Set(transfer.folders.values)
        let remote = remote(transfer.destination)
        let origin = folders.count == 1 ? origins(of: transfer).first : nil
        var own = remote
        if let interface = transfer.passage.interface, case .over(let paths) = remote.reach {
            let same = paths.filter { network?.links[$0.link]?.name == interface }
            if same.isEmpty { return false }
            own.reach = .over(same)
        }
        guard case .open(let passage) = admission.way(to: own, from: origin, in: world),
            passage.isSame(as: transfer.passage)
        else { return false }
        if !passage.countsAsMetered { return true }
        guard case .open(let best) = admission.way(to: remote, from: origin, in: world) else { return true }
        return best.countsAsMetered
    }
}

extension Admission.Passage {
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
