internal import CCares
package import Core
internal import Glibc

/// The DNS servers of this machine, with the interface over which each of them may be asked.
package struct NameServers: Hashable, Sendable {
    /// By the server's address.
    package var interfaces: [IPAddress: String]
    /// Servers that may not be asked.
    package var forbidden: [IPAddress]
    /// A resolver on this machine asks in our place, over routes of its own: a socket to it cannot be bound to an
    /// interface.
    package var hasLocal: Bool

    package init(interfaces: [IPAddress: String] = [:], forbidden: [IPAddress] = [], hasLocal: Bool = false) {
        self.interfaces = interfaces
        self.forbidden = forbidden
        self.hasLocal = hasLocal
    }

    /// The configured servers (resolv.conf(5)), in their order.
    package static func configured() -> [IPAddress] {
        guard let channel = NameChannel() else { return [] }
        return channel.servers
    }
}

/// A channel of c-ares, which has read resolv.conf(5).
struct NameChannel: ~Copyable {
    let channel: ares_channel

    /// - Parameter lookups: `fb` reads files first and then asks servers, `f` reads files alone.
    init?(lookups: String = "fb") {
        // Counted by c-ares: one more call than needed does no harm.
        guard ares_library_init(ARES_LIB_INIT_ALL) == CARES_SUCCESS else { return nil }
        var options = ares_options()
        var channel: ares_channel?
        let code = lookups.withCString { text in
            options.lookups = UnsafeMutablePointer(mutating: text)
            return ares_init_options(&channel, &options, ARES_OPT_LOOKUPS)
        }
        guard code == CARES_SUCCESS, let channel else { return nil }
        self.channel = channel
    }

    deinit { ares_destroy(channel) }

    var servers: [IPAddress] {
        var list: UnsafeMutablePointer<ares_addr_port_node>?
        guard ares_get_servers_ports(channel, &list) == CARES_SUCCESS else { return [] }
        defer { if let list { ares_free_data(list) } }
        var found: [IPAddress] = []
        var at = list
        while let server = at?.pointee {
            at = server.next
            let bytes = withUnsafeBytes(of: server.addr) { Array($0.prefix(server.family == AF_INET ? 4 : 16)) }
            if let address = IPAddress(bytes) { found.append(address) }
        }
        return found
    }

    func setServers(_ servers: [IPAddress]) -> Bool {
        let text = servers.map(\.description).joined(separator: ",")
        return ares_set_servers_csv(channel, text) == CARES_SUCCESS
    }
}
