/// The bytes that kinds of tunnels add to each packet, without the outer IP header. Where the number varies, the
/// largest.
enum TunnelHeader {
    private static let udp: Int64 = 8
    private static let ethernet: Int64 = 14

    /// - Parameters:
    ///   - kind: `IFLA_INFO_KIND`.
    ///   - data: `IFLA_INFO_DATA`.
    /// - Returns: `nil` for a kind that is not a tunnel.
    static func length(kind: String, _ data: NetlinkAttributes?) -> Int64? {
        switch kind {
        case "ipip", "sit": 0
        // RFC 2473: an option against packets that loop through tunnels.
        case "ip6tnl": 8
        case "gre": gre(data)
        case "gretap": gre(data) + ethernet
        case "ip6gre": gre(data) + 8
        case "ip6gretap": gre(data) + 8 + ethernet
        // With the header of its second version.
        case "erspan", "ip6erspan": 8 + 12 + 8 + ethernet
        case "vxlan", "geneve": udp + 8 + ethernet
        case "bareudp": udp
        // With all of its optional fields.
        case "gtp": udp + 12 + 4
        case "l2tp": udp + 16 + ethernet
        // A message's header and its tag have 16 bytes each, and packets are padded to 16.
        case "wireguard": udp + 32 + 15
        case "vti", "vti6", "xfrm": IPsec.maxOverhead
        // Programs choose for themselves: OpenVPN with CBC and SHA-1 on Ethernet adds 82 bytes inside UDP.
        case "tun", "ovpn", "amneziawg", "amt", "fou": udp + 82
        default: nil
        }
    }

    /// RFC 2890, by `IFLA_GRE_OFLAGS` (linux/if_tunnel.h): a checksum, a key and a number take four bytes each.
    private static func gre(_ data: NetlinkAttributes?) -> Int64 {
        guard let flags = data?.number(3, as: UInt16.self).map(UInt16.init(bigEndian:)) else { return 16 }
        return 4 + [0x8000, 0x2000, 0x1000].reduce(0) { $0 + (flags & $1 != 0 ? 4 : 0) }
    }
}
