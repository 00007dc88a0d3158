internal import Core
internal import Linux

// Numbers in the form that people read and write.

enum Units {
    static func bytes(_ count: Int64) -> String { shownBytes(count) }

    static func rate(_ bytesPerSecond: Int64) -> String { bytes(bytesPerSecond) + "/s" }

    /// `57s`, `3m 20s`, `2h 05m`, `3d 4h`.
    static func duration(_ seconds: Int64) -> String {
        let s = max(0, seconds)
        if s < 60 { return "\(s)s" }
        if s < 3600 { return "\(s / 60)m \(padded(Int(s % 60), 2))s" }
        if s < 86_400 { return "\(s / 3600)h \(padded(Int(s % 3600 / 60), 2))m" }
        return "\(s / 86_400)d \(s % 86_400 / 3600)h"
    }

    /// `42%`; 100 % only when everything is done.
    static func percent(_ fraction: Double) -> String {
        fraction >= 1 ? "100%" : fraction > 0 ? "\(min(99, Int(fraction * 100)))%" : "0%"
    }

    /// Local time of a view's RFC 3339 text: the time for today, otherwise the date as well. Any other text is returned
    /// as it is.
    static func moment(_ text: String, now: WallTime) -> String {
        guard let time = WallTime(described: text) else { return printable(text) }
        let local = LocalTime(time)
        return local.date == LocalTime(now).date ? local.clock : "\(local.date) \(local.clock)"
    }

    /// The same in a column: `18:42` for today, `11-20 18:42` for this year, otherwise `2025-11-20`.
    static func shortMoment(_ text: String, now: WallTime) -> String {
        guard let time = WallTime(described: text) else { return printable(text) }
        let (local, today) = (LocalTime(time), LocalTime(now))
        let clock = String(local.clock.prefix(5))
        if local.date == today.date { return clock }
        return local.date.prefix(5) == today.date.prefix(5) ? "\(local.date.dropFirst(5)) \(clock)" : local.date
    }

    /// See ``Core/seconds(in:)``.
    static func seconds(_ text: String) -> Int64? { Core.seconds(in: text) }
}
