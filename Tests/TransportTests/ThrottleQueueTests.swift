import Core
import Synchronization
import TestKit
import Testing

@testable import Transport

/// In virtual time: each taker always wants more, and asks again until it is refused, like libcurl.
@Suite("Shares of a limit")
struct ThrottleQueueTests {
    private let clocks = ManualClocks()

    /// - Returns: Bytes of each taker.
    private func run(_ takers: [[Throttle]], for time: Duration, seed: UInt64) -> [Int] {
        var dice = Dice(seed: seed)
        var turns = ThrottleQueue<Int>()
        var sent = [Int](repeating: 0, count: takers.count)
        let end = clocks.monotonic().advanced(by: time)
        var asking = Array(takers.indices)
        while clocks.monotonic() < end {
            let now = clocks.monotonic()
            for key in asking {
                while true {
                    let wanted = Int.random(in: 1...(64 << 10), using: &dice)
                    let count = turns.acquire(key, upTo: wanted, from: takers[key], at: now)
                    sent[key] += count
                    if count == 0 { break }
                }
            }
            let (ready, again) = turns.dequeue(at: now)
            for (key, count) in ready { sent[key] += count }
            asking = ready.map(\.key)
            guard asking.isEmpty else { continue }
            guard let again else { break }
            clocks.advance(by: again.since(now) + .microseconds(Int64.random(in: 0...2000, using: &dice)))
        }
        return sent
    }

    @Test("any number of takers keep the limit together, each with its share", arguments: [1, 2, 8, 50])
    func shares(_ count: Int) {
        let throttle = Throttle(rate: 200_000, clocks: clocks)
        let sent = run(Array(repeating: [throttle], count: count), for: .seconds(60), seed: UInt64(count))
        let sum = Double(sent.reduce(0, +))
        #expect(abs(sum / 12_000_000 - 1) <= 0.02)
        for each in sent { #expect(abs(Double(each) / (sum / Double(count)) - 1) <= 0.1) }
    }

    @Test("nested limits are both kept, no taker starves, and unused shares go to others")
    func chain() {
        let whole = Throttle(rate: 200_000, clocks: clocks)
        let slow = Throttle(rate: 20_000, clocks: clocks)
        let fast = Throttle(rate: 1_000_000, clocks: clocks)
        let takers = Array(repeating: [slow, whole], count: 4) + Array(repeating: [fast, whole], count: 4)
        let sent = run(takers, for: .seconds(60), seed: 7).map(Double.init)
        let (ofSlow, ofFast) = (sent[..<4].reduce(0, +), sent[4...].reduce(0, +))
        #expect(abs(ofSlow / 1_200_000 - 1) <= 0.02)
        #expect(abs((ofSlow + ofFast) / 12_000_000 - 1) <= 0.02)
        for each in sent[..<4] { #expect(abs(each / (ofSlow / 4) - 1) <= 0.15) }
        for each in sent[4...] { #expect(abs(each / (ofFast / 4) - 1) <= 0.15) }
    }

    @Test(
        "a taker that waits for a shared limit loses nothing of its own", arguments: [300_000, 30_000, 450_000])
    func own(_ rate: Int) {
        let whole = Throttle(rate: 1_000_000, clocks: clocks)
        let own = Throttle(rate: Int64(rate), clocks: clocks)
        let sent = run([[own, whole], [whole]], for: .seconds(30), seed: 5).map(Double.init)
        #expect(abs(sent[0] / Double(rate * 30) - 1) <= 0.03)
        #expect(abs((sent[0] + sent[1]) / 30_000_000 - 1) <= 0.02)
    }

    @Test("a limit of 0 stops its takers, and costs others nothing")
    func stopped() {
        let whole = Throttle(rate: 100_000, clocks: clocks)
        let none = Throttle(rate: 0, clocks: clocks)
        let sent = run([[none, whole], [whole], [none]], for: .seconds(60), seed: 3)
        #expect(sent[0] == 0 && sent[2] == 0)
        #expect(abs(Double(sent[1]) / 6_000_000 - 1) <= 0.02)
    }

    @Test("small requests beside large ones starve no taker")
    func small() {
        let throttle = Throttle(rate: 1_000_000, clocks: clocks)
        var turns = ThrottleQueue<Int>()
        var sent = [0, 0, 0]
        let wishes = [1, 100, 64 << 10]
        var asking = [0, 1, 2]
        for _ in 0..<3000 {
            let now = clocks.monotonic()
            for key in asking { while take(key, now) > 0 {} }
            let (ready, again) = turns.dequeue(at: now)
            for (key, count) in ready { sent[key] += count }
            asking = ready.map(\.key)
            if asking.isEmpty, let again { clocks.advance(by: again.since(now)) }
        }
        #expect(sent.allSatisfy { $0 > 0 } && sent[2] > sent[1])

        func take(_ key: Int, _ now: MonotonicTime) -> Int {
            let count = turns.acquire(key, upTo: wishes[key], from: [throttle], at: now)
            sent[key] += count
            return count
        }
    }

    @Test("a taker that left the queue is not served")
    func leaves() {
        let throttle = Throttle(rate: 0, clocks: clocks)
        var turns = ThrottleQueue<Int>()
        for key in 0..<3 { #expect(turns.acquire(key, upTo: 10, from: [throttle], at: clocks.monotonic()) == 0) }
        turns.leave(1)
        throttle.rate = nil
        #expect(turns.dequeue(at: clocks.monotonic()).ready.map(\.key) == [0, 2])
        #expect(turns.isEmpty)
    }
}
