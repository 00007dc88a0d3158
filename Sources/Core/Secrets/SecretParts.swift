/// The parts of a header's value that are secrets like the whole of it: a server may repeat one of them alone.
package enum SecretParts {
    /// Marks between pairs of a name and a value: those of cookies, of parameters, and of a query.
    private static let marks: Set<UInt8> = Set("; ,&\t".utf8)

    /// The value itself and its parts, of any length, each once: what follows the scheme of an authorisation, the values
    /// of its pairs (`name=value`), and user and password of the scheme `Basic`.
    ///
    /// - Parameter isCookie: The value of the header `Cookie`, whose pairs may have no name.
    package static func of(_ value: String, isCookie: Bool = false) -> [String] {
        var parts = [value]
        // By bytes: a combining accent after a mark would make another `Character` of it.
        let bytes = value.utf8
        if let blank = bytes.firstIndex(of: UInt8(ascii: " ")) {
            let rest = text(bytes[blank...].drop { $0 == UInt8(ascii: " ") })
            parts.append(rest)
            if text(bytes[..<blank]).lowercased() == "basic" { parts += userAndPassword(rest) }
        }
        for pair in bytes.split(whereSeparator: marks.contains) {
            guard let cut = pair.firstIndex(of: UInt8(ascii: "=")) else { continue }
            let quoted = text(pair[pair.index(after: cut)...])
            let plain = quoted.filter { $0 != "\"" }
            parts += [quoted, plain]
            // As the server may have read it.
            if let decoded = PercentCoding.text(decoding: plain) { parts.append(decoded) }
        }
        if isCookie {
            for cookie in bytes.split(separator: UInt8(ascii: ";")) where !cookie.contains(UInt8(ascii: "=")) {
                parts.append(text(cookie.drop { $0 == UInt8(ascii: " ") }))
            }
        }
        var known: Set<String> = []
        return parts.filter { known.insert($0).inserted }
    }

    /// RFC 7617, section 2.
    private static func userAndPassword(_ coded: String) -> [String] {
        guard let bytes = Core.bytes(base64: coded) else { return [] }
        let decoded = String(decoding: bytes, as: UTF8.self)
        guard let colon = decoded.utf8.firstIndex(of: UInt8(ascii: ":")) else { return [decoded] }
        return [decoded, text(decoded.utf8[..<colon]), text(decoded.utf8[colon...].dropFirst())]
    }

    private static func text(_ bytes: Substring.UTF8View) -> String { String(Substring(bytes)) }
}
