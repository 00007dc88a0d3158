internal import Glibc
internal import Linux

/// A TCP listener on 127.0.0.1, at a port that the kernel chose.
package struct Loopback: Sendable {
    package let descriptor: CInt
    package let port: Int

    /// - Throws: `SystemError`.
    package init() throws {
        let listener = try systemCall("socket", on: "loopback") {
            socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                try systemCall("bind", on: "loopback") { bind(listener, address, length) }
                try systemCall("listen", on: "loopback") { listen(listener, 64) }
                try systemCall("getsockname", on: "loopback") { getsockname(listener, address, &length) }
            }
        }
        descriptor = listener
        port = Int(UInt16(bigEndian: address.sin_port))
    }

    /// A port that was free a moment ago, for programs that cannot say which one they were given.
    package static func freePort() throws -> Int {
        let listener = try Loopback()
        close(listener.descriptor)
        return listener.port
    }

    /// Whether somebody takes connections there.
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
