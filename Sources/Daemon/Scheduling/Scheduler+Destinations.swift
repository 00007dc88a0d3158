internal import Config
internal import Core
internal import Credentials
internal import Destinations
internal import Linux
internal import Store

// Learned facts about destinations: their space, their keys, their speed and the size of their requests.

extension Scheduler {
    // MARK: Space

    /// Space at a destination for uploads that have not begun.
    enum SpaceForNewUploads {
        /// The query is running; its answer signals the scheduler.
        case asked
        /// In bytes; `nil` where there is no limit.
        case known(Int64?)
    }

    /// The space for uploads that have not begun. The destination is queried only while there are such uploads, or when
    /// it has refused one for lack of space. In all other cases the uploads that have begun have their space, and an
    /// upload that waits for the destination's answer sends nothing more.
    func capacityForNew(
        at name: String, _ destination: any Destination, from open: Set<String>
    ) async throws -> SpaceForNewUploads {
        let isDue =
            destination.tellsSpace
            && (destinations.asksForCapacity(name) || destinations.isCapacityDue(name, at: context.clocks.monotonic()))
        guard isDue else { return .known(destinations.capacity(of: name)?.left) }
        if destinations.trouble(of: name)?.kind != .quota,
            try await context.store.read({ tx in
                try tx.queue.first(waitingFor: name, lacking: 0, from: { open.contains($0) })
            }) == nil
        {
            return .known(0)
        }
        return askForCapacity(name, destination) ? .asked : .known(destinations.capacity(of: name)?.left)
    }

    /// Queries the free space, if that is due before the next upload to it.
    ///
    /// - Returns: Whether to wait for the answer, which signals the scheduler.
    private func askForCapacity(_ name: String, _ destination: any Destination) -> Bool {
        guard destination.tellsSpace else { return false }
        if destinations.asksForCapacity(name) { return true }
        // A destination that does not answer is tried with an upload, which reports the trouble.
        if let trouble = destinations.trouble(of: name), trouble.kind != .quota { return false }
        guard destinations.isCapacityDue(name, at: context.clocks.monotonic()), let permit = permit(to: name) else {
            return false
        }
        let generation = destinations.generation(of: name)
        let capacityQuery = CapacityQuery(
            log: context.log, stateHealth: stateHealth, ledger: sendingLimits.ledger,
            renewSecret: callbacks.renewSecret)
        let query = Task {
            let (space, error) = await capacityQuery.run(destination, name, permit)
            self.capacityAnswered(name, generation, Task.isCancelled ? nil : (space, error))
        }
        destinations.capacityAsked(name, query)
        return true
    }

    /// - Parameter answer: `nil` when the question was cancelled.
    private func capacityAnswered(
        _ name: String, _ generation: Int, _ answer: (space: RemoteSpace?, error: UploadError?)?
    ) {
        destinations.capacityAsked(name, nil)
        if let answer, destinations.generation(of: name) == generation {
            let underWay = transfers.all.filter { $0.destination == name }.flatMap(\.folders.keys).map { id in
                attempts.live[id].map { $0.size - $0.acked } ?? 0
            }
            let retry =
                context.configuration.settings(ofDestination: name)?.policy.retry ?? context.settings.policy.retry
            destinations.capacityAnswered(
                name, answer.space, underWay: underWay, now: context.clocks.wall(),
                monotonic: context.clocks.monotonic(), lasting: DestinationHealth.patience(retry).first)
            // A destination that could not be connected to would refuse an upload too, after the same timeout once
            // more.
            if let error = answer.error, error.failure.code == "unreachable" {
                _ = hold(
                    name,
                    DestinationTracker.Fault(
                        failure: error.failure, remedy: error.remedy, isUp: false, retry: retry))
            }
        }
        signals.scheduling.signal()
    }

    /// Records which upload would be next if there were space at the destination, and reports it once for all of them.
    func noteCapacityWait(_ name: String, from folders: Set<String>) async throws {
        guard let capacity = destinations.capacity(of: name) else { return }
        var next: RemoteCapacity.Waiting?
        if let left = capacity.left {
            next = try await context.store.read { tx in
                try tx.queue.first(waitingFor: name, lacking: left, from: { folders.contains($0) })
            }.map {
                RemoteCapacity.Waiting(
                    id: $0.upload.id, name: $0.asset.path.name.display, missing: $0.upload.missing,
                    since: context.clocks.wall())
            }
        }
        destinations.waits(name, next)
        if capacity.waiting == nil, let next, let hold = snapshot.capacityHold(of: name) {
            AttemptLog(log: context.log).reportCapacityWait(next, at: name, hold)
        } else if capacity.waiting != nil, next == nil {
            context.log.notice("no upload waits for free space any longer", ["destination": name])
        }
    }

    /// A file was removed there.
    func freedSpace(at destination: String) {
        if destinations.freedSpace(destination) { signals.scheduling.signal() }
    }

    // MARK: Health

    /// Records why no upload is sent to a destination.
    ///
    /// - Returns: How long the destination is left alone; `nil` when only the upload is at fault.
    func hold(_ name: String, _ fault: DestinationTracker.Fault) -> Duration? {
        let rule = fault.rule(of: name, context.configuration.settings(ofDestination: name)?.credentialKeys ?? [])
        let now = (wall: context.clocks.wall(), monotonic: context.clocks.monotonic())
        guard let hold = destinations.hold(name, fault, by: rule, now: now.wall, monotonic: now.monotonic) else {
            return nil
        }
        if hold.kind == .destination { doubtNetwork() }
        if hold.isNew { AttemptLog(log: context.log).reportHeld(name, hold.kind, fault.failure, wait: hold.wait) }
        return hold.wait
    }

    // MARK: Keys

    /// Whether an upload that was not refused for its own sake could be sent there now or within `time`: neither a
    /// pause nor policy holds its folder.
    func othersWait(at name: String, within time: Duration = .zero) async -> Bool {
        let ready: [UploadClass]
        let own = destinations.keyRefusals(of: name)?.own ?? []
        do { ready = try await context.store.read { try $0.lists.readyClasses(within: time, besides: own) } } catch {
            context.log.debug("cannot read the waiting uploads", ["destination": name, "reason": "\(error)"])
            return false
        }
        let snapshot = snapshot
        let state = snapshot.destination(name)
        return ready.contains { one in
            one.destination == name
                && snapshot.admission.hardBlockers(on: state, from: snapshot.folder(one.folder), in: snapshot.inputs)
                    .isEmpty
        }
    }

    /// Gives back uploads that were refused for their own sake while another upload can try the key.
    func passOverRefused(_ claims: [Claim], at name: String) async throws -> [Claim] {
        guard destinations.trouble(of: name)?.kind == .auth, let refusals = destinations.keyRefusals(of: name),
            claims.contains(where: { refusals.isOwn($0.upload.id) }),
            // Uploads that were refused with the key wait until one second after the next try.
            await othersWait(at: name, within: .seconds(2))
        else { return claims }
        try await giveBack(claims.filter { refusals.isOwn($0.upload.id) }) { claim in
            guard let failure = try await context.store.read({ try $0.failures.of(claim.upload.id) }).last?.failure
            else {
                return .yielded
            }
            let retry = context.configuration.retry(folder: claim.upload.folder, destination: name)
            let wait = retry.wait(afterFailures: 1, jitter: Random.jitter())
            return .held(failure, until: context.clocks.monotonic().advanced(by: wait))
        }
        return claims.filter { !refusals.isOwn($0.upload.id) }
    }

    /// Uploads that a wrong key has held are tried at once when the destination accepts the present one.
    func endWaitsForKey(of name: String) async {
        let ids = destinations.endWaitsForKey(of: name)
        if ids.isEmpty { return }
        do { try await context.store.write { try $0.waits.end(of: Array(ids)) } } catch {
            context.log.warning(
                "cannot end the waits of uploads; they stay as they are", ["destination": name, "reason": "\(error)"])
        }
    }

    /// When to try a refused key with an upload that was not refused; `nil` where there is none, or where enough
    /// uploads were refused.
    func timeToTryKey(of name: String, _ remedy: Remedy) async -> Duration? {
        guard case .authenticate = remedy, destinations.keyRefusals(of: name)?.isDoubtful == true,
            await othersWait(at: name)
        else { return nil }
        return Self.beforeTryingKey
    }

    private static let beforeTryingKey = Duration.seconds(10)

    /// Where only one or two files were refused, an upload that arrived since shows soon whether the key is at fault.
    func tryKeysWithOthers() async throws {
        let now = (wall: context.clocks.wall(), monotonic: context.clocks.monotonic())
        for (name, hasOneSuspect) in destinations.doubted(at: now.monotonic) where await othersWait(at: name) {
            destinations.probe(
                name, within: hasOneSuspect ? .zero : Self.beforeTryingKey, now: now.wall, monotonic: now.monotonic)
        }
    }

    // MARK: Speed and sizes

    private var learnedFacts: LearnedFacts {
        LearnedFacts(store: context.store, log: context.log, stateHealth: stateHealth)
    }

    /// Stores the speed for the plans of a later run.
    func storeSpeed(to destination: String) async {
        guard let speed = attempts.live.speed(to: destination),
            destinations.isToStore(speed: speed, of: destination, at: context.clocks.monotonic())
        else { return }
        await learnedFacts.store(speed: speed, of: destination)
    }

    /// Gives a destination the stored request size, before the first transfer to it in its present configuration.
    func recallRequestSize(of name: String) async {
        let generation = destinations.generation(of: name)
        guard let destination = context.destinations[name], !destinations.knowsRequestSize(of: name) else { return }
        let known = await learnedFacts.requestSize(of: name, destination)
        if let known, destination.requestSize == nil { destination.recall(known) }
        destinations.set(requestSize: known, of: name, generation: generation)
    }

    /// Stores the size of requests that a destination has learned, over restarts.
    func storeRequestSize(of name: String) async {
        guard let destination = context.destinations[name], destination.requestSizePlace != nil else { return }
        let size = destination.requestSize
        if destinations.isToStore(requestSize: size, of: name) {
            await learnedFacts.store(requestSize: size, of: name, destination)
        }
    }
}

extension Remedy {
    /// Whether the cause of a refusal may be a secret that a person corrects, so that the next try reads it again. Some
    /// destinations report a wrong key with 200, 400 or 404.
    var mayConcernSecret: Bool {
        switch self {
        case .authenticate, .misconfigured, .refused, .giveUp: true
        case .holdDestination, .noRoom, .rateLimit, .again, .pending, .restage: false
        }
    }
}
