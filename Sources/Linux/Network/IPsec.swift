internal import CLinux
internal import Core
internal import Glibc

/// Policies by which the kernel encrypts packets after routing (IPsec, ip-xfrm(8)), and routes that encapsulate by
/// themselves (ip-route(8), `encap`).
///
/// Only root may read the policies. But a connected socket reports the longest packet that fits (`IP_MTU`), and where a
/// policy applies, it differs from the MTU of the route and its interface. A policy for TCP alone is not visible.
enum IPsec {
    /// A header, a vector, padding and a tag of maximum size, inside UDP (RFC 4303, RFC 3948).
    static let maxOverhead: Int64 = 8 + 8 + 16 + 17 + 32

    /// The treatment of a connection's packets.
    enum Answer: Hashable {
        case untouched
        /// At most this many bytes are added to each.
        case encapsulated(Int64)
    }

    /// - Parameters:
    ///   - link: The interface to which the socket is bound.
    ///   - route: The kernel's route for the same connection.
    static func answer(
        to address: IPAddress, port: UInt16?, over link: Int32?, _ route: NetworkRoute,
        by socket: borrowing NetlinkSocket
    ) throws(SystemError) -> Answer {
        let unknown = Answer.encapsulated((address.isIPv6 ? 40 : 20) + maxOverhead)
        guard let usual = try usual(address, route, by: socket) else { return .untouched }
        let told = address.bytes.withUnsafeBytes {
            Int(sluice_path_mtu(link ?? 0, $0.baseAddress, $0.count, CInt(port ?? 9)))
        }
        // There is a route: so another refusal comes from a policy.
        guard told > 0 else { return unknown }
        if told == usual { return .untouched }
        // Without a key yet, packets go nowhere, and any length fits.
        return told < usual ? .encapsulated(Int64(usual - told) + 15) : unknown
    }

    /// The longest packet by route and interface; `nil` where that is unknown.
    private static func usual(
        _ address: IPAddress, _ route: NetworkRoute, by socket: borrowing NetlinkSocket
    ) throws(SystemError) -> Int? {
        if let own = route.mtu { return min(own, longest(address)) }
        guard let link = try Links.facts(of: route.link, by: socket), let mtu = link.mtu else { return nil }
        if !address.isIPv6 { return min(Int(mtu), longest(address)) }
        // A router may have announced a smaller one.
        let file = FilePath("/proc/sys/net/ipv6/conf/\(link.name.display)/mtu")
        guard let text = try? Files.read(file, limit: 64),
            let announced = Int(String(decoding: text, as: UTF8.self).filter(\.isNumber))
        else { return nil }
        return min(announced, longest(address))
    }

    /// IP_MAX_MTU and IP6_MAX_MTU of the kernel.
    private static func longest(_ address: IPAddress) -> Int { address.isIPv6 ? 65_535 + 40 : 65_535 }
}
