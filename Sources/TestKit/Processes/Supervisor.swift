package import Core
internal import Glibc

/// A replacement for systemd: a datagram socket that keeps the datagrams.
package final class Supervisor: Sendable {
    private let number: CInt

    package init(_ path: FilePath) {
        number = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.bytes) }
        withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = bind(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    deinit { close(number) }

    /// The next datagram; `nil` when none has arrived.
    ///
    /// Datagrams on a Unix socket are there when `sendto` has returned.
    package func next() -> String? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(number, &buffer, buffer.count, CInt(MSG_DONTWAIT))
        return count < 0 ? nil : String(decoding: buffer.prefix(count), as: UTF8.self)
    }
}
