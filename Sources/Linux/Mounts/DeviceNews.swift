internal import CLinux
internal import Core
internal import Glibc

/// Tells when the kernel says something of the devices of one class, such as a battery that is plugged in
/// (`NETLINK_KOBJECT_UEVENT`; `kobject_uevent_env` in lib/kobject_uevent.c).
///
/// One socket and one thread, which sleeps in the kernel until there is something to tell. Both go with ``stop()``, or with
/// this object.
package final class DeviceNews: Sendable {
    private let bell: Bell

    /// - Parameters:
    ///   - subsystem: The class as in `/sys/class`, `power_supply` for example.
    ///   - threadName: At most 15 bytes.
    ///   - tell: Called on the thread of the news, once for all that came at once; it must not wait for long.
    package init(
        of subsystem: String, threadName: String = "device-news", _ tell: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        let bell = try Bell()
        let socket = Descriptor(
            adopting: try systemCall("socket", on: "uevent") { sluice_netlink(Netlink.deviceEvents, 0) })
        try socket.withNumber { number throws(SystemError) in
            _ = try systemCall("setsockopt", on: "uevent") { sluice_netlink_join(number, Self.kernelGroup) }
        }
        self.bell = bell
        let listener = Listener(socket: socket, bell: bell, subsystem: Array("SUBSYSTEM=\(subsystem)".utf8))
        try startThread(threadName) { listener.listen(tell) }
    }

    deinit { bell.ring() }

    /// Ends the thread, which closes its socket. What it is telling at this moment is told to the end.
    package func stop() { bell.ring() }

    /// The kernel's own news; what udev makes of them goes to group 2.
    private static let kernelGroup: CInt = 1

    /// Whether a datagram is about the class: `ACTION@DEVPATH`, then `KEY=VALUE`, with a zero behind each.
    static func isNews(_ datagram: ArraySlice<UInt8>, of subsystem: [UInt8]) -> Bool {
        datagram.split(separator: 0).dropFirst().contains { $0.elementsEqual(subsystem) }
    }

    private final class Listener: Sendable {
        private let socket: Descriptor
        private let bell: Bell
        private let subsystem: [UInt8]

        init(socket: consuming Descriptor, bell: Bell, subsystem: [UInt8]) {
            self.socket = socket
            self.bell = bell
            self.subsystem = subsystem
        }

        func listen(_ tell: () -> Void) {
            // `UEVENT_BUFFER_SIZE` of the kernel is 2048, and its head a path.
            var buffer = [UInt8](repeating: 0, count: 16 << 10)
            while !bell.wait(orReadingFrom: socket) {
                if readAll(&buffer) { tell() }
            }
        }

        /// Reads until there is no more; whether anything was about the class.
        private func readAll(_ buffer: inout [UInt8]) -> Bool {
            var isNews = false
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
                    // ENOBUFS: more came than there is room for, and nobody knows what.
                    return isNews || error.code != EAGAIN
                }
                // Only the kernel knows. What does not fit may be about anything.
                if sender != 0 { continue }
                isNews = isNews || got > buffer.count || DeviceNews.isNews(buffer[..<Int(got)], of: subsystem)
            }
        }
    }
}
