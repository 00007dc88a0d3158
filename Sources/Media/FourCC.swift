internal import Core

/// The four letters that name a box or a chunk.
struct FourCC: Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    let value: UInt32

    init(_ value: UInt32) { self.value = value }

    /// - Parameter value: Four characters below U+0100; `©` is one byte in these formats.
    init(stringLiteral value: StaticString) {
        self.value = value.description.unicodeScalars.reduce(0) {
            $0 << 8 | UInt32(UInt8(truncatingIfNeeded: $1.value))
        }
    }

    private var letters: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }

    /// Whether it consists of printable ASCII characters or `©`.
    var isPlain: Bool { letters.allSatisfy { (0x20..<0x7F).contains($0) || $0 == 0xA9 } }

    var description: String { FilePath(bytes: letters).display }
}
