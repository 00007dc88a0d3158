internal import Transport

/// The address of an upload: `Location`, resolved (RFC 3986).
struct UploadLocation: Hashable, Sendable {
    /// Absolute, and otherwise exactly as the server wrote it; at an allowed origin, with the host as configured.
    let url: String
    /// A server behind a TLS proxy wrote `http` where `https` was meant.
    var isSchemeUpgraded = false
    /// Requests may be sent there.
    var isAllowed = false

    struct RefusedError: Error, Hashable { let reason: String }
}

extension UploadLocation {
    /// - Parameter base: The address that answered.
    init(_ location: String, base: String, allowed: AllowedOrigins) throws(RefusedError) {
        guard location.utf8.count <= 8192, location.utf8.allSatisfy({ (0x21..<0x7F).contains($0) || $0 >= 0x80 }) else {
            throw RefusedError(reason: "it is too long, or has spaces or control characters")
        }
        let target = WebAddress(base).resolving(location)
        guard target.scheme == "http" || target.scheme == "https", !target.host.isEmpty else {
            throw RefusedError(reason: "it is not an http or https address")
        }
        guard !target.hasUser else { throw RefusedError(reason: "it has a user name in it") }
        guard target.isOfPlainHost else { throw RefusedError(reason: "its host or its port is not valid") }
        guard let place = allowed.place(of: target.description) else {
            self.init(url: target.description)
            return
        }
        self.init(url: place.url, isSchemeUpgraded: place.isSchemeUpgraded, isAllowed: true)
    }
}
