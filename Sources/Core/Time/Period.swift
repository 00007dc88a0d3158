/// A period of the calendar that a quota is counted over, in local time.
package enum Period: Hashable, Sendable {
    case hour
    case day
    case week(startsOn: Weekday)
    /// - startsOn: 1 to 31; in a shorter month the last day.
    case month(startsOn: Int)

    /// The period that contains a moment. Periods follow each other without gaps.
    package func interval(around moment: WallTime, in zone: Zone) -> Range<WallTime> {
        switch self {
        case .hour: return hour(around: moment, zone)
        case .day: return days(around: moment, zone, from: { $0 }, to: { $0 + 1 })
        case .week(let first):
            let start = { (day: CivilDay) in day + -Self.days(from: first, to: day.weekday) }
            return days(around: moment, zone, from: start, to: { start($0) + 7 })
        case .month(let first):
            return days(
                around: moment, zone, from: { Self.month(of: $0, startingOn: first, 0) },
                to: { Self.month(of: $0, startingOn: first, 1) })
        }
    }

    /// An hour of the clock. When clocks are set, the hour ends, and another begins.
    private func hour(around moment: WallTime, _ zone: Zone) -> Range<WallTime> {
        let length: Int64 = 3_600_000
        let past = zone.localTime(at: moment).time % length
        var start = WallTime(milliseconds: moment.milliseconds - past)
        var end = WallTime(milliseconds: start.milliseconds + length)
        if let change = zone.change(after: start, upTo: moment) { start = change }
        if let change = zone.change(after: moment, upTo: end) { end = change }
        return start..<end
    }

    /// - Parameters:
    ///   - from: The first day of the period that contains a day.
    ///   - to: The first day of the next one.
    private func days(
        around moment: WallTime, _ zone: Zone, from: (CivilDay) -> CivilDay, to: (CivilDay) -> CivilDay
    ) -> Range<WallTime> {
        var day = zone.localTime(at: moment).day
        // Clocks that are set back over midnight show the day before once more: the day has begun and stays begun.
        if moment >= zone.start(of: day + 1) { day = day + 1 }
        let start = zone.start(of: from(day))
        // The calendar ends before the year 10000.
        return start..<max(start, zone.start(of: to(day)))
    }

    private static func days(from first: Weekday, to day: Weekday) -> Int {
        let all = Weekday.allCases
        guard let a = all.firstIndex(of: first), let b = all.firstIndex(of: day) else { return 0 }
        return (b - a + 7) % 7
    }

    /// The first day of the month that contains a day, where months begin on another day than the first.
    ///
    /// - Parameter ahead: This many months later.
    private static func month(of day: CivilDay, startingOn first: Int, _ ahead: Int) -> CivilDay {
        let date = day.date
        let own = start(date.year, date.month, first)
        return start(date.year, date.month + (own > day ? -1 : 0) + ahead, first)
    }

    private static func start(_ year: Int, _ month: Int, _ first: Int) -> CivilDay {
        let (years, months) = (month - 1).quotientAndRemainder(dividingBy: 12)
        let (year, month) = months < 0 ? (year + years - 1, months + 13) : (year + years, months + 1)
        for day in stride(from: min(31, max(1, first)), through: 28, by: -1) {
            if let day = CivilDay(year: year, month: month, day: day) { return day }
        }
        // A day up to the 28th is in every month; only an impossible year reaches this.
        return CivilDay(year: year, month: month, day: min(28, max(1, first))) ?? CivilDay(number: 0)
    }
}
