import Core
import Synchronization
import TestKit
import Testing

@testable import Linux

@Suite("Alarms")
struct AlarmsTests {
    @Test("alarms fire, the earliest first, and only those not cancelled")
    func order() {
        let seen = ConditionLock([Int]())
        let alarms = Alarms.shared
        _ = alarms.set(after: .milliseconds(40)) { seen.change { $0.append(3) } }
        let cancelled = alarms.set(after: .milliseconds(10)) { seen.change { $0.append(2) } }
        _ = alarms.set(after: .milliseconds(20)) { seen.change { $0.append(1) } }
        alarms.cancel(cancelled)
        #expect(seen.wait { $0.count == 2 ? $0 : nil } == [1, 3])
        alarms.cancel(cancelled)
    }

    @Test("an alarm in the past fires at once, one for never does not interfere")
    func extremes() {
        let seen = ConditionLock(0)
        let never = Alarms.shared.set(after: .seconds(Int64.max)) { seen.change { $0 += 100 } }
        Alarms.shared.set(at: -1) { seen.change { $0 += 1 } }
        #expect(seen.wait { $0 > 0 ? $0 : nil } == 1)
        Alarms.shared.cancel(never)
    }

    @Test(
        "a sleep ends at its time, and at once on cancellation, also before it started",
        .timeLimit(.minutes(Patience.minutes(1))))
    func sleeping() async throws {
        let clock = ContinuousClock(), begin = clock.now
        try await Alarms.shared.sleep(for: .milliseconds(20))
        #expect(begin.duration(to: clock.now) >= .milliseconds(20))
        try await Alarms.shared.sleep(awakeFor: .milliseconds(20))
        try await Alarms.shared.sleep(for: .seconds(-1))
        let long = (0..<2000).map { number in
            Task {
                let never = Duration.seconds(Int64.max)
                try await Alarms.shared.sleep(for: number.isMultiple(of: 2) ? never : .seconds(3600))
            }
        }
        for task in long {
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test("deadlines are sorted, also after removals", arguments: [1, 2, 3, 100, 1000])
    func heap(count: Int) {
        var dice = Dice(seed: UInt64(count))
        var heap = DeadlineHeap()
        var all: [(Int64, UInt64)] = []
        for number in 0..<UInt64(count) {
            let at = Int64.random(in: 0..<500, using: &dice)
            heap.add(number, at: at)
            all.append((at, number))
        }
        heap.keep { $0 % 3 != 0 }
        all.removeAll { $0.1 % 3 == 0 }
        #expect(heap.count == all.count)
        #expect(heap.next(dueAt: -1) == nil)
        let deadlines = Dictionary(uniqueKeysWithValues: all.map { ($0.1, $0.0) })
        var last = Int64.min, came: Set<UInt64> = []
        while let number = heap.next(dueAt: .max), let at = deadlines[number] {
            #expect(at >= last)
            last = at
            came.insert(number)
        }
        #expect(came == Set(all.map(\.1)))
    }
}
