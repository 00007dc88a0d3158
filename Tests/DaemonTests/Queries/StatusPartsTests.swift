import API
import Core
import TestKit
import Testing

@testable import Daemon
@testable import Store
@testable import Watch

@Suite("Warnings of the status")
struct StatusWarningsTests {
    private static func state(_ folder: String, _ path: FilePath, troubles: [String]) -> WatchState {
        var state = WatchState(folder: folder, path: path, condition: .watching)
        state.troubles = troubles
        return state
    }

    @Test("folders with the same path report its troubles once")
    func folders() {
        var more = Self.state("b", "/b", troubles: ["unreadable"])
        more.moreTroubles = 3
        let warnings = StatusWarnings.ofFolders([
            Self.state("a", "/a", troubles: ["broken"]), Self.state("a2", "/a", troubles: ["broken"]), more,
        ])
        #expect(warnings.count == 3)
        #expect(warnings.last?.contains("3 more") == true)
    }

    @Test("uploads to a destination that is not configured are counted by destination")
    func unknownDestinations() {
        let tallies = [
            Tally(destination: "gone", state: .queued, uploads: 2, bytes: 0),
            Tally(destination: "gone", state: .staging, uploads: 1, bytes: 0),
            Tally(destination: "nas", state: .queued, uploads: 5, bytes: 0),
            Tally(destination: "old", state: .queued, uploads: 0, bytes: 0),
        ]
        let warnings = StatusWarnings.ofUnknownDestinations(tallies, known: ["nas"])
        #expect(warnings.count == 1)
        #expect(warnings.first?.hasPrefix("3 uploads") == true)
    }

    @Test("an absent folder explains the wait of all its files")
    func absence() {
        var state = Self.state("a", "/a", troubles: [])
        #expect([state].absence(of: "a") == nil)
        state.condition = .absent("no disk")
        #expect([state].absence(of: "a")?.contains("no disk") == true)
        #expect([state].absence(of: "b") == nil)
    }
}

@Suite("Rates of a plan")
struct RateEstimateTests {
    private static func row(_ hour: Int64, _ bytes: Int64, to destination: String = "nas") -> UsageRow {
        UsageRow(
            at: WallTime(milliseconds: hour * 3_600_000),
            account: SpendingAccount(destination: destination, folder: "cam", network: .any),
            spending: Spending(bytes: bytes))
    }

    @Test("a measured rate counts unless an hour was faster")
    func measured() {
        #expect(RateEstimate(measured: 10, used: nil).view(of: "nas").source == "measured")
        #expect(RateEstimate(measured: 10, used: 20).view(of: "nas").rate == 20)
        #expect(RateEstimate(measured: nil, used: nil).view(of: "nas").source == "unknown")
    }

    @Test("the busiest hour counts, including all traffic to the destination")
    func bestHour() {
        let best = RateEstimate.bestHours([Self.row(1, 200 << 20), Self.row(2, 150 << 20), Self.row(2, 150 << 20)])
        let expected = Int64(300 << 20) / (100 + Plan.overhead) * 100 / 3600
        #expect(best == ["nas": expected])
    }

    @Test("an hour with little traffic shows no rate")
    func idleHour() { #expect(RateEstimate.bestHours([Self.row(1, 1 << 20)]).isEmpty) }
}
