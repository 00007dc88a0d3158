import Core
import Linux
import TestKit
import Testing

@testable import Daemon
@testable import Store

@Suite("Changed facts that wake")
struct FactChangesTests {
    private static let wall = WallTime(milliseconds: 1_000_000)
    private static let now = MonotonicTime(nanoseconds: 1_000_000_000)

    /// A change of a fact in memory, and what it must wake.
    enum Fact: CaseIterable, Sendable {
        case transferStarted, transferEnded, capacityAsked, capacityAnswered, freedSpaceUnknown, freedSpace
        case destinationHeld, destinationReconsidered, paused, pausesUnchanged, allowed, exceptionsUnchanged
        case uploadsCancelled, closed, closedWithCommand, opened, exportOpened, supplyChanged, answeredFirst,
            answeredFileAgain
        case routeFirst, clockSet, configurationChanged, stopped
        case drained, drainedAgain, routeAgain, interfaceUsed, networksFound, networksUnchanged, networksOfFolders

        var changes: FactChanges {
            switch self {
            case .transferEnded: [.scheduling, .removals]
            case .capacityAnswered, .freedSpace, .destinationReconsidered, .allowed, .uploadsCancelled,
                .closedWithCommand, .supplyChanged, .answeredFirst, .clockSet, .configurationChanged,
                .networksOfFolders:
                [.scheduling]
            case .paused: [.scheduling, .removals, .notices]
            case .opened: [.removals, .notices]
            case .exportOpened: [.removals, .notices, .exports]
            case .transferStarted, .capacityAsked, .freedSpaceUnknown, .destinationHeld, .pausesUnchanged,
                .exceptionsUnchanged, .closed, .answeredFileAgain, .routeFirst, .routeAgain, .interfaceUsed,
                .stopped, .drained, .drainedAgain, .networksFound, .networksUnchanged:
                []
            }
        }

        /// Whether policy depends on it, so that an earlier decision has to be made again.
        var isOfPolicy: Bool {
            switch self {
            case .paused, .drained, .allowed, .uploadsCancelled, .answeredFirst, .routeFirst, .configurationChanged,
                .networksFound, .networksOfFolders:
                true
            case .transferStarted, .transferEnded, .capacityAsked, .capacityAnswered, .freedSpaceUnknown, .freedSpace,
                .destinationHeld, .destinationReconsidered, .pausesUnchanged, .drainedAgain, .exceptionsUnchanged,
                .closed,
                .closedWithCommand, .opened, .exportOpened, .supplyChanged, .answeredFileAgain, .routeAgain,
                .interfaceUsed, .clockSet,
                .stopped, .networksUnchanged:
                false
            }
        }
    }

    private static let pause = PauseRecord(scope: .all, name: "", since: wall, until: nil)
    private static let exception = OverrideRecord(
        scope: .upload, name: "a", kind: .exemption(.quota), since: wall, until: wall.advanced(by: .seconds(60)),
        who: "root")
    private static let mark = BusySource.file("/run/busy")
    private static let command = PolicyRules(
        busy: BusyRule(.command(["/bin/busy"]), every: .seconds(60), timeout: .seconds(5)))

    @Test(
        "each change of a fact wakes those who wait for it, and no other loop; one that changes policy raises its generation",
        arguments: Fact.allCases)
    func facts(_ fact: Fact) {
        var facts = SchedulerFacts()
        // The generation before the last change.
        var before = facts.generation
        switch fact {
        case .transferStarted, .transferEnded:
            let number = facts.transfers.nextNumber()
            facts.transfers.add(
                RunningTransfers.Transfer(
                    destination: "nas", route: .local, folders: ["a": "cam"], inPlace: [], accounts: [:],
                    task: Task {}), number)
            if fact == .transferEnded { facts.transfers.remove(number) }
        case .capacityAsked, .capacityAnswered:
            facts.destinations.setCapacityQuery("nas", Task {})
            if fact == .capacityAnswered { facts.destinations.capacityQueryEnded("nas") }
        case .freedSpaceUnknown: facts.destinations.freedSpace("nas")
        case .freedSpace:
            facts.destinations.capacityAnswered(
                "nas", nil, underWay: [], now: Self.wall, monotonic: Self.now, lasting: .seconds(60))
            facts.destinations.freedSpace("nas")
        case .destinationHeld, .destinationReconsidered:
            _ = facts.destinations.hold(
                "nas",
                DestinationTracker.Fault(
                    failure: Failure(.local, code: .noReply, message: "down", at: Self.wall, retryable: true),
                    remedy: .holdDestination(after: nil), isUp: false, retry: Backoff()),
                now: Self.wall, monotonic: Self.now)
            if fact == .destinationReconsidered { facts.destinations.reconsider("nas", at: Self.now) }
        case .paused: facts.pauses.replace([Self.pause])
        case .pausesUnchanged: facts.pauses.replace([])
        case .allowed: facts.overrides.replace([Self.exception])
        case .exceptionsUnchanged: facts.overrides.replace([])
        case .uploadsCancelled:
            facts.overrides.replace([Self.exception])
            _ = facts.takeChanges()
            before = facts.generation
            facts.overrides.end(ofUploads: ["a"])
        case .closed: facts.close("nas")
        case .closedWithCommand:
            facts.busy.add([Self.command])
            facts.close("nas")
        case .opened:
            facts.close("nas")
            facts.requests.open { _, _ in true }
        case .exportOpened:
            facts.close(ProgramPayer.export(folder: "cam").account, for: .program(folder: "cam"))
            facts.requests.open { _, _ in true }
        case .supplyChanged: facts.power.wakeForReading()
        case .answeredFirst, .answeredFileAgain:
            facts.busy.add([PolicyRules(busy: BusyRule(Self.mark, every: .seconds(30), timeout: .seconds(3)))])
            _ = facts.busy.newFiles()
            _ = facts.busy.answered(.free, by: Self.mark, askedAt: Self.now, at: Self.wall, .silent)
            if fact == .answeredFileAgain {
                _ = facts.takeChanges()
                before = facts.generation
                _ = facts.busy.answered(.free, by: Self.mark, askedAt: Self.now, at: Self.wall, .silent)
            }
        case .routeFirst, .routeAgain, .interfaceUsed:
            for _ in 0..<(fact == .routeFirst ? 1 : 2) {
                before = facts.generation
                _ = facts.network.record(
                    NetworkMonitor.Reached(reachability: .local, route: .open(.local), since: Self.wall), for: "nas")
            }
            if fact == .interfaceUsed { facts.network.recordUse("eth0") }
        case .networksFound: facts.network.set(Metering(links: []))
        case .networksOfFolders: facts.network.set(Metering(links: []), isForFolders: true)
        case .networksUnchanged:
            facts.network.set(Metering(links: []))
            before = facts.generation
            facts.network.set(Metering(links: []), isForFolders: true)
        case .drained: facts.pauses.drain([PauseScope(scope: .all, name: "")])
        case .drainedAgain:
            facts.pauses.drain([PauseScope(scope: .all, name: "")])
            before = facts.generation
            facts.pauses.drain([PauseScope(scope: .all, name: "")])
        case .clockSet: facts.clockWasSet()
        case .configurationChanged: facts.configurationChanged()
        case .stopped: facts.generation.noteStop()
        }
        #expect(facts.takeChanges() == fact.changes)
        #expect(facts.takeChanges() == [])
        #expect((facts.generation.changes != before.changes) == fact.isOfPolicy)
    }

    @Test(
        "the first route to a destination and each other one wake the scheduler, removals and notices; the same does not"
    )
    func routes() async throws {
        let scene = try await ComponentScene()
        var facts = SchedulerFacts()
        var networkState = NetworkState()
        for (reachability, changes) in [
            (Reachability.local, FactChanges([.scheduling, .removals, .notices])), (.local, []),
            (.offline("no network"), [.scheduling, .removals, .notices]), (.offline("no network"), []),
        ] {
            networkState.reaches = ["nas": reachability]
            let snapshot = PolicySnapshot(
                scene.parts.runtime, clocks: scene.clocks, quotas: scene.parts.limits.ledger.quotas, facts: facts)
            _ = facts.network.apply(networkState, at: ["nas"], now: scene.clocks.wall(), .silent) {
                snapshot.routeDecision(to: $0, reached: $1)
            }
            #expect(facts.takeChanges() == changes)
        }
    }

    @Test("a changed fact of the scheduler wakes its loop at once")
    func scheduler() async throws {
        let scene = try await ComponentScene()
        try await wakes(scene.parts.signals, [scene.parts.signals.scheduling]) {
            try await scene.scheduler.reconsider()
        }
    }

    @Test("a state that cannot be written wakes the scheduler, and its end all loops that wait for it")
    func stateHealth() async throws {
        let scene = try await ComponentScene()
        // Each with waits of its own: a cancelled wait may leave a signal set.
        let (came, ended) = (WakeUps(), WakeUps())
        let isOver = StopFlag()
        let stateHealth = StateHealth(
            configuration: scene.parts.context.configuration, clocks: scene.clocks, log: .silent,
            troubles: Alerts { (isOver.isSet ? ended : came).wake(for: $0) })
        try await wakes(came, [came.scheduling]) {
            stateHealth.failed(StoreError(code: 10, message: "disk I/O error", sql: ""))
        }
        isOver.set()
        try await wakes(
            ended,
            [
                ended.staging, ended.scheduling, ended.release, ended.removal, ended.retention, ended.hook, ended.media,
            ]
        ) { stateHealth.committed() }
    }

    @Test("each change wakes the loops that wait for it, and no other")
    func loops() async throws {
        let facts: [(FactChanges, (WakeUps) -> [AsyncSignal])] = [
            (.scheduling, { [$0.scheduling] }), (.removals, { [$0.removal] }), (.notices, { [$0.hook] }),
            (.stateFailing, { [$0.scheduling] }), (.folders, { [$0.media] }),
            (.stateWritable, { [$0.scheduling, $0.staging, $0.release, $0.removal, $0.retention, $0.media, $0.hook] }),
            (
                .configuration,
                { [$0.staging, $0.release, $0.removal, $0.maintenance, $0.retention, $0.metrics, $0.history, $0.hook] }
            ),
            ([.scheduling, .removals], { [$0.scheduling, $0.removal] }),
        ]
        for (changes, waiting) in facts {
            let signals = WakeUps()
            try await wakes(signals, waiting(signals)) { signals.wake(for: changes) }
        }
        let commits: [(ChangeSet, (WakeUps) -> [AsyncSignal])] = [
            (.arrivals, { [$0.retention, $0.media] }), (.copies, { [$0.staging, $0.media] }),
            (.queued, { [$0.scheduling, $0.media] }), (.due, { [$0.release, $0.media] }),
            (.released, { [$0.staging, $0.retention, $0.media] }), (.leftovers, { [$0.removal] }),
            (.lists, { [$0.history, $0.media] }), (.unsettled, { [$0.unsettled] }),
            (.superseded, { [$0.scheduling] }), (.events, { [$0.hook] }), (.releaseNotes, { [$0.media] }),
        ]
        for (changes, waiting) in commits {
            let signals = WakeUps()
            try await wakes(signals, waiting(signals)) { signals.wake(for: changes) }
        }
        // Every bit is in the table.
        #expect(commits.reduce(into: ChangeSet()) { $0.formUnion($1.0) }.rawValue == (1 << commits.count) - 1)
    }

    @Test("events wake their readers, and changed folders those who wait for a scan")
    func broadcasts() async throws {
        let signals = WakeUps()
        let (reader, scan) = (AsyncSignal(), AsyncSignal())
        signals.events.add(reader)
        signals.folders.add(scan)
        for (signal, wake) in [
            (reader, { signals.wake(for: ChangeSet.events) }), (scan, { signals.wake(for: FactChanges.folders) }),
        ] {
            let wait = Task { await signal.wait() }
            try await eventually("it waits") { signal.isWaiting }
            wake()
            await wait.value
        }
    }

    @Test("the loop's next deadline is the first of all, at least 10 ms, without what was due before its last cycle")
    func deadline() {
        var facts = SchedulerFacts()
        func next(_ queued: MonotonicTime? = nil, _ change: WallTime? = nil, _ checks: [Duration] = []) -> Duration? {
            facts.nextDeadline(
                after: Self.now, queued: queued, change: change, checks: checks, now: Self.now, wall: Self.wall)
        }
        #expect(next() == nil)
        #expect(next(Self.now.advanced(by: .seconds(9))) == .seconds(9))
        #expect(next(Self.now.advanced(by: .seconds(9)), Self.wall.advanced(by: .seconds(8))) == .seconds(8))
        #expect(next(Self.now.advanced(by: .seconds(9)), Self.wall, [.seconds(5)]) == .milliseconds(10))
        let pause = PauseRecord(
            scope: .all, name: "", since: Self.wall, until: Self.wall.advanced(by: .seconds(4)))
        facts.pauses.replace([pause])
        #expect(next(nil, nil, [.seconds(5)]) == .seconds(4))
        facts.destinations.reconsider("nas", at: Self.now)
        #expect(next() == .seconds(4))
    }

    @Test("a commit that has ended running uploads is looked into once, and no other commit is")
    func superseded() {
        let superseded = SupersededUploads()
        superseded.record([.queued, .due])
        #expect(superseded.take() == false)
        superseded.record([.queued, .superseded])
        #expect(superseded.take() == true)
        #expect(superseded.take() == false)
        // One that could not be looked into.
        superseded.set()
        #expect(superseded.take() == true)
    }

    /// Expects that `body` wakes exactly these loops.
    private func wakes(
        _ signals: WakeUps, _ expected: [AsyncSignal], _ body: () async throws -> Void
    ) async throws {
        let all = [
            signals.staging, signals.scheduling, signals.release, signals.removal, signals.grouping, signals.retention,
            signals.hook, signals.maintenance, signals.media, signals.history, signals.unsettled, signals.metrics,
        ]
        let loops = all.map { signal in Task { await signal.wait() } }
        try await eventually("all loops wait") { all.allSatisfy(\.isWaiting) }
        try await body()
        #expect(all.filter { !$0.isWaiting }.map(ObjectIdentifier.init) == ordered(expected, in: all))
        for loop in loops { loop.cancel() }
        for loop in loops { await loop.value }
    }

    private func ordered(_ some: [AsyncSignal], in all: [AsyncSignal]) -> [ObjectIdentifier] {
        let ids = Set(some.map(ObjectIdentifier.init))
        return all.map(ObjectIdentifier.init).filter { ids.contains($0) }
    }
}
