internal import Core
internal import Synchronization

/// The total time that daemons have run over this state, this run included, in ms: a clock that cannot be set. After a
/// crash it may be behind, by the time in which nothing was written, plus a minute.
final class RunTime: Sendable {
    private let clocks: any Clocks
    /// ``now`` at 0 of the monotonic clock.
    private let atZero = Atomic<Int64>(0)
    /// The part of it that is on disk.
    private let stored = Atomic<Int64>(0)

    init(clocks: any Clocks) { self.clocks = clocks }

    var now: Int64 { atZero.load(ordering: .relaxed) + Self.milliseconds(clocks.monotonic()) }
    /// Whether more than a minute of it is in memory only.
    var shouldStore: Bool { now - stored.load(ordering: .relaxed) >= 60_000 }

    /// Continues the time of earlier runs.
    func begin(after earlier: Int64, at start: MonotonicTime) {
        stored.store(earlier, ordering: .relaxed)
        atZero.store(earlier - Self.milliseconds(start), ordering: .relaxed)
    }

    func recordStored(_ time: Int64) { stored.store(time, ordering: .relaxed) }

    private static func milliseconds(_ time: MonotonicTime) -> Int64 { time.nanoseconds / 1_000_000 }
}
