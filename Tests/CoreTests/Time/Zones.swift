import Core
import Testing

/// A zone whose clocks are set twice in 2026, and its expected values.
struct TestZone: CustomTestStringConvertible, Sendable {
    let name: String
    let zone: Zone
    /// When its clocks are set.
    let changes: [WallTime]
    var testDescription: String { name }

    /// - Parameters:
    ///   - first: Seconds ahead of UTC before the first change, and so on.
    init(_ name: String, first: Int, _ changes: [(at: String, ahead: Int)]) {
        let parsed = changes.map { (at: utc($0.at), ahead: $0.ahead) }
        self.name = name
        self.changes = parsed.map(\.at)
        zone = Zone { moment in parsed.last { $0.at <= moment }?.ahead ?? first }
    }

    /// The rules of 2026: the last Sundays of March and October; the second of March and the first of November; a
    /// change by thirty minutes; and a zone that sets its clocks at midnight.
    static let all = [
        TestZone(
            "Europe/Berlin", first: 3600, [("2026-03-29T01:00:00", 7200), ("2026-10-25T01:00:00", 3600)]),
        TestZone(
            "America/New_York", first: -18_000, [("2026-03-08T07:00:00", -14_400), ("2026-11-01T06:00:00", -18_000)]),
        TestZone(
            "Australia/Lord_Howe", first: 39_600, [("2026-04-04T15:00:00", 37_800), ("2026-10-03T15:30:00", 39_600)]),
        TestZone("midnight", first: -10_800, [("2026-04-05T03:00:00", -14_400), ("2026-09-06T04:00:00", -10_800)]),
    ]
    static var berlin: Zone { all[0].zone }
}

/// A moment as UTC has it: `2026-03-29T01:00:00`.
func utc(_ text: String) -> WallTime { CivilTime(Array(text.utf8))?.moment() ?? WallTime(milliseconds: 0) }
