internal import Core
internal import Glibc

/// A connection to a message bus that never blocks. The bus drops everything that was requested over it, such as
/// subscriptions, when it closes.
///
/// A final class, not `Sendable`: one thread owns it.
final class BusConnection {
    private let socket: Descriptor
    private var stream = BusStream()
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 8 << 10, alignment: 8)
    /// Bytes that are read before other descriptors get their turn.
    private static let turnLimit = 64 << 10

    init(to address: BusAddress) throws(BusError) {
        var target = sockaddr_un()
        target.sun_family = sa_family_t(AF_UNIX)
        let name = address.isAbstract ? [0] + address.name : address.name
        guard name.count < MemoryLayout.size(ofValue: target.sun_path) else {
            throw BusError("the name \(address.display) is too long for a socket")
        }
        withUnsafeMutableBytes(of: &target.sun_path) { $0.copyBytes(from: name) }
        // An abstract name ends with its length, any other with a NUL (unix(7)).
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count + (address.isAbstract ? 0 : 1))
        do throws(SystemError) {
            let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
            let number = try systemCall("socket", on: address.display) { Glibc.socket(AF_UNIX, kind, 0) }
            socket = Descriptor(adopting: number)
            try withUnsafePointer(to: &target) { pointer throws(SystemError) in
                try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer throws(SystemError) in
                    _ = try systemCall("connect", on: address.display) { connect(number, pointer, length) }
                }
            }
        } catch {
            var failure = BusError("\(error.call) \(error.subject): \(error.reason)")
            failure.isMissing = error.isMissing
            throw failure
        }
    }

    deinit { buffer.deallocate() }

    /// Sends a call as soon as the bus accepts it.
    ///
    /// - Returns: The serial that its answer names.
    func send(_ call: BusMessage.Call) -> UInt32 { stream.send(call) }

    /// The events to wait for, for poll(2).
    var pollDescriptor: pollfd {
        let events = POLLIN | (stream.output.isEmpty ? 0 : POLLOUT)
        return socket.withNumber { pollfd(fd: $0, events: Int16(events), revents: 0) }
    }

    /// Writes and reads as much as is possible now.
    ///
    /// - Throws: When the bus is gone, or the other end is no bus.
    func work() throws(BusError) -> [BusMessage] {
        try flush()
        var found: [BusMessage] = []
        var taken = 0
        while taken < Self.turnLimit {
            let got = socket.withNumber { recv($0, buffer.baseAddress, buffer.count, 0) }
            if got < 0 {
                let code = errno
                if code == EINTR { continue }
                if code == EAGAIN { break }
                throw BusError(SystemError(call: "recv", subject: "D-Bus", code: code).reason)
            }
            if got == 0 { throw BusError("it closed the connection") }
            taken += got
            found += try stream.parse(UnsafeRawBufferPointer(buffer)[..<got])
        }
        try flush()
        return found
    }

    private func flush() throws(BusError) {
        while !stream.output.isEmpty {
            let sent = socket.withNumber { number in
                stream.output.withUnsafeBytes { Glibc.send(number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            }
            if sent < 0 {
                let code = errno
                if code == EINTR { continue }
                if code == EAGAIN { return }
                throw BusError(SystemError(call: "send", subject: "D-Bus", code: code).reason)
            }
            stream.output.removeFirst(sent)
        }
    }
}
