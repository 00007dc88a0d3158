import API
import Core
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Queries of a plan, without a daemon")
struct PlanQueriesTests {
    private func queries(_ scene: ComponentScene) -> PlanQueries {
        PlanQueries(context: scene.context, scheduler: scene.scheduler, live: scene.parts.live)
    }

    @Test("an end in the past, or more than a year away, is refused")
    func until() async throws {
        let scene = try await ComponentScene()
        let now = scene.clocks.wall()
        for until in [now, now.advanced(by: .seconds(-1)), now.advanced(by: .seconds(400 * 86_400))] {
            await #expect { _ = try await queries(scene).plan(PlanQuery(until: until)) } throws: {
                ($0 as? Refusal)?.code == .badRequest
            }
        }
        #expect(try await queries(scene).plan(PlanQuery(until: now.advanced(by: .seconds(3600)))).steps.isEmpty)
    }

    @Test("a rate comes from the query, else from running transfers, else from what was stored, else from the ledger")
    func rates() async throws {
        let scene = try await ComponentScene()
        _ = try await scene.record("a.mp4", size: 3000)
        let unknown = try await queries(scene).plan(PlanQuery())
        #expect(unknown.rates == [PlanRateView(destination: "nas", source: "unknown")])
        #expect(unknown.notes.first?.contains("--rate") == true)
        try await scene.store.write {
            try $0.ledger.pay([
                Payment(
                    SpendingAccount(destination: "nas", folder: "cam", network: .any),
                    Spending(bytes: 2_000_000 * 3600))
            ])
        }
        let used = try #require(try await queries(scene).plan(PlanQuery()).rates.first)
        #expect(used.source == "usage" && used.rate ?? 0 > 0)
        try await scene.store.write { try $0.settings.store(speed: 5_000_000, to: "nas") }
        #expect(
            try await queries(scene).plan(PlanQuery()).rates
                == [PlanRateView(destination: "nas", rate: 5_000_000, source: "measured")])
        #expect(
            try await queries(scene).plan(PlanQuery(rate: 100)).rates == [PlanRateView(rate: 100, source: "given")])
    }

    @Test("an exception for an upload that has ended is named as left out")
    func leftOut() async throws {
        let scene = try await ComponentScene()
        await scene.scheduler.change { [now = scene.clocks.wall()] in
            $0.overrides.replace([
                OverrideRecord(
                    scope: .upload, name: "gone", kind: .exemption(.quota), since: now,
                    until: now.advanced(by: .seconds(60)), who: "root")
            ])
        }
        let notes = try await queries(scene).plan(PlanQuery(rate: 100)).notes
        #expect(notes.contains { $0.contains("`sluice allow` for gone is not part of this plan") })
    }
}
