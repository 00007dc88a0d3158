/// Asks the service manager for more time while a long start makes progress.
///
/// Progress is processor time or blocks that the process has read or written since the last look: a start that hangs
/// gets no more time.
package struct StartExtension: Sendable {
    /// What a process has done so far.
    package struct Work: Hashable, Sendable {
        package var cpu: Duration
        /// Blocks read from or written to disks.
        package var blocks: Int

        package init(cpu: Duration, blocks: Int) { (self.cpu, self.blocks) = (cpu, blocks) }

        /// Whether something was done since `earlier`, besides the looks themselves.
        func isMore(than earlier: Self) -> Bool {
            cpu - earlier.cpu >= .milliseconds(20) || blocks > earlier.blocks
        }
    }

    private let notify: Notify
    private let pause: Duration
    private let work: @Sendable () -> Work
    private let sleep: @Sendable (Duration) async throws -> Void

    /// The time between two looks. The default of systemd's `TimeoutStartSec=` is 90 s.
    package static let pause: Duration = .seconds(10)

    package init(
        _ notify: Notify,
        work: @escaping @Sendable () -> Work = {
            let usage = ProcessUsage()
            return Work(cpu: usage.cpu, blocks: usage.blocks)
        },
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Alarms.shared.sleep(for: $0) }
    ) {
        self.notify = notify
        self.work = work
        self.sleep = sleep
        // The watchdog runs too if an earlier try to start has reported that it is ready.
        pause = min(Self.pause, (notify.watchdogTimeout ?? .seconds(60)) / 2)
    }

    /// Asks until the task is cancelled.
    ///
    /// - Parameter status: What the start does, for `systemctl status`.
    package func run(_ status: String) async {
        var last = work()
        while true {
            // Fails only when the task is cancelled.
            do { try await sleep(pause) } catch { return }
            let now = work()
            guard now.isMore(than: last) else { continue }
            last = now
            notify.extendStart(by: Self.pause * 6, status)
            if notify.watchdogTimeout != nil { notify.watchdog() }
        }
    }
}
