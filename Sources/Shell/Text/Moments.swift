internal import Core
internal import Linux

/// Whether a person's moment lies in the past or in the future.
enum Tense: CaseIterable { case toCome, past }

/// The moment that a person means: a time of the day, the next or the last one; the beginning of a day; both; or a
/// duration from now on or before it. `nil` for any other text, and for moments on the other side of now.
func moment(meant text: String, _ tense: Tense, now: WallTime) -> WallTime? {
    let isToCome = tense == .toCome
    if let seconds = Units.seconds(text) { return now.advanced(by: .seconds(isToCome ? seconds : -seconds)) }
    let day = LocalTime(now).date
    if text.utf8.count == 5, let time = CivilTime(Array("\(day)T\(text):00".utf8)) {
        let milliseconds = Int64(time.hour * 60 + time.minute) * 60_000
        let today = Zone.local.localTime(at: now).day
        // If clocks skip this time on a day, the day after counts, or the day before.
        let moments = (0...2).lazy.flatMap { Zone.local.moments(today + (isToCome ? $0 : -$0), milliseconds) }
        return isToCome ? moments.first { $0 > now } : moments.filter { $0 <= now }.first
    }
    let whole = text.utf8.count == 10 ? text + "T00:00:00" : text.utf8.count == 16 ? text + ":00" : text
    let bytes = Array(whole.utf8)
    guard bytes.count == 19, let time = CivilTime(bytes) else { return nil }
    let moment = time.localMoment
    return (moment > now) == isToCome ? moment : nil
}
