internal import Core
internal import Glibc

/// Reports the state of the service to systemd (sd_notify(3)): one datagram to `$NOTIFY_SOCKET`. Without it, does
/// nothing.
package struct Notify: Sendable {
    private let socket: FilePath?
    /// The time within which the service manager expects ``watchdog()`` again; `nil` if it does not.
    package let watchdogTimeout: Duration?

    package init() {
        func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
        self.init(
            socket: variable("NOTIFY_SOCKET"), watchdogTime: variable("WATCHDOG_USEC"),
            watchdogProcess: variable("WATCHDOG_PID"))
    }

    /// - Parameters:
    ///   - socket: A path, or `@` and an abstract name; `nil` for none.
    ///   - watchdogTime: `$WATCHDOG_USEC`: microseconds.
    ///   - watchdogProcess: `$WATCHDOG_PID`: the process that they are meant for, any process without it.
    package init(socket: String?, watchdogTime: String? = nil, watchdogProcess: String? = nil) {
        self.socket = socket.flatMap { $0.hasPrefix("/") || $0.hasPrefix("@") ? FilePath($0) : nil }
        let isOurs = watchdogProcess.map { $0 == "\(getpid())" } ?? true
        let time = watchdogTime.flatMap { Int64($0) }.flatMap { $0 > 0 ? Duration.microseconds($0) : nil }
        watchdogTimeout = self.socket != nil && isOurs ? time : nil
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
    /// The program works. Without it for ``watchdogTimeout``, the service manager ends and restarts the program.
    package func watchdog() { send(["WATCHDOG=1"], mayWait: false) }
    /// The start takes longer: it may last until `time` from now.
    package func extendStart(by time: Duration, _ status: String) {
        send(["EXTEND_TIMEOUT_USEC=\(time.inNanoseconds / 1000)", "STATUS=\(line(status))"])
    }
    package func stopping() { send(["STOPPING=1"]) }
    /// One line for `systemctl status`.
    package func status(_ text: String) { send(["STATUS=\(line(text))"], mayWait: false) }

    private func line(_ text: String) -> String { printable(text) }

    /// - Parameter mayWait: Whether to wait while the supervisor reads nothing; otherwise the message is dropped, and a later
    ///   one replaces it.
    private func send(_ fields: [String], mayWait: Bool = true) {
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
                let flags = Int32(MSG_NOSIGNAL) | (mayWait ? 0 : Int32(MSG_DONTWAIT))
                _ = sendto(number, message, message.count, flags, address, length)
            }
        }
    }
}
