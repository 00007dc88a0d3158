import API
import Core
import TestKit
import Testing

@testable import Config
@testable import Daemon
@testable import Store
@testable import Watch

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
