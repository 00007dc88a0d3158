package import Core

extension Schema {
    static let sources = """
        -- Which directory stood under a configured path when it was last found good.
        CREATE TABLE folder_identity (
            path BLOB PRIMARY KEY,
            file_system TEXT,              -- UUID or mount source
            inode INTEGER NOT NULL,
            born INTEGER,                  -- ns since 1970
            owner INTEGER NOT NULL         -- number of the user
        ) WITHOUT ROWID;
        -- The part of the name of a source on its way out that others cannot guess.
        ALTER TABLE asset ADD COLUMN release_token TEXT;
        """

    static let cards = """
        -- File systems that were mounted where the path of a folder is a pattern, each with the name of its own folder.
        CREATE TABLE card (
            pattern TEXT NOT NULL,         -- the folder with the pattern
            file_system TEXT NOT NULL,     -- UUID or mount source
            name TEXT NOT NULL UNIQUE,     -- never given to another one
            point BLOB NOT NULL,           -- where it was mounted last
            seen_at INTEGER NOT NULL,      -- when it was first mounted there, ms since 1970
            PRIMARY KEY (pattern, file_system)
        ) STRICT, WITHOUT ROWID;
        """
}

/// Facts about watched folders: their identities, the cards that were mounted, and whether a folder was scanned to its
/// end.
package struct FolderTable<Access> {
    let tx: Transaction<Access>

    /// The remembered identities of the directories under configured paths.
    package func identities() throws -> [FilePath: FolderIdentity] { try tx.connection.folderIdentities() }

    /// The file systems that folders with a pattern have met; those that were mounted last come first. They are never
    /// deleted: a name that is given again would belong to other files.
    package func cards() throws -> [Card] { try tx.connection.cards() }

    /// Whether this folder was never scanned to the end with this state.
    package func isFirstWatch(of folder: String) throws -> Bool {
        try tx.connection.first("SELECT 1 FROM setting WHERE name = ?1", [.text("watched:" + folder)]) { _ in true }
            == nil
    }
}

extension FolderTable where Access == Writing {
    /// Remembers the directory under a configured path.
    package func remember(_ identity: FolderIdentity, at path: FilePath) throws {
        try tx.connection.run(
            "INSERT OR REPLACE INTO folder_identity VALUES (?1, ?2, ?3, ?4, ?5)",
            [
                .blob(path.bytes), .init(identity.fileSystem), .integer(Int64(bitPattern: identity.inode)),
                .init(identity.born), .integer(Int64(identity.owner)),
            ])
    }

    /// Remembers a file system that is mounted now.
    ///
    /// - Parameter path: The path of its folder now: files of it that wait for it are read there.
    package func remember(_ card: Card, folderAt path: FilePath) throws {
        // A name that was taken from it, by a folder of the configuration, is the new one's from now on.
        try tx.connection.run(
            """
            INSERT INTO card VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT (pattern, file_system) DO UPDATE SET name = ?3, point = ?4, seen_at = ?5
            """,
            [
                .text(card.pattern), .text(card.fileSystem), .text(card.name), .blob(card.point.bytes),
                .integer(tx.clocks.wall().milliseconds),
            ])
        try tx.connection.run(
            "UPDATE asset SET root = ?2 WHERE folder = ?1 AND root <> ?2", [.text(card.name), .blob(path.bytes)])
    }

    /// Forgets the directory under a configured path: the next directory there is accepted.
    package func forget(at path: FilePath) throws {
        try tx.connection.run("DELETE FROM folder_identity WHERE path = ?1", [.blob(path.bytes)])
    }

    /// Records that the first scans of these folders are over.
    package func recordWatched(_ folders: [String]) throws {
        for folder in folders {
            try tx.connection.run(
                "INSERT OR IGNORE INTO setting VALUES (?1, ?2)",
                [.text("watched:" + folder), .text("\(tx.clocks.wall())")])
        }
    }
}

extension Transaction {
    package var folders: FolderTable<Access> { FolderTable(tx: self) }
}

extension Connection {
    fileprivate func cards() throws -> [Card] {
        try all("SELECT pattern, file_system, name, point FROM card ORDER BY seen_at DESC, name", []) {
            Card(
                pattern: $0.text(0), fileSystem: $0.text(1), name: $0.text(2), point: FilePath(bytes: $0.blob(3)))
        }
    }

    fileprivate func folderIdentities() throws -> [FilePath: FolderIdentity] {
        let rows = try all("SELECT path, file_system, inode, born, owner FROM folder_identity", []) { row in
            (
                FilePath(bytes: row.blob(0)),
                FolderIdentity(
                    fileSystem: row.optionalText(1), inode: UInt64(bitPattern: row.integer(2)),
                    born: row.optionalInteger(3), owner: UInt32(truncatingIfNeeded: row.integer(4)))
            )
        }
        return Dictionary(rows, uniquingKeysWith: { first, _ in first })
    }
}

extension StateFiles {
    /// The identities of the directories under configured paths in an old database; `nil` where it cannot be read.
    /// Changes nothing.
    package static func folderIdentities(in state: FilePath) -> [FilePath: FolderIdentity]? {
        // Damage is expected here.
        guard let connection = try? Connection(path: state.appending(database), asEvidence: true) else { return nil }
        defer { connection.close() }
        return try? connection.folderIdentities()
    }

    /// The cards in a database that a daemon may be using, or an old one; none where it cannot be read. Changes nothing.
    package static func cards(in state: FilePath) -> [Card] {
        // Damage is expected here, and so is a database without this table.
        guard let connection = try? Connection(path: state.appending(database), asEvidence: true) else { return [] }
        defer { connection.close() }
        return (try? connection.cards()) ?? []
    }

    /// Whether a state folder does not know these names of sources being released: then another program made them. A
    /// daemon may be using the folder. Changes nothing.
    package static func unknown(
        _ names: [(asset: Int64, token: ReleaseToken)], in state: FilePath
    ) throws -> [Bool] {
        let connection = try Connection(path: state.appending(database), asEvidence: true)
        defer { connection.close() }
        return try names.map { name in
            try connection.first(
                "SELECT 1 FROM asset WHERE id = ?1 AND release_token = ?2",
                [.integer(name.asset), .text(name.token.description)], { _ in true }) != true
        }
    }
}
