import Core
import Linux
import Notices
import Store
import Synchronization
import TestKit
import Testing
import Transport

@testable import Config
@testable import Daemon

extension Scheduler {
    /// Changes facts, and does what follows from each change of policy.
    func change(_ body: @Sendable (inout SchedulerFacts) -> Void) {
        body(&facts)
        stopForbidden(snapshot)
    }

    /// Records the route to a destination or hook.
    func setRoute(to account: String, isOpen: Bool) {
        change { facts in
            _ = facts.network.record(
                NetworkMonitor.Reached(
                    reachability: isOpen ? .local : .offline("the cable is unplugged"),
                    route: isOpen
                        ? .open(.local)
                        : .closed([Hold(.offline, since: WallTime(milliseconds: 0), text: "the cable is unplugged")]),
                    since: WallTime(milliseconds: 0)), for: account)
        }
    }

    /// Pauses a destination, or everything; `nil`: ends all pauses.
    func pause(_ scope: PauseRecord.Scope?, _ name: String = "") {
        change { facts in
            facts.pauses.replace(
                scope.map { [PauseRecord(scope: $0, name: name, since: WallTime(milliseconds: 0), until: nil)] } ?? [])
        }
    }

    /// Starts a request, and changes facts before it can take its first step.
    fileprivate func start(
        _ purpose: RequestPurpose, at account: String, before body: @Sendable (inout SchedulerFacts) -> Void,
        _ send: @escaping @Sendable (TransferPermit) async -> Void
    ) -> Result<RunningRequest<Void>, RequestHeldError> {
        let decision = start(purpose, at: account) { permit in
            // Returns only when this function has.
            _ = await self.isIdle
            await send(permit)
        }
        change(body)
        return decision
    }
}

@Suite("Requests besides transfers, when policy changes")
struct RequestStopTests {
    /// Counts the bytes that are sent.
    private final class CountingTransport: Transporting {
        private let sent = Atomic<Int>(0)
        var bytes: Int { sent.load(ordering: .relaxed) }

        func send(_ request: Request) async throws(TransportError) -> Response {
            sent.add(Int(request.body.count ?? 0), ordering: .relaxed)
            return Response(status: 200)
        }
    }

    /// The facts that allow a request or not, by rules of the test's own.
    private struct Policy {
        var pauses: Set<PauseScope> = []
        var isZero = false
        /// The window of policy is waived for the folder `cam`.
        var waivesWindow = false
        var isInWindow = true
        var hasRoute = true

        static let places = [
            PauseScope(scope: .all, name: ""), PauseScope(scope: .destination, name: "nas"),
            PauseScope(scope: .folder, name: "cam"),
        ]

        mutating func change(_ dice: inout Dice) {
            switch Int.random(in: 0..<9, using: &dice) {
            case 0, 1: pauses.formSymmetricDifference([Self.places[Int.random(in: 0..<3, using: &dice)]])
            case 2: isZero.toggle()
            case 3: waivesWindow.toggle()
            case 4: isInWindow.toggle()
            case 5: hasRoute.toggle()
            default: self = Policy()
            }
        }

        func allows(_ purpose: RequestPurpose, at account: String) -> Bool {
            if isZero || !hasRoute || pauses.contains(Self.places[0]) { return false }
            if account == "nas", pauses.contains(Self.places[1]) { return false }
            guard case .space = purpose else { return isInWindow }
            return !pauses.contains(Self.places[2]) && (isInWindow || waivesWindow)
        }

        func apply(_ account: String, _ facts: inout SchedulerFacts) {
            let (past, future) = (WallTime(milliseconds: 0), WallTime(milliseconds: .max))
            facts.pauses.replace(
                pauses.map { PauseRecord(scope: $0.scope, name: $0.name, since: past, until: nil) })
            var overrides: [OverrideRecord] = []
            if isZero {
                overrides.append(
                    OverrideRecord(scope: .all, name: "", kind: .rate(0), since: past, until: future, who: "root"))
            }
            if waivesWindow {
                overrides.append(
                    OverrideRecord(
                        scope: .folder, name: "cam", kind: .exemption(.window), since: past, until: future, who: "root")
                )
            }
            facts.overrides.replace(overrides)
            _ = facts.network.record(
                NetworkMonitor.Reached(
                    reachability: hasRoute ? .local : .offline("the cable is unplugged"),
                    route: hasRoute ? .open(.local) : .closed([]), since: past), for: account)
        }

        func setClock(_ clocks: ManualClocks) throws {
            clocks.step(
                by: .milliseconds(try Times.local(isInWindow ? 12 : 20).milliseconds - clocks.wall().milliseconds))
        }
    }

    private static let kinds: [(RequestPurpose, String)] = [
        (.removal, "nas"), (.notice(.policy), "hook door"),
        (.space(files: [FileClass(folder: "cam", mask: .unknown)]), "nas"),
        (.command(.policy), "nas"),
    ]

    private static func scene() async throws -> ComponentScene {
        try await ComponentScene { $0.policy.rules = PolicyRules(windows: [Window(from: 11 * 60, to: 13 * 60)]) }
    }

    private static func send(over transport: CountingTransport, with permit: TransferPermit) async {
        let request = Request("PUT", "http://nas.example/x", body: .bytes([UInt8](repeating: 1, count: 1000)))
        // A refusal is what the test looks for, by the bytes.
        _ = try? await PermittedTransport(transport).send(request, with: permit)
    }

    @Test(
        "each request needs policy's permission, and no byte follows a stop: 250 orders for each kind", arguments: kinds
    )
    func interleavings(_ purpose: RequestPurpose, at account: String) async throws {
        let scene = try await Self.scene()
        let (scheduler, transport) = (scene.scheduler, CountingTransport())
        var (refused, stopped, ended) = (0, 0, 0)
        for seed in 0..<250 {
            var dice = Dice(seed: UInt64(seed))
            var policy = Policy()
            for _ in 0..<Int.random(in: 0...3, using: &dice) { policy.change(&dice) }
            try policy.setClock(scene.clocks)
            await scheduler.change { [policy] in policy.apply(account, &$0) }
            let (orders, go) = AsyncStream<CheckedContinuation<Void, Never>>.makeStream()
            var sent = transport.bytes
            let decision = await scheduler.start(purpose, at: account) { permit in
                for await answer in orders {
                    await Self.send(over: transport, with: permit)
                    answer.resume()
                }
                // A destination that does not notice the stop at once.
                if Task.isCancelled { await Self.send(over: transport, with: permit) }
            }
            guard policy.allows(purpose, at: account), case .success(let request) = decision else {
                if case .success(let request) = decision {
                    go.finish()
                    _ = await scheduler.requests.finish(request)
                    Issue.record("seed \(seed): it was allowed")
                }
                #expect(!policy.allows(purpose, at: account), "seed \(seed)")
                #expect(transport.bytes == sent)
                refused += 1
                continue
            }
            for _ in 0..<Int.random(in: 1...3, using: &dice) where policy.allows(purpose, at: account) {
                await withCheckedContinuation { _ = go.yield($0) }
                sent += 1000
                #expect(transport.bytes == sent, "seed \(seed)")
                policy.change(&dice)
                try policy.setClock(scene.clocks)
                await scheduler.change { [policy] in policy.apply(account, &$0) }
            }
            let isAllowed = policy.allows(purpose, at: account)
            if isAllowed { go.finish() }
            let answer = await scheduler.requests.finish(request)
            #expect((answer.hold == nil) == isAllowed, "seed \(seed)")
            #expect(transport.bytes == sent, "seed \(seed)")
            if isAllowed { ended += 1 } else { stopped += 1 }
        }
        #expect(refused > 30 && stopped > 50 && ended > 20, "\(refused) refused, \(stopped) stopped, \(ended) ended")
    }

    @Test("a stop after the decision and before the first step of a request: nothing is sent", arguments: kinds)
    func beforeFirstStep(_ purpose: RequestPurpose, at account: String) async throws {
        let scene = try await Self.scene()
        let (scheduler, transport) = (scene.scheduler, CountingTransport())
        try Policy().setClock(scene.clocks)
        for stop in 0..<3 {
            await scheduler.change { Policy().apply(account, &$0) }
            var policy = Policy()
            switch stop {
            case 0: policy.pauses = [Policy.places[0]]
            case 1: policy.isZero = true
            default: policy.hasRoute = false
            }
            let decision = await scheduler.start(
                purpose, at: account, before: { [policy] in policy.apply(account, &$0) }
            ) { await Self.send(over: transport, with: $0) }
            let answer = await scheduler.requests.finish(try decision.get())
            #expect(answer.hold != nil && transport.bytes == 0)
            #expect(await scheduler.facts.requests.closed == (purpose.isAwaited ? [account] : []))
        }
    }

    @Test("a notice that no rule holds is not stopped by policy")
    func unheld() async throws {
        let scene = try await Self.scene()
        let (scheduler, transport) = (scene.scheduler, CountingTransport())
        try Policy().setClock(scene.clocks)
        await scheduler.setRoute(to: "hook door", isOpen: true)
        let decision = await scheduler.start(
            .notice(.any), at: "hook door",
            before: { facts in
                var policy = Policy()
                (policy.pauses, policy.isZero) = ([Policy.places[0]], true)
                policy.apply("hook door", &facts)
            }
        ) { await Self.send(over: transport, with: $0) }
        let answer = await scheduler.requests.finish(try decision.get())
        #expect(answer.hold == nil && transport.bytes == 1000)
    }

    @Test("a request over an interface that no longer leads to its destination is stopped")
    func lostInterface() async throws {
        let scene = try await ComponentScene { $0.policy.rules = PolicyRules(metered: .pause, meteredUnknown: .allow) }
        let scheduler = scene.scheduler
        let set: @Sendable (Int32) async -> Void = { link in
            await scheduler.change { facts in
                facts.network.set(
                    Metering(links: [NetworkLink(index: 1, name: "eth0"), NetworkLink(index: 2, name: "wlan0")]))
                _ = facts.network.record(
                    NetworkMonitor.Reached(
                        reachability: .over([NetworkPath(link: link)]), route: .open(.any),
                        since: WallTime(milliseconds: Int64(link))), for: "nas")
            }
        }
        await set(1)
        let gate = AsyncSignal()
        let decision = await scheduler.start(.removal, at: "nas") { _ in await gate.wait() }
        let request = try decision.get()
        #expect(request.permit.interface == "eth0")
        await set(1)
        #expect(!request.task.isCancelled)
        await set(2)
        let answer = await scheduler.requests.finish(request)
        #expect(answer.hold?.kind == .offline)
        // The other interface leads there, so the removal is signalled at once.
        await scheduler.change { _ in }
        #expect(await scheduler.facts.requests.closed.isEmpty)
    }
}
