internal import Core
internal import Transport

/// Origins to which requests may go whose address comes from a server's answer: the configured origin, those that a
/// person names in addition, and the hosts that the service documents. No connection is made to any other.
struct AllowedOrigins: Sendable {
    /// Origins of the configured addresses.
    let homes: [WebAddress]
    /// `allow_origins`.
    let named: [WebAddress]
    /// Domains of the service, without a dot before them. Hosts below them are allowed, by https at its default port.
    let domains: [String]
    private let remedy: Key

    /// The configuration key that allows another origin.
    enum Key: Sendable {
        case allowOrigins
        /// Its value replaces the origin that a server names.
        case inPlace(String)
    }

    /// The target of an allowed address.
    struct Place: Hashable, Sendable {
        /// With the host as configured, so that every other reader understands the same host.
        var url: String
        /// The address was written with `http`, and `https` is used.
        var isSchemeUpgraded = false
    }

    init(homes: [String], named: [String] = [], domains: [String] = [], remedy: Key = .allowOrigins) {
        self.homes = homes.map { WebAddress($0) }
        self.named = named.map { WebAddress($0) }
        self.domains = domains
        self.remedy = remedy
    }

    private static let keyName = "allow_origins"

    static func key<Owner: DeclaredSettings>(
        _ path: DestinationKey<Owner>.Property<[String]>
    ) -> DestinationKey<Owner> {
        DestinationKey(
            keyName, path, as: .origins, "Other origins to which the server may send uploads; none by default.")
    }

    /// The origins that a person configured, for credentials.
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
            // The same server with encryption: at the same port, or each at its default port.
            case ("http", "https"):
                let there = Self.encrypted(home)
                if there.origin == target.origin { return Self.at(there, target) }
            // A server behind a proxy that encrypts does not know that it does. No request goes there unencrypted.
            case ("https", "http") where target.isAtOwnPort:
                var place = Self.at(home, target)
                place.isSchemeUpgraded = true
                return place
            default: break
            }
        }
        let host = target.normalHost
        guard target.isAtOwnPort, target.scheme == "https" || target.scheme == "http",
            domains.contains(where: { host == $0 || host.hasSuffix("." + $0) })
        else { return nil }
        return Place(url: Self.at(WebAddress("https://\(host)"), target).url, isSchemeUpgraded: target.scheme == "http")
    }

    private static func at(_ there: WebAddress, _ target: WebAddress) -> Place {
        var target = target
        (target.scheme, target.authority) = (there.scheme, there.authority)
        return Place(url: target.description)
    }

    /// The address of an unencrypted server at its encrypted port.
    private static func encrypted(_ home: WebAddress) -> WebAddress {
        var there = home
        there.scheme = "https"
        if home.isAtOwnPort { there.authority = home.host }
        return there
    }

    // MARK: Words

    /// Describes an address at another origin: its host, and the configuration line that allows it. Nothing else of it
    /// is shown, since an upload's address gives a right to the upload.
    func objection(to url: String) -> String {
        let target = WebAddress(url)
        let shown = target.isOfPlainHost ? target.shownOrigin : "an invalid address"
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
            words += " To send the bytes through a host of yours, set `\(key)` at this destination"
        }
        if target.scheme == "http" { words += ". That connection is not encrypted" }
        return words
    }

    /// The origin for the configuration, together with the existing ones.
    private func line(for target: WebAddress) -> String {
        let all = (named + [target]).map(\.shownOrigin).map { $0.contains("[") ? "\"\($0)\"" : $0 }
        return "\(Self.keyName): [\(all.joined(separator: ", "))]"
    }
}

extension AuthorizedClient {
    /// - Returns: `nil` where requests to this address may be made.
    func objection(to url: String) -> UploadError? { allowed.flatMap { objection(to: url, $0) } }

    /// The same for addresses with other allowed origins.
    func objection(to url: String, _ allowed: AllowedOrigins) -> UploadError? {
        if allowed.place(of: url) != nil { return nil }
        return UploadError(
            failure(
                .config, .otherOrigin, "the server names \(allowed.objection(to: url))", retryable: true),
            remedy: .misconfigured)
    }
}
