internal import Core
internal import Linux
internal import Notices

/// Runs programs of hooks. One with `network: policy` gets its part of the network.
struct HookPrograms: Sendable {
    /// What became of one run.
    struct Outcome: Sendable {
        var result: DeliveryResult
        /// The bytes of its connections; `nil` for a program whose bytes nothing counts.
        var cost: Spending?
        /// The hold that refused or stopped one of its connections.
        var hold: Hold?
    }

    let sender: HookSender
    let policed: PolicedPrograms

    var scheduler: Scheduler { policed.connections.scheduler }

    /// Runs the program of a hook with one notice, and returns when it and its connections have ended.
    func run(_ command: CommandHook, of hook: Hook, with notice: Notice) async -> Outcome {
        guard let servers = command.servers else {
            return Outcome(result: await sender.deliver(notice, by: .command(command.words), within: hook.timeout))
        }
        let gate = policed.gate(for: .hook(hook.name))
        let result: DeliveryResult
        do {
            let network = try policed.network(to: servers, through: gate)
            result = await sender.deliver(notice, by: .command(command.words, over: network), within: hook.timeout)
        } catch {
            return Outcome(
                result: .retry(
                    "the proxy for its connections cannot listen: \(error.reason)", because: .notStarted,
                    after: nil))
        }
        let (cost, hold) = await gate.finished()
        return Outcome(result: Self.result(result, hold), cost: cost, hold: hold)
    }

    /// A program that failed after policy had refused or stopped a connection is tried again.
    private static func result(_ result: DeliveryResult, _ hold: Hold?) -> DeliveryResult {
        guard let hold, case .retry(let reason, _, let after) = result else { return result }
        return .retry(
            "\(reason); policy has refused or stopped a connection of it: \(hold.text)", because: .held, after: after)
    }
}
