package import Core
internal import Synchronization

/// Clocks that stand still until a test moves them.
package final class ManualClocks: Clocks {
    private let now: Mutex<(wall: WallTime, monotonic: MonotonicTime)>

    /// - Parameter wall: 2026-11-20T08:00:00Z unless said otherwise.
    package init(wall: WallTime = WallTime(milliseconds: 1_795_161_600_000)) {
        now = Mutex((wall, MonotonicTime(nanoseconds: 1_000_000_000_000)))
    }

    package func wall() -> WallTime { now.withLock { $0.wall } }
    package func monotonic() -> MonotonicTime { now.withLock { $0.monotonic } }

    /// Moves both clocks.
    package func advance(by duration: Duration) {
        now.withLock { $0 = ($0.wall.advanced(by: duration), $0.monotonic.advanced(by: duration)) }
    }

    /// Moves only the wall clock, as when it is set.
    package func step(by duration: Duration) { now.withLock { $0.wall = $0.wall.advanced(by: duration) } }
}
