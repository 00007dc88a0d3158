internal import Core
internal import Linux

/// A directory that is being listed, and the position in it. A class, because it is used for every name.
final class DirectoryScan {
    let directory: WatchedDirectory
    let reason: VisitReason
    let stream: FolderStream
    /// The number of the visit, unique among all directories.
    let visit: Int
    /// The path below the root, and the state of the tree that it was computed in.
    private(set) var relative: FilePath
    private(set) var treeVersion: Int
    /// The contenders for its names.
    private(set) var contenders: [DirectoryMatcher]
    /// The ignore files that apply to its names.
    let ignored: IgnoreChain
    /// Device of the directory; files nearly always share it.
    let device: UInt64
    let fileSystem: FileSystemIdentity?

    init(
        _ directory: WatchedDirectory, _ reason: VisitReason, _ stream: FolderStream, visit: Int, relative: FilePath,
        rules: [CompiledRule], treeVersion: Int, device: UInt64, fileSystem: FileSystemIdentity?
    ) {
        self.directory = directory
        self.reason = reason
        self.stream = stream
        self.visit = visit
        self.relative = relative
        self.treeVersion = treeVersion
        contenders = directory.root.matchers.contenders(in: relative, of: directory.root, rules: rules)
        ignored = directory.ignored
        self.device = device
        self.fileSystem = fileSystem
    }

    /// Updates the path and the contenders, since directories may have moved, and claims changed, since the last step.
    ///
    /// - Returns: Whether this directory is still in the tree.
    func refresh(_ rules: [CompiledRule], treeVersion: Int) -> Bool {
        if self.treeVersion == treeVersion { return true }
        guard !directory.isGone, let relative = directory.relative else { return false }
        self.relative = relative
        self.treeVersion = treeVersion
        contenders = directory.root.matchers.contenders(in: relative, of: directory.root, rules: rules)
        return true
    }
}
