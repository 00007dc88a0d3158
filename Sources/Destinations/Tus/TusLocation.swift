internal import Transport

/// Where an upload lives: `Location`, resolved (RFC 3986), and only where its bytes may go.
enum TusLocation {
    struct Refused: Error, Hashable { let reason: String }

    /// - Parameters:
    ///   - base: The address that answered.
    ///   - endpoint: The configured one.
    /// - Returns: The absolute address, exactly as the server wrote it; and whether a server behind a TLS proxy wrote
    ///   `http` where `https` was meant, which is mended for the same host.
    static func resolve(
        _ location: String, base: String, endpoint: String
    ) throws(Refused) -> (url: String, isMended: Bool) {
        guard location.utf8.count <= 8192, location.utf8.allSatisfy({ (0x21..<0x7F).contains($0) || $0 >= 0x80 }) else {
            throw Refused(reason: "it is too long or has blanks or control characters")
        }
        var target = WebAddress(base).resolving(location)
        let home = WebAddress(endpoint)
        guard target.scheme == "http" || target.scheme == "https", !target.host.isEmpty else {
            throw Refused(reason: "it is no http or https address")
        }
        guard !target.hasUser else { throw Refused(reason: "it has a user name in it") }
        guard home.scheme == "https", target.scheme == "http" else { return (target.description, false) }
        guard target.host == home.host, target.port == nil || target.port == "80" else {
            throw Refused(reason: "it leads from https to http on \(target.host)")
        }
        target.scheme = "https"
        target.authority = home.authority
        return (target.description, true)
    }
}
