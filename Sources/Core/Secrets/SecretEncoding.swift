/// An encoding in which a server may repeat a secret.
package enum SecretEncoding: CaseIterable {
    case plain
    /// RFC 8259, section 7.
    case json
    /// Character references of HTML; of the named ones only those that a text needs.
    case html
    /// RFC 3986, section 2.1.
    case percent
    /// The variant for forms (`application/x-www-form-urlencoded`): a plus is a blank.
    case form

    /// Returns `text` with every occurrence of one of `secrets` replaced by `***`, in any of the encodings.
    ///
    /// - Parameter cut: Secrets of which long parts are replaced too.
    package static func cover(_ secrets: [String], cut: [String] = [], in text: [UInt8]) -> [UInt8] {
        let parts = cut.compactMap { CutSecret($0) }
        // All are searched for before any is covered: the end of one may be part of another in another encoding.
        return masked(text, allCases.flatMap { $0.places(of: secrets, parts, in: text) })
    }

    /// Returns `text` with `***` in place of these ranges, which may overlap.
    package static func masked(_ text: [UInt8], _ ranges: [Range<Int>]) -> [UInt8] {
        var out: [UInt8] = []
        var end = 0
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if range.lowerBound >= end { out += text[end..<range.lowerBound] + Array("***".utf8) }
            end = max(end, range.upperBound)
        }
        return out + text[end...]
    }

    private func places(of secrets: [String], _ parts: [CutSecret], in text: [UInt8]) -> [Range<Int>] {
        var meant: [UInt8] = []
        // Where in the text each of its bytes begins.
        var starts: [Int] = []
        var index = 0
        while index < text.count {
            let unit = self == .plain ? nil : unit(text[index...])
            for byte in unit?.bytes ?? [text[index]] {
                meant.append(byte)
                starts.append(index)
            }
            index += unit?.length ?? 1
        }
        starts.append(text.count)
        if self != .plain, meant == text { return [] }
        let found = secrets.flatMap { meant.ranges(of: Array($0.utf8)) } + parts.flatMap { $0.places(in: meant) }
        return found.map { starts[$0.lowerBound]..<starts[$0.upperBound] }
    }

    /// The bytes that are coded at the beginning of `rest`, and the length of the code; `nil` for a byte that
    /// represents itself.
    package func unit(_ rest: ArraySlice<UInt8>) -> (bytes: [UInt8], length: Int)? {
        switch (self, rest.first) {
        case (.json, UInt8(ascii: "\\")): Self.escaped(rest.dropFirst())
        case (.html, UInt8(ascii: "&")): Self.reference(rest.dropFirst())
        case (.percent, UInt8(ascii: "%")), (.form, UInt8(ascii: "%")):
            Self.number(rest.dropFirst().prefix(2), digits: 2).map { ([UInt8(truncatingIfNeeded: $0)], 3) }
        case (.form, UInt8(ascii: "+")): ([UInt8(ascii: " ")], 1)
        default: nil
        }
    }

    private static func escaped(_ rest: ArraySlice<UInt8>) -> (bytes: [UInt8], length: Int)? {
        guard let letter = rest.first else { return nil }
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return ([letter], 2)
        case UInt8(ascii: "t"): return ([0x09], 2)
        case UInt8(ascii: "u"):
            guard let unit = number(rest.dropFirst().prefix(4), digits: 4) else { return nil }
            let next = rest.dropFirst(5)
            // A character beyond the first 65 536 is a pair of two escapes.
            if (0xD800..<0xDC00).contains(unit), next.starts(with: "\\u".utf8),
                let low = number(next.dropFirst(2).prefix(4), digits: 4)
            {
                return (utf8(0x10000 + (unit - 0xD800) << 10 + (low & 0x3FF)), 12)
            }
            return (utf8(unit), 6)
        default: return nil
        }
    }

    private static func reference(_ rest: ArraySlice<UInt8>) -> (bytes: [UInt8], length: Int)? {
        guard let end = rest.prefix(12).firstIndex(of: UInt8(ascii: ";")) else { return nil }
        let name = rest[..<end]
        let length = name.count + 2
        switch String(decoding: name, as: UTF8.self).lowercased() {
        case "quot": return ([UInt8(ascii: "\"")], length)
        case "amp": return ([UInt8(ascii: "&")], length)
        case "lt": return ([UInt8(ascii: "<")], length)
        case "gt": return ([UInt8(ascii: ">")], length)
        case "apos": return ([UInt8(ascii: "'")], length)
        case let text where text.hasPrefix("#x"): return UInt32(text.dropFirst(2), radix: 16).map { (utf8($0), length) }
        case let text where text.hasPrefix("#"): return UInt32(text.dropFirst()).map { (utf8($0), length) }
        default: return nil
        }
    }

    private static func number(_ text: ArraySlice<UInt8>, digits: Int) -> UInt32? {
        text.count == digits ? UInt32(String(decoding: text, as: UTF8.self), radix: 16) : nil
    }

    private static func utf8(_ value: UInt32) -> [UInt8] {
        Array(String(Unicode.Scalar(value) ?? "\u{FFFD}").utf8)
    }
}
