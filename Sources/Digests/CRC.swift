/// A cyclic redundancy check of the reflected kind, with all ones as initial and final value. It is updated with the
/// bytes that it is given, and the values of two adjacent ranges can be combined.
package struct CRC: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// IEEE 802.3, used by zip and PNG.
        case crc32
        /// Castagnoli (RFC 3720, appendix B.4).
        case crc32c
        /// ECMA-182, used by xz files.
        case crc64xz
        /// NVM Express, NVM Command Set Specification 1.0, section 5.2.1.3.4.
        case crc64nvme

        /// Size of the value in bytes.
        package var length: Int {
            switch self {
            case .crc32, .crc32c: 4
            case .crc64xz, .crc64nvme: 8
            }
        }

        /// With the lowest power at the highest bit.
        fileprivate var polynomial: UInt64 {
            switch self {
            case .crc32: 0xEDB8_8320
            case .crc32c: 0x82F6_3B78
            case .crc64xz: 0xC96C_5795_D787_0F42
            case .crc64nvme: 0x9A6C_9329_AC4B_C9B5
            }
        }

        fileprivate var ones: UInt64 { length == 8 ? .max : 0xFFFF_FFFF }
        /// The polynomial 1.
        fileprivate var one: UInt64 { 1 << UInt64(length * 8 - 1) }

        fileprivate var tables: [UInt64] {
            switch self {
            case .crc32: Tables.crc32
            case .crc32c: Tables.crc32c
            case .crc64xz: Tables.crc64xz
            case .crc64nvme: Tables.crc64nvme
            }
        }

        fileprivate func times(_ a: UInt64, _ b: UInt64) -> UInt64 {
            var (product, shifted, bit) = (UInt64(0), b, one)
            while bit != 0 {
                if a & bit != 0 { product ^= shifted }
                shifted = shifted & 1 == 1 ? (shifted >> 1) ^ polynomial : shifted >> 1
                bit >>= 1
            }
            return product
        }

        /// x to the power of eight times `count`, modulo the polynomial: the effect of `count` zero bytes.
        fileprivate func power(_ count: Int64) -> UInt64 {
            var (result, square, left) = (one, one >> 8, count)
            while left > 0 {
                if left & 1 == 1 { result = times(result, square) }
                square = times(square, square)
                left >>= 1
            }
            return result
        }
    }

    package let kind: Kind
    private var state: UInt64

    package init(_ kind: Kind) {
        self.kind = kind
        state = kind.ones
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        var crc = state
        kind.tables.withUnsafeBufferPointer { tables in
            var at = 0
            // Eight bytes at once: each of them in the table for its place.
            while at + 8 <= bytes.count {
                var word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)) ^ crc
                crc = 0
                for table in stride(from: 7, through: 0, by: -1) {
                    crc ^= tables[table * 256 + Int(word & 0xFF)]
                    word >>= 8
                }
                at += 8
            }
            for byte in bytes[at...] { crc = (crc >> 8) ^ tables[Int((crc ^ UInt64(byte)) & 0xFF)] }
        }
        state = crc
    }

    /// The value of all bytes so far.
    package var value: UInt64 { state ^ kind.ones }

    /// ``value``, highest byte first.
    package var bytes: [UInt8] { Self.bytes(value, kind) }

    package static func bytes(_ value: UInt64, _ kind: Kind) -> [UInt8] {
        (0..<kind.length).reversed().map { UInt8(truncatingIfNeeded: value >> UInt64($0 * 8)) }
    }

    /// The value of two adjacent ranges, from the values of both.
    ///
    /// - Parameters:
    ///   - first: The value of the first range.
    ///   - second: The value of the second range.
    ///   - length: Number of bytes in the second range.
    package static func combined(_ first: UInt64, _ second: UInt64, length: Int64, _ kind: Kind) -> UInt64 {
        kind.times(kind.power(length), first) ^ second
    }

    /// Eight tables of 256 each: the first is for a byte, and each other one for a byte followed by one more zero byte.
    private enum Tables {
        static let crc32 = make(.crc32)
        static let crc32c = make(.crc32c)
        static let crc64xz = make(.crc64xz)
        static let crc64nvme = make(.crc64nvme)

        private static func make(_ kind: Kind) -> [UInt64] {
            var tables = (0..<256).map { start -> UInt64 in
                var crc = UInt64(start)
                for _ in 0..<8 { crc = crc & 1 == 1 ? (crc >> 1) ^ kind.polynomial : crc >> 1 }
                return crc
            }
            for index in 256..<2048 {
                let before = tables[index - 256]
                tables.append((before >> 8) ^ tables[Int(before & 0xFF)])
            }
            return tables
        }
    }
}
