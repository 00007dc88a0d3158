/// A stretch of the calendar that a quota is counted over, in local time.
package enum Period: Hashable, Sendable {
    case hour
    case day
    case week(startsOn: Weekday)
    /// - startsOn: 1 to 31; the last day of a month that has fewer.
    case month(startsOn: Int)

    /// The stretch that a moment lies in. Stretches lie side by side and leave nothing out.
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

    /// An hour of the clock; the one in which clocks are set ends then, and another begins.
    private func hour(around moment: WallTime, _ zone: Zone) -> Range<WallTime> {
        let length: Int64 = 3_600_000
        let past = zone.reading(at: moment).time % length
        var start = WallTime(milliseconds: moment.milliseconds - past)
        var end = WallTime(milliseconds: start.milliseconds + length)
        if let change = zone.change(after: start, upTo: moment) { start = change }
        if let change = zone.change(after: moment, upTo: end) { end = change }
        return start..<end
    }

    /// - Parameters:
    ///   - from: The first day of the stretch that a day lies in.
    ///   - to: The first day of the next one.
    private func days(
        around moment: WallTime, _ zone: Zone, from: (CivilDay) -> CivilDay, to: (CivilDay) -> CivilDay
    ) -> Range<WallTime> {
        var day = zone.reading(at: moment).day
        // Clocks that are set back over midnight show the day before once more: it has begun and stays begun.
        if moment >= zone.start(of: day + 1) { day = day + 1 }
        let start = zone.start(of: from(day))
        // No calendar has the year 10000.
        return start..<max(start, zone.start(of: to(day)))
    }

    private static func days(from first: Weekday, to day: Weekday) -> Int {
        let all = Weekday.allCases
        guard let a = all.firstIndex(of: first), let b = all.firstIndex(of: day) else { return 0 }
        return (b - a + 7) % 7
    }

    /// The first day of the month that a day lies in, where months begin on another day than the first.
    ///
    /// - Parameter ahead: So many months later.
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
        // A day up to the 28th is in every month; only a year that no calendar has comes here.
        return CivilDay(year: year, month: month, day: min(28, max(1, first))) ?? CivilDay(number: 0)
    }
}
