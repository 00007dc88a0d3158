internal import Config
internal import Core
internal import Credentials
internal import Destinations
internal import Linux
internal import Store
internal import Transport

/// Removes the leftovers of cancelled uploads at the remote. The queue is stored; a destination that is down is tried
/// again with growing waits, for seven days.
actor RemoteRemovals {
    private let context: Context
    private let stateHealth: StateHealth
    private let secrets: SecretReader
    private let signal: AsyncSignal
    private let scheduler: Scheduler
    private var deferred: [Int64: MonotonicTime] = [:]

    private static let backoff = Backoff(first: .seconds(5), ceiling: .seconds(6 * 3600))
    private static let giveUpTime: Duration = .seconds(7 * 86_400)

    init(
        context: Context, stateHealth: StateHealth, secrets: SecretReader, signal: AsyncSignal, scheduler: Scheduler
    ) {
        (self.context, self.stateHealth, self.secrets) = (context, stateHealth, secrets)
        (self.signal, self.scheduler) = (signal, scheduler)
    }

    func run() async throws {
        while !Task.isCancelled {
            do {
                for deletion in try await context.store.read({ try $0.remoteDeletions.all() }) {
                    try await remove(deletion)
                }
                let now = context.clocks.monotonic()
                await signal.wait(
                    atMost: deferred.values.min().map { max(.milliseconds(10), $0.since(now)) })
            } catch let error as StoreError {
                stateHealth.failed(error)
                await signal.wait(atMost: .seconds(5))
            }
        }
    }

    private func remove(_ deletion: RemoteDeletion) async throws {
        let now = context.clocks.monotonic()
        if let until = deferred[deletion.id], until > now { return }
        // Only after the transfer has ended: its last answer may still name an object that it made.
        if await scheduler.isRunning(deletion.upload) { return }
        // An answer after the cancel has shown this.
        guard !deletion.checkpoint.isOfAnotherWriter else {
            try await end(deletion, .unsupported, "another writer has sent bytes to it, so it is not removed")
            return
        }
        guard let destination = context.destinations[deletion.destination] else {
            try await end(deletion, .gaveUp, "the destination is no longer configured")
            return
        }
        let headers = try await context.store.read { try $0.uploads.find(deletion.upload) }?.headers ?? [:]
        let asked = await scheduler.requests.run(.removal, at: deletion.destination) {
            permit -> Result<Bool, UploadError> in
            let context = RequestContext(permit: permit, headers: headers)
            do throws(UploadError) {
                return .success(try await destination.discard(deletion.checkpoint, context: context))
            } catch {
                return .failure(error)
            }
        }
        // If policy permits no request, it permits no removal either. The scheduler signals the end of the hold.
        guard case .success(let ended) = asked else { return }
        switch ended.answer {
        case .success(let isDone):
            try await end(deletion, isDone ? .done : .unsupported, nil)
            if isDone { await scheduler.freedSpace(at: deletion.destination) }
        // Policy has stopped it, which is no failure. The scheduler signals the end of the hold.
        case .failure where ended.hold != nil: return
        case .failure(let error):
            if error.remedy.mayConcernSecret { secrets.renew(of: deletion.destination) }
            // More questions would not find out more.
            if error.isConclusive {
                try await end(deletion, .unknown, error.failure.message)
                return
            }
            if context.clocks.wall() > deletion.createdAt.advanced(by: Self.giveUpTime) {
                try await end(deletion, .gaveUp, error.failure.message)
                return
            }
            try await context.store.write { try $0.remoteDeletions.finish(deletion, nil) }
            let wait = Self.backoff.wait(afterFailures: deletion.tries + 1, jitter: Random.jitter())
            deferred[deletion.id] = now.advanced(by: wait)
            context.log.warning(
                "cannot remove a partial upload at the destination yet; will retry",
                ["id": deletion.upload, "reason": error.failure.message])
        }
    }

    private func end(_ deletion: RemoteDeletion, _ result: RemoteDeletion.Result, _ reason: String?) async throws {
        try await context.store.write { try $0.remoteDeletions.finish(deletion, result) }
        deferred[deletion.id] = nil
        context.log.info(
            "partial upload at the destination", ["id": deletion.upload, "result": result.rawValue, "reason": reason])
    }
}
