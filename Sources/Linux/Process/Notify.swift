internal import Core
internal import Glibc

/// Reports the state of the service to systemd (sd_notify(3)): one datagram to `$NOTIFY_SOCKET`. Without it, does
/// nothing.
package struct Notify: Sendable {
    private let socket: FilePath?

    package init() { self.init(socket: getenv("NOTIFY_SOCKET").map { String(cString: $0) }) }

    /// - Parameter socket: A path, or `@` and an abstract name; `nil` for none.
    package init(socket: String?) {
        self.socket = socket.flatMap { $0.hasPrefix("/") || $0.hasPrefix("@") ? FilePath($0) : nil }
    }

    /// Whether there is a socket.
    package var isEnabled: Bool { socket != nil }

    /// Start-up is complete.
    package func ready(_ status: String) { send(["READY=1", "STATUS=\(line(status))"]) }
    /// The configuration is being read again; ``reloaded()`` follows, with any result. The time distinguishes one
    /// reload from the next for systemd 253 and later (sd_notify(3)).
    package func reloading() {
        var now = timespec()
        // Cannot fail: every kernel has this clock, and the address is ours.
        clock_gettime(CLOCK_MONOTONIC, &now)
        send(["RELOADING=1", "MONOTONIC_USEC=\(Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1000)"])
    }
    package func reloaded() { send(["READY=1"]) }
    package func stopping() { send(["STOPPING=1"]) }
    /// One line for `systemctl status`.
    package func status(_ text: String) { send(["STATUS=\(line(text))"]) }

    private func line(_ text: String) -> String { printable(text) }

    private func send(_ fields: [String]) {
        guard let socket else { return }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var name = socket.bytes
        if name.first == UInt8(ascii: "@") { name[0] = 0 }  // abstract names begin with NUL, unix(7)
        guard name.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let number = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return }
        defer { _ = close(number) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
        let message = Array(fields.joined(separator: "\n").utf8)
        withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                // A supervisor that does not listen is no reason to stop working.
                _ = sendto(number, message, message.count, Int32(MSG_NOSIGNAL), address, length)
            }
        }
    }
}
