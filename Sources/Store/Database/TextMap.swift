/// Texts by name as a JSON object, the form of every small map in the database.
///
/// Written and read here byte by byte: each upload has four of them, and the general encoder costs more than the
/// statement that uses it.
enum TextMap {
    /// Sorted, so that equal maps are equal texts.
    static func text(_ map: [String: String]) -> String {
        var bytes: [UInt8] = [UInt8(ascii: "{")]
        for (name, value) in map.sorted(by: { $0.key < $1.key }) {
            if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
            quote(name, into: &bytes)
            bytes.append(UInt8(ascii: ":"))
            quote(value, into: &bytes)
        }
        bytes.append(UInt8(ascii: "}"))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// RFC 8259, section 7: escapes the characters that must be escaped, and no others.
    private static func quote(_ text: String, into bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case 0..<0x20:
                let digits = Array("0123456789abcdef".utf8)
                bytes += Array("\\u00".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// - Returns: `nil` for a text that this program did not write.
    static func map(_ text: String) -> [String: String]? {
        plain(text) ?? StoredJSON.decode([String: String].self, json: text)
    }

    /// Reads a map without escapes and blanks, as nearly all are; `nil` for any other, which the decoder may
    /// understand.
    private static func plain(_ text: String) -> [String: String]? {
        var rest = text.utf8[...]
        func take(_ letter: Character) -> Bool {
            guard let first = rest.first, first == letter.asciiValue else { return false }
            rest.removeFirst()
            return true
        }
        func string() -> String? {
            guard take("\""), let end = rest.firstIndex(of: UInt8(ascii: "\"")) else { return nil }
            let inside = rest[..<end]
            guard !inside.contains(UInt8(ascii: "\\")) else { return nil }
            rest = rest[rest.index(after: end)...]
            return String(Substring(inside))
        }
        guard take("{") else { return nil }
        var map: [String: String] = [:]
        if take("}") { return rest.isEmpty ? map : nil }
        repeat {
            guard let name = string(), take(":"), let value = string() else { return nil }
            map[name] = value
        } while take(",")
        return take("}") && rest.isEmpty ? map : nil
    }
}
