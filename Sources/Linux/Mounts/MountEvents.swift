internal import Core
internal import Glibc

/// Reports that a file system was mounted or unmounted, for ``EventFD/wait(orEventsOf:mounts:longest:)``: no inotify event
/// does.
package final class MountEvents: Sendable {
    private let table: Descriptor

    package init() throws(SystemError) { table = try Descriptor.open("/proc/self/mountinfo", for: .reading) }

    /// Whether mounts changed since the last call.
    package func hasChanged() -> Bool {
        table.withNumber { number in
            var watched = pollfd(fd: number, events: Int16(POLLPRI), revents: 0)
            return poll(&watched, 1, 0) > 0
        }
    }

    /// The kernel raises `POLLPRI` on the open table once for each change; polling clears it (proc(5)).
    func withNumber<R>(_ body: (CInt) -> R) -> R { table.withNumber { body($0) } }
}
