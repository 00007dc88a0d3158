/// The name of an upload: 26 characters of Crockford's base 32, sorting by creation time (a ULID).
///
/// 48 bits of milliseconds since 1970 and 80 bits of chance (https://github.com/ulid/spec).
package struct UploadID: Hashable, Sendable, Comparable, CustomStringConvertible {
    package let text: String

    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

    /// - Parameters:
    ///   - time: Only the order matters; a caller whose clock stepped back passes the last one's time again.
    ///   - chance: Random bits; the low 80 are used.
    package init(time: WallTime, chance: UInt128) {
        self.init(value: UInt128(UInt64(clamping: time.milliseconds) & 0xFFFF_FFFF_FFFF) << 80 | chance & (1 << 80 - 1))
    }

    private init(value: UInt128) {
        var value = value
        var letters = [UInt8](repeating: 0, count: 26)
        for index in letters.indices.reversed() {
            letters[index] = Self.alphabet[Int(value & 31)]
            value >>= 5
        }
        text = String(decoding: letters, as: UTF8.self)
    }

    /// Reads an id in upper or lower case. `nil` when it is not one.
    package init?(_ written: String) {
        let upper = written.uppercased()
        // 26 characters have two bits too many.
        guard upper.utf8.count == 26, upper.utf8.allSatisfy(Self.alphabet.contains), upper < "8" else { return nil }
        text = upper
    }

    /// The next id in the same millisecond: order is kept even when the clock stands still. After some thousand of them
    /// the part with the time advances.
    ///
    /// The first 12 characters differ already: these are shown where there is no space for all.
    ///
    /// - Parameter chance: The low 70 bits are used.
    package func next(chance: UInt128) -> UploadID {
        let value = text.utf8.reduce(UInt128(0)) { $0 << 5 | UInt128(Self.alphabet.firstIndex(of: $1) ?? 0) }
        // The last ids of the year 10889 get the same id after them.
        return UploadID(value: value + min(1 << 70 + chance & (1 << 70 - 1), .max - value))
    }

    /// The part that carries the time, in milliseconds since 1970.
    package var milliseconds: Int64 {
        text.utf8.prefix(10).reduce(0) { $0 << 5 | Int64(Self.alphabet.firstIndex(of: $1) ?? 0) }
    }

    package var description: String { text }
    package static func < (a: UploadID, b: UploadID) -> Bool { a.text < b.text }
}
