// The compiler takes the declarations of sys/socket.h from the module that it loads first, which is CCares here.
internal import CCares
package import Core
internal import Glibc
internal import Linux

/// Looks up the addresses of host names with the system's resolver (getaddrinfo(3)).
package enum SystemResolver {
    package struct UnknownHostError: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// Waits for name servers, perhaps for half a minute, on a background thread.
    ///
    /// - Parameter host: A name, or an address without brackets.
    /// - Returns: The addresses in the order in which they should be tried (RFC 6724), each once.
    /// - Throws: ``UnknownHostError`` when there are none, or no server could be asked.
    package static func addresses(of host: String) async throws -> [IPAddress] {
        if let address = IPAddress(host) { return [address] }
        return try await blocking { try resolve(host) }
    }

    static func resolve(_ host: String) throws -> [IPAddress] {
        var hints = addrinfo()
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, &hints, &list)
        defer { if let list { freeaddrinfo(list) } }
        if code != 0 {
            throw UnknownHostError(description: "\(printable(host)): \(String(cString: gai_strerror(code)))")
        }
        var found: [IPAddress] = []
        var at = list
        while let entry = at {
            defer { at = entry.pointee.ai_next }
            guard let address = address(entry.pointee.ai_addr, Int(entry.pointee.ai_addrlen)), !found.contains(address)
            else { continue }
            found.append(address)
        }
        if found.isEmpty { throw UnknownHostError(description: "\(printable(host)) has no address") }
        return found
    }

    /// The address in a `sockaddr`; `nil` if it is neither IPv4 nor IPv6.
    static func address(_ socket: UnsafePointer<sockaddr>?, _ length: Int) -> IPAddress? {
        guard let socket else { return nil }
        let bytes = UnsafeRawBufferPointer(start: socket, count: length)
        // `sin_addr` and `sin6_addr` of ip(7) and ipv6(7): after the port, and after port and flow.
        switch CInt(socket.pointee.sa_family) {
        case AF_INET where bytes.count >= 8: return IPAddress(Array(bytes[4..<8]))
        case AF_INET6 where bytes.count >= 24: return IPAddress(Array(bytes[8..<24]))
        default: return nil
        }
    }
}
