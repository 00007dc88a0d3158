/// Whether `JSONDecoder` may be given these bytes: UTF-8 with at most 64 nested lists and objects, ten times the depth
/// that we write.
///
/// Foundation's decoder stops at the 513th level, and its search for the line and column of that mistake traps when the
/// mistake is the last byte (Swift 6.3). A zero byte is refused too: UTF-16 contains zero bytes and the decoder would
/// accept it, but its nesting is not counted here.
///
/// - Throws: `DecodingError`, as the decoder would.
package func checkJSON(_ bytes: some Sequence<UInt8>) throws(DecodingError) {
    var depth = 0
    var isText = false
    var isEscaped = false
    for byte in bytes {
        if byte == 0 { throw corrupted("a zero byte") }
        if isText {
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isText = false
            }
            continue
        }
        switch byte {
        case UInt8(ascii: "\""): isText = true
        case UInt8(ascii: "["), UInt8(ascii: "{"):
            depth += 1
            if depth > 64 { throw corrupted("more than 64 nested lists and objects") }
        case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
        default: break
        }
    }
}

private func corrupted(_ what: String) -> DecodingError {
    .dataCorrupted(DecodingError.Context(codingPath: [], debugDescription: "there is \(what) in it"))
}

/// The form between the quotation marks of a JSON text (RFC 8259, section 7); invalid UTF-8 becomes the replacement
/// character.
package func escapedInJSON(_ bytes: [UInt8]) -> [UInt8] {
    var out: [UInt8] = []
    for byte in String(decoding: bytes, as: UTF8.self).utf8 {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): out += [UInt8(ascii: "\\"), byte]
        case ..<0x20: out += Array("\\u00\(hexadecimal([byte]))".utf8)
        default: out.append(byte)
        }
    }
    return out
}
