internal import Core
internal import Glibc

/// The first machine that a request is sent to: the server itself, or a proxy from the environment.
///
/// The same variables that libcurl reads (CURLOPT_PROXY and CURLOPT_NOPROXY of its manual). A difference from libcurl's
/// own decision sends no byte over another interface: requests are bound to theirs, for every target.
package enum Proxies {
    /// - Parameters:
    ///   - scheme: `http` or `https`.
    ///   - host: Lower-case, an IPv6 address without brackets.
    ///   - environment: Returns the value of a variable.
    package static func firstStop(
        scheme: String, host: String, port: UInt16,
        environment: (String) -> String? = { getenv($0).map { String(cString: $0) } }
    ) -> (host: String, port: UInt16) {
        let direct = (host, port)
        // Request's own rule: hosts on this machine never use one.
        if isHere(host) { return direct }
        func value(_ names: String...) -> String? { names.lazy.compactMap(environment).first { !$0.isEmpty } }
        // A web server sets `HTTP_PROXY` in capitals from a request header, so only lower case counts.
        let own = scheme == "https" ? value("https_proxy", "HTTPS_PROXY") : value("http_proxy")
        guard let proxy = own ?? value("all_proxy", "ALL_PROXY"),
            !isExempt(host, value("no_proxy", "NO_PROXY") ?? "")
        else { return direct }
        return parse(proxy) ?? direct
    }

    /// Describes the answer of a proxy that refuses a request, or a connection to the server (`CONNECT`).
    ///
    /// - Parameter proxy: `host:port`; `nil` for one that the environment does not name.
    static func refusal(_ status: Int, of proxy: String?, scheme: String?) -> String {
        let who = proxy.map { "the proxy \($0)" } ?? "a proxy on the way"
        let text = "\(who) answered \(status)"
        guard status == 407 || status == 401 else { return "\(text), and does not connect to the server" }
        return "\(text): it requires a user and a password, or rejects the given ones: set "
            + "`\(scheme ?? "http")_proxy` to its address, with USER:PASSWORD@ before the host"
    }

    /// Whether a proxy that a request went through may have given this answer in place of the server: 401, without the
    /// `Via` that a proxy adds to what it forwards (RFC 9110, section 7.6.3). An answer over `CONNECT` is the server's.
    static func mayHaveAnswered(_ status: Int, _ headers: Headers, scheme: String?) -> Bool {
        status == 401 && scheme == "http" && headers["Via"] == nil
    }

    /// Whether the host is this machine. Names below `localhost` count too, as in libcurl (RFC 6761, section 6.3).
    ///
    /// - Parameter host: An IPv6 address without brackets.
    static func isHere(_ host: String) -> Bool {
        let name = host.lowercased()
        return name == "localhost" || name.hasSuffix(".localhost") || IPAddress(name)?.isLoopback == true
    }

    /// `example.org` matches itself and all names below it, as `.example.org` does; `*` matches everything; networks
    /// are allowed too.
    private static func isExempt(_ host: String, _ list: String) -> Bool {
        let address = IPAddress(host)
        return list.lowercased().split { $0 == "," || $0 == " " }.contains { entry in
            if entry == "*" { return true }
            if let address {
                return IPSubnet(String(entry.filter { $0 != "[" && $0 != "]" }))?.contains(address) ?? false
            }
            let name = entry.hasPrefix(".") ? entry.dropFirst() : entry
            return !name.isEmpty && (host == name || host.hasSuffix("." + name))
        }
    }

    /// `http://user:password@proxy.example:3128/`; scheme and user may be missing, and the default port is 1080.
    private static func parse(_ proxy: String) -> (host: String, port: UInt16)? {
        var rest = proxy[...]
        var port: UInt16 = 1080
        if let end = rest.firstRange(of: "://") {
            if rest[..<end.lowerBound].lowercased() == "https" { port = 443 }
            rest = rest[end.upperBound...]
        }
        rest = rest.prefix { $0 != "/" }
        if let at = rest.lastIndex(of: "@") { rest = rest[rest.index(after: at)...] }
        if rest.hasPrefix("[") {
            guard let end = rest.firstIndex(of: "]") else { return nil }
            let host = rest[rest.index(after: rest.startIndex)..<end]
            return (String(host), UInt16(rest[rest.index(after: end)...].dropFirst()) ?? port)
        }
        let parts = rest.split(separator: ":", maxSplits: 1)
        guard let host = parts.first, !host.isEmpty else { return nil }
        return (host.lowercased(), parts.count == 2 ? UInt16(parts[1]) ?? port : port)
    }
}
