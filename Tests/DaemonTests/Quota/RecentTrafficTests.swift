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
        let rows = recent.rows(at: clocks.readBoth())
        #expect(rows.count == 3)
        let first = rows.filter { $0.account == account }.sorted { $0.at < $1.at }
        #expect(first.map(\.spending) == [Spending(bytes: 10, received: 3), Spending(bytes: 7)])
        #expect(first[1].at.milliseconds - first[0].at.milliseconds == 60_000)
        #expect(first[1].at == clocks.wall())
        clocks.advance(by: .seconds(59 * 60))
        #expect(recent.rows(at: clocks.readBoth()).map(\.spending) == [Spending(bytes: 7)])
        clocks.advance(by: .seconds(60))
        #expect(recent.rows(at: clocks.readBoth()).isEmpty)
    }

    @Test("minutes begin with those of the wall clock, and show it also after it was set")
    func wallMinutes() {
        let clocks = ManualClocks(wall: WallTime(milliseconds: 1_795_161_617_250))
        let recent = RecentTraffic(clocks: clocks)
        clocks.advance(by: .seconds(30))
        let stretches = recent.stretches(3, at: clocks.readBoth())
        #expect(stretches.map(\.lowerBound.milliseconds) == [-120, -60, 0].map { 1_795_161_600_000 + $0 * 1_000 })
        #expect(stretches.allSatisfy { $0.upperBound.milliseconds - $0.lowerBound.milliseconds == 60_000 })
        clocks.step(by: .seconds(-3_607))
        #expect(recent.stretches(1, at: clocks.readBoth())[0].lowerBound.milliseconds == 1_795_161_600_000 - 3_607_000)
    }

    /// The bytes of each minute, the present one at the end.
    private func sums(_ recent: RecentTraffic, _ clocks: ManualClocks) -> [(start: WallTime, bytes: Int64)] {
        let now = clocks.readBoth()
        let stretches = recent.stretches(RecentTraffic.minutes, at: now)
        return UsageSum.sums(of: recent.rows(at: now), in: stretches, by: nil).map {
            ($0.stretch.lowerBound, $0.total.bytes)
        }
    }

    @Test("no byte moves from one minute to another, is lost or is counted twice, at any moments", arguments: 0..<40)
    func stays(_ seed: UInt64) {
        var dice = Dice(seed: seed)
        let clocks = ManualClocks(
            wall: WallTime(milliseconds: 1_795_161_600_000 + .random(in: 0..<86_400_000, using: &dice)))
        clocks.advance(by: .milliseconds(Int64.random(in: 0..<60_000, using: &dice)))
        let recent = RecentTraffic(clocks: clocks)
        // The phase of the two clocks differs from here on in some runs.
        if Bool.random(using: &dice) {
            clocks.step(by: .milliseconds(Int64.random(in: -90_000...90_000, using: &dice)))
        }
        var added: [(at: MonotonicTime, bytes: Int64)] = []
        var before: [Int64: Int64] = [:]
        for _ in 0..<400 {
            if Int.random(in: 0..<3, using: &dice) > 0 {
                let bytes = Int64.random(in: 1...1_000, using: &dice)
                recent.add(Spending(bytes: bytes), of: Bool.random(using: &dice) ? account : other)
                added.append((clocks.monotonic(), bytes))
            }
            let sums = sums(recent, clocks)
            #expect(sums.count == RecentTraffic.minutes)
            #expect(zip(sums, sums.dropFirst()).allSatisfy { $1.start.milliseconds - $0.start.milliseconds == 60_000 })
            #expect(
                sums.last.map {
                    $0.start.advanced(by: .milliseconds(-500)) <= clocks.wall()
                        && clocks.wall() < $0.start.advanced(by: .seconds(61))
                }
                    == true)
            // What has been told of a past minute is told again.
            for sum in sums.dropLast() where before[sum.start.milliseconds] != nil {
                #expect(before[sum.start.milliseconds] == sum.bytes, "seed \(seed)")
            }
            before = Dictionary(uniqueKeysWithValues: sums.dropLast().map { ($0.start.milliseconds, $0.bytes) })
            // All of the last 59 minutes, and none of more than an hour ago.
            let (now, total) = (clocks.monotonic(), sums.reduce(0) { $0 + $1.bytes })
            func since(_ limit: Int) -> Int64 {
                added.filter { now.since($0.at) <= .seconds(limit) }.reduce(0) { $0 + $1.bytes }
            }
            #expect(since(59 * 60) <= total && total <= since(60 * 60), "seed \(seed)")
            clocks.advance(by: .milliseconds(Int64.random(in: 0...45_000, using: &dice)))
        }
    }

    @Test("setting the clock moves all minutes together", arguments: 0..<20)
    func clockSteps(_ seed: UInt64) {
        var dice = Dice(seed: seed)
        let clocks = ManualClocks()
        let recent = RecentTraffic(clocks: clocks)
        for _ in 0..<100 {
            recent.add(Spending(bytes: .random(in: 1...1_000, using: &dice)), of: account)
            let before = sums(recent, clocks)
            let step = Int64.random(in: -100_000...100_000, using: &dice)
            clocks.step(by: .seconds(step))
            let after = sums(recent, clocks)
            #expect(before.map(\.bytes) == after.map(\.bytes), "seed \(seed)")
            #expect(zip(before, after).allSatisfy { $1.start.milliseconds - $0.start.milliseconds == step * 1_000 })
            clocks.advance(by: .milliseconds(Int64.random(in: 0...90_000, using: &dice)))
        }
    }
}
