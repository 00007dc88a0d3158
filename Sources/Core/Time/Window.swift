/// A time of the day on some days of the week: `22:00-06:00`, `sat,sun 00:00-24:00`.
///
/// In local time: where clocks are set back, an hour occurs twice, and is inside the window or outside it both times;
/// where they are set forward, it does not occur.
package struct Window: Hashable, Sendable {
    /// Days on which it begins.
    package var days: Set<Weekday>
    /// In minutes from midnight, 0 to 1439.
    package var from: Int
    /// In minutes from midnight, 1 to 1440. If it is not after ``from``, it is on the next day.
    package var to: Int
    /// Days on which it does not begin.
    package var except: Set<CivilDay>

    package init(
        days: Set<Weekday> = Set(Weekday.allCases), from: Int, to: Int, except: Set<CivilDay> = []
    ) {
        self.days = days
        self.from = from
        self.to = to
        self.except = except
    }

    /// It never closes.
    package var isAlways: Bool { from == 0 && to == 1440 && except.isEmpty && days.count == Weekday.allCases.count }

    /// The form of a configuration: `sat,sun 08:00-12:00`; without the excluded days.
    package var words: String {
        func time(_ minutes: Int) -> String { "\(padded(minutes / 60, 2)):\(padded(minutes % 60, 2))" }
        let named = Weekday.allCases.filter { days.contains($0) }.map(\.rawValue).joined(separator: ",")
        return (days.count == Weekday.allCases.count ? "" : named + " ") + "\(time(from))-\(time(to))"
    }

    /// With the excluded days: `22:00-06:00, except on 2026-12-24`.
    package var fullWords: String {
        except.isEmpty ? words : "\(words), except on \(listed(except.sorted().map { "\($0)" }))"
    }

    /// A list of windows for a message, shortened where it is long.
    package static func yaml(_ windows: [Window]) -> String {
        let shown = windows.prefix(4).map { "\"\($0.words)\"" } + (windows.count > 4 ? ["…"] : [])
        return "[\(shown.joined(separator: ", "))]"
    }

    private func begins(on day: CivilDay) -> Bool { days.contains(day.weekday) && !except.contains(day) }

    /// Whether this local time is in the window.
    func contains(_ day: CivilDay, _ time: Int64) -> Bool {
        let (start, end) = (Int64(from) * minute, Int64(to) * minute)
        if to > from { return begins(on: day) && time >= start && time < end }
        return time >= start && begins(on: day) || time < end && begins(on: day + -1)
    }

    /// The times of a day at which its state may change, in milliseconds.
    fileprivate var edges: [Int64] { [Int64(from) * minute, Int64(to % 1440) * minute, 0] }

}

extension Window {
    /// Whether there is a minute of the week in which one window of each list is open and none of `closed` is; ignores
    /// dates. A list without windows is always open.
    package static func overlap(_ places: [[Window]], outside closed: [Window] = []) -> Bool {
        var week = Array(repeating: true, count: 7 * 1440)
        for windows in places where !windows.isEmpty {
            var open = Array(repeating: false, count: week.count)
            for window in windows { window.mark(&open) }
            for minute in week.indices where !open[minute] { week[minute] = false }
        }
        for window in closed { window.mark(&week, as: false) }
        return week.contains(true)
    }

    private func mark(_ week: inout [Bool], as isOpen: Bool = true) {
        for (number, day) in Weekday.allCases.enumerated() where days.contains(day) {
            let start = number * 1440 + from
            for minute in start..<start + (to > from ? to - from : 1440 - from + to) {
                week[minute % week.count] = isOpen
            }
        }
    }
}

private let minute: Int64 = 60_000

/// A value that depends only on local time.
package struct Timetable<Value: Hashable & Sendable>: Sendable {
    private let windows: [Window]
    private let value: @Sendable ([Bool]) -> Value

    /// - Parameter value: Computes it from whether each of the windows is open.
    package init(_ windows: [Window], value: @escaping @Sendable ([Bool]) -> Value) {
        self.windows = windows
        self.value = value
    }

    package func value(at moment: WallTime, in zone: Zone) -> Value {
        let (day, time) = zone.localTime(at: moment)
        return value(windows.map { $0.contains(day, time) })
    }

    /// The first moment at which the value differs from now; `nil` when it stays the same.
    package func nextChange(after now: WallTime, in zone: Zone) -> WallTime? {
        if windows.allSatisfy(\.isAlways) { return nil }
        let current = value(at: now, in: zone)
        let today = zone.localTime(at: now).day
        // A clock that is set back over midnight shows the day before once more.
        for day in days(around: today, ahead: true) {
            for moment in moments(of: day, zone) where moment > now {
                if value(at: moment, in: zone) != current { return moment }
            }
        }
        return nil
    }

    /// Since when the value is as it is; `nil` when it has not changed within the days that are searched.
    package func lastChange(upTo now: WallTime, in zone: Zone) -> WallTime? {
        if windows.allSatisfy(\.isAlways) { return nil }
        let current = value(at: now, in: zone)
        let today = zone.localTime(at: now).day
        for day in days(around: today, ahead: false).reversed() {
            for moment in moments(of: day, zone).reversed() where moment <= now {
                let before = WallTime(milliseconds: moment.milliseconds - 1)
                if value(at: before, in: zone) != current { return moment }
            }
        }
        return nil
    }

    /// A week, and the part of a day that extends into the next.
    private static var longest: Int { 9 }

    /// The days to examine, in order: those around today, and those around each excluded date, however far away. In
    /// between, each week is like the one before.
    private func days(around today: CivilDay, ahead: Bool) -> [CivilDay] {
        var days = Set((ahead ? -1...Self.longest : -Self.longest...1).map { today + $0 })
        for day in Set(windows.flatMap(\.except)) where ahead ? day >= today : day <= today {
            days.formUnion((-Self.longest...Self.longest).map { day + $0 })
        }
        return days.sorted()
    }

    /// The moments of a day at which the value may change, in order.
    private func moments(of day: CivilDay, _ zone: Zone) -> [WallTime] {
        var moments = Set(windows.flatMap(\.edges)).flatMap { zone.moments(day, $0) }
        let start = zone.start(of: day)
        moments.append(start)
        if let change = zone.change(after: start, upTo: zone.start(of: day + 1)) { moments.append(change) }
        return moments.sorted()
    }
}

extension Timetable where Value == Bool {
    /// Open while any of the windows is; always, where there is none.
    package init(anyOf windows: [Window]) {
        self.init(windows) { $0.isEmpty || $0.contains(true) }
    }
}
