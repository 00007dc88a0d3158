internal import Core
internal import Transport

/// Where requests may go whose address an answer of a server names: to the origin that is configured, to those that a person names
/// besides, and to the hosts that the service itself documents. No connection is made to any other.
struct AllowedOrigins: Sendable {
    /// Those of the configured addresses.
    let homes: [WebAddress]
    /// `allow_origins`.
    let named: [WebAddress]
    /// Domains of the service, without a dot before them. Hosts below them count, by https at its own port.
    let domains: [String]
    private let remedy: Key

    /// The key that lets another origin in.
    enum Key: Sendable {
        case allowOrigins
        /// It takes the place of what a server names.
        case inPlace(String)
    }

    /// Where an address leads that is allowed.
    struct Place: Hashable, Sendable {
        /// With the host as it is configured, so that no other reader can take it for another one.
        var url: String
        /// It was written with `http`, and `https` is used.
        var isMended = false
    }

    init(homes: [String], named: [String] = [], domains: [String] = [], remedy: Key = .allowOrigins) {
        self.homes = homes.map { WebAddress($0) }
        self.named = named.map { WebAddress($0) }
        self.domains = domains
        self.remedy = remedy
    }

    /// - Parameter values: Of a destination that has the key `allow_origins`.
    init(home: String, _ values: [String: SettingValue], domains: [String] = []) {
        var named: [String] = []
        if case .texts(let texts)? = values[Self.key.name] { named = texts }
        self.init(homes: [home], named: named, domains: domains)
    }

    static let key = SettingKey(
        "allow_origins", .origins, "Other origins to which the server may send uploads; none by default.")

    /// The origins that are a person's own words, for credentials.
    var origins: Set<String> {
        Set((homes + named).map(\.origin) + homes.filter { $0.scheme == "http" }.map { Self.encrypted($0).origin })
    }

    /// - Returns: `nil` for an address at any other origin.
    func place(of url: String) -> Place? {
        let target = WebAddress(url)
        guard target.isOfPlainHost, !target.hasUser else { return nil }
        if let there = (named + homes).first(where: { $0.origin == target.origin }) { return Self.at(there, target) }
        for home in homes where home.normalHost == target.normalHost {
            switch (home.scheme, target.scheme) {
            // The same server with encryption: at the same port, or each at its own.
            case ("http", "https"):
                let there = Self.encrypted(home)
                if there.origin == target.origin { return Self.at(there, target) }
            // A server behind a proxy that encrypts does not know of it. Nothing goes there unencrypted.
            case ("https", "http") where target.isAtOwnPort:
                var place = Self.at(home, target)
                place.isMended = true
                return place
            default: break
            }
        }
        let host = target.normalHost
        guard target.isAtOwnPort, target.scheme == "https" || target.scheme == "http",
            domains.contains(where: { host == $0 || host.hasSuffix("." + $0) })
        else { return nil }
        return Place(url: Self.at(WebAddress("https://\(host)"), target).url, isMended: target.scheme == "http")
    }

    private static func at(_ there: WebAddress, _ target: WebAddress) -> Place {
        var target = target
        (target.scheme, target.authority) = (there.scheme, there.authority)
        return Place(url: target.description)
    }

    /// Where a server that is spoken to without encryption has it.
    private static func encrypted(_ home: WebAddress) -> WebAddress {
        var there = home
        there.scheme = "https"
        if home.isAtOwnPort { there.authority = home.host }
        return there
    }

    // MARK: Words

    /// What is said of an address at another origin: whose it is, and the line that lets it in. Nothing else of it is shown, since an upload's
    /// address is a right to it.
    func objection(to url: String) -> String {
        let target = WebAddress(url)
        let shown = target.isOfPlainHost ? target.shownOrigin : "an address that no host can have"
        let own = homes.map(\.shownOrigin) + named.map(\.shownOrigin)
        var words = shown
        if own.isEmpty, !domains.isEmpty {
            words += ", which is not a host of the service"
        } else {
            words += ", which is another origin than \(own.joined(separator: ", "))"
        }
        if !domains.isEmpty {
            words += " (hosts of the service are below \(domains.joined(separator: ", ")), by https)"
        }
        words += "; nothing was sent there."
        guard target.isOfPlainHost else { return words }
        switch remedy {
        case .allowOrigins:
            words += " If the server may send uploads there, write at this destination: `\(line(for: target))`"
        case .inPlace(let key):
            words += " If the bytes are to go through a host of yours, set `\(key)` at this destination"
        }
        if target.scheme == "http" { words += ". What goes there is not encrypted" }
        return words
    }

    /// As it is to stand in the configuration, with what stands there already.
    private func line(for target: WebAddress) -> String {
        let all = (named + [target]).map(\.shownOrigin).map { $0.contains("[") ? "\"\($0)\"" : $0 }
        return "\(Self.key.name): [\(all.joined(separator: ", "))]"
    }
}

extension Asking {
    /// The code of a wait for a person who says whether a server may name an address at another origin.
    static let otherOrigin = "other_origin"

    /// - Returns: `nil` where requests to this address may be made.
    func objection(to url: String) -> UploadError? { allowed.flatMap { objection(to: url, $0) } }

    /// The same for addresses that stand under a rule of their own.
    func objection(to url: String, _ allowed: AllowedOrigins) -> UploadError? {
        if allowed.place(of: url) != nil { return nil }
        return UploadError(
            failure(
                .config, Self.otherOrigin, "the server names \(allowed.objection(to: url))", retryable: true),
            remedy: .misconfigured)
    }
}
