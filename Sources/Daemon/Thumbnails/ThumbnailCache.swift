internal import Core
internal import Digests
internal import Linux
internal import Store
internal import Synchronization

/// The thumbnails that were made, in a folder of the state, and which files have none.
///
/// It is made from files that can be read again, so nothing depends on it: it may be removed at any time, entries are
/// not synced, and a damaged one is removed. Every function waits for the disk on its thread.
final class ThumbnailCache: Sendable {
    enum Entry: Hashable, Sendable {
        case picture([UInt8])
        /// Why the file has no picture, for people.
        case none(String)
        /// It reached a limit; the reason, for people.
        case overdue(String)
    }

    /// A stored entry.
    struct Found: Hashable, Sendable {
        let entry: Entry
        /// Identifies its content.
        let tag: String
        /// When it was made; of a picture, when it was last used.
        let modified: WallTime
    }

    let folder: FilePath
    private let most: Int64
    /// Bytes of all entries; `nil` until the first one is written: nothing is read before the page asks for a picture.
    private let used = Mutex<Int64?>(nil)

    /// Bytes that must be free on the disk of the state: well before the queue itself is short of them.
    private static let keptFree = 4 * Store.scarceSpace
    /// Blocks of most file systems.
    private static let block: Int64 = 4096
    /// In front of an entry: the digest of what follows it, and then one byte for the kind.
    private static let digestLength = 32
    private static let longestEntry = 256 << 10
    /// An entry is removed this long after its last use.
    static let kept = Duration.seconds(30 * 86_400)

    /// - Parameter most: The size that it may reach, in bytes. Then the oldest entries are removed.
    init(in state: FilePath, most: Int64 = 64 << 20) {
        folder = state.appending("thumbnails")
        self.most = most
    }

    /// The name of an entry: of a version of a file, however many uploads it has.
    ///
    /// - Parameters:
    ///   - changed: The file's ctime. Size and mtime may be those of another version.
    ///   - sha256: The digest of the content, once it is known; then it identifies the version.
    static func key(of identity: FileIdentity, root: FilePath, changed: Int64, sha256: [UInt8]?) -> String {
        let facts = [identity.size, identity.modified, changed].map { Array("\($0)".utf8) }
        let parts =
            [root.bytes, identity.relative.bytes, Array((identity.fileSystem ?? "").utf8)]
            + (sha256.map { [$0] } ?? facts)
        return hexadecimal(Hasher.digest(.sha256, of: Array(parts.joined(separator: [0]))).prefix(16))
    }

    func find(_ key: String) -> Found? {
        let path = folder.appending(FilePath(key))
        do throws(SystemError) {
            guard let status = try FileStatus.ifPresent(at: path) else { return nil }
            let content = try Files.read(path, limit: Self.longestEntry)
            if let found = Self.decoded(content, modified: status.modified) { return found }
        } catch {
            // Removed in the meantime, too large, or on a block that cannot be read.
        }
        forget(path)
        return nil
    }

    /// - Returns: Whether it was stored: it is not while the disk is short of space.
    @discardableResult
    func store(_ entry: Entry, as key: String) throws(SystemError) -> Bool {
        try Files.makeFolders(folder, mode: 0o700)
        guard try Space(at: folder).free >= Self.keptFree else { return false }
        let content = Self.encoded(entry)
        try makeRoom(for: Self.space(of: Int64(content.count)))
        try Files.publish(folder.appending(FilePath(key)), content, mode: 0o600)
        return true
    }

    /// Records that a picture was used.
    func noteUse(of key: String, at now: WallTime) {
        let path = folder.appending(FilePath(key))
        // If that fails it is removed earlier, and made again.
        try? Descriptor.open(path, for: .reading).setModified(now.milliseconds * 1_000_000, named: path)
    }

    /// Removes what was not used since then.
    func removeUnused(since then: WallTime) throws(SystemError) {
        guard try FileStatus.ifPresent(at: folder) != nil else { return }
        for name in try Files.names(in: folder) {
            let path = folder.appending(name)
            guard let status = try FileStatus.ifPresent(at: path), status.modified < then.milliseconds * 1_000_000
            else { continue }
            try Files.removeIfPresent(path)
        }
        used.withLock { $0 = nil }
    }

    func removeAll() throws(SystemError) {
        try Files.removeTree(folder)
        used.withLock { $0 = nil }
    }

    // MARK: Form

    private static func encoded(_ entry: Entry) -> [UInt8] {
        let payload: [UInt8] =
            switch entry {
            case .picture(let bytes): [1] + bytes
            case .none(let reason): [0] + Array(reason.utf8)
            case .overdue(let reason): [2] + Array(reason.utf8)
            }
        return Hasher.digest(.sha256, of: payload) + payload
    }

    private static func decoded(_ content: [UInt8], modified: Int64) -> Found? {
        let (digest, payload) = (content.prefix(digestLength), Array(content.dropFirst(digestLength)))
        guard Hasher.digest(.sha256, of: payload) == Array(digest) else { return nil }
        let rest = Array(payload.dropFirst())
        let entry: Entry
        switch payload.first {
        case 0: entry = .none(String(decoding: rest, as: UTF8.self))
        case 1: entry = .picture(rest)
        case 2: entry = .overdue(String(decoding: rest, as: UTF8.self))
        default: return nil
        }
        return Found(
            entry: entry, tag: hexadecimal(digest.prefix(16)), modified: WallTime(milliseconds: modified / 1_000_000))
    }

    /// The tag that an entry would have if it were stored.
    static func tag(of entry: Entry) -> String { hexadecimal(encoded(entry).prefix(16)) }

    // MARK: Size

    private static func space(of bytes: Int64) -> Int64 { (bytes + block - 1) / block * block }

    private func forget(_ path: FilePath) {
        // What cannot be removed is found damaged again the next time.
        try? Files.removeIfPresent(path)
        used.withLock { $0 = nil }
    }

    /// Removes the oldest entries where there would be too many with this one.
    private func makeRoom(for bytes: Int64) throws(SystemError) {
        let known = used.withLock { $0 }
        if let known, known + bytes <= most {
            used.withLock { $0 = known + bytes }
            return
        }
        var entries: [(path: FilePath, modified: Int64, bytes: Int64)] = []
        for name in try Files.names(in: folder) {
            let path = folder.appending(name)
            guard let status = try FileStatus.ifPresent(at: path), status.isRegular else { continue }
            entries.append((path, status.modified, Self.space(of: status.size)))
        }
        var total = entries.reduce(0) { $0 + $1.bytes }
        if total + bytes > most {
            // An eighth more, so that this is not done for each entry.
            for entry in entries.sorted(by: { $0.modified < $1.modified }) where total + bytes > most - most / 8 {
                try Files.removeIfPresent(entry.path)
                total -= entry.bytes
            }
        }
        used.withLock { $0 = total + bytes }
    }
}
