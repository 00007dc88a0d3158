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
        let isBehindProxy = listen.isLoopback && !isTLS
        // Those of the machine itself are for a tunnel, and never for a proxy with a certificate.
        let proxied = isBehindProxy ? hosts.filter { !Self.isLocal($0) } : []
        let direct = isBehindProxy ? hosts.filter(Self.isLocal) : hosts
        return WebLinkView(
            urls: places(direct.map(inURL)).map { "\(isTLS ? "https" : "http")://\($0):\(port)/#code=\(code)" },
            proxied: proxied.isEmpty ? nil : proxied.map { "https://\(inURL($0))/#code=\(code)" },
            seconds: WebSessions.codeLifetime.components.seconds)
    }

    private func inURL(_ host: String) -> String {
        guard let address = IPAddress(host) else { return host }
        return address.isIPv6 ? "[\(address)]" : "\(address)"
    }

    /// RFC 6761, section 6.3.
    private static func isLocal(_ host: String) -> Bool {
        host == "localhost" || host.hasSuffix(".localhost") || IPAddress(host)?.isLoopback == true
    }

    /// The names and addresses by which browsers reach the page here, the likeliest first.
    private func places(_ names: [String]) -> [String] {
        var own = [inURL(listen.host)]
        if let address = IPAddress(listen.host), address.isUnspecified {
            // A socket for all addresses of IPv6 takes those of IPv4 too.
            let reachable = OwnAddresses.reachable().filter { address.isIPv6 || !$0.isIPv6 }
            own = reachable.map { inURL($0.description) } + ["localhost"]
        }
        let others = names.filter { !own.contains($0) }
        // A name for a tunnel is for another machine. That of a certificate is the one to use.
        return isTLS || !listen.isLoopback ? others + own : own + others
    }
}
