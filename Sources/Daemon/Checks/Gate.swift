internal import Config
internal import Core
internal import Linux
internal import Store
internal import Synchronization
internal import Transport

/// Sends a request or a notice for a command: over a permitted interface, counting the bytes that are
/// sent and received for it.
protocol Gate: Sendable {
    /// - Parameters:
    ///   - name: The account to charge: a destination, or a hook's account.
    ///   - network: Whether `policy` applies to it.
    ///   - question: Sends the requests, with the context that it is given.
    func ask<R: Sendable>(
        _ name: String, _ network: WebHook.Network, _ question: @escaping @Sendable (RequestContext) async -> R
    ) async -> Result<ChargedAnswer<R>, Held>
}

struct ChargedAnswer<Answer: Sendable>: Sendable {
    let answer: Answer
    /// In bytes, as the kernel counts them.
    let cost: Spending
    /// The reason why the request was stopped before its end; `nil` where it was not.
    var hold: Hold?
}

/// The hold on a question or a notice.
struct Held: Error {
    let hold: Hold
}

/// The gate without a daemon: uses the configuration, the present networks, and the pauses on disk. It enters nothing
/// into a ledger, which belongs to the daemon alone.
struct GateByHand: Gate {
    private let settings: Settings
    private let survey: NetworkSurvey

    /// - Parameter survey: Contains the location of each destination that will be asked.
    init(_ settings: Settings, _ survey: NetworkSurvey) {
        self.settings = settings
        self.survey = survey
    }

    func ask<R: Sendable>(
        _ name: String, _ network: WebHook.Network, _ question: @escaping @Sendable (RequestContext) async -> R
    ) async -> Result<ChargedAnswer<R>, Held> {
        let admission = Admission(total: settings.policy.total, rules: settings.policy.rules)
        let inputs = await inputs(network)
        let remote = survey.remote(name, settings, at: inputs.now)
        let hardBlockers =
            network == .policy ? admission.hardBlockers(on: remote, in: inputs) + unknown(at: inputs.now) : []
        if let hold = hardBlockers.binding { return .failure(Held(hold: hold)) }
        let exempt: Set<Exemption> = network == .any ? Set(Exemption.allCases) : []
        let counter = TrafficCounter()
        let permit: TransferPermit
        switch TransferPermit.byHand(admission, to: remote, exempting: exempt, in: inputs, counter) {
        case .success(let granted): permit = granted
        case .failure(let held): return .failure(held)
        }
        let answer = await question(RequestContext(permit: permit, headers: [:]))
        return .success(ChargedAnswer(answer: answer, cost: counter.cost))
    }

    private func inputs(_ network: WebHook.Network) async -> Admission.PolicyInputs {
        let clocks = SystemClocks()
        var inputs = Admission.PolicyInputs(
            now: clocks.wall(), monotonic: clocks.monotonic(), zone: .local, running: 0, everything: nil)
        inputs.network = survey.metering
        if network == .any { return inputs }
        var trust = ClockTrust(oldest: ClockMonitor.oldestClock)
        inputs.clockTrouble = trust.evaluate(
            wall: inputs.now, monotonic: inputs.monotonic, isSynchronised: clocks.isSynchronised)
        let pause = (StateFiles.pauses(in: settings.state) ?? []).first {
            $0.holdsEverything && $0.until.map { $0 > inputs.now } ?? true
        }
        inputs.everything = pause.map { Admission.Pause(since: $0.since, until: $0.until) }
        // As for the daemon: an unknown supply holds nothing, since there may be no battery at all.
        inputs.power = (try? await blocking { try PowerSupplies().all() }).flatMap { Power($0, at: inputs.now) }
        if let busy = settings.policy.rules.busy, let answer = await BusyProbe().check(busy.source, busy.timeout) {
            inputs.busy[busy.source] = BusyAnswer(answer, since: inputs.now)
        }
        return inputs
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
