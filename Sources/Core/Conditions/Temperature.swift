/// The temperature of the machine: that of its hottest sensor.
package enum Temperature: Hashable, Sendable {
    /// No sensor can be read.
    case unreadable
    /// Not stated, for a question about a machine that is not asked.
    case notStated
    /// Degrees Celsius.
    ///
    /// - Parameter steady: The same for limits: while it falls, it counts up to ``hysteresis`` later. Otherwise a
    ///   temperature near a limit would stop and start uploads again and again, as they warm the machine themselves.
    case celsius(Int, steady: Int)

    /// In degrees.
    package static let hysteresis = 3

    /// - Parameters:
    ///   - degrees: The hottest sensor in degrees Celsius; `nil` where none can be read.
    ///   - before: The previous state.
    package init(_ degrees: Int?, after before: Temperature = .unreadable) {
        guard let degrees else {
            self = .unreadable
            return
        }
        var steady = degrees
        if case .celsius(_, let last) = before { steady = max(degrees, min(last, degrees + Self.hysteresis)) }
        self = .celsius(degrees, steady: steady)
    }

    /// Whether the machine is hotter than a limit in degrees Celsius.
    func isAbove(_ limit: Int) -> Truth {
        switch self {
        case .celsius(_, let steady): Truth(steady > limit)
        case .unreadable:
            .unknown([
                UnknownFact(
                    "how hot the machine is",
                    remedy: "it has no temperature sensor that can be read (/sys/class/thermal); take `hotter_than` out"
                )
            ])
        case .notStated:
            .unknown([UnknownFact("how hot the machine is", remedy: "`--temperature DEGREES` states it")])
        }
    }
}
