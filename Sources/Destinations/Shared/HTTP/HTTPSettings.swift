internal import Core
internal import Credentials
internal import Transport

/// A person's settings for the requests of one destination: the section `http`, which every destination that sends
/// requests has.
struct HTTPSettings: DeclaredSettings {
    enum Authorization: String, Sendable, CaseIterable { case basic, bearer, digest }

    var proxy: String?
    var proxyUser: String?
    var proxyPassword: SecretSource?
    var noProxy: [String]?
    var clientKey: SecretSource?
    var clientKeyPassword: SecretSource?
    var headers: [String: SecretSource] = [:]
    var authorization: Authorization?
    var user = ""
    var password: SecretSource?
    var token: SecretSource?
    var fixedAddresses: [String] = []
    /// The values that need no reading.
    var connection = ConnectionSettings()

    static let defaults = HTTPSettings()

    /// The section.
    static let section = DestinationKey<HTTPSettings>(
        "http", keys, "How every request of this destination connects, and what it carries.")

    private static let keys = DestinationKey<HTTPSettings>.table {
        DestinationKey(
            "proxy", \.proxy,
            "`environment` (default), `none`, or a proxy's address: `http://`, `https://` or `socks5://`.")
        DestinationKey("proxy_user", \.proxyUser, "The user for that proxy.")
        DestinationKey("proxy_password", \.proxyPassword, "The password for that proxy.")
        DestinationKey(
            "proxy_ca_file", \.connection.proxyCAFile, "Certificates to trust for an `https://` proxy (PEM).")
        DestinationKey("no_proxy", \.noProxy, "Hosts, domains and networks that are reached without the proxy.")
        DestinationKey("ca_file", \.connection.caFile, "Certificates to trust instead of the system's (PEM).")
        DestinationKey(
            "client_certificate", \.connection.clientCertificate,
            "The certificate that is shown to the server (PEM), perhaps with its key.")
        DestinationKey("client_key", \.clientKey, "The key of that certificate (PEM).")
        DestinationKey("client_key_password", \.clientKeyPassword, "The password of that key.")
        DestinationKey(
            "pinned_keys", \.connection.pinnedKeys,
            "Digests of the public keys that servers of this destination may have, like `sha256//…=`.")
        DestinationKey("tls_min", \.connection.lowestTLS, "The lowest version of TLS; `{default}` by default.")
        DestinationKey(
            "http2", \.connection.http2,
            "Whether HTTP/2 is used: `{default}` (default), `auto` where the server offers it with TLS, or `always`.")
        DestinationKey(
            "address_family", \.connection.addressFamily,
            "Whether servers are reached by `ipv4` or `ipv6` alone; `{default}` by default.")
        DestinationKey(
            "resolve", \.fixedAddresses, "Addresses that are used without a lookup: `HOST:PORT:ADDRESS[,ADDRESS]`.")
        DestinationKey("user_agent", \.connection.userAgent, "The `User-Agent` of each request; `sluice` by default.")
        DestinationKey(
            "headers", \.headers, as: .headers,
            "More headers for every request, to the configured addresses only.")
        DestinationKey("auth", \.authorization, "How requests are authorised, at servers with a password.")
        DestinationKey("user", \.user, "The user for `basic` and `digest`.")
        DestinationKey("password", \.password, "The password for `basic` and `digest`.")
        DestinationKey("token", \.token, "The token for `bearer`.")
    }

    /// Reads a person's values, which were checked.
    static func read(_ values: [String: SettingValue]) -> HTTPSettings {
        var settings: HTTPSettings = [section].settings(values)
        settings.connection.fixedAddresses = settings.fixedAddresses.compactMap { FixedAddress($0) }
        settings.connection.proxy =
            switch settings.proxy {
            case nil, "environment": .environment(exempt: settings.noProxy)
            case "none": .none
            case let address?:
                ProxyServer(address, origin: .configuration).map { .server($0, exempt: settings.noProxy ?? []) }
                    ?? .none
            }
        return settings
    }

    /// The headers that every request to the destination's own origins carries.
    var ownHeaders: [CredentialProvider.Header] {
        var all = headers.sorted { $0.key < $1.key }.map { name, source in
            CredentialProvider.Header(name, source, key: "http.headers.\(name)")
        }
        switch authorization {
        case .bearer: if let token { all.append(.init("Authorization", prefix: "Bearer ", token, key: "http.token")) }
        case .basic:
            if let password {
                // RFC 7617, section 2.
                all.append(
                    .init("Authorization", password, key: "http.password") { [user] in
                        "Basic " + base64(Array("\(user):\($0)".utf8))
                    })
            }
        case .digest, nil: break
        }
        return all
    }

    /// What a person checks when the server refuses the credentials.
    ///
    /// - Parameter own: The same for the destination's credentials beside this section; `nil` where it has none.
    func right(own: String?) -> String {
        switch authorization {
        case .basic, .digest: "`http.user` and `http.password`"
        case .bearer: "`http.token`"
        case nil: own ?? (headers.isEmpty ? "`token` or `http.auth`: none is configured" : "`http.headers`")
        }
    }

    /// - Returns: `nil` without `auth: digest`.
    func digest(_ reader: SecretReader) -> DigestAuthorization? {
        guard authorization == .digest, let password else { return nil }
        return DigestAuthorization(user: user, password: password, reader: reader)
    }
}

/// What a kind of destination says about the section `http`.
package struct HTTPUse: Sendable {
    /// Headers that belong to its protocol, in lower case. A name that ends with `*` stands for all that begin with it.
    let reserved: Set<String>
    /// The keys of the addresses to which its requests go. Without a value, such an address begins with `https://`.
    private(set) var addresses: [String]
    /// The key that authorises its requests with these values; `nil` for none.
    let authorizedBy: @Sendable ([String: SettingValue]) -> String?

    init(
        reserved: Set<String> = [], addresses: [String] = ["url"],
        authorizedBy: @escaping @Sendable ([String: SettingValue]) -> String? = { _ in nil }
    ) {
        self.reserved = reserved
        self.addresses = addresses
        self.authorizedBy = authorizedBy
    }

    /// The same for requests to the addresses of other keys.
    func to(_ addresses: [String]) -> HTTPUse {
        var use = self
        use.addresses = addresses
        return use
    }

    /// Set twice, they would break the framing of any request.
    private static let ofFraming: Set<String> = [
        "content-length", "transfer-encoding", "expect", "host", "connection", "user-agent", "accept-encoding",
        "content-encoding", "proxy-authorization", "te", "trailer", "upgrade",
    ]

    /// Whether a person may not set this header.
    func reserves(_ header: String) -> Bool {
        let name = header.lowercased()
        return Self.ofFraming.contains(name) || reserved.contains(name)
            || reserved.contains { $0.hasSuffix("*") && name.hasPrefix($0.dropLast()) }
    }
}
