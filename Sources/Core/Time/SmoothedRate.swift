/// The rate of something that moves on, in bytes a second: over windows of one second, smoothed. Steady for the eye,
/// and quick to show a stop.
package struct SmoothedRate: Hashable, Sendable {
    private let startedAt: MonotonicTime
    private var windowStart: MonotonicTime
    /// The position at the beginning of the window.
    private var windowPosition: Int64
    /// The rate of the windows that have ended; 0 before the first.
    package private(set) var smoothed: Int64 = 0

    package init(at now: MonotonicTime, position: Int64 = 0) {
        (startedAt, windowStart, windowPosition) = (now, now, position)
    }

    /// Records a position. If it is smaller than before, a new window begins.
    package mutating func move(to position: Int64, at now: MonotonicTime) {
        let elapsed = now.since(windowStart).inSeconds
        guard elapsed >= 1 || position < windowPosition else { return }
        let speed = max(0, Double(position - windowPosition) / max(elapsed, 0.001))
        smoothed = smoothed == 0 ? Int64(speed) : Int64(0.5 * Double(smoothed) + 0.5 * speed)
        (windowStart, windowPosition) = (now, position)
    }

    /// The position changes by bytes that do not count for the rate.
    package mutating func skip(_ bytes: Int64) { windowPosition += bytes }

    /// A new window begins at a position, and the rate stays until it has ended.
    package mutating func restart(from position: Int64, at now: MonotonicTime) {
        (windowStart, windowPosition) = (now, position)
    }

    /// The rate to show now.
    package func shown(at position: Int64, _ now: MonotonicTime) -> Int64 {
        let quiet = now.since(windowStart).inSeconds
        let moved = Double(max(0, position - windowPosition))
        // Nothing has moved for a while: the last rate is no longer true.
        let rate = quiet > 3 ? Int64(moved / quiet) : smoothed
        guard rate == 0, now.since(startedAt).inSeconds > 0.05 else { return rate }
        // Under a limit the first bytes are sent at once, which gives no rate yet.
        return Int64(moved / max(quiet, 0.5))
    }
}
