extension UInt8 {
    /// Whether it is a letter or a digit of ASCII, or one of `others`.
    package func isLetterOrDigit(or others: StaticString = "") -> Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), Self.digits: true
        default: others.withUTF8Buffer { $0.contains(self) }
        }
    }

    /// The value of a hexadecimal digit in either case; `nil` for any other character.
    package var hexadecimalValue: UInt8? {
        switch self {
        case Self.digits: self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// The byte in lower case, where it is a letter of ASCII.
    package var lowered: UInt8 { self >= 0x41 && self <= 0x5A ? self | 0x20 : self }

    /// Whether it is a digit of ASCII.
    package var isDigit: Bool { Self.digits.contains(self) }

    private static let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
}

extension String {
    /// The text with its letters of ASCII in lower case: names of files and interfaces differ in other letters.
    package var loweredInASCII: String { String(decoding: utf8.lazy.map(\.lowered), as: UTF8.self) }
}

extension StringProtocol {
    /// The text without white space and line ends at both ends.
    package var trimmed: SubSequence {
        let start = drop(while: \.isWhitespace)
        guard let last = start.lastIndex(where: { !$0.isWhitespace }) else { return start[start.endIndex...] }
        return start[...last]
    }
}
