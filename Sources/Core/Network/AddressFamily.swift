/// The versions of IP that may be used to reach a server.
package enum AddressFamily: String, Hashable, Sendable, CaseIterable {
    case any
    case ipv4
    case ipv6

    package func includes(_ address: IPAddress) -> Bool {
        switch self {
        case .any: true
        case .ipv4: !address.isIPv6
        case .ipv6: address.isIPv6
        }
    }
}
