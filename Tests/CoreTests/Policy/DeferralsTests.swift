import TestKit
import Testing

@testable import Core

@Suite("Deferrals")
struct DeferralsTests {
    private static let backoff = Backoff(first: .seconds(10), ceiling: .seconds(600))

    @Test("waits grow with the failures in a row, and are logged less and less often")
    func failures() {
        var deferrals = Deferrals<Int, Void>(Self.backoff)
        var now = MonotonicTime(nanoseconds: 0)
        var logged: [Int] = []
        for count in 1...9 {
            let (wait, deferral) = deferrals.failed(7, (), at: now, jitter: 1)
            #expect(wait == Self.backoff.wait(afterFailures: count, jitter: 1))
            #expect(deferral.until == now.advanced(by: wait) && deferral.failures == count)
            if deferral.shouldLog { logged.append(count) }
            #expect(deferrals.isWaiting(7, at: now))
            now = deferral.until
            #expect(!deferrals.isWaiting(7, at: now))
        }
        #expect(logged == [1, 2, 4, 8])
        deferrals.remove(7, at: now)
        #expect(deferrals.failures(of: 7) == 0)
    }

    @Test(
        "every piece waits, is due or is unknown; only the end of a wait before its time is news",
        arguments: UInt64(0)..<20)
    func pieces(_ seed: UInt64) {
        var dice = Dice(seed: seed)
        var deferrals = Deferrals<Int, Bool>(Self.backoff)
        var now = MonotonicTime(nanoseconds: 0)
        for _ in 0..<300 {
            let key = Int.random(in: 0..<10, using: &dice)
            let before = Set(deferrals.waiting(at: now))
            switch Int.random(in: 0..<5, using: &dice) {
            case 0: _ = deferrals.failed(key, key.isMultiple(of: 2), at: now, jitter: 0.5)
            case 1: deferrals.remove(key, at: now)
            case 2: deferrals.retry(at: now) { $0 }
            case 3: deferrals.removeAll { one, _ in one == key }
            default: now = now.advanced(by: .seconds(7))
            }
            let (waiting, due) = (Set(deferrals.waiting(at: now)), Set(deferrals.due(at: now)))
            #expect(waiting.isDisjoint(with: due))
            #expect(deferrals.isEmpty == (waiting.isEmpty && due.isEmpty))
            #expect((0..<10).allSatisfy { deferrals.isWaiting($0, at: now) == waiting.contains($0) })
            #expect(deferrals.next.map { $0 > now } ?? true || !due.isEmpty)
            if deferrals.takeWake() { #expect(!before.isSubset(of: waiting)) }
        }
    }
}
