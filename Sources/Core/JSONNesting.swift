/// Whether `JSONDecoder` may be given these bytes: UTF-8 with at most 64 lists and objects in each other, which is ten
/// times what we write.
///
/// Foundation's decoder stops at the 513th, and its search for the line and column of that mistake traps when the mistake
/// is the last byte (Swift 6.3). Also refused is a zero byte: UTF-16 has some, which the decoder would take, and which this
/// does not count.
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
            if depth > 64 { throw corrupted("more than 64 lists and objects in each other") }
        case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
        default: break
        }
    }
}

private func corrupted(_ what: String) -> DecodingError {
    .dataCorrupted(DecodingError.Context(codingPath: [], debugDescription: "there is \(what) in it"))
}
