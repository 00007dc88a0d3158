internal import Core
internal import Synchronization

/// The bytes of the last hour by minute, for people who watch.
///
/// A minute is one of the monotonic clock, so that setting the wall clock moves no byte from one to another. They begin
/// with the minutes that the wall clock showed at the start: later they do so as far as that was not set.
final class RecentTraffic: Sendable {
    private struct Minute {
        let number: Int64
        var spendings: [SpendingAccount: Spending] = [:]
    }

    /// Both clocks at one moment.
    typealias Moment = (wall: WallTime, monotonic: MonotonicTime)

    static let minutes = 60
    private static let length: Int64 = 60_000_000_000

    private let clocks: any Clocks
    /// Added to the monotonic clock, so that its minutes begin with those of the wall clock. Nanoseconds.
    private let offset: Int64
    /// The oldest first; minutes without traffic are left out.
    private let state = Mutex<[Minute]>([])

    init(clocks: any Clocks) {
        self.clocks = clocks
        let now = clocks.readBoth()
        let second = Duration.milliseconds(now.wall.milliseconds).inNanoseconds
        offset = second.remainder(of: Self.length) - now.monotonic.nanoseconds.remainder(of: Self.length)
    }

    /// From any thread; cheap.
    func add(_ spending: Spending, of account: SpendingAccount) {
        let number = number(clocks.monotonic())
        state.withLock { minutes in
            if minutes.last?.number != number {
                minutes.removeAll { $0.number <= number - Int64(Self.minutes) }
                minutes.append(Minute(number: number))
            }
            minutes[minutes.count - 1].spendings[account, default: .none] += spending
        }
    }

    /// The last minutes, the present one at the end, at the times that the wall clock shows for them now.
    func stretches(_ count: Int, at now: Moment) -> [Range<WallTime>] {
        let present = start(at: now)
        return (0..<count).reversed().map { ago in
            let start = present.advanced(by: .seconds(-60 * ago))
            return start..<start.advanced(by: .seconds(60))
        }
    }

    /// A row for each minute and account, at the beginning of its stretch.
    func rows(at now: Moment) -> [UsageRow] {
        let (present, start) = (number(now.monotonic), start(at: now))
        return state.withLock { minutes in
            minutes.filter { $0.number > present - Int64(Self.minutes) }.flatMap { minute in
                let time = start.advanced(by: .seconds(60 * (minute.number - present)))
                return minute.spendings.map { UsageRow(at: time, account: $0.key, spending: $0.value) }
            }
        }
    }

    /// The beginning of the present minute. To a second: it is computed again for each answer, from a clock that is
    /// corrected by small amounts all the time.
    private func start(at now: Moment) -> WallTime {
        let passed = (now.monotonic.nanoseconds + offset).remainder(of: Self.length) / 1_000_000
        let start = now.wall.milliseconds - passed + 500
        return WallTime(milliseconds: start - start.remainder(of: 1_000))
    }

    private func number(_ time: MonotonicTime) -> Int64 {
        let moved = time.nanoseconds + offset
        return (moved - moved.remainder(of: Self.length)) / Self.length
    }
}

extension Int64 {
    /// Not negative, also for a negative number.
    fileprivate func remainder(of divisor: Int64) -> Int64 {
        let rest = self % divisor
        return rest < 0 ? rest + divisor : rest
    }
}
