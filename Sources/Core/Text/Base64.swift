/// Base 64 with padding and without line breaks (RFC 4648, section 4).
package func base64(_ bytes: [UInt8]) -> String {
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    var out: [UInt8] = []
    out.reserveCapacity((bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
        let piece = bytes[start..<min(start + 3, bytes.count)]
        let word = piece.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32((3 - piece.count) * 8)
        for place in 0..<4 {
            let isPadding = place > piece.count
            out.append(isPadding ? UInt8(ascii: "=") : letters[Int(word >> UInt32(18 - 6 * place) & 63)])
        }
    }
    return String(decoding: out, as: UTF8.self)
}

/// The bytes, or `nil` for a text that is not base 64 with padding.
package func bytes(base64 text: String) -> [UInt8]? {
    var out: [UInt8] = []
    var word: UInt32 = 0
    var bits = 0
    guard text.utf8.count.isMultiple(of: 4) else { return nil }
    let body = text.utf8.prefix { $0 != UInt8(ascii: "=") }
    guard text.utf8.count - body.count <= 2, text.utf8.dropFirst(body.count).allSatisfy({ $0 == UInt8(ascii: "=") })
    else { return nil }
    for letter in body {
        let value: UInt8
        switch letter {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = letter - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): value = letter - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): value = letter - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): value = 62
        case UInt8(ascii: "/"): value = 63
        default: return nil
        }
        word = word << 6 | UInt32(value)
        bits += 6
        if bits >= 8 {
            bits -= 8
            out.append(UInt8(truncatingIfNeeded: word >> UInt32(bits)))
        }
    }
    return out
}
