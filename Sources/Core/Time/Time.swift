/// A moment of the wall clock: milliseconds since 1970-01-01T00:00:00Z. It may jump; only schedules and displays use
/// it.
package struct WallTime: Hashable, Sendable, Comparable, CustomStringConvertible {
    package let milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    package static func < (a: WallTime, b: WallTime) -> Bool { a.milliseconds < b.milliseconds }

    /// Limited to the ends of the range: a person may ask for a pause of any length.
    package func advanced(by duration: Duration) -> WallTime {
        WallTime(milliseconds: milliseconds.addingClamped(duration.inMilliseconds))
    }

    /// Year, month, day, hour, minute, second in UTC, in the proleptic Gregorian calendar.
    package var utc: (year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) {
        let seconds = milliseconds.dividedDown(by: 1000)
        let days = seconds.dividedDown(by: 86_400)
        let rest = Int(seconds - days * 86_400)
        // Howard Hinnant's civil_from_days: eras of 400 years, years that begin in March.
        let shifted = days + 719_468
        let era = shifted.dividedDown(by: 146_097)
        let ofEra = shifted - era * 146_097
        let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let dayOfYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = Int(dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
        let month = Int(shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9)
        let year = Int(yearOfEra + era * 400) + (month <= 2 ? 1 : 0)
        return (year, month, day, rest / 3600, rest % 3600 / 60, rest % 60)
    }

    /// RFC 3339 in UTC with milliseconds: `2026-11-20T08:00:00.000Z`.
    package var description: String {
        let t = utc
        let rest = Int(milliseconds % 1000)
        let millis = rest < 0 ? rest + 1000 : rest
        return "\(padded(t.year, 4))-\(padded(t.month, 2))-\(padded(t.day, 2))T"
            + "\(padded(t.hour, 2)):\(padded(t.minute, 2)):\(padded(t.second, 2)).\(padded(millis, 3))Z"
    }
}

/// A moment of a clock that never jumps and runs while the machine sleeps (`CLOCK_BOOTTIME`). Timeouts and waits use
/// it.
package struct MonotonicTime: Hashable, Sendable, Comparable {
    package let nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    package static func < (a: MonotonicTime, b: MonotonicTime) -> Bool { a.nanoseconds < b.nanoseconds }

    package func advanced(by duration: Duration) -> MonotonicTime {
        MonotonicTime(nanoseconds: nanoseconds.addingClamped(duration.inNanoseconds))
    }

    /// Time from `earlier` to this moment.
    package func since(_ earlier: MonotonicTime) -> Duration {
        .nanoseconds(nanoseconds) - .nanoseconds(earlier.nanoseconds)
    }
}

/// The source of time. The daemon uses `SystemClocks` of `Linux`; tests have their own.
package protocol Clocks: Sendable {
    func wall() -> WallTime
    func monotonic() -> MonotonicTime
    /// Whether the system says that its wall clock is right; `nil` where no service keeps it, or the system does not
    /// tell.
    var isSynchronised: Bool? { get }
}

extension Clocks {
    package var isSynchronised: Bool? { nil }

    /// Both clocks at one moment: two separate readings would differ by the time that a machine sleeps between them.
    package func readBoth() -> (wall: WallTime, monotonic: MonotonicTime) {
        while true {
            let (before, wall, after) = (monotonic(), wall(), monotonic())
            if after.since(before) < .seconds(1) { return (wall, before) }
        }
    }
}

extension Duration {
    /// In whole milliseconds, limited to the range of the type.
    package var inMilliseconds: Int64 { inUnits(of: 1_000_000_000_000_000) }
    /// In whole nanoseconds, limited in the same way.
    package var inNanoseconds: Int64 { inUnits(of: 1_000_000_000) }
    private func inUnits(of attoseconds: Int128) -> Int64 {
        let (seconds, rest) = components
        return Int64(clamping: (Int128(seconds) * 1_000_000_000_000_000_000 + Int128(rest)) / attoseconds)
    }
    package var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}

extension Int64 {
    /// Rounds towards minus infinity, so that times before 1970 are right.
    func dividedDown(by divisor: Int64) -> Int64 {
        let (quotient, rest) = quotientAndRemainder(dividingBy: divisor)
        return rest < 0 ? quotient - 1 : quotient
    }

    /// The sum, limited to the range of the type.
    package func addingClamped(_ other: Int64) -> Int64 {
        let (sum, isOver) = addingReportingOverflow(other)
        return isOver ? (other > 0 ? .max : .min) : sum
    }
}

/// `number` in decimal with at least `width` digits.
package func padded(_ number: Int, _ width: Int) -> String {
    let digits = String(number.magnitude)
    return (number < 0 ? "-" : "") + String(repeating: "0", count: max(0, width - digits.count)) + digits
}
