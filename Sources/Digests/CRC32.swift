/// The checksum of IEEE 802.3, as zip and PNG have it: reflected, begun and ended with all ones.
package struct CRC32: Sendable {
    private var state: UInt32 = .max

    package init() {}

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        var crc = state
        Self.tables.withUnsafeBufferPointer { tables in
            var at = 0
            // Eight bytes at once: each of them in the table for its place.
            while at + 8 <= bytes.count {
                var word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self))
                word ^= UInt64(crc)
                crc = 0
                for table in stride(from: 7, through: 0, by: -1) {
                    crc ^= tables[table * 256 + Int(word & 0xFF)]
                    word >>= 8
                }
                at += 8
            }
            for byte in bytes[at...] { crc = (crc >> 8) ^ tables[Int((crc ^ UInt32(byte)) & 0xFF)] }
        }
        state = crc
    }

    package var value: UInt32 { ~state }

    /// Eight tables of 256: the first is that of a byte, each other one that of a byte with one more zero byte behind it.
    private static let tables: [UInt32] = {
        var tables = (0..<256).map { start -> UInt32 in
            var crc = UInt32(start)
            for _ in 0..<8 { crc = crc & 1 == 1 ? (crc >> 1) ^ 0xEDB8_8320 : crc >> 1 }
            return crc
        }
        for index in 256..<2048 {
            let before = tables[index - 256]
            tables.append((before >> 8) ^ tables[Int(before & 0xFF)])
        }
        return tables
    }()
}
