import Glibc
import TestKit

/// A listening port to which no connection may be made. A connection is in the kernel's queue when its connect(2) has
/// returned, so the check needs no waiting.
final class SilentPort: Sendable {
    private let loopback: Loopback
    var url: String { "http://127.0.0.1:\(loopback.port)" }

    init() throws { loopback = try Loopback() }

    deinit { close(loopback.descriptor) }

    var hasCaller: Bool {
        var status = pollfd(fd: loopback.descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&status, 1, 0) != 0
    }
}
