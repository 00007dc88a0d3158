package import Core

/// A group of files that is reported as one.
package struct GroupSummary: Sendable, Hashable {
    /// Below the folder: the path of its directory or manifest.
    package var name: FilePath
    package var folder: String
    package var files: Int
    /// Bytes of the sources.
    package var bytes: Int64
    /// Files that have arrived at each of their destinations.
    package var verified: Int

    package init(name: FilePath, folder: String, files: Int, bytes: Int64, verified: Int) {
        (self.name, self.folder, self.files) = (name, folder, files)
        (self.bytes, self.verified) = (bytes, verified)
    }
}

/// Groups of files by a directory or a manifest.
package struct GroupQuery<Access> {
    let tx: Transaction<Access>

    /// The group of an upload's file; `nil` for a file that is reported alone.
    package func summary(ofUpload id: String) throws -> GroupSummary? {
        try tx.connection.first(
            "SELECT asset.unit FROM upload JOIN asset ON asset.id = upload.asset WHERE upload.id = ?1", [.text(id)]
        ) { $0.optionalInteger(0) }.flatMap { $0 }.flatMap { try summary(of: $0) }
    }

    /// - Parameter unit: The number that its files have in common.
    func summary(of unit: Int64) throws -> GroupSummary? {
        // Of uploads of which one is enough, those that another one has superseded do not count.
        try tx.connection.first(
            """
            SELECT group_name, folder, count(*), CAST(total(size) AS INTEGER), count(*) FILTER (WHERE
                EXISTS (SELECT 1 FROM upload WHERE upload.asset = asset.id)
                AND NOT EXISTS (SELECT 1 FROM upload WHERE upload.asset = asset.id AND NOT \(isCompleted("upload"))
                    AND NOT EXISTS (SELECT 1 FROM upload AS other WHERE other.asset = asset.id
                        AND other.choice = upload.choice AND \(isCompleted("other")))))
            FROM asset WHERE unit = ?1 AND group_name IS NOT NULL
            """, [.integer(unit)]
        ) { row in
            row.optionalBlob(0).map {
                GroupSummary(
                    name: FilePath(bytes: $0), folder: row.text(1), files: Int(row.integer(2)), bytes: row.integer(3),
                    verified: Int(row.integer(4)))
            }
        } ?? nil
    }

    private func isCompleted(_ row: String) -> String {
        "(\(row).state = 'completed' OR (\(row).state = 'removed' AND \(row).ended IS 'completed'))"
    }
}

extension GroupQuery where Access == Writing {
    /// Appends the event for a group if its uploads have all ended. Part of the transaction that ended one of them. An
    /// upload that is tried again ends it once more.
    func reportEnd(of unit: Int64) throws {
        let isUnderWay =
            try tx.connection.first(
                """
                SELECT 1 FROM asset JOIN upload ON upload.asset = asset.id WHERE asset.unit = ?1
                AND upload.state IN ('staging', 'queued', 'uploading') ORDER BY asset.id DESC LIMIT 1
                """, [.integer(unit)]
            ) { _ in true } ?? false
        if isUnderWay { return }
        if let group = try summary(of: unit) { try tx.events.append(.groupEnded(group)) }
    }
}
