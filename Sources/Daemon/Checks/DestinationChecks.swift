internal import API
internal import Config
internal import Core
internal import Credentials
internal import Destinations
internal import Linux
internal import Transport

/// Destinations whose `check` is run.
struct DestinationChecks: Sendable {
    /// The reason why a destination could not be made from its settings.
    struct UnusableDestinationError: Error { let result: CheckResult }

    let all: [(name: String, destination: Result<any Destination, UnusableDestinationError>)]

    /// For a configuration that no daemon runs with.
    init(_ settings: Settings, _ transport: Transport) {
        all = settings.destinations.map { one in
            let factory = DestinationFactory(
                kinds: DestinationTable.builtIn, transport: transport, secrets: SecretReader(), clocks: SystemClocks(),
                log: .silent)
            do { return (one.name, .success(try factory.make(one))) } catch {
                let text = redacted(printable("\(error)"))
                return (one.name, .failure(UnusableDestinationError(result: CheckResult(.failed, text))))
            }
        }
    }

    /// The destinations of a running daemon, in the order of its configuration.
    init(_ runtime: RuntimeConfiguration) {
        all = runtime.settings.destinations.compactMap { one in
            runtime.destinations[one.name].map { (one.name, .success($0)) }
        }
    }

    /// The location of each destination, by its name.
    var sites: [String: DestinationSite] {
        Dictionary(
            all.compactMap { one in (try? one.destination.get()).map { (one.name, $0.site) } }, uniquingKeysWith: { $1 }
        )
    }

    /// Checks all in parallel: each may wait for a server that does not respond.
    ///
    /// - Parameter network: Whether `policy` applies to the questions.
    func findings(_ requests: some PolicyRequestSender, _ network: HookNetwork, _ request: CheckRequest) async
        -> [CheckFinding]
    {
        await withTaskGroup(of: (Int, CheckFinding).self) { group in
            for (number, one) in all.enumerated() where request.includes(destination: one.name) {
                group.addTask {
                    let result: CheckResult
                    let witness = CheckWitness(clocks: SystemClocks())
                    switch one.destination {
                    case .success(let destination):
                        result = await Self.check(destination, one.name, requests, network, witness)
                    case .failure(let unmade): result = unmade.result
                    }
                    return (
                        number,
                        CheckFinding(about: "destination", name: one.name, result, steps: await witness.steps(result))
                    )
                }
            }
            return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    private static func check(
        _ destination: any Destination, _ name: String, _ requests: some PolicyRequestSender, _ network: HookNetwork,
        _ witness: CheckWitness
    ) async -> CheckResult {
        let asked = await requests.perform(name, network) { context in
            await destination.check(context: witness.witnessing(context))
        }
        switch asked {
        case .success(let asked):
            var result = asked.answer
            if asked.cost != .none {
                result.detail +=
                    "; the request sent \(shownBytes(asked.cost.bytes)) and received \(shownBytes(asked.cost.received))"
            }
            return result
        case .failure(let held):
            let until = held.hold.until.map { ", until \($0)" } ?? ""
            return CheckResult(
                held.hold.kind == .offline ? .failed : .warning,
                "no request was sent: \(held.hold.kind.rawValue): \(held.hold.text)\(until)")
        }
    }
}
