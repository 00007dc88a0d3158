internal import CLinux
internal import Core
internal import Glibc

/// Reports kernel events about the devices of one class, such as a battery that is plugged in
/// (`NETLINK_KOBJECT_UEVENT`; `kobject_uevent_env` in lib/kobject_uevent.c).
///
/// Uses one socket and one thread, which sleeps in the kernel until there is an event. Both end with ``stop()``, or
/// with this object.
package final class DeviceEvents: Sendable {
    private let signal: EventFD

    /// - Parameters:
    ///   - subsystem: The class as in `/sys/class`, for example `power_supply`.
    ///   - threadName: At most 15 bytes.
    ///   - tell: Called on the thread of the events, once for all that came together; it must not wait for long.
    package init(
        of subsystem: String, threadName: String = "device-events", _ tell: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        let signal = try EventFD()
        let socket = Descriptor(
            adopting: try systemCall("socket", on: "uevent") { sluice_netlink(Netlink.deviceEvents, 0) })
        try socket.withNumber { number throws(SystemError) in
            _ = try systemCall("setsockopt", on: "uevent") { sluice_netlink_join(number, Self.kernelGroup) }
        }
        self.signal = signal
        let listener = Listener(socket: socket, signal: signal, subsystem: Array("SUBSYSTEM=\(subsystem)".utf8))
        try startThread(threadName) { listener.listen(tell) }
    }

    deinit { signal.signal() }

    /// Ends the thread, which closes its socket. A running call is completed.
    package func stop() { signal.signal() }

    /// The kernel's own events; udev's are in group 2.
    private static let kernelGroup: CInt = 1

    /// Whether a datagram is about the class: `ACTION@DEVPATH`, then `KEY=VALUE`, each followed by a zero byte.
    static func isEvent(_ datagram: ArraySlice<UInt8>, of subsystem: [UInt8]) -> Bool {
        datagram.split(separator: 0).dropFirst().contains { $0.elementsEqual(subsystem) }
    }

    private final class Listener: Sendable {
        private let socket: Descriptor
        private let signal: EventFD
        private let subsystem: [UInt8]

        init(socket: consuming Descriptor, signal: EventFD, subsystem: [UInt8]) {
            self.socket = socket
            self.signal = signal
            self.subsystem = subsystem
        }

        func listen(_ tell: () -> Void) {
            // `UEVENT_BUFFER_SIZE` of the kernel is 2048, and its head a path.
            var buffer = [UInt8](repeating: 0, count: 16 << 10)
            while !signal.wait(orReadingFrom: socket) {
                if readAll(&buffer) { tell() }
            }
        }

        /// Reads all pending data. Returns whether any event was about the class.
        private func readAll(_ buffer: inout [UInt8]) -> Bool {
            var isEvent = false
            while true {
                var sender: UInt32 = 0
                let got: Int64
                do {
                    got = try socket.withNumber { number throws(SystemError) in
                        try systemCall("recvfrom", on: "uevent") {
                            buffer.withUnsafeMutableBytes {
                                sluice_netlink_receive(number, $0.baseAddress, $0.count, &sender)
                            }
                        }
                    }
                } catch {
                    // ENOBUFS: events were lost, and it is unknown which.
                    return isEvent || error.code != EAGAIN
                }
                // Only the kernel is trusted. A datagram that does not fit may be about anything.
                if sender != 0 { continue }
                isEvent = isEvent || got > buffer.count || DeviceEvents.isEvent(buffer[..<Int(got)], of: subsystem)
            }
        }
    }
}
