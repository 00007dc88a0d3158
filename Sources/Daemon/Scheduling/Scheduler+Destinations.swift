internal import Config
internal import Core
internal import Destinations
internal import Linux
internal import Store

// The free space of destinations, and keys that they refuse: what is asked, and which uploads wait for it.

extension Scheduler {
    // MARK: Space

    /// Space at a destination for uploads that have not begun.
    enum SpaceForNewUploads {
        /// The query is running; its answer signals the scheduler.
        case pending
        /// In bytes; `nil` where there is no limit.
        case known(Int64?)
    }

    /// The space for uploads that have not begun. The destination is queried only while there are such uploads, or when
    /// it has refused one for lack of space. In all other cases the uploads that have begun have their space, and an
    /// upload that waits for the destination's answer sends nothing more.
    func capacityForNew(
        at name: String, _ destination: any Destination, from open: Set<FileClass>
    ) async throws -> SpaceForNewUploads {
        let isDue =
            destination.reportsSpace && facts.destinations.lacksCapacity(name, at: context.clocks.monotonic())
        if isDue {
            if facts.destinations.trouble(of: name)?.kind != .quota,
                try await firstWaiting(for: name, lacking: 0, from: open) == nil
            {
                return .known(0)
            }
            if queryCapacity(name, destination, for: open) { return .pending }
        }
        return .known(facts.destinations.capacity(of: name)?.left)
    }

    /// The next upload that has not begun and lacks more than `bytes`.
    private func firstWaiting(for name: String, lacking bytes: Int64, from files: Set<FileClass>) async throws
        -> (upload: UploadRecord, asset: AssetRecord)?
    {
        try await context.store.read { tx in
            try tx.queue.first(waitingFor: name, lacking: bytes, from: { files.contains($0) })
        }
    }

    /// Queries the free space.
    ///
    /// - Parameter files: Those that wait for it.
    /// - Returns: Whether to wait for the answer, which signals the scheduler.
    private func queryCapacity(_ name: String, _ destination: any Destination, for files: Set<FileClass>) -> Bool {
        if facts.destinations.isQueryingCapacity(name) { return true }
        if !facts.destinations.mayAskForCapacity(name, at: context.clocks.monotonic()) { return false }
        let generation = facts.destinations.generation(of: name)
        let capacityQuery = CapacityQuery(log: context.log, renewSecret: callbacks.renewSecret)
        let decision = start(.space(files: files), at: name) { await capacityQuery.run(destination, name, $0) }
        guard case .success(let request) = decision else { return false }
        let query = Task { [requests] in
            let ended = await requests.finish(request)
            let isCut = Task.isCancelled || ended.hold != nil
            self.capacityAnswered(name, generation, isCut ? nil : ended.answer)
        }
        facts.destinations.setCapacityQuery(name, query)
        return true
    }

    /// - Parameter answer: `nil` when the question was cancelled or stopped.
    private func capacityAnswered(
        _ name: String, _ generation: Int, _ answer: (space: RemoteSpace?, error: UploadError?)?
    ) {
        facts.destinations.capacityQueryEnded(name)
        if let answer, facts.destinations.generation(of: name) == generation {
            let settings = context.configuration.settings(ofDestination: name)
            let retry = settings?.policy.retry ?? context.settings.policy.retry
            let (wall, monotonic) = (context.clocks.wall(), context.clocks.monotonic())
            let underWay = facts.transfers.uploads(to: name).map { attempts.live[$0].map { $0.size - $0.acked } ?? 0 }
            facts.destinations.capacityAnswered(
                name, answer.space, underWay: underWay, now: wall, monotonic: monotonic,
                lasting: DestinationHealth.backoffWhenFull(retry).first)
            // A destination that could not be connected to would refuse an upload too, after the same timeout once
            // more.
            if let error = answer.error, error.contact == .none,
                facts.destinations.hold(
                    name,
                    DestinationTracker.Fault(
                        failure: error.failure, remedy: error.remedy, isUp: false, retry: retry),
                    settings?.credentialKeys ?? [], now: wall, monotonic: monotonic, context.log)?.kind == .destination
            {
                doubtNetwork()
            }
        }
    }

    /// Records which upload would be next if there were space at the destination, and reports it once for all of them.
    func noteCapacityWait(_ name: String, from files: Set<FileClass>) async throws {
        guard let capacity = facts.destinations.capacity(of: name) else { return }
        var next: RemoteCapacity.Waiting?
        if let left = capacity.left, let row = try await firstWaiting(for: name, lacking: left, from: files) {
            next = RemoteCapacity.Waiting(
                id: row.upload.id, name: row.asset.path.name.display, missing: row.upload.missing,
                since: context.clocks.wall())
        }
        facts.destinations.setCapacityWait(name, next)
        if capacity.waiting == nil, let next, let hold = facts.destinations.capacityHold(of: name) {
            AttemptLog(log: context.log).reportCapacityWait(next, at: name, hold)
        } else if capacity.waiting != nil, next == nil {
            context.log.notice("no upload waits for free space any longer", ["destination": name])
        }
    }

    /// A file was removed there.
    func freedSpace(at destination: String) { facts.destinations.freedSpace(destination) }

    // MARK: Keys

    /// Whether an upload that was not refused could be sent there now: neither a pause nor policy holds its folder.
    func othersWait(at name: String) async -> Bool {
        let refused = facts.refusedUploads(at: name)
        return await isOpen(name) { try $0.lists.readyClasses(besides: refused) }
    }

    /// Whether a destination is open for one of the classes that a query finds.
    private func isOpen(
        _ name: String, forAnyOf classes: @Sendable (ReadTransaction) throws -> [UploadClass]
    ) async -> Bool {
        do {
            let classes = try await context.store.read(classes)
            return snapshot.isOpen(name, forAnyOf: classes)
        } catch {
            context.log.debug("cannot read the waiting uploads", ["destination": name, "reason": "\(error)"])
            return false
        }
    }

    /// Claims the next uploads for a destination. A destination with trouble is probed with an upload that it has not
    /// refused, whatever the order of the queue. If no such upload waits, it prefers an upload whose own file may not
    /// be at fault.
    ///
    /// - Parameter claim: Claims uploads that are not among the given ones.
    func claimPreferred(
        at name: String, _ claim: (_ passed: Set<String>) async throws -> [Claim]
    ) async throws -> [Claim] {
        if facts.destinations.trouble(of: name) == nil { return try await claim([]) }
        var tried: Set<String>?
        for passed in [facts.refusedUploads(at: name), facts.refusedFiles(at: name)]
        where !passed.isEmpty && passed != tried {
            let claims = try await claim(passed)
            if !claims.isEmpty { return claims }
            // An upload that has probed the destination waits until one second after the next probe.
            if await isOpen(name, forAnyOf: { try $0.lists.classes(readyWithin: .seconds(2), besides: passed) }) {
                return []
            }
            tried = passed
        }
        return try await claim([])
    }

    /// Where only one or two files were refused, an upload that arrived since shows soon whether the key is at fault.
    func tryKeysWithOthers() async throws {
        let now = (wall: context.clocks.wall(), monotonic: context.clocks.monotonic())
        for name in facts.destinations.doubtedKeys(at: now.monotonic) where await othersWait(at: name) {
            facts.destinations.tryKey(of: name, now: now.wall, monotonic: now.monotonic)
        }
    }
}
