package import Core
internal import Glibc

/// The addresses that this machine has now.
package enum OwnAddresses {
    /// Whether a connection to the address ends on this machine.
    ///
    /// - Returns: `false` also where the kernel does not tell: then the route to the address counts.
    package static func contains(_ address: IPAddress) -> Bool { all().contains(address) }

    /// Those by which other machines may reach this one.
    package static func reachable() -> [IPAddress] { all().filter { !$0.isLoopback && !$0.isLinkLocal } }

    /// Every address of every interface (getifaddrs(3)); none where the kernel does not tell.
    private static func all() -> [IPAddress] {
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return [] }
        defer { freeifaddrs(first) }
        var found: [IPAddress] = []
        var next = first
        while let entry = next?.pointee {
            next = entry.ifa_next
            guard let socket = entry.ifa_addr else { continue }
            let bytes: [UInt8]
            switch socket.pointee.sa_family {
            case sa_family_t(AF_INET):
                bytes = socket.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { pointer in
                    withUnsafeBytes(of: pointer.pointee.sin_addr) { Array($0) }
                }
            case sa_family_t(AF_INET6):
                bytes = socket.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { pointer in
                    withUnsafeBytes(of: pointer.pointee.sin6_addr) { Array($0) }
                }
            default: continue
            }
            if let address = IPAddress(bytes) { found.append(address) }
        }
        return found
    }
}
