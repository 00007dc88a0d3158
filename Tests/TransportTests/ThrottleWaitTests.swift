import TestKit
import Testing

@testable import Transport

@Suite("Waiting for throttles")
struct ThrottleWaitTests {
    @Test("a transfer that waits gets nothing, however often libcurl asks")
    func waiting() {
        let start = ContinuousClock.now
        var wait = ThrottleWait()
        let early = wait.take(upTo: 100)
        #expect(early == 0 && !wait.isWaiting)
        wait.wait(from: start)
        wait.wait(from: start.advanced(by: .seconds(1)))
        let waiting = wait.take(upTo: 100)
        #expect(wait.isWaiting && waiting == nil)
        // No limit of time runs from the first moment on.
        let began = wait.resume(with: 60)
        #expect(began == start && !wait.isWaiting)
        let again = wait.resume(with: 0)
        #expect(again == nil)
        let pieces = (0..<3).map { _ in wait.take(upTo: 50) }
        #expect(pieces == [50, 10, 0])
    }

    @Test("an answer counts as one in line only while the transfer waits")
    func answered() {
        var wait = ThrottleWait()
        wait.answered()
        #expect(!wait.isAnsweredInLine)
        wait.wait(from: .now)
        wait.answered()
        #expect(wait.isAnsweredInLine)
        _ = wait.resume(with: 0)
        #expect(!wait.isAnsweredInLine)
    }

    @Test("each granted byte is either taken or returned, once", arguments: 0..<100)
    func sum(_ seed: UInt64) {
        var dice = Dice(seed: seed)
        var wait = ThrottleWait()
        var (granted, taken) = (0, 0)
        for _ in 0..<100 {
            switch Int.random(in: 0..<4, using: &dice) {
            case 0:
                let more = Int.random(in: 0...1000, using: &dice)
                granted += more
                _ = wait.resume(with: more)
            case 1: taken += wait.take(upTo: Int.random(in: 0...1000, using: &dice)) ?? 0
            case 2: wait.wait(from: .now)
            default: if Int.random(in: 0..<5, using: &dice) == 0 { taken += wait.takeAll() }
            }
            #expect(taken <= granted, "seed \(seed)")
        }
        taken += wait.takeAll()
        #expect(taken == granted, "seed \(seed)")
        let rest = wait.takeAll()
        #expect(rest == 0, "seed \(seed)")
    }
}
