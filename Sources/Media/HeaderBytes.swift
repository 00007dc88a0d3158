internal import Core

/// Numbers and words in a few bytes of a header. Outside its bytes it returns 0 or nothing, and never traps.
struct HeaderBytes {
    private let bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    var count: Int { bytes.count }

    func slice(_ at: Int, _ count: Int) -> ArraySlice<UInt8> {
        guard at >= 0, count >= 0 else { return [] }
        return bytes.dropFirst(at).prefix(count)
    }

    func byte(_ at: Int) -> UInt8 { slice(at, 1).first ?? 0 }

    /// The most significant byte first, up to 8 of them.
    func bigEndian(_ at: Int, _ count: Int) -> UInt64 { slice(at, count).reduce(0) { $0 << 8 | UInt64($1) } }

    /// The least significant byte first.
    func littleEndian(_ at: Int, _ count: Int) -> UInt64 {
        slice(at, count).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Four letters, the form in which formats name their parts.
    func word(_ at: Int) -> FourCC { FourCC(UInt32(truncatingIfNeeded: bigEndian(at, 4))) }
}
