internal import Core
package import Linux

/// A file's bytes, read a few at a time: the only access that the readers of this module have to a file.
///
/// A file that would take long to examine, by accident or on purpose, ends in ``Stop/enough`` and not in a wait.
package final class HeaderReader {
    /// Why reading a file ended early.
    package enum Stop: Error {
        /// The limits of ``HeaderReader`` are used up.
        case enough
        case unreadable(SystemError)
    }

    /// Reads bytes from an offset: as many as requested, and fewer only at the end of the file.
    package typealias Reader = (_ offset: Int64, _ count: Int) throws(SystemError) -> [UInt8]

    /// Maximum number of reads.
    package static let maxReads = 50_000
    /// Maximum number of bytes read.
    package static let maxBytes = 32 << 20
    /// The least that is read at once: headers are close to each other, and the kernel reads whole pages anyway.
    private static let window = 512

    package let size: Int64
    private let read: Reader
    private var readsLeft = HeaderReader.maxReads
    private var allowance = HeaderReader.maxBytes
    /// The last bytes that were read.
    private var held: (from: Int64, bytes: [UInt8]) = (0, [])

    /// - Parameter size: Bytes after it are ignored, even if the reader returns some.
    package init(size: Int64, read: @escaping Reader) {
        self.size = size
        self.read = read
    }

    /// The bytes at `offset`; fewer than requested only at the end of the file, none outside it.
    func bytes(at offset: Int64, _ count: Int) throws(Stop) -> ArraySlice<UInt8> {
        guard readsLeft > 0 else { throw .enough }
        readsLeft -= 1
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

    /// Like ``bytes(at:_:)``, but with all of `count` bytes; `nil` when the file ends before.
    func all(at offset: Int64, _ count: Int) throws(Stop) -> HeaderBytes? {
        let bytes = try bytes(at: offset, count)
        return bytes.count == count ? HeaderBytes(bytes) : nil
    }
}
