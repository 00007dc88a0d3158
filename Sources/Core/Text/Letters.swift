extension UInt8 {
    /// Whether it is a letter or a digit of ASCII, or one of `others`.
    package func isLetterOrDigit(or others: StaticString = "") -> Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), Self.digits: true
        default: others.withUTF8Buffer { $0.contains(self) }
        }
    }

    /// Whether it is a digit of ASCII.
    package var isDigit: Bool { Self.digits.contains(self) }

    private static let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
}
