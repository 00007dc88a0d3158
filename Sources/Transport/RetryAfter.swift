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

private let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

/// An IMF-fixdate (RFC 9110, section 5.6.7).
package func httpDate(_ time: WallTime) -> String {
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
    let words = text.split(separator: " ")
    guard words.count == 6, words[5] == "GMT", let day = Int(words[1]),
        let month = months.firstIndex(of: String(words[2])), let year = Int(words[3]), year >= 1970,
        let date = CivilDay(year: year, month: month + 1, day: day)
    else { return nil }
    let clock = words[4].split(separator: ":").compactMap { Int64($0) }
    guard clock.count == 3, (0..<24).contains(clock[0]), (0..<60).contains(clock[1]), (0...60).contains(clock[2]) else {
        return nil
    }
    let days = Int64(date.number)
    return WallTime(milliseconds: (days * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2]) * 1000)
}
