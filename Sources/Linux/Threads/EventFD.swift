internal import CLinux
internal import Core
package import Glibc

/// Wakes a thread that waits in the kernel (eventfd(2)). Any thread may signal; one thread waits.
package final class EventFD: Sendable {
    private let descriptor: Descriptor

    package init() throws(SystemError) {
        descriptor = Descriptor(adopting: try systemCall("eventfd", on: "") { sluice_eventfd() })
    }

    package func signal() {
        var one: UInt64 = 1
        // Fails only when the counter is full, which means that it is set already.
        descriptor.withNumber { _ = write($0, &one, 8) }
    }

    /// Waits for the signal, for events or for the time, whichever comes first, and clears the signal.
    ///
    /// - Parameter longest: `nil` waits without limit. Rounded up to milliseconds, so that the thread never wakes too
    ///   early.
    /// - Returns: Whether mounts changed since the last wait.
    @discardableResult
    package func wait(orEventsOf inotify: Inotify?, mounts: MountEvents? = nil, longest: Duration?) -> Bool {
        let readable = pollfd(fd: inotify?.withNumber { $0 } ?? -1, events: Int16(POLLIN), revents: 0)
        let table = pollfd(fd: mounts?.withNumber { $0 } ?? -1, events: Int16(POLLPRI), revents: 0)
        return wait(or: [readable, table], longest: longest)[1].revents != 0
    }

    /// The same for any descriptors that poll(2) can wait for.
    ///
    /// - Parameter others: They are polled, and not read: a ready descriptor stays ready.
    /// - Returns: `others`, with the result of each.
    package func wait(or others: [pollfd], longest: Duration?) -> [pollfd] {
        let milliseconds = longest.map { CInt(clamping: max(0, ($0.inNanoseconds + 999_999) / 1_000_000)) } ?? -1
        return descriptor.withNumber { signal in
            var watched = others + [pollfd(fd: signal, events: Int16(POLLIN), revents: 0)]
            // An interrupted wait counts as a wake-up: the caller checks its state and waits again.
            guard poll(&watched, nfds_t(watched.count), milliseconds) > 0 else { return others }
            if let signalled = watched.popLast(), signalled.revents != 0 {
                var count: UInt64 = 0
                _ = read(signal, &count, 8)
            }
            return watched
        }
    }

    /// Waits for the signal or for readable data, without limit.
    ///
    /// - Returns: Whether the signal is set. It stays set, so that one signal is enough to stop a thread.
    package func wait(orReadingFrom other: borrowing Descriptor) -> Bool {
        descriptor.withNumber { signal in
            other.withNumber { other in
                var watched = [
                    pollfd(fd: signal, events: Int16(POLLIN), revents: 0),
                    pollfd(fd: other, events: Int16(POLLIN), revents: 0),
                ]
                // The readable data is checked, also after an interruption.
                _ = poll(&watched, 2, -1)
                return watched[0].revents != 0
            }
        }
    }
}
