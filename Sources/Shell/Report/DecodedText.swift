internal import Core

/// The bytes that a text stands for: percent-coding, escapes of JSON and `\xHH` are undone, as often as they were applied.
/// Each byte knows its place in the text.
struct DecodedText {
    private(set) var bytes: [UInt8]
    /// The bytes of the text as they are written, for each decoded byte.
    private(set) var places: [Range<Int>]

    init(_ text: some StringProtocol, isDecoded: Bool = true) {
        bytes = Array(text.utf8)
        places = bytes.indices.map { $0..<$0 + 1 }
        guard isDecoded else { return }
        // An address in a JSON text is coded twice. Each pass makes the text shorter.
        while decode() {}
    }

    /// Undoes one layer.
    ///
    /// - Returns: Whether there was one.
    private mutating func decode() -> Bool {
        guard bytes.contains(where: { $0 == UInt8(ascii: "%") || $0 == UInt8(ascii: "\\") }) else { return false }
        var (decoded, origins): ([UInt8], [Range<Int>]) = ([], [])
        decoded.reserveCapacity(bytes.count)
        origins.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            guard let escape = escape(at: index) else {
                decoded.append(bytes[index])
                origins.append(places[index])
                index += 1
                continue
            }
            let place = places[index].lowerBound..<places[index + escape.length - 1].upperBound
            decoded += escape.bytes
            origins += escape.bytes.map { _ in place }
            index += escape.length
        }
        defer { (bytes, places) = (decoded, origins) }
        return decoded.count < bytes.count
    }

    /// The escape that begins at an index, if one does. `\n` and the like are none: names have no such characters in a
    /// text for people, and a path of another system may have `\new`.
    private func escape(at index: Int) -> (bytes: [UInt8], length: Int)? {
        switch bytes[index] {
        case UInt8(ascii: "%"): return number(at: index + 1, digits: 2).map { ([UInt8($0)], 3) }
        case UInt8(ascii: "\\"):
            guard index + 1 < bytes.count else { return nil }
            switch bytes[index + 1] {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return ([bytes[index + 1]], 2)
            case UInt8(ascii: "x"): return number(at: index + 2, digits: 2).map { ([UInt8($0)], 4) }
            case UInt8(ascii: "u"): return scalar(at: index)
            default: return nil
            }
        default: return nil
        }
    }

    /// `\uHHHH`, or two of them for a character beyond 16 bits (RFC 8259, section 7).
    private func scalar(at index: Int) -> (bytes: [UInt8], length: Int)? {
        guard let first = number(at: index + 2, digits: 4) else { return nil }
        if let scalar = Unicode.Scalar(first) { return (Array(String(Character(scalar)).utf8), 6) }
        guard bytes[(index + 6)...].starts(with: "\\u".utf8), let second = number(at: index + 8, digits: 4),
            (0xD800...0xDBFF).contains(first), (0xDC00...0xDFFF).contains(second),
            let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        else { return nil }
        return (Array(String(Character(scalar)).utf8), 12)
    }

    private func number(at index: Int, digits: Int) -> UInt32? {
        guard index + digits <= bytes.count else { return nil }
        var number: UInt32 = 0
        for byte in bytes[index..<index + digits] {
            guard let digit = byte.hexadecimalValue else { return nil }
            number = number << 4 | UInt32(digit)
        }
        return number
    }

    // MARK: Characters

    /// Whether a word goes on from the byte before an index to that at the index.
    func isInsideWord(_ index: Int) -> Bool {
        guard index > 0, index < bytes.count else { return false }
        // `\nfilm.mp4` in a text of JSON: the letter belongs to the escape.
        if index > 1, bytes[index - 2] == UInt8(ascii: "\\"), "nrtbf".utf8.contains(bytes[index - 1]) { return false }
        return Self.isOfWord(scalar(endingAt: index)) && Self.isOfWord(scalar(beginningAt: index))
    }

    /// A letter or digit of a script that puts spaces between words.
    private static func isOfWord(_ scalar: Unicode.Scalar?) -> Bool {
        guard let scalar, scalar.value < 0x2E80 else { return false }
        return scalar.properties.isAlphabetic || scalar.properties.numericType != nil
    }

    private func scalar(beginningAt index: Int) -> Unicode.Scalar? {
        String(decoding: bytes[index..<min(bytes.count, index + 4)], as: UTF8.self).unicodeScalars.first
    }

    private func scalar(endingAt index: Int) -> Unicode.Scalar? {
        var start = index - 1
        while start > 0, index - start < 4, bytes[start] & 0xC0 == 0x80 { start -= 1 }
        return String(decoding: bytes[start..<index], as: UTF8.self).unicodeScalars.last
    }
}
