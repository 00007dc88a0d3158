package import Core

/// The wait that a server asks for: seconds or a date (RFC 9110, section 10.2.3), between 1 s and `most`.
///
/// A date is compared with the answer's own `Date`, since this machine's clock may be unset; otherwise with `now`.
///
/// - Parameter most: In seconds; by default an hour, since a server might ask for a senseless wait.
package func retryAfter(_ headers: Headers, now: WallTime, most: Int64 = 3600) -> Duration? {
    guard let text = headers["Retry-After"] else { return nil }
    let seconds: Int64
    if let number = plainInteger(text) {
        seconds = number
    } else if let then = httpDate(text) {
        let base = headers["Date"].flatMap { httpDate($0) } ?? now
        seconds = then.milliseconds / 1000 - base.milliseconds / 1000
    } else {
        return nil
    }
    return .seconds(min(max(seconds, 1), most))
}

/// Digits only, at most 19 of them and no more than 2^63-1: how tus writes its numbers.
package func plainInteger(_ text: String) -> Int64? {
    guard (1...19).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int64(text)
}

/// An IMF-fixdate (RFC 9110, section 5.6.7).
package func httpDate(_ time: WallTime) -> String {
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    // 1970 began with a Thursday.
    let names = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    let days = Int((time.milliseconds - (time.milliseconds % 86_400_000 + 86_400_000) % 86_400_000) / 86_400_000)
    // `2024-07-13T08:30:05…`
    let words = time.description.split { "-T.Z".contains($0) }.map(String.init)
    let month = Int(words[1]).map { months[$0 - 1] } ?? ""
    return "\(names[(days % 7 + 7) % 7]), \(words[2]) \(month) \(words[0]) \(words[3]) GMT"
}

/// An IMF-fixdate, `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7). `nil` for any other form.
package func httpDate(_ text: String) -> WallTime? {
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let words = text.split(separator: " ")
    guard words.count == 6, words[5] == "GMT", let day = Int64(words[1]), (1...31).contains(day),
        let month = months.firstIndex(of: String(words[2])), let year = Int64(words[3]), (1970...9999).contains(year)
    else { return nil }
    let clock = words[4].split(separator: ":").compactMap { Int64($0) }
    guard clock.count == 3, (0..<24).contains(clock[0]), (0..<60).contains(clock[1]), (0...60).contains(clock[2]) else {
        return nil
    }
    // Days since 1970: Howard Hinnant's days_from_civil, years that begin in March.
    let y = month < 2 ? year - 1 : year
    let era = y / 400
    let ofEra = y - era * 400
    let dayOfYear = (153 * Int64((month + 10) % 12) + 2) / 5 + day - 1
    let days = era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + dayOfYear - 719_468
    return WallTime(milliseconds: (days * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2]) * 1000)
}
