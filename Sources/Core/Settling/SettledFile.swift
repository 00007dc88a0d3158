/// Why a file counted as finished: the highest rung of the ladder that it had to pass. Recorded with the asset.
package enum SettleProof: String, Hashable, Sendable, Codable {
    /// Its marker stood beside it, it was quiet, and no process was seen to have it open for writing.
    case marker
    /// A close or rename was seen, the file was quiet, and the kernel granted a read lease: no process has it open for
    /// writing.
    case lease
    /// Like `lease`, but the kernel would grant none; no process had it open for writing, according to `/proc`.
    case proc
    /// Quiet after a close, but no lease could be requested (another owner, no `CAP_LEASE`).
    case closed
    /// Quiet for the longer time; no close was seen.
    case quiet
    /// Its headers say that it is complete, and it had passed one of the rungs above.
    case container
    /// Like one of those above, but its headers say that it is incomplete, and it has not changed for very long.
    case broken
    /// Added by a person (`sluice add`).
    case added
}

/// A file that stopped changing, as `Watch` passes it on.
package struct SettledFile: Hashable, Sendable {
    /// The name of the configured folder.
    package var folder: String
    /// The folder's path as configured.
    package var root: FilePath
    package var relative: FilePath
    package var status: FileStatus
    package var identity: FileIdentity
    package var settledBy: SettleProof

    package init(
        folder: String, root: FilePath, relative: FilePath, status: FileStatus, identity: FileIdentity,
        settledBy: SettleProof
    ) {
        self.folder = folder
        self.root = root
        self.relative = relative
        self.status = status
        self.identity = identity
        self.settledBy = settledBy
    }

    package var path: SourcePath { SourcePath(root: root, relative: relative) }
}
