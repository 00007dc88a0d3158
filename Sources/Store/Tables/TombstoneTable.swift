package import Core
internal import Glibc

/// Tombstones that are stepped over on the way to the next requested one, before it is searched from the top of the
/// tree: a step costs about a tenth of a search.
private let stride = 8
private let stones = """
    SELECT relative, size, modified, inode, born, file_system, seen_at FROM tombstone
    WHERE folder = ?1 AND relative >= ?2 ORDER BY relative
    """

struct Tombstone {
    var identity: FileIdentity
    var seenAt: Int64
    /// Whether an asset was made of it; otherwise it was only skipped.
    var wasRecorded: Bool

    static let columns = "size, modified, inode, born, file_system, seen_at, asset IS NOT NULL"

    /// - Parameter row: Begins with the values of ``columns``.
    init(_ row: Connection.Row, _ folder: String, _ relative: FilePath) {
        identity = FileIdentity(
            folder: folder, relative: relative, size: row.integer(0), modified: row.integer(1),
            inode: row.optionalInteger(2).map { UInt64(bitPattern: $0) }, born: row.optionalInteger(3),
            fileSystem: row.optionalText(4))
        seenAt = row.integer(5)
        wasRecorded = row.integer(6) != 0
    }
}

/// Tombstones that are to be renewed.
struct OldTombstones {
    /// Of files whose path no other file has taken since.
    var last: [FileIdentity] = []
    var displaced: [FileIdentity] = []

    var isEmpty: Bool { last.isEmpty && displaced.isEmpty }
}

/// The fact that keeps the file at a path from being recorded again; `nil` when there is none.
package struct KnownFile: Sendable, Hashable {
    package var size: Int64
    package var modified: Int64
    /// `false` for a file that existed before its folder was watched.
    package var wasRecorded: Bool
}

/// Rows of `tombstone`: versions of files that are known, so that no scan records them again.
package struct TombstoneTable<Access> {
    let tx: Transaction<Access>

    private var displaced: DisplacedTombstoneTable<Access> { DisplacedTombstoneTable(tx: tx) }

    /// The tombstone of the file that was recorded or skipped last at this path, on whatever disk.
    func find(_ folder: String, _ relative: FilePath) throws(StoreError) -> Tombstone? {
        try tx.connection.first(
            "SELECT \(Tombstone.columns) FROM tombstone WHERE folder = ?1 AND relative = ?2",
            [.text(folder), .blob(relative.bytes)]
        ) { Tombstone($0, folder, relative) }
    }

    /// The tombstones that may be those of this file: first that of its own disk.
    func candidates(for identity: FileIdentity) throws(StoreError) -> [Tombstone] {
        try displaced.candidates(for: identity) + [find(identity.folder, identity.relative)].compactMap { $0 }
    }

    /// Tombstones not renewed for 90 days, oldest first: they may be deleted only after a check that their sources are
    /// gone.
    package func old(limit: Int) throws -> [FileIdentity] {
        let horizon = tx.clocks.wall().milliseconds - 90 * 86_400_000
        return try tx.connection.all(
            """
            SELECT folder, relative, size, modified, inode, born, file_system, seen_at FROM tombstone WHERE seen_at < ?1
            UNION ALL
            SELECT folder, relative, size, modified, inode, born, file_system, seen_at FROM displaced_tombstone
            WHERE seen_at < ?1 ORDER BY seen_at LIMIT ?2
            """, [.integer(horizon), .integer(Int64(limit))]
        ) { row in
            FileIdentity(
                folder: row.text(0), relative: FilePath(bytes: row.blob(1)), size: row.integer(2),
                modified: row.integer(3), inode: row.optionalInteger(4).map { UInt64(bitPattern: $0) },
                born: row.optionalInteger(5), fileSystem: row.optionalText(6))
        }
    }

    /// Files of a folder that were recorded, by the beginning of their paths below it.
    ///
    /// - Parameter since: Only those that were seen since then.
    package func recorded(in folder: String, beginningWith start: FilePath, since: WallTime) throws -> [FilePath] {
        // All byte strings with this beginning sort between it and the next byte string of its length.
        guard let last = start.bytes.last, last < 255 else { return [] }
        let end = Array(start.bytes.dropLast()) + [last + 1]
        return try tx.connection.all(
            """
            SELECT relative FROM tombstone
            WHERE folder = ?1 AND relative >= ?2 AND relative < ?3 AND asset IS NOT NULL AND seen_at >= ?4 LIMIT 100
            """, [.text(folder), .blob(start.bytes), .blob(end), .integer(since.milliseconds)]
        ) { FilePath(bytes: $0.blob(0)) }
    }

    /// - Parameter wanted: The one to prefer, where files of several disks have this path.
    package func knownFile(
        _ folder: String, _ relative: FilePath, preferring wanted: (size: Int64, modified: Int64)? = nil
    ) throws -> KnownFile? {
        let stones =
            try [find(folder, relative)].compactMap { $0 } + displaced.all(at: relative, in: folder)
        let stone = stones.first { $0.identity.size == wanted?.size && $0.identity.modified == wanted?.modified }
        return (stone ?? stones.first).map {
            KnownFile(size: $0.identity.size, modified: $0.identity.modified, wasRecorded: $0.wasRecorded)
        }
    }

    /// Whether these versions are known: recorded, done, or there before the folder was watched.
    ///
    /// - Returns: Also the tombstones of known ones that were renewed more than a week ago.
    func areKnown(_ identities: PackedFileVersions) throws -> (answers: [Bool], old: OldTombstones) {
        let now = tx.clocks.wall().milliseconds
        func isOld(_ seenAt: Int64) -> Bool { abs(now - seenAt) > 7 * 86_400_000 }
        var answers = [Bool](repeating: false, count: identities.count)
        var old = OldTombstones()
        let order = identities.sortedIndices()
        var next = order.startIndex
        while next < order.endIndex {
            next = try walk(order, from: next, of: identities) { index, seenAt in
                answers[index] = true
                if isOld(seenAt) { old.last.append(identities[index]) }
            }
        }
        try searchDisplaced(order.filter { !answers[$0] }, of: identities) { index, stone in
            answers[index] = true
            if isOld(stone.seenAt) { old.displaced.append(stone.identity) }
        }
        return (answers, old)
    }

    /// Searches files whose paths another disk's files have taken. Most disks have none, and are asked about once.
    private func searchDisplaced(
        _ order: [Int], of identities: PackedFileVersions, found: (Int, Tombstone) -> Void
    ) throws(StoreError) {
        var (last, hasAny): (Int?, Bool) = (nil, false)
        for index in order {
            let isSameDisk = last.map {
                identities.areInSameFolder($0, index)
                    && identities.fileSystem(at: $0) == identities.fileSystem(at: index)
            }
            if isSameDisk != true {
                let (folder, name) = (identities[index].folder, identities.fileSystem(at: index))
                hasAny = try displaced.hasAny(in: folder, on: FileIdentity.identifiesDisk(name) ? name : nil)
            }
            last = index
            guard hasAny else { continue }
            let identity = identities[index]
            let stones = try displaced.candidates(for: identity)
            guard let stone = stones.first(where: { $0.identity.isSameVersion(as: identity) }) else { continue }
            found(index, stone)
        }
    }

    /// Steps along the table as long as the next requested file is near: the files of a directory are neighbours there,
    /// and a look-up for each alone would cost several times as much.
    ///
    /// - Parameter found: Called with each known file, and the time of its renewal (milliseconds since 1970).
    /// - Returns: The position in `order` to continue from; always further than `start`.
    private func walk(
        _ order: [Int], from start: Int, of identities: PackedFileVersions, found: (Int, Int64) -> Void
    ) throws(StoreError) -> Int {
        let first = identities[order[start]]
        let values: [Connection.Value] = [.text(first.folder), .blob(first.relative.bytes)]
        return try tx.connection.query(stones, values) { row throws(StoreError) in
            var next = start
            var passed = 0
            while try row.next() {
                // All requested files that sort before this stone have none.
                while true {
                    let place = row.withBytes(0) { identities.order(order[next], $0) }
                    if place > 0 { break }
                    if place == 0, row.isSameVersion(as: order[next], of: identities) {
                        found(order[next], row.integer(6))
                    }
                    passed = 0
                    next += 1
                    if next == order.endIndex || !identities.areInSameFolder(order[next], order[start]) { return next }
                }
                // The first stone is never before the first requested file, so this is further than the start.
                passed += 1
                if passed > stride { return next }
            }
            // No further stone exists in this folder.
            while next < order.endIndex, identities.areInSameFolder(order[next], order[start]) { next += 1 }
            return next
        }
    }
}

extension TombstoneTable where Access == Writing {
    /// Marks files as known without ever uploading them (`existing: skip`).
    package func skip(_ identities: [FileIdentity]) throws {
        for identity in identities {
            try insert(identity, asset: nil)
            for asset in try tx.assets.waiting(at: identity.relative, in: identity.folder)
            where !asset.identity.isOnOtherDisk(than: identity) {
                try tx.transitions.endWaiting(of: asset, "the newer version is not uploaded")
            }
        }
    }

    /// Tombstones of other disks' files with this path stay known.
    func insert(_ identity: FileIdentity, asset: Int64?) throws(StoreError) {
        if let last = try find(identity.folder, identity.relative)?.identity.fileSystem,
            last != identity.fileSystem, FileIdentity.identifiesDisk(last)
        {
            try displaced.copy(identity.relative, in: identity.folder)
        }
        try displaced.remove(identity)
        try tx.connection.run(
            """
            INSERT OR REPLACE INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, seen_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
            """,
            [
                .text(identity.folder), .blob(identity.relative.bytes), .integer(identity.size),
                .integer(identity.modified), .init(identity.inode.map { Int64(bitPattern: $0) }), .init(identity.born),
                .init(identity.fileSystem), .init(asset), .integer(tx.clocks.wall().milliseconds),
            ])
    }

    /// Removes the tombstone of this version.
    func remove(_ asset: Int64) throws(StoreError) {
        // By its path, which is the key: a search by the asset's number would read every tombstone.
        try tx.connection.run(
            """
            DELETE FROM tombstone
            WHERE (folder, relative) = (SELECT folder, relative FROM asset WHERE id = ?1) AND asset = ?1
            """, [.integer(asset)])
        try tx.connection.run(
            """
            DELETE FROM displaced_tombstone WHERE asset = ?1
            AND (folder, file_system, relative) = (SELECT folder, file_system, relative FROM asset WHERE id = ?1)
            """, [.integer(asset)])
    }

    /// Removes the tombstone of the path on this disk.
    func remove(_ identity: FileIdentity) throws(StoreError) {
        try displaced.remove(identity)
        guard let last = try find(identity.folder, identity.relative), !last.identity.isOnOtherDisk(than: identity)
        else {
            return
        }
        try tx.connection.run(
            "DELETE FROM tombstone WHERE folder = ?1 AND relative = ?2",
            [.text(identity.folder), .blob(identity.relative.bytes)])
    }

    /// Stores that an upload of this version is complete.
    func markSent(_ asset: Int64) throws(StoreError) {
        try tx.connection.run(
            """
            UPDATE tombstone SET sha256 = (SELECT sha256 FROM asset WHERE id = ?1)
            WHERE (folder, relative) = (SELECT folder, relative FROM asset WHERE id = ?1) AND asset = ?1
            """, [.integer(asset)])
        try tx.connection.run(
            """
            UPDATE displaced_tombstone SET sha256 = (SELECT sha256 FROM asset WHERE id = ?1) WHERE asset = ?1
            AND (folder, file_system, relative) = (SELECT folder, file_system, relative FROM asset WHERE id = ?1)
            """, [.integer(asset)])
    }

    func renew(_ old: OldTombstones) throws {
        for identity in old.last { try renew(identity) }
        for identity in old.displaced { _ = try displaced.renew(identity) }
    }

    private func renew(_ identity: FileIdentity) throws(StoreError) {
        try tx.connection.run(
            "UPDATE tombstone SET seen_at = ?3 WHERE folder = ?1 AND relative = ?2",
            [
                .text(identity.folder), .blob(identity.relative.bytes), .integer(tx.clocks.wall().milliseconds),
            ])
    }

    /// Renews tombstones whose source exists (`renewed`), and deletes those whose source is gone (`gone`).
    package func prune(renewed: [FileIdentity], gone: [FileIdentity]) throws {
        // A disk's file has one tombstone, in one of the tables.
        for identity in renewed where try !displaced.renew(identity) { try renew(identity) }
        for identity in gone {
            try tx.history.forgetSent(identity)
            try tx.connection.run(
                "DELETE FROM tombstone WHERE folder = ?1 AND relative = ?2 AND file_system IS ?3",
                [.text(identity.folder), .blob(identity.relative.bytes), .init(identity.fileSystem)])
            try displaced.remove(identity)
        }
    }
}

extension Transaction {
    package var tombstones: TombstoneTable<Access> { TombstoneTable(tx: self) }
}

extension Connection.Row {
    /// ``Core/FileIdentity/isSameVersion(as:)`` for the tombstone in this row, which has the same path; without
    /// making a value of it.
    fileprivate func isSameVersion(as index: Int, of identities: PackedFileVersions) -> Bool {
        let other = identities.version(at: index)
        guard integer(1) == other.size, integer(2) == other.modified else { return false }
        let stone = FileVersion(
            size: other.size, modified: other.modified, inode: optionalInteger(3).map { UInt64(bitPattern: $0) },
            born: optionalInteger(4))
        return stone.isSame(as: other, areOnOneFileSystem: isText(5, identities.fileSystem(at: index)))
    }

    /// - Returns: `false` also when there is no text.
    private func isText(_ column: Int32, _ text: String?) -> Bool {
        guard var text, !isNull(column) else { return false }
        return withBytes(column) { mine in
            text.withUTF8 { text in
                guard let ours = text.baseAddress, let theirs = mine.baseAddress else {
                    return text.count == mine.count
                }
                return text.count == mine.count && memcmp(ours, theirs, mine.count) == 0
            }
        }
    }
}
