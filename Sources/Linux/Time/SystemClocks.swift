internal import CLinux
package import Core
internal import Glibc

/// The machine's clocks.
///
/// `SLUICE_TEST_CLOCK` shifts the wall clock of a whole process for tests, in seconds (`17280000` is 200 days ahead):
/// preloaded clock fakes freeze Swift's timers. It is read once, when the value is made.
package struct SystemClocks: Clocks {
    private let shift: Int64

    package init() {
        self.init(shift: .seconds(getenv("SLUICE_TEST_CLOCK").flatMap { Int64(String(cString: $0)) } ?? 0))
    }

    package init(shift: Duration) { self.shift = shift.inMilliseconds }

    package func wall() -> WallTime {
        let now = Self.read(CLOCK_REALTIME)
        return WallTime(milliseconds: Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000 + shift)
    }

    package func monotonic() -> MonotonicTime {
        let now = Self.read(clockid_t(CLOCK_BOOTTIME))
        return MonotonicTime(nanoseconds: Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec))
    }

    private static func read(_ clock: clockid_t) -> timespec {
        var now = timespec()
        // Cannot fail: both clocks exist on every kernel since 2.6.39, and the address is ours.
        clock_gettime(clock, &now)
        return now
    }

    /// Whether the service that keeps the system's clock says that it is right; `nil` where there is no such service,
    /// or it does not report it.
    ///
    /// systemd-timesyncd marks it with a file (systemd-timesyncd.service(8)); others tell the kernel (adjtimex(2)).
    package var isSynchronised: Bool? {
        let folder: FilePath = "/run/systemd/timesync"
        if Self.exists(folder.appending("synchronized")) { return true }
        if sluice_clock_is_kept() != 0 { return true }
        return Self.exists(folder) ? false : nil
    }

    private static func exists(_ path: FilePath) -> Bool {
        // A failed check gives no answer.
        (try? FileStatus.ifPresent(at: path)) ?? nil != nil
    }
}
