/// How packets are marked for the queues of routers: the Differentiated Services code point (DSCP) of RFC 2474.
package struct TrafficClass: Hashable, Sendable {
    /// From 0 to 63.
    package let codePoint: UInt8

    /// Names of code points: `CS0` to `CS7` from RFC 2474 (4.2.2), `AF11` to `AF43` from RFC 2597 (6), `EF` from RFC 3246,
    /// `VA` from RFC 5865, `LE` from RFC 8622.
    private static let names: [(name: String, codePoint: UInt8)] =
        [("le", 1), ("ef", 46), ("va", 44)]
        + (0...7).map { ("cs\($0)", UInt8($0) << 3) }
        + (1...4).flatMap { level in (1...3).map { ("af\(level)\($0)", UInt8(level) << 3 | UInt8($0) << 1) } }

    /// All names, for messages.
    package static let allNames = names.map(\.name).sorted()

    /// - Parameter text: A name in any case, or the number.
    /// - Returns: `nil` for another text.
    package init?(_ text: String) {
        let name = text.lowercased()
        if let named = Self.names.first(where: { $0.name == name }) {
            codePoint = named.codePoint
        } else if let number = UInt8(text), number < 64, String(number) == text {
            codePoint = number
        } else {
            return nil
        }
    }

    /// In the form of a configuration.
    package var written: String {
        Self.names.first { $0.codePoint == codePoint }?.name ?? String(codePoint)
    }
}
