package import Core

/// A source that is in its folder, with all its uploads ended and at least one verified.
package struct KeptSource: Hashable, Sendable {
    package var asset: Int64
    /// Bytes.
    package var size: Int64
    /// The time since when it is verified and done.
    package var since: WallTime
    package var path: SourcePath
}

/// Verified sources that stay for a while: their order of removal, and the removals themselves.
package struct KeptSources<Access> {
    let tx: Transaction<Access>

    /// The kept sources of a folder, the oldest first.
    ///
    /// - Parameters:
    ///   - fileSystem: Only those on this one (``FileIdentity/fileSystem``); `nil` for all.
    ///   - latest: Only those that are verified since then or longer; `nil` for all.
    package func oldest(
        in folder: String, on fileSystem: String? = nil, until latest: WallTime? = nil, limit: Int
    ) throws -> [KeptSource] {
        try KeptSource.all(tx.connection, in: folder, on: fileSystem, until: latest, limit: limit)
    }

    /// The number and bytes of a folder's sources that are being removed.
    package func countLeaving(_ folder: String) throws -> (files: Int, bytes: Int64) {
        try tx.connection.first(
            """
            SELECT count(*), coalesce(sum(size), 0) FROM asset INDEXED BY asset_due
            WHERE due = 1 AND folder = ?1 AND source_state = 'releasing'
            """, [.text(folder)]
        ) { (Int($0.integer(0)), $0.integer(1)) } ?? (0, 0)
    }
}

extension KeptSources where Access == Writing {
    /// Puts kept sources on the release's list, to be deleted there: the intention is durable when this returns.
    ///
    /// - Returns: The sources that are removed. A source with a new upload stays, and its time starts again when that
    ///   has ended.
    package func expire(_ assets: [Int64]) throws -> [Int64] {
        var gone: [Int64] = []
        for id in assets {
            guard try tx.releases.verdict(id) == .release else {
                try tx.connection.run("UPDATE asset SET kept_at = NULL WHERE id = ?1", [.integer(id)])
                continue
            }
            try tx.connection.run(
                """
                UPDATE asset SET action = 'delete', source_state = 'releasing', source_note = NULL, kept_at = NULL,
                due = 1 WHERE id = ?1 AND kept_at IS NOT NULL AND source_state = 'kept'
                """, [.integer(id)])
            if tx.connection.changes > 0 { gone.append(id) }
        }
        if !gone.isEmpty { tx.session.facts.changes.insert(.due) }
        return gone
    }

    /// Starts their time from now: they were recorded while the clock was unset.
    package func renew(_ assets: [Int64]) throws {
        for id in assets {
            try tx.connection.run(
                "UPDATE asset SET kept_at = ?2 WHERE id = ?1 AND kept_at IS NOT NULL",
                [.integer(id), .integer(tx.clocks.wall().milliseconds)])
        }
    }
}

extension Transaction {
    package var keptSources: KeptSources<Access> { KeptSources(tx: self) }
}

extension KeptSource {
    fileprivate static func all(
        _ connection: Connection, in folder: String, on fileSystem: String?, until latest: WallTime?, limit: Int
    ) throws(StoreError) -> [Self] {
        try connection.all(
            """
            SELECT id, size, kept_at, root, relative FROM asset INDEXED BY asset_kept WHERE folder = ?1
            AND kept_at IS NOT NULL AND kept_at <= ?2 AND (?3 IS NULL OR file_system = ?3) ORDER BY kept_at, id LIMIT ?4
            """,
            [.text(folder), .integer(latest?.milliseconds ?? .max), .init(fileSystem), .integer(Int64(limit))]
        ) { row in
            Self(
                asset: row.integer(0), size: row.integer(1), since: WallTime(milliseconds: row.integer(2)),
                path: SourcePath(root: FilePath(bytes: row.blob(3)), relative: FilePath(bytes: row.blob(4))))
        }
    }
}

extension StateFiles {
    /// As ``KeptSources/oldest(in:on:until:limit:)``, for a state folder that a daemon may be using. Changes nothing.
    package static func kept(
        state: FilePath, in folder: String, on fileSystem: String?, until latest: WallTime?, limit: Int
    ) throws -> [KeptSource] {
        let connection = try Connection(path: state.appending(database), asEvidence: true)
        defer { connection.close() }
        return try KeptSource.all(connection, in: folder, on: fileSystem, until: latest, limit: limit)
    }
}
