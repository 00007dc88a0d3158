internal import API
internal import Core
internal import Linux

/// Makes links to the web page that sign in the browser that opens them.
struct PageLinks: Sendable {
    let sessions: WebSessions
    let listen: ListenAddress
    /// The port, which the kernel may have chosen.
    let port: Int
    let hosts: [String]
    let isTLS: Bool

    /// - Parameter who: The user who asked.
    func make(_ request: WebLinkRequest, by who: String) -> WebLinkView {
        let code = sessions.makeCode(for: ControlClientIdentity(name: who, role: request.role))
        let isProxied = listen.isLoopback && !isTLS
        let names = hosts.map { name in IPAddress(name).map(host) ?? name }
        return WebLinkView(
            urls: places(isProxied ? [] : names).map { "\(isTLS ? "https" : "http")://\($0):\(port)/#code=\(code)" },
            proxied: isProxied && !names.isEmpty ? names.map { "https://\($0)/#code=\(code)" } : nil,
            seconds: WebSessions.codeLifetime.components.seconds)
    }

    private func host(_ address: IPAddress) -> String { address.isIPv6 ? "[\(address)]" : "\(address)" }

    /// The names and addresses by which browsers reach the page here, the likeliest first.
    private func places(_ names: [String]) -> [String] {
        guard let address = IPAddress(listen.host) else { return names + [listen.host] }
        guard address.isUnspecified else { return names + [host(address)] }
        // A socket for all addresses of IPv6 takes those of IPv4 too.
        let reachable = OwnAddresses.reachable().filter { address.isIPv6 || !$0.isIPv6 }
        return names + reachable.map(host) + ["localhost"]
    }
}
