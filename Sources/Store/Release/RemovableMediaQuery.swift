package import Core

/// Limit of the counts: more than that is "many".
private let maxCount: Int64 = 1_000
/// Files to be copied; files without a copy of their own that are not verified; files that were given up before
/// there was a copy.
private let unstaged = """
    SELECT 1 FROM asset WHERE state IN ('arrived', 'unsettled') AND folder = ?1 AND file_system IS ?2
    UNION ALL
    SELECT 1 FROM asset INDEXED BY asset_in_place
    WHERE keeping = 'in-place' AND state = 'staged' AND folder = ?1 AND file_system IS ?2
    AND source_state = 'untouched'
    AND EXISTS (SELECT 1 FROM upload WHERE upload.asset = asset.id AND upload.state IN ('queued', 'uploading'))
    UNION ALL
    SELECT 1 FROM upload JOIN asset ON asset.id = upload.asset
    WHERE upload.state = 'failed' AND upload.folder = ?1 AND asset.file_system IS ?2
    AND (asset.keeping = 'in-place' OR asset.state = 'dropped') AND asset.source_state = 'untouched'
    """
private let unverified = """
    SELECT 1 FROM upload JOIN asset ON asset.id = upload.asset
    WHERE upload.state IN ('staging', 'queued', 'uploading') AND upload.folder = ?1 AND asset.file_system IS ?2
    """
private let failed = """
    SELECT 1 FROM upload JOIN asset ON asset.id = upload.asset
    WHERE upload.state = 'failed' AND upload.folder = ?1 AND asset.file_system IS ?2
    AND asset.source_state = 'untouched'
    """
/// A source that cannot be released (a card that is locked) has a note, and is not waited for.
private let unreleased = """
    SELECT 1 FROM asset INDEXED BY asset_due WHERE due = 1 AND folder = ?1 AND file_system IS ?2
    AND action IN ('delete', 'move') AND source_state IN ('untouched', 'releasing') AND source_note IS NULL
    """

extension ChangeSet {
    /// The changes that may affect ``RemovableMediaQuery/work(in:on:)``.
    package static let ofMediaWork: ChangeSet = [
        .arrivals, .copies, .queued, .lists, .due, .released, .releaseNotes,
    ]
}

/// Files of a file system that are still to be staged, verified or released.
package struct RemovableMediaQuery<Access> {
    let tx: Transaction<Access>

    /// The work left with the files of folders that lie on one file system.
    ///
    /// - Parameters:
    ///   - folders: Their names.
    ///   - fileSystem: As in ``FileIdentity/fileSystem``; `nil` for files whose file system is not known.
    /// - Returns: Counts of at most 1,000 each. Files that are still settling are not in the store.
    package func work(in folders: Set<String>, on fileSystem: String?) throws -> RemovableMediaBacklog {
        var work = RemovableMediaBacklog()
        let system = Connection.Value(fileSystem)
        for folder in folders {
            work.unstaged += try count(unstaged, folder, system)
            // Usually nothing is under way, and no search is necessary.
            if try hasOngoing(folder) { work.unverified += try count(unverified, folder, system) }
            work.failed += try count(failed, folder, system)
            work.unreleased += try count(unreleased, folder, system)
        }
        work.unverified += work.failed
        return work
    }

    private func count(_ sql: String, _ folder: String, _ fileSystem: Connection.Value) throws -> Int {
        try tx.connection.first(
            "SELECT count(*) FROM (\(sql) LIMIT ?3)", [.text(folder), fileSystem, .integer(maxCount)]
        ) { Int($0.integer(0)) } ?? 0
    }

    private func hasOngoing(_ folder: String) throws -> Bool {
        try tx.connection.first(
            """
            SELECT 1 FROM tally WHERE folder = ?1 AND uploads > 0 AND state IN ('staging', 'queued', 'uploading') LIMIT 1
            """, [.text(folder)]
        ) { _ in true } == true
    }
}

extension Transaction {
    package var removableMedia: RemovableMediaQuery<Access> { RemovableMediaQuery(tx: self) }
}
