internal import CLinux
internal import Core
internal import Glibc

/// Wakes a thread that waits in the kernel (eventfd(2)). Any thread may ring; one listens.
package final class Bell: Sendable {
    private let descriptor: Descriptor

    package init() throws(SystemError) {
        descriptor = Descriptor(adopting: try systemCall("eventfd", on: "") { sluice_eventfd() })
    }

    package func ring() {
        var one: UInt64 = 1
        // Fails only when the counter is full, which means that it rings already.
        descriptor.withNumber { _ = write($0, &one, 8) }
    }

    /// Waits for the bell, for news or for the time, whichever is first, and stops the ringing.
    ///
    /// - Parameter longest: `nil` waits as long as it takes. Rounded up to milliseconds, so that nobody wakes too early.
    package func wait(orNewsOf inotify: Inotify?, longest: Duration?) {
        let milliseconds = longest.map { CInt(clamping: max(0, ($0.inNanoseconds + 999_999) / 1_000_000)) } ?? -1
        descriptor.withNumber { bell in
            let other = inotify?.withNumber { $0 } ?? -1
            var watched = [
                pollfd(fd: bell, events: Int16(POLLIN), revents: 0),
                pollfd(fd: other, events: Int16(POLLIN), revents: 0),
            ]
            // An interrupted wait is a wake-up like any other: the caller looks around and waits again.
            guard poll(&watched, 2, milliseconds) > 0, watched[0].revents != 0 else { return }
            var count: UInt64 = 0
            _ = read(bell, &count, 8)
        }
    }
}
