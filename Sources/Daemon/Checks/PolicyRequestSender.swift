internal import Config
internal import Core
internal import Linux
internal import Names
internal import Store
internal import Synchronization
internal import Transport

/// Sends a request or a notice for a command: over a permitted interface, counting the bytes that are
/// sent and received for it.
protocol PolicyRequestSender: Sendable {
    /// - Parameters:
    ///   - name: The account to charge: a destination, or a hook's account.
    ///   - network: Whether `policy` applies to it.
    ///   - question: Sends the requests, with the context that it is given.
    func perform<R: Sendable>(
        _ name: String, _ network: HookNetwork, _ question: @escaping @Sendable (RequestContext) async -> R
    ) async -> Result<ChargedAnswer<R>, RequestHeldError>
}

struct ChargedAnswer<Answer: Sendable>: Sendable {
    let answer: Answer
    /// In bytes, as the kernel counts them.
    let cost: Spending
    /// The reason why the request was stopped before its end; `nil` where it was not.
    var hold: Hold?
}

/// The hold on a question or a notice.
struct RequestHeldError: Error {
    let hold: Hold
}

extension RequestHeldError {
    /// The usage of the quotas cannot be read.
    init(unreadQuotas error: any Error, at now: WallTime) {
        self.init(hold: Hold(.quota, since: now, text: "cannot read the usage of the quota: \(error)"))
    }
}

/// Sends requests without a daemon: uses the configuration, the present networks, power supplies, clock and busy
/// checks, and the pauses on disk. It enters nothing into a ledger, which belongs to the daemon alone.
struct StandaloneRequestSender: PolicyRequestSender {
    private let settings: Settings
    private let networkReport: StandaloneNetworkReport

    /// - Parameter networkReport: Contains the location of each destination that will be asked.
    init(_ settings: Settings, _ networkReport: StandaloneNetworkReport) {
        self.settings = settings
        self.networkReport = networkReport
    }

    func perform<R: Sendable>(
        _ name: String, _ network: HookNetwork, _ question: @escaping @Sendable (RequestContext) async -> R
    ) async -> Result<ChargedAnswer<R>, RequestHeldError> {
        let policy = await policy(for: name, network)
        let unknown = network == .policy ? unknown(at: policy.inputs.now) : []
        if !unknown.isEmpty, let hold = (policy.blockers(at: name) + unknown).lastEnding {
            return .failure(RequestHeldError(hold: hold))
        }
        let counter = TrafficCounter()
        let permit: TransferPermit
        let nameServers: NameServers?
        do { nameServers = try await networkReport.nameServers(for: name, network, settings) } catch {
            let text = "cannot read the routes to the name servers: \(error)"
            return .failure(RequestHeldError(hold: Hold(.offline, since: policy.inputs.now, text: text)))
        }
        switch policy.permit(standalone: network, at: name, counter, nameServers: nameServers) {
        case .success(let granted): permit = granted
        case .failure(let held): return .failure(held)
        }
        let answer = await question(RequestContext(permit: permit, headers: [:]))
        return .success(ChargedAnswer(answer: answer, cost: counter.cost))
    }

    /// The state of policy now. Facts that do not matter for the request are not found out.
    private func policy(for name: String, _ network: HookNetwork) async -> PolicySnapshot {
        if network == .any { return networkReport.policy(settings, reaching: name) }
        let clocks = SystemClocks()
        var facts = SchedulerFacts()
        facts.clock.evaluate(clocks, .silent)
        let now = clocks.wall()
        facts.pauses.replace(
            (StateFiles.pauses(in: settings.state) ?? []).filter {
                $0.holdsEverything && $0.until.map { $0 > now } ?? true
            })
        // As for the daemon: an unknown supply holds nothing, since there may be no battery at all.
        if let supplies = try? await blocking({ try PowerSupplies().all() }) {
            facts.power.record(.success(supplies), at: now, .silent)
        }
        facts.temperature.record(await facts.temperature.reading(for: settings.allRules), .silent)
        var answers: [BusySource: BusyAnswer] = [:]
        if let busy = settings.policy.rules.busy, let answer = await BusyProbe().check(busy.source, busy.timeout) {
            answers[busy.source] = BusyAnswer(answer, since: now)
        }
        return networkReport.policy(settings, reaching: name, facts).answering(answers)
    }

    /// Facts that only a daemon knows.
    private func unknown(at now: WallTime) -> [Hold] {
        if settings.policy.rules.quotas.isEmpty { return [] }
        return [
            Hold(
                .quota, since: now,
                text: "the daemon keeps the quotas of policy, and it is not running: start it"
            )
        ]
    }
}

/// Counts sent and received bytes, as the kernel does.
final class TrafficCounter: Sendable {
    private let sent = Atomic<Int>(0)
    private let received = Atomic<Int>(0)

    var cost: Spending {
        Spending(bytes: Int64(sent.load(ordering: .relaxed)), received: Int64(received.load(ordering: .relaxed)))
    }

    /// Counts a request, in addition to its existing callbacks.
    func count(_ request: inout Request) {
        let (tellSent, tellReceived) = (request.onWire, request.onArrived)
        request.onWire = { [self] bytes in
            sent.add(Int(bytes), ordering: .relaxed)
            tellSent?(bytes)
        }
        request.onArrived = { [self] bytes in
            received.add(Int(bytes), ordering: .relaxed)
            tellReceived?(bytes)
        }
    }
}
