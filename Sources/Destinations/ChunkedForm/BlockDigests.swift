internal import Core
internal import Digests
internal import Linux
internal import Synchronization

/// Digests of the blocks that were sent last, used when they are sent again, so that an unchanged file is not read
/// twice.
///
/// Kept in memory only. A row for each block before it leaves would cost a disk write to save a read after a crash.
final class BlockDigests: Sendable {
    private struct Entry {
        let place: FilePlace
        let status: FileStatus
        let range: Range<Int64>
        let found: [FormName: String]
    }

    private let entries = Mutex<[Entry]>([])
    /// Enough for the blocks of four uploads in progress.
    private static let maxEntries = 64

    /// Computes all digests in `names` in one pass; waits for the disk.
    func digests(
        _ names: Set<FormName>, of place: FilePlace, _ range: Range<Int64>
    ) throws(SystemError) -> [FormName: String] {
        let status = try FileStatus(at: place)
        let known = entries.withLock { entries in
            entries.last { $0.place == place && $0.range == range && $0.status.hasSameContent(as: status) }?.found
        }
        if let known, names.isSubset(of: known.keys) { return known }
        let found = try Self.computeDigests(names, of: place, range)
        // A write during the read may be half included.
        guard try FileStatus(at: place).hasSameContent(as: status) else { return found }
        entries.withLock { entries in
            entries.append(Entry(place: place, status: status, range: range, found: found))
            if entries.count > Self.maxEntries { entries.removeFirst() }
        }
        return found
    }

    private static func computeDigests(
        _ names: Set<FormName>, of place: FilePlace, _ range: Range<Int64>
    ) throws(SystemError) -> [FormName: String] {
        var crc = CRC(.crc32)
        let algorithms: [FormName: Hasher.Algorithm] = [.md5: .md5, .sha1: .sha1, .sha256: .sha256]
        let hashers = algorithms.filter { names.contains($0.key) }.mapValues { Hasher($0) }
        let wantsCRC = !names.isDisjoint(with: [.crc32, .crc32Upper, .crc32Decimal])
        try readPieces(of: place, range) { bytes in
            if wantsCRC { crc.update(bytes) }
            for hasher in hashers.values { hasher.update(bytes) }
        }
        var found = hashers.mapValues { hexadecimal($0.finish()) }
        guard wantsCRC else { return found }
        let digits = hexadecimal(crc.bytes)
        found[.crc32] = digits
        found[.crc32Upper] = digits.uppercased()
        found[.crc32Decimal] = "\(crc.value)"
        return found
    }
}
