package import Core
internal import Glibc

/// A moment in local time of this machine's time zone (localtime_r(3)), for display only.
package struct LocalTime: Hashable, Sendable {
    package let year: Int
    package let month: Int
    package let day: Int
    package let hour: Int
    package let minute: Int
    package let second: Int

    package init(_ time: WallTime) {
        let (whole, rest) = time.milliseconds.quotientAndRemainder(dividingBy: 1000)
        var seconds = time_t(rest < 0 ? whole - 1 : whole)
        var parts = tm()
        // Fails only for years beyond an int; the fields then stay 0.
        localtime_r(&seconds, &parts)
        year = Int(parts.tm_year) + 1900
        month = Int(parts.tm_mon) + 1
        day = Int(parts.tm_mday)
        hour = Int(parts.tm_hour)
        minute = Int(parts.tm_min)
        second = Int(parts.tm_sec)
    }

    /// `08:00:12`.
    package var clock: String { "\(padded(hour, 2)):\(padded(minute, 2)):\(padded(second, 2))" }
    /// `2026-11-20`.
    package var date: String { "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))" }
}

extension Zone {
    /// This machine's time zone (localtime_r(3), `tm_gmtoff`).
    package static let local = Zone { moment in
        let (whole, rest) = moment.milliseconds.quotientAndRemainder(dividingBy: 1000)
        var seconds = time_t(rest < 0 ? whole - 1 : whole)
        var parts = tm()
        // As above: for years beyond an int nothing is known, and UTC is used.
        localtime_r(&seconds, &parts)
        return Int(parts.tm_gmtoff)
    }
}

/// The source of this machine's time zone.
package enum ZoneSource {
    /// The file that localtime(5) and timedatectl(1) set, unless the environment names a zone.
    package static let file: FilePath = "/etc/localtime"

    /// Changes when another zone was set, or when its rules were renewed; `nil` where the zone does not come from the
    /// file.
    package static func identity() -> FileStatus? { getenv("TZ") == nil ? FileStatus.behind(file) : nil }

    /// Reads the zone, if it has changed: localtime_r(3) uses the one that was read last.
    package static func read() { tzset() }
}

extension CivilTime {
    /// The moment at which a clock in this machine's time zone shows this time (mktime(3)). For an hour that occurs
    /// twice, one of the two.
    package var localMoment: WallTime {
        var parts = tm()
        parts.tm_year = CInt(year - 1900)
        parts.tm_mon = CInt(month - 1)
        parts.tm_mday = CInt(day)
        parts.tm_hour = CInt(hour)
        parts.tm_min = CInt(minute)
        parts.tm_sec = CInt(second)
        // The zone's rules decide whether daylight saving time applies then.
        parts.tm_isdst = -1
        return WallTime(milliseconds: Int64(mktime(&parts)) * 1000)
    }
}
