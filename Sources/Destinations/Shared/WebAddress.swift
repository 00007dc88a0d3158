/// An address as RFC 3986, appendix B, cuts it. The parts stay as they are written: nothing is normalised or decoded.
struct WebAddress: Hashable, Sendable, CustomStringConvertible {
    var scheme: String?
    var authority: String?
    var path: String
    var query: String?

    /// A fragment is left out: it is never sent.
    init(_ text: String) {
        var rest = Substring(text)
        if let cut = rest.firstIndex(of: "#") { rest = rest[..<cut] }
        if let cut = rest.firstIndex(of: "?") {
            query = String(rest[rest.index(after: cut)...])
            rest = rest[..<cut]
        }
        if let colon = rest.firstIndex(of: ":"), colon < (rest.firstIndex(of: "/") ?? rest.endIndex),
            rest.first?.isLetter == true
        {
            scheme = rest[..<colon].lowercased()
            rest = rest[rest.index(after: colon)...]
        }
        if rest.hasPrefix("//") {
            rest = rest.dropFirst(2)
            let end = rest.firstIndex(of: "/") ?? rest.endIndex
            authority = String(rest[..<end])
            rest = rest[end...]
        }
        path = String(rest)
    }

    var description: String {
        (scheme.map { $0 + ":" } ?? "") + (authority.map { "//" + $0 } ?? "") + path + (query.map { "?" + $0 } ?? "")
    }

    /// What `reference` means, seen from this address (RFC 3986, section 5.2.2).
    func resolving(_ reference: String) -> WebAddress {
        var target = WebAddress(reference)
        // An absolute one keeps its exact path: a signature may cover it.
        if target.scheme != nil { return target }
        target.scheme = scheme
        if target.authority != nil { return target }
        target.authority = authority
        if target.path.isEmpty {
            target.path = path
            if target.query == nil { target.query = query }
        } else if !target.path.hasPrefix("/") {
            let base = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "/"
            target.path = Self.withoutDots(base + target.path)
        } else {
            target.path = Self.withoutDots(target.path)
        }
        return target
    }

    /// Section 5.2.4: `.` and `..` are taken as steps, everything else stays.
    private static func withoutDots(_ path: String) -> String {
        guard path.contains("/.") else { return path }
        var kept: [Substring] = []
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        for (index, part) in zip(parts.indices, parts) {
            let isLast = index == parts.indices.last
            switch part {
            case ".": if isLast { kept.append("") }
            case "..":
                if !kept.isEmpty { kept.removeLast() }
                if isLast { kept.append("") }
            default: kept.append(part)
            }
        }
        return "/" + kept.joined(separator: "/")
    }

    /// Lower-case, without user and port; an IPv6 address with its brackets.
    var host: String {
        let named = (authority ?? "").split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        if named.hasPrefix("["), let end = named.firstIndex(of: "]") { return named[...end].lowercased() }
        return (named.firstIndex(of: ":").map { named[..<$0] } ?? named).lowercased()
    }

    /// As written; `nil` when there is none.
    var port: String? {
        let named = (authority ?? "").split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        let rest = named.hasPrefix("[") ? named.drop { $0 != "]" }.dropFirst() : named.drop { $0 != ":" }
        return rest.isEmpty || rest == ":" ? nil : String(rest.dropFirst())
    }

    var hasUser: Bool { authority?.contains("@") == true }

    /// Scheme, host and port: who may see the credentials (RFC 6454).
    var origin: String { "\(scheme ?? "")://\(host):\(port ?? (scheme == "https" ? "443" : "80"))" }
}
