internal import CLinux
package import Core
package import Glibc

/// A TCP socket that never blocks. It is closed when the last reference is released.
package final class StreamSocket: Sendable {
    /// The result of reading or writing.
    package enum Result: Hashable, Sendable {
        case bytes(Int)
        /// Nothing can be read or written now.
        case notNow
        /// The peer sends no more.
        case end
        /// The connection is broken, with the kernel's error number.
        case failed(CInt)
    }

    private let descriptor: Descriptor

    private init(adopting number: CInt) { descriptor = Descriptor(adopting: number) }

    /// Listens on 127.0.0.1, on a port that the kernel chooses.
    package static func listening() throws(SystemError) -> (socket: StreamSocket, port: UInt16) {
        var port: UInt16 = 0
        let number = try systemCall("listen", on: "127.0.0.1") { sluice_listen_on_loopback(&port) }
        return (StreamSocket(adopting: number), port)
    }

    /// The next connection that waits here; `nil` for none.
    package func accept() -> StreamSocket? {
        let number = descriptor.withNumber { sluice_accept($0) }
        return number < 0 ? nil : StreamSocket(adopting: number)
    }

    /// Begins to connect. ``connectError`` has the result once the socket is writable.
    ///
    /// - Parameters:
    ///   - interface: The only interface that it may use (`SO_BINDTODEVICE`); `nil` for any.
    ///   - timeout: How long sent bytes may stay unacknowledged.
    package static func connecting(
        to address: IPAddress, port: UInt16, over interface: String?, timeout: Duration
    ) throws(SystemError) -> StreamSocket {
        let number = try systemCall("socket", on: "\(address)") {
            if let interface { return sluice_stream_socket(address.bytes.count, interface) }
            return sluice_stream_socket(address.bytes.count, nil)
        }
        let socket = StreamSocket(adopting: number)
        Sockets.prepareForUpload(number, timeout: timeout)
        let result = address.bytes.withUnsafeBytes { sluice_connect(number, $0.baseAddress, $0.count, port) }
        if result != 0, errno != EINPROGRESS {
            throw SystemError(call: "connect", subject: "\(address) port \(port)", code: errno)
        }
        return socket
    }

    /// Why connecting has failed, as an error number; 0 when it has not.
    package var connectError: CInt { descriptor.withNumber { sluice_socket_error($0) } }

    /// Whether both ends are known: a connection that is still being made has no peer.
    package var isConnected: Bool { descriptor.withNumber { Sockets.ends($0) } != nil }

    /// The address of this end; `nil` if there is none.
    package var localAddress: IPAddress? { descriptor.withNumber { Sockets.local($0) } }

    /// Reads at most `count` bytes, and appends them.
    package func read(_ count: Int, into bytes: inout [UInt8]) -> Result {
        var (got, code) = (0, CInt(0))
        // Uninitialised, proof: read(2) has written the first `got` bytes, and no others count as elements.
        let piece = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialised in
            got = descriptor.withNumber { Glibc.read($0, buffer.baseAddress, count) }
            code = errno
            initialised = max(0, got)
        }
        if bytes.isEmpty { bytes = piece } else { bytes += piece }
        if got > 0 { return .bytes(got) }
        return got == 0 ? .end : Self.failure(code)
    }

    package func write(_ bytes: ArraySlice<UInt8>) -> Result {
        let sent = descriptor.withNumber { number in
            bytes.withUnsafeBytes { sluice_send(number, $0.baseAddress, $0.count) }
        }
        return sent >= 0 ? .bytes(Int(sent)) : Self.failure(errno)
    }

    private static func failure(_ code: CInt) -> Result {
        code == EAGAIN || code == EINTR ? .notNow : .failed(code)
    }

    /// Tells the peer that no more bytes follow.
    package func finishWriting() { descriptor.withNumber { _ = sluice_finish_sending($0) } }

    /// When it is closed, its waiting bytes are discarded, and the peer sees a reset.
    package func resetOnClose() { descriptor.withNumber { Sockets.resetOnClose($0) } }

    /// For poll(2). The caller must keep the socket until it returns.
    package func polled(for events: Int32) -> pollfd {
        descriptor.withNumber { pollfd(fd: $0, events: Int16(truncatingIfNeeded: events), revents: 0) }
    }

    /// The kernel's counters; as ``Sockets/counts(_:)``.
    package var counts: SocketCounts? { descriptor.withNumber { Sockets.counts($0) } }
}
