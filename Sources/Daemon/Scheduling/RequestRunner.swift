internal import Core
internal import Linux
internal import Store
internal import Transport

/// A request besides transfers that policy has allowed, and that is being sent.
struct RunningRequest<Answer: Sendable>: Sendable {
    /// The number by which the scheduler knows it.
    let number: Int
    let task: Task<Answer, Never>
    /// Its permission. Its account has to be closed.
    let permit: TransferPermit
}

/// Sends requests besides transfers: removals, notices, questions for free space, and the requests of commands.
///
/// The scheduler decides about a request and starts it in one step, so that each later change of policy finds it and
/// stops it. The bytes of the request are recorded when it has ended.
struct RequestRunner: PolicyRequestSender {
    let scheduler: Scheduler

    /// Sends a request if policy allows it now, and returns when it has ended. It is stopped when policy begins to
    /// forbid it, and when the task is cancelled.
    ///
    /// - Parameters:
    ///   - account: The destination or hook that pays for it.
    ///   - send: Sends it, with the permission that it is given.
    /// - Returns: The hold, if nothing was sent. A removal or a notice is signalled when the hold is over.
    func run<Answer: Sendable>(
        _ purpose: RequestPurpose, at account: String, _ send: @escaping @Sendable (TransferPermit) async -> Answer
    ) async -> Result<ChargedAnswer<Answer>, RequestHeldError> {
        switch await scheduler.start(purpose, at: account, send) {
        case .failure(let held): .failure(held)
        case .success(let request): .success(await finish(request))
        }
    }

    /// Returns when a request has ended and its bytes are recorded.
    func finish<Answer: Sendable>(_ request: RunningRequest<Answer>) async -> ChargedAnswer<Answer> {
        let answer = await withTaskCancellationHandler {
            await request.task.value
        } onCancel: {
            request.task.cancel()
        }
        let hold = await scheduler.requestEnded(request.number)
        if let account = request.permit.account {
            do { try await scheduler.sendingLimits.ledger.close(account) } catch let error as StoreError {
                scheduler.stateHealth.failed(error)
            } catch {
                scheduler.context.log.debug("cannot record the cost of a request", ["reason": "\(error)"])
            }
        }
        return ChargedAnswer(answer: answer, cost: request.permit.account?.cost ?? .none, hold: hold)
    }

    func perform<Answer: Sendable>(
        _ name: String, _ network: HookNetwork, _ question: @escaping @Sendable (RequestContext) async -> Answer
    ) async -> Result<ChargedAnswer<Answer>, RequestHeldError> {
        let answers: [BusySource: BusyAnswer]
        switch await scheduler.findFacts(forCommandAt: name, network) {
        case .success(let found): answers = found
        case .failure(let held): return .failure(held)
        }
        let decision = await scheduler.start(.command(network), at: name, answering: answers) { permit in
            await question(RequestContext(permit: permit, headers: [:]))
        }
        switch decision {
        case .failure(let held): return .failure(held)
        case .success(let request):
            let ended = await finish(request)
            return ended.hold.map { .failure(RequestHeldError(hold: $0)) } ?? .success(ended)
        }
    }
}
