package import Core

/// An address, split as in RFC 3986, appendix B. The parts stay as written: nothing is normalised or decoded.
package struct WebAddress: Hashable, Sendable, CustomStringConvertible {
    package var scheme: String?
    package var authority: String?
    package var path: String
    package var query: String?

    /// A fragment is dropped: it is never sent.
    package init(_ text: String) {
        var rest = Substring(text)
        if let cut = rest.firstIndex(ofByte: "#") { rest = rest[..<cut] }
        if let cut = rest.firstIndex(ofByte: "?") {
            query = String(rest.dropping(through: cut))
            rest = rest[..<cut]
        }
        if let colon = rest.firstIndex(ofByte: ":"), colon < (rest.firstIndex(ofByte: "/") ?? rest.endIndex),
            rest.first?.isLetter == true
        {
            scheme = rest[..<colon].lowercased()
            rest = rest.dropping(through: colon)
        }
        if rest.utf8.starts(with: "//".utf8) {
            rest = Substring(rest.utf8.dropFirst(2))
            let end = rest.firstIndex(ofByte: "/") ?? rest.endIndex
            authority = String(rest[..<end])
            rest = rest[end...]
        }
        path = String(rest)
    }

    package var description: String {
        (scheme.map { $0 + ":" } ?? "") + (authority.map { "//" + $0 } ?? "") + path + (query.map { "?" + $0 } ?? "")
    }

    /// Resolves `reference` against this address (RFC 3986, section 5.2.2).
    package func resolving(_ reference: String) -> WebAddress {
        var target = WebAddress(reference)
        // An absolute address keeps its exact path: a signature may cover it.
        if target.scheme != nil { return target }
        target.scheme = scheme
        if target.authority != nil { return target }
        target.authority = authority
        if target.path.isEmpty {
            target.path = path
            if target.query == nil { target.query = query }
        } else if target.path.utf8.first != UInt8(ascii: "/") {
            let base =
                path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[..<path.utf8.index(after: $0)]) } ?? "/"
            target.path = Self.withoutDots(base + target.path)
        } else {
            target.path = Self.withoutDots(target.path)
        }
        return target
    }

    /// Section 5.2.4: `.` and `..` are resolved, everything else stays.
    private static func withoutDots(_ path: String) -> String {
        var kept: [Substring] = []
        let parts = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .dropFirst().map { Substring($0) }
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

    /// The authority without the user.
    private var named: Substring {
        let whole = Substring(authority ?? "")
        return whole.utf8.lastIndex(of: UInt8(ascii: "@")).map { whole.dropping(through: $0) } ?? whole
    }

    /// The place of the port's colon, or the end.
    private var hostEnd: Substring.Index {
        let named = named
        let bracket = named.utf8.first == UInt8(ascii: "[") ? named.firstIndex(ofByte: "]") : nil
        return (bracket.map { named[$0...] } ?? named).firstIndex(ofByte: ":") ?? named.endIndex
    }

    /// Lower-case, without user and port; an IPv6 address with its brackets.
    package var host: String { named[..<hostEnd].lowercased() }

    /// As written; `nil` when there is none.
    package var port: String? {
        let rest = named[hostEnd...].utf8.dropFirst()
        return rest.isEmpty ? nil : String(Substring(rest))
    }

    /// The first machine that a request to this address is sent to, the server or a proxy of the environment; `nil`
    /// where it names none.
    package var site: DestinationSite? { ConnectionSettings().site(of: self) }

    /// The server's host, an IPv6 address without brackets, and its port; `nil` where it names none.
    package var endpoint: (host: String, port: UInt16)? {
        let host = host.filter { $0 != "[" && $0 != "]" }
        guard !host.isEmpty, let port = UInt16(port ?? (scheme == "https" ? "443" : "80")) else { return nil }
        return (host, port)
    }

    /// Whether requests to it stay on this machine.
    package var isLoopback: Bool {
        Proxies.isHere(host.filter { $0 != "[" && $0 != "]" })
    }

    package var hasUser: Bool { authority?.utf8.contains(UInt8(ascii: "@")) == true }

    /// Scheme, host and port: the origin that may see the credentials (RFC 6454). Different spellings of a host give
    /// the same origin.
    package var origin: String { "\(scheme ?? "")://\(normalHost):\(normalPort)" }

    /// The same for people: without the scheme's default port.
    package var shownOrigin: String {
        "\(scheme ?? "")://\(normalHost)" + (isAtOwnPort ? "" : ":\(normalPort)")
    }

    /// ``host`` without the dot after the last label; an IPv6 address in the form of RFC 5952.
    package var normalHost: String {
        let host = host
        if host.hasPrefix("["), host.hasSuffix("]"), let address = IPAddress(String(host.dropFirst().dropLast())),
            address.isIPv6
        {
            return "[\(address)]"
        }
        return comparableHostName(host)
    }

    private var normalPort: String {
        let written = port ?? (scheme == "https" ? "443" : "80")
        return UInt16(written).map { "\($0)" } ?? written
    }

    /// Whether the port is that of the scheme, written or not.
    package var isAtOwnPort: Bool { normalPort == (scheme == "https" ? "443" : "80") }

    /// Whether its host and port contain only characters that every reader understands in the same way.
    package var isOfPlainHost: Bool {
        guard named.utf8.allSatisfy({ $0.isLetterOrDigit(or: ".-_:[]") }) else { return false }
        let host = host
        if host.hasPrefix("["), host.hasSuffix("]") {
            let inner = String(host.dropFirst().dropLast())
            guard inner.contains(":"), IPAddress(inner) != nil else { return false }
        } else {
            guard (1...255).contains(host.utf8.count), host.utf8.first != UInt8(ascii: "."),
                host.utf8.allSatisfy({ $0.isLetterOrDigit(or: ".-_") })
            else { return false }
        }
        return port.map { UInt16($0).map { $0 > 0 } ?? false } ?? true
    }
}

// By bytes, as libcurl and servers read an address. By `Character` a combining accent after a `/` or an `@` would hide
// it.
extension Substring {
    fileprivate func firstIndex(ofByte mark: Unicode.Scalar) -> Index? { utf8.firstIndex(of: UInt8(ascii: mark)) }
    fileprivate func dropping(through index: Index) -> Substring { self[utf8.index(after: index)...] }
}
