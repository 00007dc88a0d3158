internal import Core
package import Linux

/// A file's bytes, read a few at a time and never many: all that the readers of this room see of a file.
///
/// A file that would take long to look through, by accident or by intent, ends in ``Stop/enough`` and not in a wait.
package final class Pieces {
    /// Why a look at a file ended early.
    package enum Stop: Error {
        /// The limits of ``Pieces`` are used up.
        case enough
        case unreadable(SystemError)
    }

    /// Bytes from an offset, as many as asked and fewer only at the end of the file.
    package typealias Reader = (_ offset: Int64, _ count: Int) throws(SystemError) -> [UInt8]

    /// Questions that are answered in all.
    package static let questions = 50_000
    /// Bytes that are read in all.
    package static let bytes = 32 << 20
    /// The least that is read at once: headers stand close to each other, and the kernel reads whole pages anyway.
    private static let window = 512

    package let size: Int64
    private let read: Reader
    private var questions = Pieces.questions
    private var allowance = Pieces.bytes
    /// What was read last.
    private var held: (from: Int64, bytes: [UInt8]) = (0, [])

    /// - Parameter size: What lies behind it does not exist, whatever the reader would give.
    package init(size: Int64, read: @escaping Reader) {
        self.size = size
        self.read = read
    }

    /// The bytes at `offset`; fewer than asked only at the end of the file, none outside of it.
    func bytes(at offset: Int64, _ count: Int) throws(Stop) -> ArraySlice<UInt8> {
        guard questions > 0 else { throw .enough }
        questions -= 1
        guard offset >= 0, offset < size, count > 0 else { return [] }
        let wanted = Int(min(Int64(count), size - offset))
        if offset >= held.from, offset - held.from <= Int64(held.bytes.count - wanted) {
            return held.bytes.dropFirst(Int(offset - held.from)).prefix(wanted)
        }
        let length = Int(min(Int64(max(wanted, Self.window)), size - offset))
        guard length <= allowance else { throw .enough }
        allowance -= length
        do { held = (offset, Array(try read(offset, length).prefix(length))) } catch { throw .unreadable(error) }
        return held.bytes.prefix(wanted)
    }

    /// As ``bytes(at:_:)``, with all of `count` bytes; `nil` when the file ends before.
    func all(at offset: Int64, _ count: Int) throws(Stop) -> Fields? {
        let bytes = try bytes(at: offset, count)
        return bytes.count == count ? Fields(bytes) : nil
    }
}

/// Numbers and words in a few bytes of a header. What lies outside of them is 0 or nothing, never a trap.
struct Fields {
    private let bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    var count: Int { bytes.count }

    func slice(_ at: Int, _ count: Int) -> ArraySlice<UInt8> {
        guard at >= 0, count >= 0 else { return [] }
        return bytes.dropFirst(at).prefix(count)
    }

    func byte(_ at: Int) -> UInt8 { slice(at, 1).first ?? 0 }

    /// The most significant byte first, up to 8 of them.
    func big(_ at: Int, _ count: Int) -> UInt64 { slice(at, count).reduce(0) { $0 << 8 | UInt64($1) } }

    /// The least significant byte first.
    func little(_ at: Int, _ count: Int) -> UInt64 { slice(at, count).reversed().reduce(0) { $0 << 8 | UInt64($1) } }

    /// Four letters, as formats name their parts.
    func word(_ at: Int) -> Word { Word(UInt32(truncatingIfNeeded: big(at, 4))) }
}

/// The four letters that name a box or a chunk.
struct Word: Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    let value: UInt32

    init(_ value: UInt32) { self.value = value }

    /// - Parameter value: Four characters below U+0100; `©` is one byte in these formats.
    init(stringLiteral value: StaticString) {
        self.value = value.description.unicodeScalars.reduce(0) {
            $0 << 8 | UInt32(UInt8(truncatingIfNeeded: $1.value))
        }
    }

    private var letters: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }

    /// Letters, digits, space and their like, or `©`.
    var isPlain: Bool { letters.allSatisfy { (0x20..<0x7F).contains($0) || $0 == 0xA9 } }

    var description: String { FilePath(bytes: letters).display }
}
