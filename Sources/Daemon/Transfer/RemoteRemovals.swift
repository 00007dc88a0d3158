internal import Config
internal import Core
internal import Destinations
internal import Linux
internal import Store
internal import Transport

/// Removes the leftovers of cancelled uploads at the remote. The queue is stored; a destination that is down is tried
/// again with growing waits, for seven days.
actor RemoteRemovals {
    private let house: House
    private let scheduler: Scheduler
    private var deferred: [Int64: MonotonicTime] = [:]

    private static let backoff = Backoff(first: .seconds(5), ceiling: .seconds(6 * 3600))
    private static let patience: Duration = .seconds(7 * 86_400)

    init(house: House, scheduler: Scheduler) {
        self.house = house
        self.scheduler = scheduler
    }

    func run() async throws {
        while !Task.isCancelled {
            do {
                for deletion in try await house.store.read({ try $0.remoteDeletions.all() }) {
                    try await remove(deletion)
                }
                let now = house.clocks.monotonic()
                await house.removalSignal.wait(
                    atMost: deferred.values.min().map { max(.milliseconds(10), $0.since(now)) })
            } catch let error as StoreError {
                house.stateFailed(error)
                await house.removalSignal.wait(atMost: .seconds(5))
            }
        }
    }

    private func remove(_ deletion: RemoteDeletion) async throws {
        let now = house.clocks.monotonic()
        if let until = deferred[deletion.id], until > now { return }
        // Only after the transfer has ended: its last answer may still name an object that it made.
        if await scheduler.isRunning(deletion.upload) { return }
        // If policy permits no request, it permits no removal either. The scheduler signals the end of the hold.
        if await scheduler.forbidsRemovals(at: deletion.destination) { return }
        guard let permit = await scheduler.permit(to: deletion.destination) else { return }
        // An answer after the cancel has shown this.
        guard !deletion.checkpoint.isOfAnotherWriter else {
            try await end(deletion, "unsupported", "another writer has sent bytes to it, so it is not removed")
            return
        }
        guard let destination = house.destinations[deletion.destination] else {
            try await end(deletion, "gave_up", "the destination is no longer configured")
            return
        }
        let headers = try await house.store.read { try $0.uploads.find(deletion.upload) }?.headers ?? [:]
        let answer: Result<Bool, any Error>
        do {
            answer = .success(
                try await destination.discard(
                    deletion.checkpoint, context: RequestContext(permit: permit, headers: headers)))
        } catch { answer = .failure(error) }
        if let account = permit.account { try await house.ledger.close(account) }
        do {
            let isDone = try answer.get()
            try await end(deletion, isDone ? "done" : "unsupported", nil)
            if isDone { await scheduler.freedSpace(at: deletion.destination) }
        } catch let error as UploadError {
            house.refused(error.remedy, by: deletion.destination)
            // More questions would not find out more.
            if error.failure.code == Failure.removalUnknown {
                try await end(deletion, "unknown", error.failure.message)
                return
            }
            if house.clocks.wall() > deletion.createdAt.advanced(by: Self.patience) {
                try await end(deletion, "gave_up", error.failure.message)
                return
            }
            try await house.store.write { try $0.remoteDeletions.finish(deletion, nil) }
            let wait = Self.backoff.wait(afterFailures: deletion.tries + 1, jitter: Random.jitter())
            deferred[deletion.id] = now.advanced(by: wait)
            house.log.warning(
                "cannot remove a partial upload at the destination yet; will retry",
                ["id": deletion.upload, "reason": error.failure.message])
        }
    }

    private func end(_ deletion: RemoteDeletion, _ result: String, _ reason: String?) async throws {
        try await house.store.write { try $0.remoteDeletions.finish(deletion, result) }
        deferred[deletion.id] = nil
        house.log.info(
            "partial upload at the destination", ["id": deletion.upload, "result": result, "reason": reason])
    }
}
