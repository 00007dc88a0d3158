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
        guard let time = wallTime(text) else { return printable(text) }
        let local = LocalTime(time)
        return local.date == LocalTime(now).date ? local.clock : "\(local.date) \(local.clock)"
    }

    /// The same in a column: `18:42` for today, `11-20 18:42` for this year, otherwise `2025-11-20`.
    static func shortMoment(_ text: String, now: WallTime) -> String {
        guard let time = wallTime(text) else { return printable(text) }
        let (local, today) = (LocalTime(time), LocalTime(now))
        let clock = String(local.clock.prefix(5))
        if local.date == today.date { return clock }
        return local.date.prefix(5) == today.date.prefix(5) ? "\(local.date.dropFirst(5)) \(clock)" : local.date
    }

    /// `2026-11-20T08:00:00.000Z`, as `WallTime` prints it.
    static func wallTime(_ text: String) -> WallTime? {
        let bytes = Array(text.utf8)
        guard bytes.count >= 20, bytes.last == UInt8(ascii: "Z") else { return nil }
        func number(_ range: Range<Int>) -> Int64? { Int64(String(decoding: bytes[range], as: UTF8.self)) }
        guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10), let hour = number(11..<13),
            let minute = number(14..<16), let second = number(17..<19), (1...12).contains(month)
        else { return nil }
        // Howard Hinnant's days_from_civil: its years begin in March.
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let days = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
        let millis = bytes.count >= 24 ? number(20..<23) ?? 0 : 0
        return WallTime(milliseconds: ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + millis)
    }

    /// See ``Core/seconds(in:)``.
    static func seconds(_ text: String) -> Int64? { Core.seconds(in: text) }

    /// Bytes from `20 GB`, `8 MiB`, `500`; `nil` for anything else.
    static func byteCount(_ text: String) -> Int64? {
        let factors: [String: Int64] = [
            "": 1, "B": 1, "kB": 1000, "MB": 1_000_000, "GB": 1_000_000_000, "TB": 1_000_000_000_000, "KiB": 1 << 10,
            "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
        ]
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let unit = text.dropFirst(digits.count).drop { $0 == " " }
        guard let number = Int64(digits), let factor = factors[String(unit)] else { return nil }
        let (bytes, overflow) = number.multipliedReportingOverflow(by: factor)
        return overflow ? nil : bytes
    }
}
