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
}
