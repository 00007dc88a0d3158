internal import Core
internal import Transport

/// Values of structured header fields (RFC 9651, which contains RFC 8941). Only integers and booleans are read; values
/// of all other types are recognised as such.
enum StructuredField {
    enum Value: Hashable, Sendable {
        case integer(Int64)
        case boolean(Bool)
        /// A decimal, string, token, byte sequence, date, display string or inner list.
        case other
    }

    /// The value of a header that is one item. Its parameters are ignored.
    ///
    /// - Returns: `nil` for a missing header, and for one that cannot be parsed, such as one that is given twice.
    static func item(_ name: String, in headers: Headers) -> Value? {
        guard var text = StructuredText(name, in: headers), let value = text.item() else { return nil }
        text.skip(StructuredText.isSpace)
        return text.isAtEnd ? value : nil
    }

    /// The members of a header that is a dictionary. Of two members with the same key, the last one counts.
    ///
    /// - Returns: `nil` for a missing header, and for one that cannot be parsed.
    static func dictionary(_ name: String, in headers: Headers) -> [String: Value]? {
        guard var text = StructuredText(name, in: headers) else { return nil }
        var members: [String: Value] = [:]
        while !text.isAtEnd {
            guard let key = text.key(), let value = text.member() else { return nil }
            members[key] = value
            text.skip(StructuredText.isBlank)
            if text.isAtEnd { return members }
            guard text.take(",") else { return nil }
            text.skip(StructuredText.isBlank)
            // A comma is followed by a member.
            if text.isAtEnd { return nil }
        }
        return members
    }
}

/// The rest of a structured field that is being parsed (RFC 9651, section 4.2).
private struct StructuredText {
    private var rest: ArraySlice<UInt8>

    /// - Returns: `nil` where there is no such header. Several lines of a field are one value, with commas between them.
    init?(_ name: String, in headers: Headers) {
        let lines = headers.lines.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        if lines.isEmpty { return nil }
        rest = Array(lines.joined(separator: ", ").utf8)[...]
        skip(Self.isSpace)
    }

    var isAtEnd: Bool { rest.isEmpty }

    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 }
    static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    mutating func skip(_ isSkipped: (UInt8) -> Bool) { rest = rest.drop(while: isSkipped) }

    mutating func take(_ mark: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: mark) else { return false }
        rest.removeFirst()
        return true
    }

    private mutating func takeAll(_ isMember: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let taken = rest.prefix(while: isMember)
        rest.removeFirst(taken.count)
        return taken
    }

    mutating func key() -> String? {
        guard let first = rest.first, Self.isLower(first) || first == UInt8(ascii: "*") else { return nil }
        let name = takeAll { Self.isLower($0) || $0.isDigit || "_-.*".utf8.contains($0) }
        return String(decoding: name, as: UTF8.self)
    }

    /// The value of a dictionary's member. A key alone is true.
    mutating func member() -> StructuredField.Value? {
        guard take("=") else { return parameters() ? .boolean(true) : nil }
        return rest.first == UInt8(ascii: "(") ? innerList() : item()
    }

    mutating func item() -> StructuredField.Value? {
        guard let value = bareItem(), parameters() else { return nil }
        return value
    }

    private mutating func innerList() -> StructuredField.Value? {
        guard take("(") else { return nil }
        while true {
            skip(Self.isSpace)
            if take(")") { return parameters() ? .other : nil }
            guard item() != nil, let next = rest.first, Self.isSpace(next) || next == UInt8(ascii: ")") else {
                return nil
            }
        }
    }

    /// - Returns: `false` where they cannot be parsed.
    private mutating func parameters() -> Bool {
        while take(";") {
            skip(Self.isSpace)
            guard key() != nil else { return false }
            if take("="), bareItem() == nil { return false }
        }
        return true
    }

    private mutating func bareItem() -> StructuredField.Value? {
        guard let first = rest.first else { return nil }
        switch first {
        case UInt8(ascii: "?"):
            rest.removeFirst()
            if take("1") { return .boolean(true) }
            return take("0") ? .boolean(false) : nil
        case UInt8(ascii: "\""): return string()
        case UInt8(ascii: ":"):
            rest.removeFirst()
            _ = takeAll { $0.isLetterOrDigit(or: "+/=") }
            return take(":") ? .other : nil
        case UInt8(ascii: "%"):
            rest.removeFirst()
            return string()
        case UInt8(ascii: "@"):
            rest.removeFirst()
            if case .integer? = number() { return .other }
            return nil
        case UInt8(ascii: "-"): return number()
        case let first where first.isDigit: return number()
        case let first where first == UInt8(ascii: "*") || first.isLetterOrDigit(or: ""):
            _ = takeAll { $0.isLetterOrDigit(or: ":/!#$%&'*+-.^_`|~") }
            return .other
        default: return nil
        }
    }

    /// At most 15 digits; a decimal at most 12 before its point and 3 after it.
    private mutating func number() -> StructuredField.Value? {
        let isNegative = take("-")
        let digits = takeAll(\.isDigit)
        guard (1...15).contains(digits.count), let value = Int64(String(decoding: digits, as: UTF8.self)) else {
            return nil
        }
        guard take(".") else { return .integer(isNegative ? -value : value) }
        let fraction = takeAll(\.isDigit)
        return digits.count <= 12 && (1...3).contains(fraction.count) ? .other : nil
    }

    private mutating func string() -> StructuredField.Value? {
        guard take("\"") else { return nil }
        while let next = rest.popFirst() {
            switch next {
            case UInt8(ascii: "\""): return .other
            case UInt8(ascii: "\\"):
                guard let escaped = rest.popFirst(), "\"\\".utf8.contains(escaped) else { return nil }
            case 0x20...0x7E: break
            default: return nil
            }
        }
        return nil
    }

    private static func isLower(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
}
