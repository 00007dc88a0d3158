import API
import Core
import Destinations
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Plans in the daemon", .timeLimit(.minutes(Patience.minutes(2))))
struct PlanTests {
    @Test("an upload that waits for its window is planned for its opening, and ends at the predicted time")
    func agrees() async throws {
        let clocks = try Times.clocks(12)
        let scene = try await DaemonScene(clocks: clocks) { $0.policy.rules = Times.night }
        let ids = [try await scene.add("a.mp4", size: 3000), try await scene.add("b.mp4", size: 5000)]
        try await scene.reach(.queued, ids)
        let plan = try await scene.daemon.plan(PlanQuery(rate: 100))
        let step = try #require(plan.steps.first)
        #expect(plan.steps.count == 1)
        #expect(step.from == (try Times.local(22)).description)
        #expect(step.to == (try Times.local(22)).advanced(by: .seconds(80)).description)
        #expect(step.files == 2 && step.bytes == 8000 && step.end == "done")
        #expect(plan.queues.first?.waits.first?.kind == "rule")
        #expect(plan.rates == [PlanRateView(rate: 100, source: "given")])
        #expect(scene.remote.began.isEmpty)
        try await scene.stop()
    }

    @Test("an unknown rate is reported and requested; a known one comes from the ledger")
    func rates() async throws {
        let clocks = try Times.clocks(12)
        let scene = try await DaemonScene(clocks: clocks) { $0.policy.rules = Times.night }
        try await scene.reach(.queued, [try await scene.add("a.mp4", size: 3000)])
        let unknown = try await scene.daemon.plan(PlanQuery())
        #expect(unknown.steps.isEmpty)
        #expect(unknown.rates == [PlanRateView(destination: "nas", source: "unknown")])
        #expect(unknown.notes.first?.contains("--rate '2 MB/s'") == true)
        #expect(unknown.queues.first?.waits.map(\.kind) == ["rule"])
        #expect(unknown.queues.first?.obstacles.map(\.kind) == ["speed"])
        #expect(unknown.queues.first?.ends == nil)
        let (store, account) = (
            scene.daemon.context.store, SpendingAccount(destination: "nas", folder: "cam", network: .any)
        )
        try await store.write { try $0.ledger.pay([Payment(account, Spending(bytes: 1_040 * 3600))]) }
        // Very few bytes in an hour show nothing about the speed.
        #expect(try await scene.daemon.plan(PlanQuery()).rates == unknown.rates)
        try await store.write { try $0.ledger.pay([Payment(account, Spending(bytes: 103_999 * 1_040 / 1_000 * 3600))]) }
        let known = try await scene.daemon.plan(PlanQuery())
        #expect(known.rates.map(\.source) == ["usage"])
        #expect(known.rates.first?.rate.map { (100_000...105_000).contains($0) } == true)
        #expect(known.steps.first?.bytes == 3000)
        // A measurement of an earlier run.
        try await store.write { try $0.settings.store(speed: 500_000, to: "nas") }
        #expect(
            try await scene.daemon.plan(PlanQuery()).rates
                == [PlanRateView(destination: "nas", rate: 500_000, source: "measured")])
        try await scene.stop()
    }

    @Test("an untrusted clock is named, and no end is predicted until it is trusted")
    func clock() async throws {
        let clocks = ManualClocks(wall: WallTime(milliseconds: 0))
        let scene = try await DaemonScene(clocks: clocks) { $0.policy.rules = Times.night }
        try await scene.reach(.queued, [try await scene.add("a.mp4", size: 3000)])
        let plan = try await scene.daemon.plan(PlanQuery(rate: 100))
        let queue = try #require(plan.queues.first)
        #expect(queue.obstacles.map(\.kind) == ["clock"])
        #expect(queue.obstacles.first?.text.hasPrefix("the clock is not set") == true)
        #expect(queue.ends == nil && plan.steps.isEmpty)
        #expect(plan.notes.contains { $0.contains("the clock is not set") })
        try await scene.stop()
    }

    @Test("an end in the past or years away is refused")
    func refused() async throws {
        let clocks = try Times.clocks(12)
        let scene = try await DaemonScene(clocks: clocks)
        for until in [try Times.local(12), try Times.local(12).advanced(by: .seconds(400 * 86_400))] {
            await #expect(throws: Refusal.self) { try await scene.daemon.plan(PlanQuery(until: until)) }
        }
        try await scene.stop()
    }

    @Test("the rate counts only minutes with traffic, and is kept")
    func speed() {
        let clocks = ManualClocks()
        let live = LiveUploads(clocks: clocks)
        live.begin("a", to: "nas", acked: 0, size: 100_000)
        #expect(live.speed(to: "nas") == nil)
        for step in 0...4 {
            live.sent("a", Int64(step) * 1000)
            clocks.advance(by: .seconds(1))
        }
        clocks.advance(by: .seconds(3600))
        live.sent("a", 90_000)
        live.end("a")
        #expect(live.speed(to: "nas") == 1000)
        #expect(live.speed(to: "cloud") == nil)
    }

    @Test("bytes that the destination had before count for no rate")
    func kept() {
        let clocks = ManualClocks()
        let live = LiveUploads(clocks: clocks)
        live.begin("a", to: "nas", acked: 0, size: 100_000_000)
        clocks.advance(by: .milliseconds(500))
        live.acked("a", 50_000_000)
        clocks.advance(by: .milliseconds(1000))
        live.sent("a", 50_001_000)
        #expect(live["a"]?.rate ?? 0 <= 1000)
        #expect(live["a"]?.sent == 50_001_000)
        live.end("a")
        #expect(live.removeEndPosition("a") == 50_001_000)
        #expect(live.removeEndPosition("a") == 0)
    }
}
