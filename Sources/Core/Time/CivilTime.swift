/// A date and a time of day, as a camera writes them. They name a moment only together with an offset from UTC.
package struct CivilTime: Hashable, Sendable {
    package let year: Int
    package let month: Int
    package let day: Int
    package let hour: Int
    package let minute: Int
    package let second: Int

    /// - Returns: `nil` for an impossible day or time. A leap second becomes the second before it.
    package init?(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) {
        guard (1...9999).contains(year), (1...12).contains(month), (0...23).contains(hour), (0...59).contains(minute),
            (0...60).contains(second), (1...Self.days(of: month, in: year)).contains(day)
        else { return nil }
        self.year = year
        self.month = month
        self.day = day
        self.hour = hour
        self.minute = minute
        self.second = min(second, 59)
    }

    /// Reads `2024-05-01T12:20:30`, and EXIF's `2024:05:01 12:20:30`. Text after the seconds is ignored.
    package init?(_ text: some Collection<UInt8>) {
        let text = Array(text.prefix(19))
        guard text.count == 19, text[4] == text[7], Self.dateMarks.contains(text[4]), Self.gaps.contains(text[10]),
            text[13] == UInt8(ascii: ":"), text[16] == UInt8(ascii: ":"),
            let year = Self.number(text[0..<4]), let month = Self.number(text[5..<7]),
            let day = Self.number(text[8..<10]), let hour = Self.number(text[11..<13]),
            let minute = Self.number(text[14..<16]), let second = Self.number(text[17..<19])
        else { return nil }
        self.init(year: year, month: month, day: day, hour: hour, minute: minute, second: second)
    }

    /// The moment at which a clock with this offset, in seconds ahead of UTC, shows this time.
    package func moment(offset: Int = 0) -> WallTime {
        // Howard Hinnant's days_from_civil: eras of 400 years, years that begin in March. Years begin with 1, so nothing
        // here is negative.
        let years = month <= 2 ? year - 1 : year
        let (era, ofEra) = years.quotientAndRemainder(dividingBy: 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let days = era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + dayOfYear - 719_468
        return WallTime(milliseconds: Int64(days * 86_400 + hour * 3600 + minute * 60 + second - offset) * 1000)
    }

    /// Seconds that a clock is ahead of UTC, from `Z`, `+02:00`, `+0200` or `+02`. `nil` for anything else.
    package static func offset(_ text: some Collection<UInt8>) -> Int? {
        let text = Array(text)
        guard let sign = text.first else { return nil }
        if text == [UInt8(ascii: "Z")] { return 0 }
        let digits = text.dropFirst().filter { $0 != UInt8(ascii: ":") }
        guard sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-"), digits.count == 2 || digits.count == 4,
            text.count <= 6, let hours = number(digits.prefix(2)[...]), hours <= 14,
            let minutes = digits.count == 2 ? 0 : number(digits.suffix(2)[...]), minutes <= 59
        else { return nil }
        let seconds = hours * 3600 + minutes * 60
        return sign == UInt8(ascii: "-") ? -seconds : seconds
    }

    private static let dateMarks = Array("-:".utf8)
    private static let gaps = Array("T ".utf8)

    fileprivate static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        var number = 0
        for digit in digits {
            guard digit.isDigit else { return nil }
            number = number * 10 + Int(digit - UInt8(ascii: "0"))
        }
        return number
    }

    private static func days(of month: Int, in year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}

extension WallTime {
    /// Reads a time of RFC 3339, with its offset from UTC; fractions of a second are ignored.
    package init?(rfc3339 text: String) {
        let bytes = Array(text.utf8)
        guard let time = CivilTime(bytes) else { return nil }
        var zone = bytes.dropFirst(19)
        if zone.first == UInt8(ascii: ".") { zone = zone.dropFirst().drop { (0x30...0x39).contains($0) } }
        guard let offset = CivilTime.offset(zone) else { return nil }
        self = time.moment(offset: offset)
    }

    /// Reads a time as ``description`` writes it, with its milliseconds if there are any.
    package init?(described text: String) {
        let bytes = Array(text.utf8)
        guard bytes.last == UInt8(ascii: "Z"), let whole = WallTime(rfc3339: text) else { return nil }
        let fraction = bytes.count == 24 ? CivilTime.number(bytes[20..<23]) : 0
        self = WallTime(milliseconds: whole.milliseconds + Int64(fraction ?? 0))
    }
}
