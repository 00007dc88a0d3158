internal import Core
internal import Transport

/// Finds mistakes in the values of the section `http`.
struct HTTPObjections {
    let values: [String: SettingValue]
    let use: HTTPUse
    private var all: [SettingObjection] = []

    static func find(_ values: [String: SettingValue], _ use: HTTPUse) -> [SettingObjection] {
        var objections = HTTPObjections(values: values, use: use)
        objections.judgeProxy()
        objections.judgeTLS()
        objections.judgeUnencrypted()
        objections.judgeAddresses()
        objections.judgeHeaders()
        objections.judgeAuthorization()
        return objections.all
    }

    private init(values: [String: SettingValue], use: HTTPUse) {
        self.values = values
        self.use = use
    }

    private mutating func object(
        _ key: String, _ problem: String, missing: [String] = [], isWarning: Bool = false
    ) {
        all.append(
            SettingObjection(
                key: "http.\(key)", problem: problem, missing: missing.map { "http.\($0)" }, isWarning: isWarning))
    }

    private func has(_ key: String) -> Bool { values.has("http.\(key)") }
    private func text(_ key: String) -> String? { values.text("http.\(key)") }

    /// The key of the destination's own address.
    private var addressKey: String { values.has("url") ? "url" : "endpoint" }

    private mutating func judgeProxy() {
        var server: ProxyServer?
        if let proxy = text("proxy"), proxy != "environment", proxy != "none" {
            let schemes = ["http://", "https://", "socks5://", "socks5h://"]
            server = ProxyServer(proxy, origin: .configuration)
            // Without a scheme the user is no part of an address: `user:password@host:3128`.
            if proxy.contains("@") {
                object("proxy", "has a user in it; `proxy_user` and `proxy_password` are for that")
            } else if server == nil || !schemes.contains(where: { proxy.lowercased().hasPrefix($0) }) {
                object(
                    "proxy",
                    "takes `environment`, `none`, or an address like `http://proxy.example:3128`, `https://…` or `socks5://…`"
                )
            } else if WebAddress(proxy).path.count > 1 || proxy.contains(where: { $0 == "?" || $0 == "#" }) {
                object("proxy", "is an address without a path: `\(schemes[0])host:port`")
            } else if WebAddress(proxy).port == nil {
                object("proxy", "needs a port, like `\(proxy.hasSuffix("/") ? String(proxy.dropLast()) : proxy):3128`")
            }
        }
        for key in ["proxy_user", "proxy_password", "proxy_ca_file"] where has(key) && server == nil {
            object(key, "has no effect without an address in `http.proxy`", missing: ["proxy"])
        }
        if has("proxy_password"), !has("proxy_user") { object("proxy_password", "needs `http.proxy_user`") }
        if has("no_proxy"), text("proxy") == "none" { object("no_proxy", "has no effect with `proxy: none`") }
        if let file = server, has("proxy_ca_file"), file.scheme != .https {
            object("proxy_ca_file", "is for a proxy with `https://`")
        }
        if let server, let user = text("proxy_user") {
            // RFC 1929, section 2; RFC 7617, section 2.
            if server.scheme == .socks5, user.utf8.count > 255 {
                object("proxy_user", "has more than 255 bytes, which SOCKS5 cannot send")
            } else if server.scheme != .socks5, user.contains(":") {
                object("proxy_user", "has a colon, which no user of an HTTP proxy may have")
            } else if !ProxyServer.mayBeSent(user) {
                object("proxy_user", "has a control character, which no user of a proxy may have")
            }
        }
        if case .literal(let password)? = values.secret("http.proxy_password"),
            !ProxyServer.mayBeSent(Self.withoutLineEnd(password))
        {
            object("proxy_password", "has a line break or another control character, which no password may have")
        }
        for (index, entry) in (values.texts("http.no_proxy") ?? []).enumerated() where !Proxies.isExemption(entry) {
            object(
                "no_proxy[\(index)]",
                "matches no host: it takes a domain like `example.org` or `.example.org` (with all names below it), an "
                    + "address, a network like `10.0.0.0/8`, or `*`")
        }
    }

    private mutating func judgeTLS() {
        for key in ["client_key", "client_key_password"] where has(key) && !has("client_certificate") {
            object(key, "has no effect without `http.client_certificate`", missing: ["client_certificate"])
        }
        for (index, pin) in (values.texts("http.pinned_keys") ?? []).enumerated() {
            let digest = pin.hasPrefix("sha256//") ? bytes(base64: String(pin.dropFirst(8))) : nil
            if digest?.count != 32 {
                object(
                    "pinned_keys[\(index)]",
                    "takes `sha256//` and the SHA-256 digest of a public key in base 64, as `openssl` and `curl` write it"
                )
            }
        }
        if values.texts("http.pinned_keys")?.isEmpty == true { object("pinned_keys", "names no key; take it out") }
    }

    /// Finds keys of TLS for addresses without it, on which a person relies although they have no effect.
    private mutating func judgeUnencrypted() {
        let origins = values.texts("allow_origins") ?? []
        let plain = use.addresses.filter { Self.isUnencrypted(values.text($0)) }
        let plainOrigins = origins.filter { Self.isUnencrypted($0) }
        // Signed addresses begin as the service for them wants.
        let isMixed =
            plain.count < use.addresses.count || plainOrigins.count < origins.count
            || values.keys.contains { $0.hasPrefix("presign.") }
        let pins = values.texts("http.pinned_keys") ?? []
        if isMixed {
            let names = (plain + plainOrigins).map { "`\($0)`" }.joined(separator: " and ")
            if !names.isEmpty, !pins.isEmpty {
                object(
                    "pinned_keys",
                    "says nothing about \(names), which is not encrypted: any server there gets requests; write "
                        + "`https://`", isWarning: true)
            }
            return
        }
        let names = plain.map { "`\($0)`" }.joined(separator: " and ")
        let verb = plain.count > 1 ? "begin" : "begins"
        let problem = "has no effect: \(names) \(verb) with `http://`; write `https://` there, or take this out"
        // A service for keys may be encrypted where the bucket is not.
        let hasService = values.keys.contains { key in
            key.hasSuffix(".url") && values.text(key).map { WebAddress($0).scheme == "https" } ?? false
        }
        if !hasService {
            let isOfProxy = text("proxy")?.lowercased().hasPrefix("https://") == true
            let remedy = isOfProxy ? ". For the certificate of the proxy there is `http.proxy_ca_file`" : ""
            if has("ca_file") { object("ca_file", problem + remedy) }
            if has("tls_min") { object("tls_min", problem) }
        }
        if !pins.isEmpty { object("pinned_keys", problem) }
        guard has("client_certificate") else { return }
        for key in ["client_certificate", "client_key", "client_key_password"] where has(key) { object(key, problem) }
    }

    /// Whether requests to an address are not encrypted.
    static func isUnencrypted(_ url: String?) -> Bool { url.map { WebAddress($0).scheme == "http" } ?? false }

    private mutating func judgeAddresses() {
        let family = text("address_family").flatMap { AddressFamily(rawValue: $0) } ?? .any
        // Requests through a proxy connect to the proxy alone.
        let isProxied = text("proxy").map { $0 != "environment" && $0 != "none" } ?? false
        let first = isProxied ? text("proxy") : values.text(addressKey)
        if let host = first.map({ WebAddress($0).host.filter { $0 != "[" && $0 != "]" } }),
            let address = IPAddress(host), !family.includes(address)
        {
            object("address_family", "excludes the address \(address) in `\(isProxied ? "http.proxy" : addressKey)`")
        }
        var places: Set<String> = []
        for (index, entry) in (values.texts("http.resolve") ?? []).enumerated() {
            guard let fixed = FixedAddress(entry) else {
                object("resolve[\(index)]", "takes `HOST:PORT:ADDRESS`, like `nas.example:443:192.0.2.7`")
                continue
            }
            if !places.insert("\(fixed.host):\(fixed.port)").inserted {
                object(
                    "resolve[\(index)]",
                    "is a second entry for \(fixed.host):\(fixed.port); list all its addresses in one")
            } else if !fixed.addresses.contains(where: family.includes) {
                object("resolve[\(index)]", "names no address of `http.address_family: \(family.rawValue)`")
            }
        }
        if let agent = text("user_agent"), agent.isEmpty || !agent.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) {
            object("user_agent", "takes printable ASCII characters")
        }
    }

    private mutating func judgeHeaders() {
        let headers = values.map("http.headers") ?? [:]
        let names = headers.keys.sorted()
        for name in names {
            if let problem = headers[name].flatMap(Self.problem(ofHeader:)) { object("headers.\(name)", problem) }
            if use.reserves(name) {
                object(
                    "headers.\(name)",
                    name.lowercased() == "user-agent"
                        ? "is what `http.user_agent` sets" : "cannot be set: it belongs to the protocol")
            }
            if names.contains(where: { $0 < name && $0.lowercased() == name.lowercased() }) {
                object("headers.\(name)", "is given twice")
            }
            if let other = (values.map("headers") ?? [:]).keys.first(where: { $0.lowercased() == name.lowercased() }) {
                object("headers.\(name)", "is what `headers.\(other)` sets; take one of them out")
            }
            guard name.lowercased() == "authorization" else { continue }
            if has("auth") { object("headers.\(name)", "is what `http.auth` sets; take one of them out") }
            if let key = use.authorizedBy(values) {
                object("headers.\(name)", "is what `\(key)` sets; take one of them out")
            }
        }
    }

    private mutating func judgeAuthorization() {
        let kind = text("auth").flatMap { HTTPSettings.Authorization(rawValue: $0) }
        if kind != nil, let key = use.authorizedBy(values) {
            object("auth", "cannot be used here: `\(key)` authorises the requests")
        }
        let needed: [String] =
            switch kind {
            case .basic, .digest: ["user", "password"]
            case .bearer: ["token"]
            case nil: []
            }
        for key in needed where !has(key) {
            object("auth", "needs `http.\(key)`", missing: [key])
        }
        for key in ["user", "password", "token"] where has(key) && !needed.contains(key) {
            object(
                key,
                kind == nil ? "has no effect without `http.auth`" : "is not used by `auth: \(kind?.rawValue ?? "")`",
                missing: kind == nil ? ["auth"] : [])
        }
        // That of `digest` is not sent.
        for key in ["password", "token"] where kind == .basic || kind == .bearer {
            if let problem = values.secret("http.\(key)").flatMap(Self.problem(ofSecret:)) { object(key, problem) }
        }
        if let problem = values.secret("token").flatMap(Self.problem(ofSecret:)) {
            all.append(SettingObjection(key: "token", problem: problem))
        }
        if let user = text("user"), user.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) || user.contains(":") {
            object("user", "has a colon or a control character, which no user may have")
        }
    }

    // MARK: Texts of headers

    /// Why a text of the configuration cannot be the value of a header; `nil` for one that can, and for a secret that
    /// is kept elsewhere.
    static func problem(ofHeader source: SecretSource) -> String? {
        guard case .literal(let text) = source else { return nil }
        if withoutLineEnd(text).isEmpty { return "is empty, and no header is sent without a value; take it out" }
        return problem(ofSecret: source)
    }

    /// The same for a secret. One that could not be read is empty here.
    private static func problem(ofSecret source: SecretSource) -> String? {
        guard case .literal(let text) = source else { return nil }
        // RFC 9110, section 5.5.
        let isFit = withoutLineEnd(text).utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
        return isFit ? nil : "has a line break or another control character, which no header may have"
    }

    /// A text without the one line end that a secret loses when it is read.
    private static func withoutLineEnd(_ text: String) -> String {
        text.last == "\n" || text.last == "\r\n" ? String(text.dropLast()) : text
    }
}
