internal import Core
internal import Store

/// Work with the files of one disk, which all wait while it is away: there may be a hundred thousand, and each would be
/// looked for in vain.
struct DiskWork: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// Copying the files, or digesting those that are uploaded in place.
        case staging
        /// Staging them by a command.
        case export
        case uploadInPlace
        case release
    }

    let kind: Kind
    let folder: String
    /// The folder's path when its files were found.
    let root: FilePath
    let fileSystem: String?
}

/// Files of a disk that wait for the same work.
struct DiskFiles: Sendable {
    let disk: DiskWork
    /// Their numbers.
    let assets: Set<Int64>
}

extension DiskWork {
    /// - Parameter asset: One of the files.
    init(_ kind: Kind, on asset: AssetRecord) {
        self.init(kind: kind, folder: asset.folder, root: asset.root, fileSystem: asset.identity.fileSystem)
    }

    /// The copies of the asset's disk that are made in the same way: by a command, or not.
    init(staging asset: AssetRecord) { self.init(asset.stagingMode == .export ? .export : .staging, on: asset) }
}
