import TestKit
import Testing

@testable import Core

@Suite("Calendar")
struct CalendarTests {
    private static let minute: Int64 = 60_000
    private static let year = utc("2026-01-01T00:00:00").milliseconds..<utc("2027-01-01T00:00:00").milliseconds

    /// A moment in 2026, more often near a change of the clocks than random times would be.
    private static func moment(_ zone: TestZone, _ dice: inout Dice) -> WallTime {
        if let change = zone.changes.randomElement(using: &dice), Bool.random(using: &dice) {
            return WallTime(milliseconds: change.milliseconds + Int64.random(in: -2_000...2_000, using: &dice) * minute)
        }
        return WallTime(milliseconds: Int64.random(in: year, using: &dice))
    }

    @Test("days are numbered, and have weekdays")
    func days() throws {
        #expect(CivilDay(number: 0).weekday == .thu)
        #expect(CivilDay(number: -1).weekday == .wed)
        let day = try #require(CivilDay(year: 2026, month: 11, day: 21))
        #expect(day.weekday == .sat)
        #expect("\(day)" == "2026-11-21")
        #expect(CivilDay(year: 2026, month: 2, day: 29) == nil)
        #expect(CivilDay(year: 2028, month: 2, day: 29).map { "\($0 + 1)" } == "2028-03-01")
    }

    @Test("a time of day occurs once, never, or twice, and is shown then", arguments: TestZone.all)
    func moments(_ zone: TestZone) throws {
        var dice = Dice(seed: 1)
        for _ in 0..<3000 {
            let moment = Self.moment(zone, &dice)
            let (day, time) = zone.zone.localTime(at: moment)
            let all = zone.zone.moments(day, time)
            #expect(all.contains(moment), "\(moment)")
            for one in all { #expect(zone.zone.localTime(at: one) == (day, time), "\(moment)") }
        }
        let changed = try zone.changes.map { try #require(Self.gapOrRepeat(zone.zone, at: $0)) }
        #expect(Set(changed) == [0, 2])
    }

    /// How often a local time in the middle of the gap or the repeated hour occurs.
    private static func gapOrRepeat(_ zone: Zone, at change: WallTime) -> Int? {
        let before = zone.localTime(at: WallTime(milliseconds: change.milliseconds - 1))
        let after = zone.localTime(at: change)
        let a = Int64(before.day.number) * 86_400_000 + before.time + 1
        let b = Int64(after.day.number) * 86_400_000 + after.time
        let middle = (a + b) / 2
        let day = CivilDay(number: Int(middle / 86_400_000))
        return zone.moments(day, middle % 86_400_000).count
    }

    @Test("a day starts when its date is shown for the first time", arguments: TestZone.all)
    func starts(_ zone: TestZone) throws {
        let first = try #require(CivilDay(year: 2026, month: 1, day: 1))
        for ahead in 0..<365 {
            let start = zone.zone.start(of: first + ahead)
            #expect(zone.zone.localTime(at: start).day == first + ahead)
            #expect(zone.zone.localTime(at: WallTime(milliseconds: start.milliseconds - 1)).day == first + (ahead - 1))
        }
    }

    // MARK: Windows

    private static func windows(_ dice: inout Dice) -> [Window] {
        (0..<Int.random(in: 1...3, using: &dice)).map { _ in
            let days = Weekday.allCases.filter { _ in Bool.random(using: &dice) }
            let from = Int.random(in: 0...1439, using: &dice)
            var window = Window(
                days: days.isEmpty ? Set(Weekday.allCases) : Set(days), from: from / 30 * 30,
                to: Int.random(in: 1...1440, using: &dice))
            if Bool.random(using: &dice), let day = CivilDay(year: 2026, month: 3, day: 29) {
                window.except = [day, day + Int.random(in: -9...9, using: &dice)]
            }
            return window
        }
    }

    @Test("the next change of a window is where a clock shows it, no earlier and no later")
    func nextChange() {
        for seed in 1...200 {
            var dice = Dice(seed: UInt64(seed))
            guard let zone = TestZone.all.randomElement(using: &dice) else { return }
            let timetable = Timetable(anyOf: Self.windows(&dice))
            let now = Self.moment(zone, &dice)
            let found = timetable.nextChange(after: now, in: zone.zone)
            let current = timetable.value(at: now, in: zone.zone)
            // Every change is at a full minute.
            var watched = WallTime(milliseconds: (now.milliseconds / Self.minute + 1) * Self.minute)
            let end = found ?? now.advanced(by: .seconds(30 * 86_400))
            while watched < end, timetable.value(at: watched, in: zone.zone) == current {
                watched = WallTime(milliseconds: watched.milliseconds + Self.minute)
            }
            #expect(watched == end || found == nil && watched > end, "seed \(seed), \(zone.name), at \(now)")
            if let found { #expect(timetable.value(at: found, in: zone.zone) != current, "seed \(seed)") }
        }
    }

    @Test("a window over midnight belongs to the day of its start, and an excluded day starts none")
    func overMidnight() throws {
        let friday = Window(days: [.fri], from: 22 * 60, to: 6 * 60)
        let open = Timetable(anyOf: [friday])
        #expect(!open.value(at: utc("2026-11-20T21:59:59"), in: .utc))
        #expect(open.value(at: utc("2026-11-20T22:00:00"), in: .utc))
        #expect(open.value(at: utc("2026-11-21T05:59:59"), in: .utc))
        #expect(!open.value(at: utc("2026-11-21T06:00:00"), in: .utc))
        #expect(!open.value(at: utc("2026-11-21T22:00:00"), in: .utc))
        #expect(open.nextChange(after: utc("2026-11-21T06:00:00"), in: .utc) == utc("2026-11-27T22:00:00"))
        var without = friday
        without.except = [try #require(CivilDay(year: 2026, month: 11, day: 27))]
        #expect(
            Timetable(anyOf: [without]).nextChange(after: utc("2026-11-21T06:00:00"), in: .utc)
                == utc("2026-12-04T22:00:00"))
    }

    @Test("an excluded day is the next change, however far, and the last one however long ago")
    func farAway() throws {
        var window = Window(from: 0, to: 1440)
        window.except = [try #require(CivilDay(year: 2027, month: 9, day: 1))]
        let open = Timetable(anyOf: [window])
        #expect(open.nextChange(after: utc("2026-11-21T06:00:00"), in: .utc) == utc("2027-09-01T00:00:00"))
        #expect(open.nextChange(after: utc("2027-09-01T00:00:00"), in: .utc) == utc("2027-09-02T00:00:00"))
        #expect(open.nextChange(after: utc("2027-09-02T00:00:00"), in: .utc) == nil)
        #expect(open.lastChange(upTo: utc("2026-11-21T06:00:00"), in: .utc) == nil)
        #expect(open.lastChange(upTo: utc("2027-09-01T12:00:00"), in: .utc) == utc("2027-09-01T00:00:00"))
        #expect(open.lastChange(upTo: utc("2028-03-01T00:00:00"), in: .utc) == utc("2027-09-02T00:00:00"))
    }

    @Test("at clock changes, a window follows the shown time")
    func clocksSet() {
        let early = Timetable(anyOf: [Window(from: 2 * 60, to: 2 * 60 + 30)])
        let zone = TestZone.berlin
        // 02:00 to 03:00 does not occur on 29 March, and occurs twice on 25 October.
        #expect(early.nextChange(after: utc("2026-03-28T02:00:00"), in: zone) == utc("2026-03-30T00:00:00"))
        var at = utc("2026-10-24T12:00:00")
        var changes: [String] = []
        for _ in 0..<4 {
            guard let next = early.nextChange(after: at, in: zone) else { break }
            changes.append(String("\(next)".dropLast(8)))
            at = next
        }
        #expect(changes == ["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30"])
    }

    @Test("an always open window never changes, and neither does a missing one")
    func always() {
        let always = Timetable(anyOf: [Window(from: 0, to: 1440)])
        #expect(always.value(at: utc("2026-11-20T00:00:00"), in: .utc))
        #expect(always.nextChange(after: utc("2026-11-20T00:00:00"), in: .utc) == nil)
        #expect(Timetable(anyOf: []).value(at: utc("2026-11-20T00:00:00"), in: .utc))
        // Two halves of a day are always open together, and there is no change between them.
        let halves = Timetable(anyOf: [Window(from: 0, to: 720), Window(from: 720, to: 1440)])
        #expect(halves.nextChange(after: utc("2026-11-20T00:00:00"), in: .utc) == nil)
    }

    // MARK: Periods

    private static let periods: [Period] =
        [.hour, .day, .week(startsOn: .mon), .week(startsOn: .sat)]
        + [1, 15, 28, 29, 30, 31].map { .month(startsOn: $0) }

    @Test("periods are adjacent, and every moment is in one", arguments: TestZone.all)
    func partition(_ zone: TestZone) {
        for seed in 1...200 {
            var dice = Dice(seed: UInt64(seed))
            let moment = Self.moment(zone, &dice)
            for period in Self.periods {
                let interval = period.interval(around: moment, in: zone.zone)
                #expect(interval.contains(moment), "\(period) at \(moment)")
                let next = period.interval(around: interval.upperBound, in: zone.zone)
                #expect(next.lowerBound == interval.upperBound, "\(period) at \(moment)")
                let last = WallTime(milliseconds: interval.upperBound.milliseconds - 1)
                for edge in [interval.lowerBound, last] {
                    #expect(period.interval(around: edge, in: zone.zone) == interval, "\(period) at \(edge)")
                }
            }
        }
    }

    @Test(
        "a month starts on its day, or on its last day if shorter",
        arguments: [
            (31, "2026-02-15", "2026-01-31", "2026-02-28"), (31, "2026-02-28", "2026-02-28", "2026-03-31"),
            (30, "2028-02-29", "2028-02-29", "2028-03-30"), (29, "2026-02-28", "2026-02-28", "2026-03-29"),
            (15, "2026-01-14", "2025-12-15", "2026-01-15"), (1, "2026-12-31", "2026-12-01", "2027-01-01"),
        ])
    func months(_ first: Int, _ day: String, _ from: String, _ to: String) {
        let interval = Period.month(startsOn: first).interval(around: utc(day + "T12:00:00"), in: .utc)
        #expect(interval == utc(from + "T00:00:00")..<utc(to + "T00:00:00"))
    }

    @Test("days of clock changes have 23 and 25 hours, and the repeated hour counts as two")
    func lengths() {
        func hours(_ period: Period, _ at: String) -> Double {
            let interval = period.interval(around: utc(at), in: TestZone.berlin)
            return Double(interval.upperBound.milliseconds - interval.lowerBound.milliseconds) / 3_600_000
        }
        #expect(hours(.day, "2026-03-29T12:00:00") == 23)
        #expect(hours(.day, "2026-10-25T12:00:00") == 25)
        #expect(hours(.hour, "2026-10-25T00:30:00") == 1)
        #expect(hours(.hour, "2026-10-25T01:30:00") == 1)
    }
}
