import TestKit
import Testing

@testable import Core

@Suite("Usage")
struct UsageTests {
    @Test("days and months are adjacent and end with now, also with clock changes", arguments: TestZone.all)
    func stretches(_ zone: TestZone) throws {
        for change in zone.changes {
            let now = change.advanced(by: .seconds(86_400))
            for period in [Period.day, .month(startsOn: 1)] {
                let stretches = UsageSum.stretches(of: period, 5, upTo: now, in: zone.zone)
                #expect(stretches.count == 5)
                #expect(try #require(stretches.last).contains(now))
                #expect(zip(stretches, stretches.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound })
            }
        }
        #expect(UsageSum.stretches(of: .day, 0, upTo: utc("2026-11-20T10:00:00"), in: .utc).isEmpty)
    }

    @Test("the sum covers a period, in total and by name, the largest first")
    func sums() throws {
        var dice = Dice(seed: 11)
        let now = utc("2026-11-20T10:00:00")
        let rows = (0..<500).map { _ in
            UsageRow(
                at: now.advanced(by: .seconds(-Int64.random(in: 0...1_000_000, using: &dice))),
                account: SpendingAccount(
                    destination: Bool.random(using: &dice) ? "nas" : "cloud",
                    folder: Bool.random(using: &dice) ? "door" : nil,
                    network: .allCases[Int.random(in: 0...3, using: &dice)]),
                spending: Spending(bytes: Int64.random(in: 0...99, using: &dice), files: 1))
        }
        let stretches = UsageSum.stretches(of: .day, 7, upTo: now, in: TestZone.berlin)
        for grouping in [nil] + UsageGrouping.allCases.map(Optional.some) {
            let sums = UsageSum.sums(of: rows, in: stretches, by: grouping)
            #expect(sums.map(\.stretch) == stretches)
            for sum in sums {
                let inside = rows.filter { sum.stretch.contains($0.at) }
                #expect(sum.total == inside.map(\.spending).reduce(.none, +))
                guard let grouping else {
                    #expect(sum.parts.isEmpty)
                    continue
                }
                #expect(sum.parts.map(\.spending).reduce(.none, +) == sum.total)
                #expect(sum.parts.map(\.spending.bytes) == sum.parts.map(\.spending.bytes).sorted(by: >))
                for part in sum.parts {
                    let own = inside.filter { grouping.name(of: $0.account) == part.name }
                    #expect(part.spending == own.map(\.spending).reduce(.none, +))
                }
            }
        }
    }
}
