/// Whether the wall clock can be believed, as far as one can tell: boxes without a battery begin in 1970, and what sets
/// their clocks comes later.
package struct ClockTrust: Sendable {
    /// No clock that is right shows an earlier time: the program is younger.
    private let oldest: WallTime
    private var last: (wall: WallTime, monotonic: MonotonicTime)?
    private var jump: (at: MonotonicTime, hold: Hold)?
    /// Of the trouble that stands.
    private var since: WallTime?

    package init(oldest: WallTime) { self.oldest = oldest }

    /// A clock that was set by more than this is watched for as long as it says before it is believed.
    private static let most: Duration = .seconds(60)

    /// The clock was set, and is believed when it has stayed so for as long as the hold says. Any other trouble ends nobody knows when.
    package var isWatching: Bool { jump != nil }

    /// Takes note of what the clocks show.
    ///
    /// - Parameter isSynchronised: What the system says; `nil` where nothing keeps its clock.
    /// - Returns: Why the wall clock is not to be believed; `nil` when it is.
    package mutating func look(wall: WallTime, monotonic: MonotonicTime, isSynchronised: Bool?) -> Hold? {
        defer { last = (wall, monotonic) }
        if wall < oldest {
            jump = nil
            // Without what it shows: said anew with each second, it would be news each time.
            return trouble(
                wall, until: nil, "the clock is not set: it shows a time before \(oldest), when this program was made")
        }
        let wasUnset = last.map { $0.wall < oldest } ?? false
        if let last, !wasUnset {
            let passed = monotonic.since(last.monotonic)
            let shown = Duration.milliseconds(wall.milliseconds - last.wall.milliseconds)
            let off = shown - passed
            if off > Self.most || off < .zero - Self.most {
                let by = Int(off.inSeconds.magnitude.rounded())
                jump = (
                    monotonic,
                    Hold(
                        .clock, since: wall, until: wall.advanced(by: Self.most),
                        text: "the clock was set \(off > .zero ? "forward" : "back") by \(by) s: believed when it has "
                            + "stayed so for a minute")
                )
            }
        }
        if let jump, monotonic.since(jump.at) < Self.most { return jump.hold }
        jump = nil
        if isSynchronised == false {
            return trouble(
                wall, until: wall.advanced(by: Self.most), "the system says that its clock is not synchronised yet")
        }
        since = nil
        return nil
    }

    private mutating func trouble(_ wall: WallTime, until: WallTime?, _ text: String) -> Hold {
        // Not later than now: a clock that is not set may also go back.
        let since = min(self.since ?? wall, wall)
        self.since = since
        return Hold(.clock, since: since, until: until, text: text)
    }
}
