package import Core

/// Distinguishes one version of a recorded file from the next. An asset that has not been copied yet may get another
/// version at any time; results for the earlier one must not be stored for it.
package struct AssetVersion: Sendable, Hashable {
    package var size: Int64
    package var modified: Int64
    package var changed: Int64
    package var inode: UInt64?

    /// For a statement with the asset's number as `?1`.
    static let condition = "AND size = ?2 AND modified = ?3 AND changed = ?4 AND inode IS ?5"
    func values(of asset: Int64) -> [Connection.Value] {
        [
            .integer(asset), .integer(size), .integer(modified), .integer(changed),
            .init(inode.map { Int64(bitPattern: $0) }),
        ]
    }
}

package struct AssetRecord: Sendable, Hashable {
    package var id: Int64
    package var folder: String
    package var root: FilePath
    package var identity: FileIdentity
    /// The last ctime before it was staged, in ns since 1970.
    package var changed: Int64
    package var settledBy: SettleProof
    package var state: AssetState
    package var sha256: [UInt8]?
    package var action: SourceAction
    package var sourceState: SourceState
    package var sourceNote: String?
    package var priority: Int
    package var stagingMode: StagingMode
    /// Bytes that are uploaded: those of the source, unless a command made another file of it.
    package var stagedSize: Int64
    /// SHA-256 of the source, where `sha256` is that of another file.
    package var sourceSHA256: [UInt8]?
    /// The time when it was recorded.
    package var arrivedAt: WallTime
    package var unknown = UnknownValues()

    package var path: SourcePath { SourcePath(root: root, relative: identity.relative) }
    package var size: Int64 { identity.size }
    package var version: AssetVersion {
        AssetVersion(size: size, modified: identity.modified, changed: changed, inode: identity.inode)
    }
    /// The name of its copy in the staging folder.
    package var stagedName: FilePath { FilePath("\(id)") }
}
