internal import Config
internal import Core
internal import Linux
internal import Names
internal import Store

// Which way bytes may take now, and what follows when that changes.

extension Dispatcher {
    /// How a destination is reached, since when.
    struct Reached: Sendable {
        var reach: Reach
        var way: Admission.Way
        var since: WallTime

        var isUnseen: Bool { if case .unseen = reach { true } else { false } }
    }

    /// Some rule depends on what bytes cost.
    private var dependsOnNetwork: Bool { house.settings.allRules.contains(where: \.dependsOnNetwork) }

    /// Listens to the networks until ``Networks/stop()``, and looks at them for the first time.
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

    /// News came.
    func networkChanged(_ kind: NetworkNews.Kind) async {
        if kind == .mayForbid { return await lookAtNetwork() }
        if isNetworkDue { return }
        isNetworkDue = true
        // What gets better comes in many pieces: a link, its addresses, its routes.
        lookLater(.milliseconds(250))
    }

    /// A destination could not be reached. Where it is held to an interface, it may be behind another one by now.
    func doubtNetwork() {
        if network == nil { return }
        networks.doubtNames()
        lookLater(.milliseconds(250))
    }

    private static let nameServerPause: Duration = .seconds(10)

    /// - Parameter before: Done just before.
    private func lookLater(_ wait: Duration, before: (@Sendable (isolated Dispatcher) -> Void)? = nil) {
        _ = Alarms.shared.set(after: wait) { [weak self] in
            Task {
                guard let self else { return }
                await before?(self)
                await self.lookAtNetwork()
            }
        }
    }

    /// Looks at the networks, stops what may not go on, and lets go what may go now.
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
            // The last rule is gone that needed them: the system looks names up again.
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
            // Asked without a time, so that it compares.
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
        // With its approval an interface loses what is kept open over it, and what belongs to no transfer.
        await close(interfaces: stopForbidden().union(lent.subtracting(approved)))
        if picture.isUnfinished, unfinishedLooks < 50 {
            unfinishedLooks += 1
            lookLater(.milliseconds(100))
        } else if !picture.isUnfinished {
            unfinishedLooks = 0
        }
        if picture.waitsForNameServer, !looksForNameServer {
            // Whoever writes the file tells nobody, and may write it in place.
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
        // Nobody has answered yet, which is no news; nor is it when they have.
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

    /// Closes what is open over interfaces that nothing goes over any more. Whoever asks about holds meanwhile waits, so that
    /// nothing leaves after one was told.
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

    /// What a transfer has opened leads nowhere any more. It has not failed, and begins anew where it stands.
    func addressLost(_ number: Int) {
        guard let transfer = transfers[number], !transfer.task.isCancelled else { return }
        house.log.notice("this machine's address has changed", ["destination": transfer.destination])
        transfer.task.cancel()
    }

    /// The way for files of a folder, or for what belongs to none.
    func way(to destination: String, from folder: String?) -> Admission.Way {
        admission.way(to: remote(destination), from: folder.map { origin($0) }, in: world)
    }

    /// By which interface each destination is reached, where that is known and held to.
    var interfaces: [String: String] {
        house.destinations.keys.reduce(into: [:]) { found, name in
            if case .open(let passage)? = reached[name]?.way, let interface = passage.interface {
                found[name] = interface
            }
        }
    }

    /// How the requests of work go that belongs to no file; `nil` where no way is open. Its account is to be closed.
    func lane(to destination: String) -> Lane? {
        guard case .open(let passage) = way(to: destination, from: nil) else { return nil }
        return lane(to: destination, by: passage)
    }

    /// - Parameter isExcused: Neither its quotas nor a limit of speed hold it. It counts all the same.
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

    /// What the next files to a destination are reserved from.
    ///
    /// - Parameter excuses: What a person lets this one upload off.
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

    /// Whether a transfer may go on the way that it took, and no other spares what that costs.
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
    /// Nothing is different for what is under way.
    func isSame(as other: Self) -> Bool {
        interface == other.interface && countsAsMetered == other.countsAsMetered && cost == other.cost
    }
}

extension Settings {
    /// Bytes a second over metered networks, by the place of the configuration.
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
    /// What holds for a folder cannot be told of files that go together with those of others.
    var goesAlone: Bool { concurrency != nil || beforeUpload != nil || rules.dependsOnNetwork }
}
