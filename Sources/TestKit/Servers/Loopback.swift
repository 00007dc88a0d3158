internal import Glibc
internal import Linux
internal import Synchronization

/// A TCP listener on 127.0.0.1, at a port that the kernel chose.
package struct Loopback: Sendable {
    package let descriptor: CInt
    package let port: Int

    /// - Throws: `SystemError`.
    package init() throws { try self.init(at: 0) }

    private init(at wanted: UInt16) throws {
        let listener = try systemCall("socket", on: "loopback") {
            socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = wanted.bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                do { try systemCall("bind", on: "loopback") { bind(listener, address, length) } } catch {
                    close(listener)
                    throw error
                }
                try systemCall("listen", on: "loopback") { listen(listener, 64) }
                try systemCall("getsockname", on: "loopback") { getsockname(listener, address, &length) }
            }
        }
        descriptor = listener
        port = Int(UInt16(bigEndian: address.sin_port))
    }

    /// Ports below the kernel's range of ephemeral ports: the kernel assigns none of them to another program before the
    /// intended one has it. Otherwise a server of another test could be taken for that program.
    private static let own: ClosedRange<UInt16> = 20_000...31_999
    private static let last = Mutex(UInt16.random(in: own))

    /// A free port, for programs that cannot report the port that they were given; another one each time.
    package static func freePort() throws -> Int {
        var failure: any Error = SystemError(call: "bind", subject: "loopback", code: EADDRINUSE)
        for _ in own {
            let port = last.withLock { last in
                last = last == own.upperBound ? own.lowerBound : last + 1
                return last
            }
            do {
                let listener = try Loopback(at: port)
                close(listener.descriptor)
                return listener.port
            } catch { failure = error }
        }
        throw failure
    }

    /// Whether a server accepts connections there.
    package static func answers(_ port: Int) -> Bool {
        let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(port)).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
