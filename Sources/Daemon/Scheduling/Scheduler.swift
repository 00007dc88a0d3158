internal import Config
internal import Core
internal import Destinations
internal import Linux
internal import Names
internal import Store

/// The scheduler: decides which uploads are sent next, by asking `Core.Admission`, and runs each attempt to its
/// verdict.
///
/// It wakes when a bell rings or at the earliest deadline, and never otherwise.
actor Scheduler {
    let house: House
    var health: [String: DestinationHealth] = [:]
    /// Running transfers by number. A transfer carries one file or a bundle of small ones.
    var transfers: [Int: Transfer] = [:]
    /// The transfer of each running upload.
    private var runs: [String: Int] = [:]
    private var lastTransfer = 0
    /// When the last pass began, by both clocks.
    var lookedAt = MonotonicTime(nanoseconds: 0)
    var lookedAtWall: WallTime?
    var pauses: [PauseRecord] = []
    /// The pauses that cut no running transfer.
    var draining: Set<PausedPlace> = []
    /// The exceptions that a person has made for a while.
    var exceptions: [OverrideRecord] = []
    static let oldestClock = Zone.utc.start(of: sluiceIsYoungerThan)
    var trust = ClockTrust(oldest: oldestClock)
    /// No upload gets too old before this time; `nil`: not determined yet, or no longer valid.
    var expiryLook: WallTime?
    /// The state of the power supply, as far as a rule depends on it.
    var power: Power?
    var powerWatch = PowerWatch()
    /// The holds that were logged.
    var holdNews = HoldLog<UploadClass>()
    /// The state of each source of `busy`.
    var busy = BusyStates()
    var busyProbe = BusyProbe()
    /// Reports when files of `busy` appear and disappear; `nil` while there is none.
    var fileNews: FileEvents?
    var listenedTo: Set<FilePath> = []
    /// Questions to sources of `busy` that are under way.
    var busyAsks: [BusySource: Task<Void, Never>] = [:]
    /// How long new settings wait for the first inspection of the files that `busy` names.
    var busyPatience: Duration = .milliseconds(500)
    /// The trouble with the clock that was logged.
    var clockTrouble: Hold?
    /// Destinations that no byte may be sent to, and where a removal waits.
    var closedToRemovals: Set<String> = []
    /// Requests besides transfers that policy applies to.
    var errands: [Int: BackgroundRequest] = [:]
    var lastErrand = 0
    /// How many passes there were since the start, and how many evaluations of policy for a class in them.
    private(set) var looks = 0
    var evaluations = 0
    var isStopping = false
    /// Uploads that were completed since the start.
    var completed = 0
    /// How often transfers were told to stop. A claim is given back if this changed meanwhile.
    var stops = 0
    /// The destination that something was started to last.
    private var lastServed = ""
    /// How often a destination changed: the verdict of an attempt counts only for the version that the attempt used.
    var changes: [String: Int] = [:]
    /// Failures of the network or the server that an upload has met, until it is over.
    var consecutiveFailures: [String: Int] = [:]
    /// Consecutive attempts that failed because of the upload alone, until it is over.
    var setbacks: [String: Int] = [:]
    /// The bytes sent in vain that were logged, by upload, until it is over.
    var saidWaste: [String: Int64] = [:]
    /// Uploads that wait for an unmetered network, since so many of their bytes were sent in vain.
    var wastedOnMetered: [String: UploadRecord] = [:]
    /// The code of the failure that was logged last, by destination.
    var said: [String: String] = [:]
    /// How many uploads each destination has accepted since the start.
    var took: [String: Int] = [:]
    /// The value of ``took`` when an upload was last refused for lack of space, until it is over.
    var refusedForRoom: [String: Int] = [:]
    /// The refusals of each destination's key.
    var keyRefusals: [String: KeyRefusals] = [:]
    /// Uploads that wait for more of a quota than was left; `nil` until the waits of an earlier run were forgotten.
    var short: [String: QuotaWait]?
    /// Uploads with such a wait until a person waived their quotas: in their turn they would only wait again.
    var shortAndExcused: Set<String> = []
    /// The known space at each destination.
    var rooms: [String: RemoteCapacity] = [:]
    /// The speed of each destination, as stored for the next run, and the time of storing it.
    var keptSpeeds: [String: (speed: Int64, at: MonotonicTime)] = [:]
    /// The bytes in one request to each destination, as stored, and the value of ``changes`` at which that was read.
    var requestSizes: [String: (change: Int, size: RequestSize?)] = [:]
    /// Questions for the free space that are under way.
    var roomLooks: [String: Task<Void, Never>] = [:]

    /// The source of the time zone as it was read last.
    var zoneSource: FileStatus?

    let networks: Networks
    /// The state of the networks; `nil` while no rule depends on it.
    var network: Metering?
    /// The route to each destination.
    var reached: [String: Reached] = [:]
    var isLooking = false
    var looksAgain = false
    var isNetworkDue = false
    /// Consecutive inspections that have not found out everything.
    var unfinishedLooks = 0
    /// Whether it will check again in a while for another DNS server.
    var looksForNameServer = false
    /// Connections being closed because nothing may leave by that interface any more.
    var closing: Task<Void, Never>?
    /// Ends all transfers over an interface, and returns when nothing is sent there any more.
    let closeInterface: @Sendable (String) async -> Void
    let loseAddresses: @Sendable (Set<IPAddress>) -> Void
    /// Interfaces that something was sent over since they were closed.
    var lent: Set<String> = []
    /// The addresses of this machine at the last inspection of the networks.
    var addresses: Set<IPAddress> = []

    struct Transfer {
        let destination: String
        /// The way that it uses.
        let route: Admission.Route
        /// The folder of each upload, by its id.
        let folders: [String: String]
        /// Uploads that read their sources in place.
        let inPlace: Set<String>
        let task: Task<Void, Never>
    }

    /// Tells `Watch` that a file has to settle again.
    let reconsiderSource: @Sendable (_ folder: String, _ relative: FilePath) -> Void

    init(
        house: House, busAddress: String = NetworkManagerEvents.systemBus,
        closeInterface: @escaping @Sendable (String) async -> Void = { _ in },
        loseAddresses: @escaping @Sendable (Set<IPAddress>) -> Void = { _ in },
        reconsiderSource: @escaping @Sendable (String, FilePath) -> Void = { _, _ in }
    ) {
        self.house = house
        self.closeInterface = closeInterface
        self.loseAddresses = loseAddresses
        self.reconsiderSource = reconsiderSource
        networks = Networks(clocks: house.clocks, names: house.addresses, busAddress: busAddress)
    }

    /// Dispatches until the task is cancelled; then stops every transfer and returns when each has ended.
    func run() async throws {
        let news = listenToClock()
        await beginNetwork()
        defer {
            if let news { ClockEvents.shared.forget(news) }
            networks.stop()
            fileNews?.stop()
            powerWatch.news?.stop()
        }
        while !Task.isCancelled {
            do {
                // No byte is sent unless its checkpoint can be stored.
                if house.troubles["state"] != nil { try await house.store.prove() }
                try await pass()
                await house.schedulingSignal.wait(atMost: try await nextDeadline())
            } catch let error as StoreError {
                house.stateFailed(error)
                // Not the bell, which rings for every file: the disk is tried every few seconds and not more often.
                // Only a stop ends the sleep early, and the loop with it.
                try? await Alarms.shared.sleep(for: .seconds(5))
            }
        }
        isStopping = true
        house.live.isStopping = true
        let tasks = transfers.values.map(\.task) + roomLooks.values + busyAsks.values
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    /// Starts the uploads that may start.
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
        try await house.ledger.refresh()
        try await wakeWhatWasShort()
        try await wakeWhatWasWasted()
        setLimits()
        stopForbidden()
        try await tryKeysWithOthers()
        try await startExcused()
        // Destinations take turns, so that one with many files does not use all slots: the last one served is tried
        // last.
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
    ///   - folders: The folders whose files may be sent there.
    ///   - count: Destinations that share the free slots.
    /// - Returns: Whether anything was started, so that more may follow.
    private func startNext(to name: String, from folders: OpenFolders, sharing count: Int) async throws -> Bool {
        guard let destination = house.destinations[name],
            case .go(let free) = admission.room(at: remote(name), in: inputs)
        else { return false }
        let open = folders.all.subtracting(fullFolders())
        guard case .known(let left) = try await roomForNew(at: name, destination, from: open) else { return false }
        let before = stops
        let isAsked =
            house.settings.policy.beforeUpload != nil || house.settings(ofDestination: name)?.policy.beforeUpload != nil
        let goesTogether = health[name]?.trouble == nil && !isAsked
        // All uploads that may start share a transaction. A probe of a destination is one file.
        let room = BatchLimits(
            slots: max(1, free / count), bundling: goesTogether ? destination.bundling : nil,
            counted: Set(house.settings.folders.filter(\.policy.goesAlone).map(\.watch.name)))
        let reservations = reservations(for: name)
        var claims: [Claim] = []
        do {
            defer { reservations.took(claims) }
            claims = try await house.store.claim(
                filling: room, name, from: { open.contains($0) }, begunOnly: folders.begunOnly, within: left,
                skippingDuplicatesOf: alike, reserving: { reservations.reserve($0) }, onRepeat: { self.tellRepeat($0) })
        }
        claims = try await passOverRefused(claims, at: name)
        claims = try await passOverWasted(claims, reservations)
        if claims.isEmpty {
            try await noteWhatWaitsForRoom(name, from: open.subtracting(folders.begunOnly))
            // The reported space is newer than the last refusal, and no upload would probe the destination.
            if rooms[name]?.waiting != nil, health[name]?.trouble?.kind == .quota { health[name]?.succeeded() }
            return false
        }
        let going = try await fit(claims, reservations, before)
        rooms[name]?.begun(missing: going.map(\.upload.missing))
        try await noteWhatWaitsForRoom(name, from: open.subtracting(folders.begunOnly))
        let isSmall: (Claim) -> Bool = {
            let goesAlone = $0.checkpoint != nil || $0.asset.stagingMode == .inPlace
            return room.isBundled(size: $0.asset.stagedSize, isBegun: goesAlone, of: $0.upload.folder)
        }
        for share in room.shared(going, isBundled: isSmall) {
            start(share, isBundle: share.allSatisfy(isSmall), name, destination, reservations)
        }
        if !going.isEmpty { lastServed = name }
        return !going.isEmpty
    }

    /// Starts single uploads whose holds a person waived.
    private func startExcused() async throws {
        for (id, exemptions) in excusedUploads {
            guard runs[id] == nil, let upload = try await house.store.upload(id),
                let destination = house.destinations[upload.destination], !fullFolders().contains(upload.folder),
                !goesInTurn(upload, without: exemptions)
            else { continue }
            var origin = origin(upload.folder)
            origin.exempt.formUnion(exemptions)
            guard case .go = admission.verdict(for: remote(upload.destination), from: origin, in: inputs) else {
                continue
            }
            let before = stops
            let reservations = reservations(for: upload.destination, excusing: exemptions)
            var claims: [Claim] = []
            do {
                defer { reservations.took(claims) }
                claims =
                    try await house.store.claim(
                        only: id, skippingDuplicatesOf: alike, reserving: { reservations.reserve($0) }
                    ).map { [$0] } ?? []
            }
            claims = try await passOverWasted(claims, reservations)
            for claim in try await fit(claims, reservations, before) {
                start([claim], isBundle: false, upload.destination, destination, reservations)
            }
        }
    }

    /// Returns the claims that may start, and gives the others back.
    ///
    /// - Parameter before: ``stops`` before they were claimed.
    private func fit(_ claims: [Claim], _ reservations: ReservationBatch, _ before: Int) async throws -> [Claim] {
        await recallRequestSize(of: reservations.destination)
        // If a stop came meanwhile, it may have been for one of these uploads, which was not running yet.
        let going = stops == before ? claims.filter { mayGo(reservations, $0) } : []
        let ids = Set(going.map(\.upload.id))
        try await giveBack(claims.filter { !ids.contains($0.upload.id) })
        return going
    }

    /// Whether a claim may still start, on the way that it was made for, with the reservations it needs: claiming waits
    /// for the disk, and meanwhile a window may have closed.
    private func mayGo(_ reservations: ReservationBatch, _ claim: Claim) -> Bool {
        let (remote, origin) = (remote(reservations.destination), reservations.origin(claim.upload.folder))
        guard let route = reservations.route(for: claim.upload.folder), reservations.hasEnough(claim),
            admission.hardBlockers(on: remote, from: origin, in: inputs, isUnderWay: true).isEmpty,
            case .open(let now) = admission.way(to: remote, from: origin, in: inputs)
        else { return false }
        return route.isSame(as: now)
    }

    private func start(
        _ claims: [Claim], isBundle: Bool, _ name: String, _ destination: any Destination, _ paid: ReservationBatch
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
        var (permit, route) = paid.permit(for: claims, house.bandwidth)
        if let interface = permit.interface { lent.insert(interface) }
        permit.onAddressLost = { [weak self] in Task { await self?.addressLost(number) } }
        let task = Task { [permit] in
            // A bundle is sent only where no request has headers.
            await UploadHeaders.$current.withValue(claims.count == 1 ? claims[0].upload.headers : [:]) {
                await TransferPermit.$current.withValue(permit) {
                    await self.attempt(claims, isBundle: isBundle, destination, change)
                }
            }
            self.transfers[number] = nil
            for claim in claims {
                self.runs[claim.upload.id] = nil
                self.house.live.goOn(claim.upload.id)
            }
            self.house.schedulingSignal.signal()
            self.house.removalSignal.signal()
        }
        for account in permit.accounts.values {
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
            destination: name, route: route,
            folders: Dictionary(
                claims.map { ($0.upload.id, $0.upload.folder) }, uniquingKeysWith: { first, _ in first }),
            inPlace: Set(claims.filter { $0.asset.stagingMode == .inPlace }.map(\.upload.id)), task: task)
    }

    // MARK: For the verbs

    /// Stops the running transfers with an upload that matches `isMeant`, at once; they go back to the queue by
    /// themselves.
    func stop(where isMeant: (_ id: String, _ destination: String, _ folder: String) -> Bool) {
        stops += 1
        for transfer in transfers.values {
            if transfer.folders.contains(where: { isMeant($0.key, transfer.destination, $0.value) }) {
                transfer.task.cancel()
            }
        }
    }

    /// Stops the transfers of cancelled uploads. An upload that is being created at the destination finishes that
    /// first: only the answer shows what there is to remove, and no byte follows it.
    func cancel(_ ids: Set<String>) {
        stops += 1
        for id in ids {
            guard let transfer = runs[id].flatMap({ transfers[$0] }) else { continue }
            house.live.whenOpened(id) { transfer.task.cancel() }
        }
        // The exceptions for these uploads are over.
        if exceptions.contains(where: { $0.scope == .upload && ids.contains($0.name) }) {
            house.schedulingSignal.signal()
        }
    }

    /// Stops a transfer and returns when it has ended, so that a new generation does not meet the old one.
    func end(_ id: String) async {
        guard let transfer = runs[id].flatMap({ transfers[$0] }) else { return }
        transfer.task.cancel()
        await transfer.task.value
    }

    var isIdle: Bool { transfers.isEmpty && roomLooks.isEmpty && !busy.isAsking }
    func isRunning(_ id: String) -> Bool { runs[id] != nil }
    func running(to destination: String) -> Int { transfers.values.count { $0.destination == destination } }
}
