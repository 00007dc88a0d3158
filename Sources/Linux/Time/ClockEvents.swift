internal import CLinux
internal import Core
internal import Glibc
internal import Synchronization

/// Reports when the wall clock is set: everything that depends on it has to be evaluated again.
package final class ClockEvents: Sendable {
    /// The process's own instance. Its thread sleeps in the kernel until the clock is set, and lives as long as the
    /// process.
    package static let shared = ClockEvents()

    private let listeners = Mutex<(last: Int, calls: [Int: @Sendable () -> Void], isWatching: Bool)>((0, [:], false))

    /// - Parameter call: Runs on the watching thread: short, and never waiting.
    /// - Returns: A number for ``forget(_:)``.
    package func listen(_ call: @escaping @Sendable () -> Void) throws(SystemError) -> Int {
        let (number, isFirst) = listeners.withLock { listeners in
            listeners.last += 1
            listeners.calls[listeners.last] = call
            defer { listeners.isWatching = true }
            return (listeners.last, !listeners.isWatching)
        }
        if isFirst {
            do throws(SystemError) {
                let watch = try systemCall("timerfd_create", on: "CLOCK_REALTIME") { sluice_clock_watch() }
                try startThread("clock") { [self] in self.watch(watch) }
            } catch {
                listeners.withLock { $0.isWatching = false }
                forget(number)
                throw error
            }
        }
        return number
    }

    package func forget(_ number: Int) { listeners.withLock { $0.calls[number] = nil } }

    private func watch(_ number: CInt) {
        while true {
            var count: UInt64 = 0
            if read(number, &count, 8) >= 0 || errno == EINTR { continue }
            // Any error but ECANCELED would return at once, for ever.
            guard errno == ECANCELED else { return }
            for call in listeners.withLock({ Array($0.calls.values) }) { call() }
        }
    }
}
