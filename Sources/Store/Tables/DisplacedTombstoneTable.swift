internal import Core

/// Disks of which a path keeps a tombstone. Formatting gives a card another identity, so without a limit the table of a
/// camera that reuses its file names would grow without end.
private let disksPerPath = 30

/// Rows of `displaced_tombstone`. ``TombstoneTable`` moves them here and asks for them.
struct DisplacedTombstoneTable<Access> {
    let tx: Transaction<Access>

    /// The tombstone of the path of `identity` on its disk.
    private func find(_ identity: FileIdentity) throws(StoreError) -> Tombstone? {
        guard let disk = identity.fileSystem else { return nil }
        return try tx.connection.first(
            """
            SELECT \(Tombstone.columns) FROM displaced_tombstone
            WHERE folder = ?1 AND file_system = ?2 AND relative = ?3
            """, [.text(identity.folder), .text(disk), .blob(identity.relative.bytes)]
        ) { Tombstone($0, identity.folder, identity.relative) }
    }

    /// - Parameter disk: `nil` for any.
    func hasAny(in folder: String, on disk: String?) throws(StoreError) -> Bool {
        try tx.connection.first(
            """
            SELECT 1 FROM displaced_tombstone WHERE folder = ?1 \(disk == nil ? "" : "AND file_system = ?2") LIMIT 1
            """, disk.map { [.text(folder), .text($0)] } ?? [.text(folder)]
        ) { _ in true } ?? false
    }

    /// The tombstones that may be those of this file: the one of its disk, or those of all disks if its disk is not
    /// known.
    func candidates(for identity: FileIdentity) throws(StoreError) -> [Tombstone] {
        guard FileIdentity.identifiesDisk(identity.fileSystem) else {
            return try all(at: identity.relative, in: identity.folder)
        }
        return try find(identity).map { [$0] } ?? []
    }

    /// Those of a path on all disks.
    func all(at relative: FilePath, in folder: String) throws(StoreError) -> [Tombstone] {
        try tx.connection.all(
            """
            SELECT \(Tombstone.columns) FROM displaced_tombstone INDEXED BY displaced_tombstone_path
            WHERE relative = ?1 AND folder = ?2
            """, [.blob(relative.bytes), .text(folder)]
        ) { Tombstone($0, folder, relative) }
    }
}

extension DisplacedTombstoneTable where Access == Writing {
    /// Copies the tombstone of a path to this table, before that of another disk's file replaces it.
    func copy(_ relative: FilePath, in folder: String) throws(StoreError) {
        let path: [Connection.Value] = [.text(folder), .blob(relative.bytes)]
        try tx.connection.run(
            """
            INSERT OR REPLACE INTO displaced_tombstone
                (folder, file_system, relative, size, modified, inode, born, asset, sha256, seen_at)
            SELECT folder, file_system, relative, size, modified, inode, born, asset, sha256, seen_at FROM tombstone
            WHERE folder = ?1 AND relative = ?2 AND file_system IS NOT NULL
            """, path)
        try tx.connection.run(
            """
            DELETE FROM displaced_tombstone WHERE (folder, file_system, relative) IN (
                SELECT folder, file_system, relative FROM displaced_tombstone INDEXED BY displaced_tombstone_path
                WHERE relative = ?2 AND folder = ?1 ORDER BY seen_at DESC LIMIT -1 OFFSET \(disksPerPath))
            """, path)
    }

    func remove(_ identity: FileIdentity) throws(StoreError) {
        guard let disk = identity.fileSystem else { return }
        try tx.connection.run(
            "DELETE FROM displaced_tombstone WHERE folder = ?1 AND file_system = ?2 AND relative = ?3",
            [.text(identity.folder), .text(disk), .blob(identity.relative.bytes)])
    }

    /// - Returns: Whether there is one.
    func renew(_ identity: FileIdentity) throws(StoreError) -> Bool {
        guard let disk = identity.fileSystem else { return false }
        try tx.connection.run(
            """
            UPDATE displaced_tombstone SET seen_at = ?4 WHERE folder = ?1 AND file_system = ?2 AND relative = ?3
            """,
            [
                .text(identity.folder), .text(disk), .blob(identity.relative.bytes),
                .integer(tx.clocks.wall().milliseconds),
            ])
        return tx.connection.changes > 0
    }
}
