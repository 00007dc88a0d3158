internal import Core
internal import Linux

/// Looks for damage in SQLite's log (https://www.sqlite.org/fileformat2.html#the_write_ahead_log).
///
/// SQLite itself stops reading at the first frame whose checksum does not fit, without an error: a damaged log looks
/// like an older database, and bytes sent since then would be sent again. A power cut leaves such a frame in the last
/// transaction only, because each is synced before the next begins. So commits after the next one are a sign of damage.
enum WriteAheadLog {
    private static let headerSize: Int64 = 32
    private static let frameHeaderSize = 24

    /// - Returns: The problem; `nil` for a log that is whole, or torn where a power cut tears it.
    static func problem(of path: FilePath) throws -> String? {
        let size = try FileStatus(at: path).size
        let file = try Descriptor.open(path, for: .reading)
        guard let header = try read(32, at: 0, file, path) else { return nil }
        let magic = word(header, 0)
        let isBig = magic & 1 == 1
        var sum = checksum(header[..<24], (0, 0), isBig)
        let isHeaderWhole = magic & ~1 == 0x377F_0682 && sum == (word(header, 24), word(header, 28))
        let pageSize = Int(word(header, 8))
        guard pageSize >= 512, pageSize <= 65_536, pageSize & (pageSize - 1) == 0 else {
            return size > headerSize ? "the header of its log is damaged" : nil
        }
        let frameSize = Int64(pageSize + frameHeaderSize)
        var at = headerSize
        var isWhole = isHeaderWhole
        var salt = Array(header[16..<24])
        // Commits of this generation after the first frame that does not fit.
        var commitsBehind = 0
        while let frame = try read(pageSize + frameHeaderSize, at: at, file, path) {
            at += frameSize
            if !isHeaderWhole && commitsBehind == 0 && at == headerSize + frameSize { salt = Array(frame[8..<16]) }
            let isOurs = Array(frame[8..<16]) == salt
            if isWhole {
                var next = checksum(frame[..<8], sum, isBig)
                next = checksum(frame[frameHeaderSize...], next, isBig)
                if isOurs && next == (word(frame, 16), word(frame, 20)) {
                    sum = next
                    continue
                }
                isWhole = false
            }
            if isOurs && word(frame, 4) != 0 { commitsBehind += 1 }
        }
        guard commitsBehind > 1 else { return nil }
        return "its log is damaged: \(commitsBehind) of the last changes cannot be read"
    }

    private static func read(
        _ count: Int, at offset: Int64, _ file: borrowing Descriptor, _ path: FilePath
    ) throws -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: offset, named: path) }
        return got == count ? bytes : nil
    }

    private static func word(_ bytes: [UInt8], _ at: Int) -> UInt32 {
        bytes[at..<at + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// The running checksum of the log: pairs of words, in the byte order given by the log's magic number.
    private static func checksum(
        _ bytes: ArraySlice<UInt8>, _ before: (UInt32, UInt32), _ isBig: Bool
    ) -> (UInt32, UInt32) {
        var (first, second) = before
        bytes.withUnsafeBytes { bytes in
            for at in stride(from: 0, to: bytes.count & ~7, by: 8) {
                let a = bytes.loadUnaligned(fromByteOffset: at, as: UInt32.self)
                let b = bytes.loadUnaligned(fromByteOffset: at + 4, as: UInt32.self)
                first &+= (isBig ? UInt32(bigEndian: a) : UInt32(littleEndian: a)) &+ second
                second &+= (isBig ? UInt32(bigEndian: b) : UInt32(littleEndian: b)) &+ first
            }
        }
        return (first, second)
    }
}
