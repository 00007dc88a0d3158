/// A day of the calendar, without a place or a time.
package struct CivilDay: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// Days since 1970-01-01.
    package let number: Int

    package init(number: Int) { self.number = number }

    /// - Returns: `nil` for an impossible day.
    package init?(year: Int, month: Int, day: Int) {
        guard let midnight = CivilTime(year: year, month: month, day: day, hour: 0, minute: 0, second: 0) else {
            return nil
        }
        number = Int(midnight.moment().milliseconds / Self.length)
    }

    private static let length: Int64 = 86_400_000

    package var date: (year: Int, month: Int, day: Int) {
        let utc = WallTime(milliseconds: Int64(number) * Self.length).utc
        return (utc.year, utc.month, utc.day)
    }

    /// 1970-01-01 was a Thursday.
    package var weekday: Weekday { Weekday.allCases[((number + 3) % 7 + 7) % 7] }

    package static func + (day: CivilDay, count: Int) -> CivilDay { CivilDay(number: day.number + count) }
    package static func < (a: CivilDay, b: CivilDay) -> Bool { a.number < b.number }

    /// `2026-11-20`.
    package var description: String {
        let date = date
        return "\(padded(date.year, 4))-\(padded(date.month, 2))-\(padded(date.day, 2))"
    }
}

package enum Weekday: String, Hashable, Sendable, CaseIterable {
    case mon, tue, wed, thu, fri, sat, sun
}

/// A time zone: its rules, as a function that says how far its clocks are ahead of UTC at any moment.
///
/// Two changes of the clocks within a day are treated as one.
package struct Zone: Sendable {
    private let ahead: @Sendable (WallTime) -> Int

    /// - Parameter ahead: Seconds ahead of UTC.
    package init(_ ahead: @escaping @Sendable (WallTime) -> Int) { self.ahead = ahead }

    package static let utc = Zone { _ in 0 }

    /// Milliseconds ahead of UTC.
    private func offset(at moment: WallTime) -> Int64 { Int64(ahead(moment)) * 1000 }

    /// The local time: the day, and the milliseconds since its midnight.
    package func localTime(at moment: WallTime) -> (day: CivilDay, time: Int64) {
        let shown = moment.milliseconds + offset(at: moment)
        let day = shown.dividedDown(by: Self.day)
        return (CivilDay(number: Int(day)), shown - day * Self.day)
    }

    private static let day: Int64 = 86_400_000

    /// The moments with this local time: none where clocks are set forward over it, two where they are set back over
    /// it.
    ///
    /// - Parameter time: Milliseconds of the day, including its end (`86_400_000`).
    package func moments(_ day: CivilDay, _ time: Int64) -> [WallTime] {
        let shown = Int64(day.number) * Self.day + time
        // In every zone, clocks differ from UTC by less than a day.
        let offsets = [shown - Self.day, shown + Self.day].map { offset(at: WallTime(milliseconds: $0)) }
        var moments: [WallTime] = []
        for offset in Set(offsets) {
            let moment = WallTime(milliseconds: shown - offset)
            if self.offset(at: moment) == offset { moments.append(moment) }
        }
        return moments.sorted()
    }

    /// The first moment of a day: midnight, or its replacement where clocks are set forward over it.
    package func start(of day: CivilDay) -> WallTime {
        if let midnight = moments(day, 0).first { return midnight }
        // Midnight does not occur, so the clocks are set there.
        let before = WallTime(milliseconds: (Int64(day.number) - 1) * Self.day)
        return change(after: before, upTo: before.advanced(by: .seconds(2 * 86_400))) ?? before
    }

    /// When the clocks are set between two moments, which are at most some days apart; `nil` when they are not.
    package func change(after start: WallTime, upTo end: WallTime) -> WallTime? {
        var (low, high) = (start.milliseconds, end.milliseconds)
        let before = offset(at: start)
        guard low < high, offset(at: end) != before else { return nil }
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if offset(at: WallTime(milliseconds: middle)) == before { low = middle } else { high = middle }
        }
        return WallTime(milliseconds: high)
    }
}
