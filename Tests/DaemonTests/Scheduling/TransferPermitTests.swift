import Core
import Destinations
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Config
@testable import Daemon
@testable import Store

extension Scheduler {
    /// Starts an upload by the present state of policy, after a change that comes in between.
    fileprivate func start(
        _ claim: Claim, _ destination: any Destination, after body: @Sendable (inout SchedulerFacts) -> Void
    ) -> Bool {
        let snapshot = snapshot
        let batch = ReservationBatch(
            snapshot, to: claim.upload.destination, exempting: [], ledger: sendingLimits.ledger)
        body(&facts)
        return startTransfer([claim], isBundle: false, destination, batch, by: snapshot)
    }
}

@Suite("Permits for requests")
struct TransferPermitTests {
    /// Records the requests that are sent.
    private final class RecordingTransport: Transporting {
        private let sent = Mutex<[Request]>([])
        var interfaces: [String?] { sent.withLock { $0.map(\.interface) } }
        var bytes: Int64 { sent.withLock { $0.reduce(0) { $0 + ($1.body.count ?? 0) } } }

        func send(_ request: Request) async throws(TransportError) -> Response {
            sent.withLock { $0.append(request) }
            return Response(status: 200)
        }
    }

    /// The state of policy without a daemon, with a destination `s3`.
    private func standalone(
        _ rules: PolicyRules, _ reachability: Reachability, _ metering: Metering
    ) throws -> PolicySnapshot {
        var settings = try ComponentScene.settings(in: FilePath("/s"))
        settings.destinations = [
            DestinationSettings(
                name: "s3", type: "scripted", values: [:], policy: PolicyOverrides(rules: rules), place: "s:1")
        ]
        return PolicySnapshot(standalone: settings, ["s3": reachability], metering, clocks: ManualClocks())
    }

    @Test("a request uses the permitted interface, except within this machine")
    func interface() async throws {
        let transport = RecordingTransport()
        let policy = try standalone(
            PolicyRules(metered: .pause), .over([NetworkPath(link: 7)]),
            Metering(links: [NetworkLink(index: 7, name: "wwan7")]))
        let permit = try policy.permit(standalone: .any, at: "s3", TrafficCounter()).get()
        for host in ["s3.example", "169.254.169.254", "127.0.0.1.example", "127.0.0.1:8100", "[::1]", "localhost"] {
            _ = try await PermittedTransport(transport).send(Request("GET", "http://\(host)/x"), with: permit)
        }
        #expect(transport.interfaces == ["wwan7", "wwan7", "wwan7", nil, nil, nil])
    }

    @Test("a query by hand gets no permit for a network that policy closes")
    func closed() throws {
        let policy = try standalone(PolicyRules(), .offline("the cable is unplugged"), Metering(links: []))
        let decision = policy.permit(standalone: .any, at: "s3", TrafficCounter())
        guard case .failure(let held) = decision else {
            Issue.record("a permit was given without a route")
            return
        }
        #expect(held.hold.kind == .offline)
    }

    @Test("a rebuild has a permit for each destination only where destinations may be asked")
    func rebuild() {
        let destinations = ["nas", "cloud"].map {
            DestinationSettings(name: $0, type: "tus", values: [:], policy: PolicyOverrides(), place: "")
        }
        var options = RebuildOptions()
        #expect(
            Set(TransferPermit.forRebuild(options, destinations, ManualClocks()).keys) == ["nas", "cloud"])
        options.isOffline = true
        #expect(TransferPermit.forRebuild(options, destinations, ManualClocks()).isEmpty)
    }

    // MARK: Between claim and start

    /// The inputs of policy, as the scheduler keeps them. Uploads are only allowed while an exception waives the
    /// window, which is never open.
    private struct State {
        let scene: ComponentScene
        var facts = SchedulerFacts()

        init(_ scene: ComponentScene) {
            self.scene = scene
            allow()
            setRoute(.local)
        }

        var now: WallTime { scene.clocks.wall() }

        var snapshot: PolicySnapshot {
            PolicySnapshot(
                scene.parts.runtime, clocks: scene.clocks, quotas: scene.parts.limits.ledger.quotas, facts: facts)
        }

        mutating func pause(_ scope: PauseRecord.Scope, _ name: String) {
            facts.pauses.replace(facts.pauses.records + [PauseRecord(scope: scope, name: name, since: now, until: nil)])
        }

        private func exception(_ scope: OverrideRecord.Scope, _ name: String, _ kind: OverrideRecord.Kind)
            -> OverrideRecord
        {
            OverrideRecord(
                scope: scope, name: name, kind: kind, since: now, until: now.advanced(by: .seconds(60)), who: "root")
        }

        /// Waives the window for a minute.
        mutating func allow() { facts.overrides.replace([exception(.folder, "cam", .exemption(.window))]) }
        mutating func limitToZero() {
            facts.overrides.replace(facts.overrides.records + [exception(.all, "", .rate(0))])
        }

        mutating func setRoute(_ reachability: Reachability) {
            let route = reachability == .local ? Admission.Route.local : .any
            _ = facts.network.record(
                NetworkMonitor.Reached(reachability: reachability, route: .open(route), since: now), for: "nas")
        }

        /// Whether the upload may start, by a rule of the test's own.
        func mayStart(_ stopsBefore: Int) -> Bool {
            let active = facts.overrides.active(at: now)
            return facts.generation.stops == stopsBefore && facts.pauses.records.isEmpty
                && facts.network.routes["nas"]?.reachability == .local
                && active.contains { $0.kind == .exemption(.window) } && !active.contains { $0.kind == .rate(0) }
        }

        /// - Returns: Whether the generation counts it; the passing of time is not counted.
        mutating func change(_ change: Change) -> Bool {
            let before = facts.generation
            switch change {
            case .pauseAll: pause(.all, "")
            case .pauseFolder: pause(.folder, "cam")
            case .pauseDestination: pause(.destination, "nas")
            case .endPauses: facts.pauses.replace([])
            case .stop: facts.generation.noteStop()
            case .minutePasses: scene.clocks.advance(by: .seconds(61))
            case .endExceptions: facts.overrides.replace([])
            case .allow: allow()
            case .limitToZero: limitToZero()
            case .anyRoute: setRoute(.any)
            case .localRoute: setRoute(.local)
            }
            return facts.generation != before
        }

        mutating func change(_ dice: inout Dice) throws -> Bool {
            change(try #require(Change.allCases.randomElement(using: &dice)))
        }
    }

    private enum Change: CaseIterable {
        case pauseAll, pauseFolder, pauseDestination, endPauses, stop, minutePasses, endExceptions, allow, limitToZero
        case anyRoute, localRoute
    }

    private func scene() async throws -> (scene: ComponentScene, claim: Claim) {
        let scene = try await ComponentScene { settings in
            settings.policy.rules = PolicyRules(windows: [Window(days: [], from: 0, to: 1440)])
        }
        let row = try await scene.row(try await scene.record("clip.mp4"))
        return (
            scene,
            Claim(
                upload: row.upload, asset: row.asset, checkpoint: nil,
                file: FileFacts(size: row.upload.size, kind: .video, duration: nil), step: nil)
        )
    }

    /// Starts a transfer and sends its bytes, if policy grants a permit now.
    ///
    /// - Returns: The number of bytes that were sent.
    private func start(_ claim: Claim, _ batch: ReservationBatch, _ state: State) async throws -> Int64 {
        let transport = RecordingTransport()
        guard
            let (permit, _) = state.snapshot.permit(
                for: [claim], batch, state.scene.parts.limits.bandwidth, onAddressLost: {})
        else { return 0 }
        #expect(permit.isCurrent(in: state.facts.generation))
        let request = Request("PUT", "http://nas.example/clip.mp4", body: .bytes([UInt8](repeating: 1, count: 1000)))
        _ = try await PermittedTransport(transport).send(request, with: permit.charging(upload: claim.upload.id))
        return transport.bytes
    }

    @Test("no byte is sent where policy forbids it by the start, however it changed since the claim: 1,000 orders")
    func interleavings() async throws {
        let (scene, claim) = try await scene()
        var (granted, refused) = (0, 0)
        for seed in 0..<1000 {
            var dice = Dice(seed: UInt64(seed))
            var state = State(scene)
            let batch = ReservationBatch(state.snapshot, to: "nas", exempting: [], ledger: scene.parts.limits.ledger)
            let stops = state.facts.generation.stops
            for _ in 0..<Int.random(in: 0...5, using: &dice) {
                _ = try state.change(&dice)
                guard Bool.random(using: &dice) else { continue }
                let mayStart = state.mayStart(stops)
                let bytes = try await start(claim, batch, state)
                #expect(bytes == (mayStart ? 1000 : 0), "seed \(seed)")
                if mayStart { granted += 1 } else { refused += 1 }
            }
        }
        #expect(granted > 100 && refused > 500, "\(granted) granted, \(refused) refused")
    }

    /// The scheduler decides about a claim, policy changes, and then the transfer would start. The clock is moved only
    /// before the decision: the scheduler does not suspend between the decision and the start.
    @Test("no transfer starts by a decision that policy has left behind: 1,000 changes between decision and start")
    func races() async throws {
        let (scene, claim) = try await scene()
        let scheduler = scene.scheduler
        let between = Change.allCases.filter { $0 != .minutePasses }
        var (started, overtaken): (Int, Set<Change>) = (0, [])
        for seed in 0..<1000 {
            var dice = Dice(seed: UInt64(seed))
            var state = State(scene)
            for _ in 0..<Int.random(in: 0...2, using: &dice) { _ = try state.change(&dice) }
            await scheduler.change { [state] in $0 = state.facts }
            let mayStart = state.mayStart(state.facts.generation.stops)
            let change = try #require(between.randomElement(using: &dice))
            let isCounted = state.change(change)
            let isAllowed = state.mayStart(state.facts.generation.stops)
            let began = scene.remote.began.count
            let hasStarted = await scheduler.start(claim, scene.remote) { [state] in $0 = state.facts }
            #expect(hasStarted == (mayStart && !isCounted), "seed \(seed)")
            #expect(!hasStarted || isAllowed, "seed \(seed)")
            if hasStarted {
                started += 1
                try await eventually("the transfer has ended", every: .milliseconds(1)) { await scheduler.isIdle }
            } else {
                #expect(await scheduler.isIdle && scene.remote.began.count == began, "seed \(seed)")
                if mayStart { overtaken.insert(change) }
            }
        }
        #expect(started > 50, "\(started) started")
        // The others leave a state as it is in which the transfer may start.
        let harmless: Set<Change> = [.endPauses, .allow, .localRoute]
        #expect(overtaken == Set(between).subtracting(harmless), "\(overtaken)")
    }

    @Test("a transfer is started by the state of policy that decides, and by no earlier one")
    func earlierPolicy() async throws {
        let (scene, claim) = try await scene()
        let scheduler = scene.scheduler
        let state = State(scene)
        await scheduler.change { $0 = state.facts }
        #expect(
            await !scheduler.start(claim, scene.remote) {
                _ = $0.network.record(
                    .init(reachability: .local, route: .open(.any), since: WallTime(milliseconds: 0)), for: "nas")
            })
        #expect(await !scheduler.start(claim, scene.remote) { $0.configurationChanged() })
        #expect(await scheduler.isIdle && scene.remote.began.isEmpty)
        // The use of an interface and the end of another transfer change nothing that was decided.
        let hasStarted = await scheduler.start(claim, scene.remote) { facts in
            facts.network.recordUse("eth0")
            facts.destinations.freedSpace("nas")
        }
        #expect(hasStarted)
        try await eventually("the transfer has ended") { await scheduler.isIdle }
    }

    @Test("before its start each claim is checked for its own file, not for another one of its folder")
    func refusedByFile() async throws {
        let (scene, claim) = try await scene()
        let clocks = ManualClocks()
        let open = try PolicySnapshot.given(clocks)
        let held = try PolicySnapshot.given(clocks) {
            $0.policy.rules.pauses = [PauseRule(name: "big", when: .fact(.file(.largerThan(500))))]
        }
        let batch = ReservationBatch(open, to: "nas", exempting: [], ledger: scene.parts.limits.ledger)
        let claims = [("small", Int64(10)), ("large", 900)].map { name, size in
            var one = claim
            (one.upload.id, one.upload.size, one.file.size) = (name, size, size)
            one.upload.mask = held.configuration.questions.mask(of: one.file)
            return one
        }
        for order in [claims, claims.reversed()] {
            #expect(open.refused(order, batch).isEmpty)
            #expect(held.refused(order, batch).map(\.upload.id) == ["large"])
        }
    }

    @Test("a permit is not current any more after a change of policy")
    func current() async throws {
        let (scene, claim) = try await scene()
        for seed in 0..<100 {
            var dice = Dice(seed: UInt64(seed))
            var state = State(scene)
            let batch = ReservationBatch(state.snapshot, to: "nas", exempting: [], ledger: scene.parts.limits.ledger)
            let decision = state.snapshot.permit(for: [claim], batch, scene.parts.limits.bandwidth, onAddressLost: {})
            let permit = try #require(decision?.permit)
            #expect(permit.isCurrent(in: state.facts.generation))
            let isCounted = try state.change(&dice)
            #expect(permit.isCurrent(in: state.facts.generation) != isCounted)
        }
    }

    @Test("bytes count in the upload's account as soon as the transport reports them, before the request ends")
    func countsAtOnce() async throws {
        let (scene, claim) = try await scene()
        let state = State(scene)
        let batch = ReservationBatch(state.snapshot, to: "nas", exempting: [], ledger: scene.parts.limits.ledger)
        let started = state.snapshot.permit(
            for: [claim], batch, state.scene.parts.limits.bandwidth, onAddressLost: {})
        let permit = try #require(started?.permit.charging(upload: claim.upload.id) as? TransferPermit)
        let account = try #require(permit.account)
        let transport = ReportingTransport(total: { account.total })
        let body = [UInt8](repeating: 1, count: 1000)
        _ = try await PermittedTransport(transport).send(
            Request("PUT", "http://nas.example/clip.mp4", body: .bytes(body)), with: permit)
        #expect(transport.totals == [400, 1000])
    }

    /// Reports bytes in two pieces, and notes what the account has after each.
    private final class ReportingTransport: Transporting {
        private let total: @Sendable () -> Int64
        private let seen = Mutex<[Int64]>([])
        var totals: [Int64] { seen.withLock { $0 } }

        init(total: @escaping @Sendable () -> Int64) { self.total = total }

        func send(_ request: Request) async throws(TransportError) -> Response {
            for bytes in [400, 600] as [Int64] {
                request.onWire?(bytes)
                seen.withLock { $0.append(total()) }
            }
            return Response(status: 200)
        }
    }

    @Test("claims that were made before a stop are refused, also those that policy allows")
    func stop() async throws {
        let (scene, claim) = try await scene()
        var state = State(scene)
        let batch = ReservationBatch(state.snapshot, to: "nas", exempting: [], ledger: scene.parts.limits.ledger)
        #expect(state.snapshot.refused([claim], batch).isEmpty)
        state.facts.generation.noteStop()
        #expect(state.snapshot.refused([claim], batch) == [claim])
        let later = ReservationBatch(state.snapshot, to: "nas", exempting: [], ledger: scene.parts.limits.ledger)
        #expect(state.snapshot.refused([claim], later).isEmpty)
    }

    @Test("the exemption of one upload counts only as long as it lasts")
    func exemption() async throws {
        let (scene, claim) = try await scene()
        var state = State(scene)
        state.facts.overrides.replace([
            OverrideRecord(
                scope: .upload, name: claim.upload.id, kind: .exemption(.window), since: state.now,
                until: state.now.advanced(by: .seconds(60)), who: "root")
        ])
        let batch = ReservationBatch(state.snapshot, to: "nas", exempting: [.window], ledger: scene.parts.limits.ledger)
        #expect(try await start(claim, batch, state) == 1000)
        let ordinary = ReservationBatch(state.snapshot, to: "nas", exempting: [], ledger: scene.parts.limits.ledger)
        #expect(try await start(claim, ordinary, state) == 0)
        scene.clocks.advance(by: .seconds(61))
        #expect(try await start(claim, batch, state) == 0)
    }
    @Test("a reservation beyond a quota counts only as long as the exemption lasts")
    func quotaExemption() async throws {
        let (scene, claim) = try await scene()
        var state = State(scene)
        let end = state.now.advanced(by: .seconds(60))
        state.facts.overrides.replace(
            [Exemption.quota, .window].map {
                OverrideRecord(
                    scope: .upload, name: claim.upload.id, kind: .exemption($0), since: state.now, until: end,
                    who: "root")
            })
        let batch = ReservationBatch(
            state.snapshot, to: "nas", exempting: [.quota, .window], ledger: scene.parts.limits.ledger)
        #expect(try await start(claim, batch, state) == 1000)
        // The exemption from the quota is withdrawn while the upload is claimed; the other one stays.
        state.facts.overrides.replace([
            OverrideRecord(
                scope: .upload, name: claim.upload.id, kind: .exemption(.window), since: state.now, until: end,
                who: "root")
        ])
        #expect(try await start(claim, batch, state) == 0)
    }
}
