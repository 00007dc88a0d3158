import Glibc
import TestKit

/// A port that listens and to which nobody may connect. What connects is in the kernel's queue when its connect(2) has returned, so that no
/// time has to pass before that is asked for.
final class SilentPort: Sendable {
    private let loopback: Loopback
    var url: String { "http://127.0.0.1:\(loopback.port)" }

    init() throws { loopback = try Loopback() }

    deinit { close(loopback.descriptor) }

    var hasCaller: Bool {
        var look = pollfd(fd: loopback.descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&look, 1, 0) != 0
    }
}
