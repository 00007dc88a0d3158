internal import Core
internal import Synchronization

/// The bytes of the last hour by minute, for people who watch.
final class RecentTraffic: Sendable {
    private struct Minute {
        /// Since the clock's zero.
        let number: Int64
        var spendings: [SpendingAccount: Spending] = [:]
    }

    static let minutes = 60

    private let clocks: any Clocks
    /// The oldest first; minutes without traffic are left out.
    private let state = Mutex<[Minute]>([])

    init(clocks: any Clocks) { self.clocks = clocks }

    /// From any thread; cheap.
    func add(_ spending: Spending, of account: SpendingAccount) {
        let number = Self.number(clocks.monotonic())
        state.withLock { minutes in
            if minutes.last?.number != number {
                minutes.removeAll { $0.number <= number - Int64(Self.minutes) }
                minutes.append(Minute(number: number))
            }
            minutes[minutes.count - 1].spendings[account, default: .none] += spending
        }
    }

    /// A row for each minute and account, at the times that the wall clock shows for them now.
    var rows: [UsageRow] {
        let (now, wall) = (clocks.monotonic(), clocks.wall())
        let present = Self.number(now)
        return state.withLock { minutes in
            minutes.filter { $0.number > present - Int64(Self.minutes) }.flatMap { minute in
                let time = wall.advanced(by: .seconds(60 * (minute.number - present)))
                return minute.spendings.map { UsageRow(at: time, account: $0.key, spending: $0.value) }
            }
        }
    }

    private static func number(_ time: MonotonicTime) -> Int64 { time.nanoseconds / 60_000_000_000 }
}
