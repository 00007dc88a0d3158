internal import Core
internal import Linux

/// A proxy, as its address names it.
package struct ProxyServer: Hashable, Sendable {
    package enum Scheme: String, Hashable, Sendable {
        case http, https
        /// The proxy looks up the names of servers, so that no lookup leaves by another way.
        case socks5 = "socks5h"
        case socks4 = "socks4a"
    }

    package let scheme: Scheme
    /// Lower-case; an IPv6 address has no brackets.
    package let host: String
    package let port: UInt16
    /// From the address, percent-encoded: `user:password`. Secret.
    let userInfo: String?
    /// The variable or key that names it, for messages.
    package let origin: Origin

    package enum Origin: Hashable, Sendable {
        case environment(variable: String)
        case configuration
    }

    /// Reads `http://user:password@proxy.example:3128/`. The scheme and the user may be missing; the default port is
    /// 1080, and 443 for `https` (CURLOPT_PROXY(3)).
    ///
    /// - Returns: `nil` also for a user or password that libcurl cannot read, or that it would read as a host.
    package init?(_ text: String, origin: Origin) {
        var rest = text[...]
        var scheme = Scheme.http
        if let end = rest.firstRange(of: "://") {
            switch rest[..<end.lowerBound].lowercased() {
            case "http": scheme = .http
            case "https": scheme = .https
            case "socks5", "socks5h": scheme = .socks5
            case "socks4", "socks4a": scheme = .socks4
            default: return nil
            }
            rest = rest[end.upperBound...]
        }
        // By bytes, as libcurl does.
        let end = rest.utf8.firstIndex { "/?#".utf8.contains($0) } ?? rest.endIndex
        let at = UInt8(ascii: "@")
        // Then the rest of a password is there, and its beginning is in the place of the host.
        if rest[end...].utf8.contains(at) { return nil }
        rest = rest[..<end]
        var userInfo: String?
        if let mark = rest.utf8.firstIndex(of: at) {
            guard Self.isUsable(userInfo: rest[..<mark]) else { return nil }
            userInfo = String(rest[..<mark])
            rest = rest[rest.utf8.index(after: mark)...]
            if rest.utf8.contains(at) { return nil }
        }
        let authority = WebAddress("\(scheme == .https ? "https" : "http")://\(rest)")
        guard authority.isOfPlainHost else { return nil }
        self.scheme = scheme
        self.userInfo = userInfo
        self.origin = origin
        host = authority.host.filter { $0 != "[" && $0 != "]" }
        port = authority.port.flatMap { UInt16($0) } ?? (scheme == .https ? 443 : 1080)
    }

    /// Whether libcurl can read a user and a password. At a control character that is written as `%XX` it would leave
    /// the proxy out without an error (`parse_proxy` in lib/url.c of 7.88).
    private static func isUsable(userInfo: Substring) -> Bool {
        let bytes = Array(userInfo.utf8)
        guard bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { return false }
        for index in bytes.indices.dropLast(2) where bytes[index] == UInt8(ascii: "%") {
            // A `%` before anything else is itself.
            guard let high = bytes[index + 1].hexadecimalValue, let low = bytes[index + 2].hexadecimalValue else {
                continue
            }
            if isControl(high << 4 | low) { return false }
        }
        return true
    }

    /// Whether a user or a password can be sent to a proxy: it has no control character.
    package static func mayBeSent(_ text: String) -> Bool { !text.utf8.contains(where: isControl) }

    private static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7F }

    /// The user and the password in its address, with a colon between them; `nil` for none. Secret.
    package var login: String? { userInfo.map { PercentCoding.text(decoding: $0) ?? $0 } }

    /// `host:port`.
    package var place: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// The addresses that a person has given for its name (`http.resolve`); `nil` for none.
    var givenAddresses: [IPAddress]?

    /// Whether it is on this machine now, at a loopback address or another one of its own. Of a name the file of hosts
    /// tells. Where a name server gives such an address, no connection is made (``CurlTransfer/mayConnect(to:port:)``).
    package var isHere: Bool {
        if let givenAddresses { return givenAddresses.allSatisfy(Self.isOwn) }
        if let address = IPAddress(host) { return Self.isOwn(address) }
        if Proxies.isHere(host) { return true }
        let known = HostsFile.addresses(of: host)
        return !known.isEmpty && known.allSatisfy(Self.isOwn)
    }

    /// Whether a connection to the address ends on this machine.
    static func isOwn(_ address: IPAddress) -> Bool {
        address.isLoopback || address.isUnspecified || OwnAddresses.contains(address)
    }

    /// Why no connection to it may be made at an address that a lookup gives; `nil` where it may. The route to the
    /// proxy was judged or, for one on this machine, the route to the server: either says nothing about the other.
    ///
    /// - Parameter isHere: Whether it was on this machine when the request began.
    func objection(to address: IPAddress, isHere: Bool) -> String? {
        switch (isHere, Self.isOwn(address)) {
        case (true, true), (false, false): nil
        case (false, true):
            "the proxy \(place) is on this machine, at \(address): write that address into \(setting), so that the route "
                + "to the server is judged"
        case (true, false):
            "the proxy \(place) is on this machine by its name, and a lookup gives \(address), which is not: write the "
                + "right address into \(setting)"
        }
    }

    /// Whether it answers requests in HTTP.
    var speaksHTTP: Bool { scheme == .http || scheme == .https }

    /// For libcurl.
    var url: String { "\(scheme.rawValue)://\(userInfo.map { $0 + "@" } ?? "")\(place)" }

    /// The same with a user and a password of the configuration. They are a part of the address because libcurl decodes
    /// `%XX` in those that it gets as options (`parse_proxy_auth` in lib/url.c of 7.88).
    func url(user: String?, password: String?) -> String {
        guard user != nil || password != nil else { return url }
        let coded = password.map { ":" + PercentCoding.encode($0.utf8) } ?? ""
        return "\(scheme.rawValue)://\(PercentCoding.encode((user ?? "").utf8))\(coded)@\(place)"
    }

    /// The place that names it, for messages: `http.proxy`, or a variable of the environment.
    package var setting: String {
        switch origin {
        case .environment(let variable): "`\(variable)` of the environment"
        case .configuration: "`http.proxy`"
        }
    }

    /// How a person gives it a user and a password.
    package var credentialsHint: String {
        switch origin {
        case .environment(let variable):
            "set `\(variable)` to its address, with USER:PASSWORD@ before the host"
        case .configuration: "set `http.proxy_user` and `http.proxy_password` of this destination"
        }
    }
}

/// Which proxy requests use.
package enum ProxyChoice: Hashable, Sendable {
    case none
    /// Those of the environment. `exempt` replaces `no_proxy`.
    case environment(exempt: [String]?)
    /// `exempt` lists hosts that are reached directly, in the form of `no_proxy`.
    case server(ProxyServer, exempt: [String])

    /// The proxy for requests to `url`; `nil` for none.
    func server(for url: WebAddress) -> ProxyServer? {
        guard let (host, _) = url.endpoint else { return nil }
        switch self {
        case .none: return nil
        case .environment(let exempt):
            guard
                case .server(let server) = Proxies.ofEnvironment(scheme: url.scheme ?? "", host: host, exempt: exempt)
            else { return nil }
            return server
        case .server(let server, let exempt): return Proxies.isExempt(host, exempt) ? nil : server
        }
    }

    /// Why no request to `url` may be sent; `nil` where it may.
    func objection(to url: WebAddress) -> String? {
        guard case .environment(let exempt) = self, let (host, _) = url.endpoint,
            case .unusable(let variable) = Proxies.ofEnvironment(scheme: url.scheme ?? "", host: host, exempt: exempt)
        else { return nil }
        return "`\(variable)` of the environment is no address of a proxy: it takes `http://HOST:PORT`, `https://…` or "
            + "`socks5://…`, with a plain host name and a port of at most 65535. In a user and a password before the "
            + "host, `@`, `#`, `?`, `/` and blanks are written as `%40`, `%23`, `%3F`, `%2F` and `%20`, and no control "
            + "character is allowed. Nothing is sent past it"
    }
}
