import Core
import TestKit
import Testing

@testable import Daemon

@Suite("Traffic of the last hour")
struct RecentTrafficTests {
    private let account = SpendingAccount(destination: "nas", folder: "door", network: .metered)
    private let other = SpendingAccount(destination: "nas", folder: nil, network: .unmetered)

    @Test("bytes are counted in their minute, by account, and for an hour")
    func minutes() {
        let clocks = ManualClocks()
        let recent = RecentTraffic(clocks: clocks)
        recent.add(Spending(bytes: 10), of: account)
        recent.add(Spending(received: 3), of: account)
        recent.add(Spending(bytes: 5), of: other)
        clocks.advance(by: .seconds(60))
        recent.add(Spending(bytes: 7), of: account)
        let rows = recent.rows
        #expect(rows.count == 3)
        let first = rows.filter { $0.account == account }.sorted { $0.at < $1.at }
        #expect(first.map(\.spending) == [Spending(bytes: 10, received: 3), Spending(bytes: 7)])
        #expect(first[1].at.milliseconds - first[0].at.milliseconds == 60_000)
        #expect(first[1].at == clocks.wall())
        clocks.advance(by: .seconds(59 * 60))
        #expect(recent.rows.map(\.spending) == [Spending(bytes: 7)])
        clocks.advance(by: .seconds(60))
        #expect(recent.rows.isEmpty)
    }
}
