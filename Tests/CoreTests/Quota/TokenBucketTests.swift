import TestKit
import Testing

@testable import Core

@Suite("TokenBucket")
struct TokenBucketTests {
    private static let start = MonotonicTime(nanoseconds: 5_000_000_000)
    private static let minute = Duration.seconds(60)

    /// From 128 B/s to 60 MB/s, with each order of magnitude equally likely.
    private static func anyRate(_ dice: inout Dice) -> Int64 {
        let scale = Int64(1) << Int64.random(in: 7...25, using: &dice)
        return Int64.random(in: scale...(2 * scale), using: &dice)
    }

    @Test("a constantly waiting taker gets the rate, within 2 % of a minute, however late it asks", arguments: 0..<40)
    func minute(_ seed: UInt64) {
        var dice = Dice(seed: seed)
        let rate = Self.anyRate(&dice)
        let lateness = Int64.random(in: 0...90, using: &dice)
        var bucket = TokenBucket(rate: rate, at: Self.start)
        var now = Self.start
        var sent: Int64 = 0
        while now.since(Self.start) < Self.minute {
            let (count, again) = bucket.acquire(upTo: Int.random(in: 1000...(64 << 10), using: &dice), at: now)
            sent += Int64(count)
            guard count == 0 else { continue }
            guard let again, again > now else {
                Issue.record("the bucket refused without naming a time")
                return
            }
            // Late by the rest of the tenth of a second whose tokens are kept.
            now = again.advanced(by: .milliseconds(Int64.random(in: 0...lateness, using: &dice)))
        }
        let ideal = Double(rate) * now.since(Self.start).inSeconds
        #expect(abs(Double(sent) / ideal - 1) <= 0.02, "rate \(rate): \(sent) of \(ideal)")
    }

    @Test("no interval gets more than its rate and one burst, in any sequence of takers", arguments: 0..<40)
    func windows(_ seed: UInt64) {
        var dice = Dice(seed: seed)
        let rate = Self.anyRate(&dice)
        var bucket = TokenBucket(rate: rate, at: Self.start)
        var now = Self.start
        var taken: [(at: MonotonicTime, sum: Int64)] = [(now, 0)]
        for _ in 0..<2000 {
            now = now.advanced(by: .microseconds(Int64.random(in: 0...200_000, using: &dice)))
            let count = bucket.acquire(upTo: Int.random(in: 1...100_000, using: &dice), at: now).count
            taken.append((now, (taken.last?.sum ?? 0) + Int64(count)))
        }
        for _ in 0..<2000 {
            let first = Int.random(in: 1..<taken.count, using: &dice)
            let last = Int.random(in: first..<taken.count, using: &dice)
            let bytes = taken[last].sum - taken[first - 1].sum
            let time = taken[last].at.since(taken[first].at).inSeconds
            #expect(Double(bytes) <= Double(rate) * time + Double(bucket.burst) + 1)
        }
        #expect(Double(bucket.burst) <= 0.02 * 60 * Double(rate))
    }

    @Test("a changed rate counts from that moment", arguments: 0..<40)
    func changes(_ seed: UInt64) {
        var dice = Dice(seed: seed)
        var now = Self.start
        var rate = Self.anyRate(&dice)
        var bucket = TokenBucket(rate: rate, at: now)
        var (ideal, most, least) = (0.0, Double(bucket.burst), Double(bucket.burst))
        var sent: Int64 = 0
        var nextChange = now
        while now.since(Self.start) < Self.minute {
            let (count, again) = bucket.acquire(upTo: 64 << 10, at: now)
            sent += Int64(count)
            #expect(Double(sent) <= ideal + most + 1)
            if count > 0 { continue }
            let before = now
            now = min(again ?? nextChange, nextChange)
            ideal += Double(rate) * now.since(before).inSeconds
            if now == nextChange {
                // Tokens that a higher rate had saved are cut to the limit of the new one.
                least += Double(bucket.piece)
                rate = Bool.random(using: &dice) ? Self.anyRate(&dice) : 0
                bucket.set(rate: rate, at: now)
                most = max(most, Double(bucket.burst))
                least += Double(bucket.burst)
                nextChange = now.advanced(by: .milliseconds(Int64.random(in: 1...5000, using: &dice)))
            }
        }
        #expect(Double(sent) >= ideal - least)
    }

    @Test("the suggested time is the first at which bytes are available", arguments: 0..<40)
    func again(_ seed: UInt64) {
        var dice = Dice(seed: seed)
        var bucket = TokenBucket(rate: Self.anyRate(&dice), at: Self.start)
        let wanted = Int.random(in: 1000...(64 << 10), using: &dice)
        while bucket.acquire(upTo: wanted, at: Self.start).count > 0 {}
        guard let again = bucket.acquire(upTo: wanted, at: Self.start).again else {
            Issue.record("the bucket named no time")
            return
        }
        let tooEarly = MonotonicTime(nanoseconds: again.nanoseconds - 1)
        #expect(bucket.acquire(upTo: wanted, at: tooEarly).count == 0)
        #expect(bucket.acquire(upTo: wanted, at: again).count == min(wanted, bucket.piece))
    }

    @Test("without a limit everything passes, with 0 nothing, until that changes")
    func ends() {
        var bucket = TokenBucket(rate: nil, at: Self.start)
        #expect(bucket.acquire(upTo: 1 << 30, at: Self.start) == (1 << 30, nil))
        bucket.set(rate: 0, at: Self.start)
        let muchLater = Self.start.advanced(by: .seconds(86_400 * 365))
        #expect(bucket.acquire(upTo: 1, at: muchLater) == (0, nil))
        bucket.set(rate: 1000, at: muchLater)
        #expect(
            bucket.acquire(upTo: 1000, at: muchLater).count == 0,
            "time without a limit, or with 0, accumulates no tokens")
        #expect(bucket.acquire(upTo: 1000, at: muchLater.advanced(by: .seconds(1))).count == 1000)
    }

    @Test("returned bytes are available again, and overdrawn ones are waited for")
    func givesBack() {
        var bucket = TokenBucket(rate: 100_000, at: Self.start)
        bucket.spend(bucket.piece)
        bucket.spend(-500)
        #expect(bucket.ready(for: 500, at: Self.start) == .now)
        bucket.spend(1500)
        #expect(bucket.ready(for: 1000, at: Self.start) == .later(Self.start.advanced(by: .milliseconds(20))))
    }

    @Test("neither the end of time nor the largest rate traps")
    func extremes() {
        var bucket = TokenBucket(rate: .max, at: MonotonicTime(nanoseconds: .min))
        #expect(bucket.acquire(upTo: .max, at: MonotonicTime(nanoseconds: .max)).count > 0)
        bucket.set(rate: .min, at: MonotonicTime(nanoseconds: .max))
        #expect(bucket.rate == 0)
        bucket.set(rate: 1, at: MonotonicTime(nanoseconds: 0))
        #expect(bucket.acquire(upTo: 1, at: MonotonicTime(nanoseconds: 0)).count == 0)
    }
}
