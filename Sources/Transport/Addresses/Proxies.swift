internal import Core
internal import Glibc

/// Rules about proxies: which one the environment names for a server, which servers need none, and what their refusals
/// look like.
///
/// The variables are those that libcurl reads (CURLOPT_PROXY(3) and CURLOPT_NOPROXY(3)). libcurl gets the result and
/// reads none of them, so that the proxy that policy has judged is the one that is used.
package enum Proxies {
    /// What the environment says about one server.
    enum OfEnvironment {
        case none
        case server(ProxyServer)
        /// The value of this variable is no address of a proxy. Nothing may go to the server past it.
        case unusable(variable: String)
    }

    /// - Parameters:
    ///   - scheme: `http` or `https`.
    ///   - host: Lower-case, an IPv6 address without brackets.
    ///   - exempt: In place of `no_proxy`.
    ///   - environment: Returns the value of a variable.
    static func ofEnvironment(
        scheme: String, host: String, exempt: [String]? = nil,
        environment: (String) -> String? = { getenv($0).map { String(cString: $0) } }
    ) -> OfEnvironment {
        // Hosts on this machine never use one.
        if isHere(host) { return .none }
        func value(_ names: String...) -> (name: String, text: String)? {
            for name in names {
                if let text = environment(name), !text.isEmpty { return (name, text) }
            }
            return nil
        }
        // A web server sets `HTTP_PROXY` in capitals from a request header, so only lower case counts.
        let own = scheme == "https" ? value("https_proxy", "HTTPS_PROXY") : value("http_proxy")
        guard let proxy = own ?? value("all_proxy", "ALL_PROXY") else { return .none }
        // Many write `*.example.org` there for a domain. As in libcurl, other entries that match nothing are ignored.
        let list =
            exempt
            ?? (value("no_proxy", "NO_PROXY")?.text ?? "").split { $0 == "," || $0 == " " }
            .map { String($0.hasPrefix("*.") ? $0.dropFirst() : $0) }
        if isExempt(host, list) { return .none }
        return ProxyServer(proxy.text, origin: .environment(variable: proxy.name)).map { .server($0) }
            ?? .unusable(variable: proxy.name)
    }

    /// Whether an entry of `http.no_proxy` can match a host.
    package static func isExemption(_ entry: String) -> Bool {
        if entry == "*" { return true }
        if IPSubnet(entry.filter { $0 != "[" && $0 != "]" }) != nil { return !entry.contains("]:") }
        let name = WebAddress("http://\(entry.hasPrefix(".") ? entry.dropFirst() : entry[...])")
        guard name.isOfPlainHost, name.path.isEmpty, name.port == nil, !entry.contains(":") else { return false }
        // Digits and dots alone are an address with a mistake.
        return !entry.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }
    }

    /// The words of libcurl without an address that may have a user and a password: it quotes that of a proxy that it
    /// cannot use (`parse_proxy` in lib/url.c of 7.88).
    static func withoutAddress(_ words: String) -> String {
        let quote = UInt8(ascii: "'")
        guard let open = words.utf8.firstIndex(of: quote), let last = words.utf8.lastIndex(of: quote) else {
            return words
        }
        // A long message is cut before its end.
        let end = open < last ? last : words.endIndex
        let hasUser = words[open..<end].utf8.contains(UInt8(ascii: "@"))
        guard hasUser || words.hasPrefix("Unsupported proxy") else { return words }
        return "\(words[...open])…\(words[end...])"
    }

    /// Describes the failure to reach a server through a proxy.
    static func failure(_ words: String, of proxy: ProxyServer) -> String {
        // libcurl has no codes of its own for these (lib/socks.c).
        let isOfCredentials = ["rejected", "authentication", "passwd", "user", "password"].contains {
            words.lowercased().contains($0)
        }
        return "the proxy \(proxy.place), which \(proxy.setting) names, does not connect to the server: \(words)"
            + (isOfCredentials ? "; \(proxy.credentialsHint)" : "")
    }

    /// Describes the answer of a proxy that refuses a request, or a connection to the server (`CONNECT`).
    ///
    /// - Parameter proxy: `nil` for one on the way that nothing here names.
    static func refusal(_ status: Int, of proxy: ProxyServer?, scheme: String?) -> String {
        let who = proxy.map { "the proxy \($0.place)" } ?? "a proxy on the way"
        let text = "\(who) answered \(status)"
        guard status == 407 || status == 401 else { return "\(text), and does not connect to the server" }
        let hint =
            proxy?.credentialsHint
            ?? "set `\(scheme ?? "http")_proxy` to its address, with USER:PASSWORD@ before the host"
        return "\(text): it requires a user and a password, or rejects the given ones: \(hint)"
    }

    /// Whether a proxy that a request went through may have given this answer in place of the server: 401, without the
    /// `Via` that a proxy adds to what it forwards (RFC 9110, section 7.6.3). An answer over `CONNECT` is the server's.
    static func mayHaveAnswered(_ status: Int, _ headers: Headers, scheme: String?) -> Bool {
        status == 401 && scheme == "http" && headers["Via"] == nil
    }

    /// Statuses with which a proxy refuses a request, or reports that it does not reach the server; tinyproxy says 500.
    static let ownStatuses: Set<Int> = [403, 500, 502, 503, 504]
    /// What the `Server` of an answer begins with that a program for forward proxies gives itself, in lower case. The
    /// server's own line passes through them.
    private static let programs = [
        "tinyproxy", "squid", "privoxy", "polipo", "mitmproxy", "bluecoat", "ats/", "zscaler",
    ]

    /// Whether a proxy that a request went to shows in an answer that it is its own.
    static func haveAnswered(_ status: Int, _ headers: Headers) -> Bool {
        guard ownStatuses.contains(status) else { return false }
        if headers["X-Squid-Error"] != nil || headers["Proxy-Agent"] != nil { return true }
        // Some add it to what they forward, and then `Via` too.
        if headers["Proxy-Connection"] != nil, headers["Via"] == nil { return true }
        let server = headers["Server"]?.lowercased() ?? ""
        return programs.contains { server.hasPrefix($0) }
    }

    /// Whether the host is this machine. Names below `localhost` count too, as in libcurl (RFC 6761, section 6.3), and the
    /// unspecified address, which Linux connects to this machine.
    ///
    /// - Parameter host: An IPv6 address without brackets.
    static func isHere(_ host: String) -> Bool {
        let name = host.lowercased()
        if name == "localhost" || name.hasSuffix(".localhost") { return true }
        return IPAddress(name).map { $0.isLoopback || $0.isUnspecified } ?? false
    }

    /// `example.org` matches itself and all names below it, as `.example.org` does; `*` matches everything; networks
    /// are allowed too.
    static func isExempt(_ host: String, _ list: [String]) -> Bool {
        let host = comparableHostName(host)
        let address = IPAddress(host)
        return list.contains { entry in
            let entry = comparableHostName(entry)
            if entry == "*" { return true }
            if let address {
                return IPSubnet(entry.filter { $0 != "[" && $0 != "]" })?.contains(address) ?? false
            }
            let name = entry.hasPrefix(".") ? entry.dropFirst() : entry[...]
            return !name.isEmpty && (host == name || host.hasSuffix("." + name))
        }
    }
}
