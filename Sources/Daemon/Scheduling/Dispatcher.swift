internal import Config
internal import Core
internal import Destinations
internal import Linux
internal import Names
internal import Store

/// Decides what goes next, by asking `Core.Admission`, and sees each attempt through to its verdict.
///
/// It wakes when a bell rings or at the earliest deadline, and never otherwise.
actor Dispatcher {
    let house: House
    var health: [String: DestinationHealth] = [:]
    /// What runs, by the number of its transfer: one file, or several small ones.
    var transfers: [Int: Transfer] = [:]
    /// The transfer of each upload that runs.
    private var runs: [String: Int] = [:]
    private var lastTransfer = 0
    /// When the last pass began, by both clocks.
    var lookedAt = MonotonicTime(nanoseconds: 0)
    var lookedAtWall: WallTime?
    var pauses: [PauseRecord] = []
    /// Those of them that cut nothing that is under way.
    var gentle: Set<PausedPlace> = []
    /// What a person has said to be otherwise for a while.
    var exceptions: [ExceptionRecord] = []
    static let oldestClock = Zone.utc.start(of: sluiceIsYoungerThan)
    var trust = ClockTrust(oldest: oldestClock)
    /// Nothing gets too old before; `nil`: nobody has looked yet, or may have.
    var expiryLook: WallTime?
    /// What the machine runs on, as far as somebody needs to know.
    var power: Power?
    var powerWatch = PowerWatch()
    /// What the log was told of the reasons to wait.
    var holdNews = HoldNews<UploadClass>()
    /// What is known of the sources of `busy`.
    var busy = BusyBook()
    var busyLook = BusyLook()
    /// Tells when files of `busy` come and go; `nil` while there is none.
    var fileNews: FileNews?
    var listenedTo: Set<FilePath> = []
    /// Sources that are being asked.
    var busyAsks: [BusySource: Task<Void, Never>] = [:]
    /// How long new settings wait for the first look at the files that `busy` names.
    var busyPatience: Duration = .milliseconds(500)
    /// What is wrong with the clock, and was said.
    var clockTrouble: Hold?
    /// Destinations to which no byte may go, and where something is to be removed.
    var closedToRemovals: Set<String> = []
    /// What is under way besides transfers and obeys policy.
    var errands: [Int: Errand] = [:]
    var lastErrand = 0
    /// How often it has looked what may go, and how often policy was asked about a class for that, since the start.
    private(set) var looks = 0
    var evaluations = 0
    var isStopping = false
    /// Uploads that were completed since the start.
    var completed = 0
    /// How often transfers were told to stop: a claim during which that happened is given back.
    var stops = 0
    /// The destination that something was started to last.
    private var lastServed = ""
    /// How often a destination changed: what an attempt says counts only for the one that it was made with.
    var changes: [String: Int] = [:]
    /// Failures of the network or the server that an upload has met, until it is over.
    var strikes: [String: Int] = [:]
    /// Attempts in a row that an upload alone has to repeat, until it is over.
    var setbacks: [String: Int] = [:]
    /// What the log was told of bytes that were sent in vain, by upload, until it is over.
    var saidWaste: [String: Int64] = [:]
    /// Those that wait for a network that costs nothing, since so much of them was sent in vain.
    var wastedOnMetered: [String: UploadRecord] = [:]
    /// The code of the failure that the log was told of last, by destination.
    var said: [String: String] = [:]
    /// How many uploads each destination has taken since the start.
    var took: [String: Int] = [:]
    /// What ``took`` was when an upload was last refused for want of room, until it is over.
    var refusedForRoom: [String: Int] = [:]
    /// What each destination has refused for its key.
    var keyRefusals: [String: KeyRefusals] = [:]
    /// What waits for more of a quota than was left; `nil` before the waits of an earlier run were forgotten.
    var short: [String: Shortfall]?
    /// Waited so until a person let them off their quotas: in their turn they would only wait again.
    var shortAndExcused: Set<String> = []
    /// What is known of the room at each destination.
    var rooms: [String: RemoteRoom] = [:]
    /// How fast it is, as the store has it for the next run, and since when.
    var keptSpeeds: [String: (speed: Int64, at: MonotonicTime)] = [:]
    /// How many bytes one request to each destination carries, as the store has it, and which ``changes`` that was read at.
    var requestSizes: [String: (change: Int, size: RequestSize?)] = [:]
    /// Those that are being asked.
    var roomLooks: [String: Task<Void, Never>] = [:]

    /// What says when days begin, as it was read last.
    var zoneSource: FileLook?

    let networks: Networks
    /// What is known of the networks; `nil` while nobody needs to know.
    var network: Metering?
    /// How each destination is reached.
    var reached: [String: Reached] = [:]
    var isLooking = false
    var looksAgain = false
    var isNetworkDue = false
    /// Looks in a row that have not found out everything.
    var unfinishedLooks = 0
    /// It looks again, in a while, whether there is another DNS server.
    var looksForNameServer = false
    /// What is being closed because nothing may leave that way any more.
    var closing: Task<Void, Never>?
    /// Ends what runs over an interface, and returns when nothing leaves there any more.
    let closeInterface: @Sendable (String) async -> Void
    let loseAddresses: @Sendable (Set<IPAddress>) -> Void
    /// Interfaces that something was sent over since they were closed.
    var lent: Set<String> = []
    /// Of this machine, when its networks were looked at last.
    var addresses: Set<IPAddress> = []

    struct Transfer {
        let destination: String
        /// The way that it took.
        let passage: Admission.Passage
        /// The folder of each upload, by its id.
        let folders: [String: String]
        /// Uploads that read their sources in place.
        let inPlace: Set<String>
        let task: Task<Void, Never>
    }

    /// Tells `Watch` that a file has to settle again.
    let reconsiderSource: @Sendable (_ folder: String, _ relative: FilePath) -> Void

    init(
        house: House, busAddress: String = ManagerNews.systemBus,
        closeInterface: @escaping @Sendable (String) async -> Void = { _ in },
        loseAddresses: @escaping @Sendable (Set<IPAddress>) -> Void = { _ in },
        reconsiderSource: @escaping @Sendable (String, FilePath) -> Void = { _, _ in }
    ) {
        self.house = house
        self.closeInterface = closeInterface
        self.loseAddresses = loseAddresses
        self.reconsiderSource = reconsiderSource
        networks = Networks(clocks: house.clocks, names: house.nameBook, busAddress: busAddress)
    }

    /// Dispatches until the task is cancelled; then stops every transfer and returns when each has let go.
    func run() async throws {
        let news = listenToClock()
        await beginNetwork()
        defer {
            if let news { ClockNews.shared.forget(news) }
            networks.stop()
            fileNews?.stop()
            powerWatch.news?.stop()
        }
        while !Task.isCancelled {
            do {
                // No byte is sent whose checkpoint could not be stored.
                if house.troubles["state"] != nil { try await house.store.prove() }
                try await pass()
                await house.dispatchBell.wait(atMost: try await nextDeadline())
            } catch let error as StoreError {
                house.stateFailed(error)
                // Not the bell, which rings for every file: the disk is asked every few seconds and not more often. Only a
                // stop ends the sleep early, and the loop with it.
                try? await Alarms.shared.sleep(for: .seconds(5))
            }
        }
        isStopping = true
        house.live.isStopping = true
        let tasks = transfers.values.map(\.task) + roomLooks.values + busyAsks.values
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    /// Starts what may start.
    private func pass() async throws {
        (lookedAt, lookedAtWall) = (house.clocks.monotonic(), house.clocks.wall())
        looks += 1
        try await expirePauses()
        try await expireExceptions()
        lookAtClock()
        await lookAtPower()
        try await lookAtBusy()
        try await expire()
        try await stopSuperseded()
        try await house.ledger.look()
        try await wakeWhatWasShort()
        try await wakeWhatWasWasted()
        setLimits()
        stopForbidden()
        try await tryKeysWithOthers()
        try await startExcused()
        // Destinations take turns, so that one with many files does not take every slot of the others: who was served last
        // is asked last.
        let folders = try await openFolders()
        var open = house.settings.destinations.map(\.name)
        if let served = open.firstIndex(of: lastServed) { open = Array(open[(served + 1)...] + open[...served]) }
        open.removeAll { folders[$0] == nil }
        while !open.isEmpty {
            var stillOpen: [String] = []
            for name in open {
                if try await startNext(to: name, from: folders[name] ?? OpenFolders(), sharing: open.count) {
                    stillOpen.append(name)
                }
            }
            open = stillOpen
        }
    }

    /// - Parameters:
    ///   - folders: Those from which something may go there.
    ///   - count: Destinations that share what is free.
    /// - Returns: Whether anything was started, so that more may follow.
    private func startNext(to name: String, from folders: OpenFolders, sharing count: Int) async throws -> Bool {
        guard let destination = house.destinations[name],
            case .go(let free) = admission.room(at: remote(name), in: world)
        else { return false }
        let open = folders.all.subtracting(fullFolders())
        guard case .known(let left) = try await roomForNew(at: name, destination, from: open) else { return false }
        let before = stops
        let isAsked =
            house.settings.policy.beforeUpload != nil || house.settings(ofDestination: name)?.policy.beforeUpload != nil
        let goesTogether = health[name]?.trouble == nil && !isAsked
        // All that may go share a transaction. What tries whether a destination is back is one file.
        let room = TransferRoom(
            slots: max(1, free / count), bundling: goesTogether ? destination.bundling : nil,
            counted: Set(house.settings.folders.filter(\.policy.goesAlone).map(\.watch.name)))
        let purse = purse(for: name)
        var claims: [Claim] = []
        do {
            defer { purse.took(claims) }
            claims = try await house.store.claim(
                filling: room, name, from: { open.contains($0) }, begunOnly: folders.begunOnly, within: left,
                skippingDuplicatesOf: alike, reserving: { purse.reserve($0) }, onRepeat: { self.tellRepeat($0) })
        }
        claims = try await passOverRefused(claims, at: name)
        claims = try await passOverWasted(claims, purse)
        if claims.isEmpty {
            try await noteWhatWaitsForRoom(name, from: open.subtracting(folders.begunOnly))
            // What it says of its room tells more than its last refusal, and nothing would probe it.
            if rooms[name]?.waiting != nil, health[name]?.trouble?.kind == .quota { health[name]?.succeeded() }
            return false
        }
        let going = try await fit(claims, purse, before)
        rooms[name]?.begun(missing: going.map(\.upload.missing))
        try await noteWhatWaitsForRoom(name, from: open.subtracting(folders.begunOnly))
        let isSmall: (Claim) -> Bool = {
            let goesAlone = $0.checkpoint != nil || $0.asset.keeping == .inPlace
            return room.isBundled(size: $0.asset.stagedSize, isBegun: goesAlone, of: $0.upload.folder)
        }
        for share in room.shared(going, isBundled: isSmall) {
            start(share, isBundle: share.allSatisfy(isSmall), name, destination, purse)
        }
        if !going.isEmpty { lastServed = name }
        return !going.isEmpty
    }

    /// Starts single uploads that a person lets off what holds them.
    private func startExcused() async throws {
        for (id, excuses) in excusedUploads {
            guard runs[id] == nil, let upload = try await house.store.upload(id),
                let destination = house.destinations[upload.destination], !fullFolders().contains(upload.folder),
                !goesInTurn(upload, without: excuses)
            else { continue }
            var origin = origin(upload.folder)
            origin.excused.formUnion(excuses)
            guard case .go = admission.verdict(for: remote(upload.destination), from: origin, in: world) else {
                continue
            }
            let before = stops
            let purse = purse(for: upload.destination, excusing: excuses)
            var claims: [Claim] = []
            do {
                defer { purse.took(claims) }
                claims =
                    try await house.store.claim(
                        only: id, skippingDuplicatesOf: alike, reserving: { purse.reserve($0) }
                    ).map { [$0] } ?? []
            }
            claims = try await passOverWasted(claims, purse)
            for claim in try await fit(claims, purse, before) {
                start([claim], isBundle: false, upload.destination, destination, purse)
            }
        }
    }

    /// Those that may go; the others are given back.
    ///
    /// - Parameter before: ``stops`` before they were claimed.
    private func fit(_ claims: [Claim], _ purse: Purse, _ before: Int) async throws -> [Claim] {
        await recallRequestSize(of: purse.destination)
        // Perhaps one of them was meant by a stop, which was not running yet.
        let going = stops == before ? claims.filter { mayGo(purse, $0) } : []
        let ids = Set(going.map(\.upload.id))
        try await giveBack(claims.filter { !ids.contains($0.upload.id) })
        return going
    }

    /// Whether it may still go, and the way that it was claimed for, and has what it needs for it: a claim waits for the disk,
    /// and meanwhile a window may have closed.
    private func mayGo(_ purse: Purse, _ claim: Claim) -> Bool {
        let (remote, origin) = (remote(purse.destination), purse.origin(claim.upload.folder))
        guard let passage = purse.passage(for: claim.upload.folder), purse.hasEnough(claim),
            admission.bans(on: remote, from: origin, in: world, isUnderWay: true).isEmpty,
            case .open(let now) = admission.way(to: remote, from: origin, in: world)
        else { return false }
        return passage.isSame(as: now)
    }

    private func start(
        _ claims: [Claim], isBundle: Bool, _ name: String, _ destination: any Destination, _ purse: Purse
    ) {
        let change = changes[name]
        for claim in claims {
            house.log.info(
                "uploading",
                [
                    "id": claim.upload.id, "destination": name, "path": claim.asset.path.display,
                    "size": "\(claim.asset.stagedSize)", "from": "\(claim.upload.acked)",
                ])
        }
        lastTransfer += 1
        let number = lastTransfer
        var (lane, passage) = purse.lane(for: claims, house.lanes)
        if let interface = lane.interface { lent.insert(interface) }
        lane.onAddressLost = { [weak self] in Task { await self?.addressLost(number) } }
        let task = Task { [lane] in
            // Those that travel together go where no request has headers.
            await UploadHeaders.$current.withValue(claims.count == 1 ? claims[0].upload.headers : [:]) {
                await Lane.$current.withValue(lane) {
                    await self.attempt(claims, isBundle: isBundle, destination, change)
                }
            }
            self.transfers[number] = nil
            for claim in claims {
                self.runs[claim.upload.id] = nil
                self.house.live.goOn(claim.upload.id)
            }
            self.house.dispatchBell.ring()
            self.house.removalBell.ring()
        }
        for account in lane.accounts.values {
            account.whenOver { [house] error in
                if let error = error as? StoreError { house.stateFailed(error) }
                if error == nil {
                    house.log.notice(
                        "transfer stopped, goes on later",
                        ["destination": name, "hold": "quota", "reason": "what its quotas allow is sent"])
                }
                task.cancel()
            }
        }
        for claim in claims { runs[claim.upload.id] = number }
        transfers[number] = Transfer(
            destination: name, passage: passage,
            folders: Dictionary(
                claims.map { ($0.upload.id, $0.upload.folder) }, uniquingKeysWith: { first, _ in first }),
            inPlace: Set(claims.filter { $0.asset.keeping == .inPlace }.map(\.upload.id)), task: task)
    }

    // MARK: For the verbs

    /// Stops the running transfers that `isMeant` says of one of their uploads, at once; they go back to the queue by
    /// themselves.
    func stop(where isMeant: (_ id: String, _ destination: String, _ folder: String) -> Bool) {
        stops += 1
        for transfer in transfers.values {
            if transfer.folders.contains(where: { isMeant($0.key, transfer.destination, $0.value) }) {
                transfer.task.cancel()
            }
        }
    }

    /// Stops the transfers of cancelled uploads. One that is being created is let finish that: only its answer says
    /// what there is to remove, and no byte follows it.
    func cancel(_ ids: Set<String>) {
        stops += 1
        for id in ids {
            guard let transfer = runs[id].flatMap({ transfers[$0] }) else { continue }
            house.live.whenOpened(id) { transfer.task.cancel() }
        }
        // What was allowed to them is over.
        if exceptions.contains(where: { $0.scope == .upload && ids.contains($0.name) }) { house.dispatchBell.ring() }
    }

    /// Stops a transfer and returns when it has let go, so that a new generation does not meet the old one.
    func end(_ id: String) async {
        guard let transfer = runs[id].flatMap({ transfers[$0] }) else { return }
        transfer.task.cancel()
        await transfer.task.value
    }

    var isIdle: Bool { transfers.isEmpty && roomLooks.isEmpty && !busy.isAsking }
    func isRunning(_ id: String) -> Bool { runs[id] != nil }
    func running(to destination: String) -> Int { transfers.values.count { $0.destination == destination } }
}
