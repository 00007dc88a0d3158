/// Whether the wall clock can be trusted, as far as that can be judged: machines without a battery begin in 1970, and
/// their clocks are set later.
package struct ClockTrust: Sendable {
    /// No correct clock shows an earlier time: the program is younger.
    private let oldest: WallTime
    private var last: (wall: WallTime, monotonic: MonotonicTime)?
    private var jump: (at: MonotonicTime, hold: Hold)?
    /// The beginning of the present trouble.
    private var since: WallTime?

    package init(oldest: WallTime) { self.oldest = oldest }

    /// A clock that was set by more than this is watched, for the time in its hold, before it is trusted.
    private static let threshold: Duration = .seconds(60)

    /// The clock was set, and is trusted when it has stayed so for the time in its hold. The end of any other trouble
    /// is unknown.
    package var isWatching: Bool { jump != nil }

    /// Records the values of the clocks.
    ///
    /// - Parameter isSynchronised: The system's answer; `nil` where no service keeps its clock.
    /// - Returns: Why the wall clock cannot be trusted; `nil` when it can.
    package mutating func evaluate(wall: WallTime, monotonic: MonotonicTime, isSynchronised: Bool?) -> Hold? {
        defer { last = (wall, monotonic) }
        if wall < oldest {
            jump = nil
            // The text does not contain the time: otherwise it would change, and be reported, every second.
            return trouble(
                wall, until: nil, "the clock is not set: it shows a time before \(oldest), when this program was built")
        }
        let wasUnset = last.map { $0.wall < oldest } ?? false
        if let last, !wasUnset {
            let passed = monotonic.since(last.monotonic)
            let shown = Duration.milliseconds(wall.milliseconds - last.wall.milliseconds)
            let off = shown - passed
            if off > Self.threshold || off < .zero - Self.threshold {
                let by = Int(off.inSeconds.magnitude.rounded())
                jump = (
                    monotonic,
                    Hold(
                        .clock, since: wall, until: wall.advanced(by: Self.threshold),
                        text: "the clock was set \(off > .zero ? "forward" : "back") by \(by) s: trusted when it "
                            + "has stayed so for a minute")
                )
            }
        }
        if let jump, monotonic.since(jump.at) < Self.threshold { return jump.hold }
        jump = nil
        if isSynchronised == false {
            return trouble(
                wall, until: wall.advanced(by: Self.threshold), "the system says that its clock is not synchronised yet"
            )
        }
        since = nil
        return nil
    }

    private mutating func trouble(_ wall: WallTime, until: WallTime?, _ text: String) -> Hold {
        // Not later than now: an unset clock may also go back.
        let since = min(self.since ?? wall, wall)
        self.since = since
        return Hold(.clock, since: since, until: until, text: text)
    }
}
