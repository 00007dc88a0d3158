/// Percent-coding of RFC 3986, section 2.1. Strict: malformed input gives `nil` and not a guess.
package enum PercentCoding {
    private static let percent = UInt8(ascii: "%")

    /// The bytes that `text` represents; `nil` when a `%` is not followed by two hexadecimal digits.
    package static func bytes(decoding text: some StringProtocol) -> [UInt8]? {
        var out: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == percent else {
                out.append(byte)
                continue
            }
            guard let high = rest.popFirst()?.hexadecimalValue, let low = rest.popFirst()?.hexadecimalValue else {
                return nil
            }
            out.append(high << 4 | low)
        }
        return out
    }

    /// Like ``bytes(decoding:)``, and also `nil` when the bytes are not UTF-8 or contain a NUL.
    package static func text(decoding text: some StringProtocol) -> String? {
        guard let bytes = bytes(decoding: text), !bytes.contains(0) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Codes everything except the unreserved characters of RFC 3986, section 2.3, and `keeping`, as `%HH`.
    package static func encode(_ bytes: some Sequence<UInt8>, keeping: String = "") -> String {
        encode(bytes) { $0.isLetterOrDigit(or: "-._~") || keeping.utf8.contains($0) }
    }

    /// Codes everything as `%HH` except the bytes for which `isPlain` returns true; these must be ASCII without `%`.
    package static func encode(_ bytes: some Sequence<UInt8>, but isPlain: (UInt8) -> Bool) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var out: [UInt8] = []
        for byte in bytes {
            if isPlain(byte) {
                out.append(byte)
            } else {
                out += [percent, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// The pairs of a query string. `nil` when a name or value is not validly coded.
    package static func query(decoding text: some StringProtocol) -> [String: String]? {
        var pairs: [String: String] = [:]
        for pair in text.split(separator: "&") {
            let cut = pair.firstIndex(of: "=") ?? pair.endIndex
            guard let name = Self.text(decoding: pair[..<cut]),
                let value = Self.text(decoding: pair[cut...].dropFirst())
            else { return nil }
            pairs[name] = pairs[name] ?? value
        }
        return pairs
    }
}
