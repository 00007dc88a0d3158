/// The status of a file at one moment. Compared with another status **within one run** of the daemon, to find out
/// whether the file changed.
package struct FileStatus: Hashable, Sendable {
    /// `st_dev`. Changes with every mount: never stored.
    package var device: UInt64
    package var inode: UInt64
    /// Bytes.
    package var size: Int64
    /// Nanoseconds since 1970, UTC.
    package var modified: Int64
    /// `st_ctime`: nanoseconds since 1970, UTC. Also changes by rename, chmod and link.
    package var changed: Int64
    /// Birth time in nanoseconds since 1970, where the file system keeps one.
    package var born: Int64?
    /// `st_mode` with the type bits.
    package var mode: UInt32

    package init(
        device: UInt64, inode: UInt64, size: Int64, modified: Int64, changed: Int64, born: Int64?, mode: UInt32
    ) {
        self.device = device
        self.inode = inode
        self.size = size
        self.modified = modified
        self.changed = changed
        self.born = born
        self.mode = mode
    }

    /// Whether the type bits say "regular file" (`S_IFREG`, inode(7)).
    package var isRegular: Bool { mode & 0o170000 == 0o100000 }
    package var isLink: Bool { mode & 0o170000 == 0o120000 }
    package var isDirectory: Bool { mode & 0o170000 == 0o040000 }

    /// Whether file and bytes are the same as far as the kernel shows; `changed` may differ (a rename or chmod changes
    /// it).
    package func hasSameContent(as other: FileStatus) -> Bool {
        device == other.device && inode == other.inode && size == other.size && modified == other.modified
    }
}

/// The numbers that distinguish one version of a file from another at the same place.
package struct FileVersion: Hashable, Sendable {
    /// Bytes.
    package var size: Int64
    /// Nanoseconds since 1970, UTC.
    package var modified: Int64
    /// `nil` where the file system assigns new numbers at every mount (FAT, many FUSE).
    package var inode: UInt64?
    package var born: Int64?

    package init(size: Int64, modified: Int64, inode: UInt64?, born: Int64?) {
        self.size = size
        self.modified = modified
        self.inode = inode
        self.born = born
    }

    /// - Parameter keepsInodes: The file system gives a file the same inode number at every mount.
    package init(_ status: FileStatus, keepsInodes: Bool) {
        self.init(
            size: status.size, modified: status.modified, inode: keepsInodes ? status.inode : nil, born: status.born)
    }

    /// Whether no value that both sides know differs.
    ///
    /// - Parameter areOnOneFileSystem: Inode and birth time are only comparable then: a restored disk has new ones.
    package func isSame(as other: FileVersion, areOnOneFileSystem: Bool) -> Bool {
        func agree<T: Equatable>(_ a: T?, _ b: T?) -> Bool { a == nil || b == nil || a == b }
        guard size == other.size, modified == other.modified else { return false }
        return !areOnOneFileSystem || (agree(inode, other.inode) && agree(born, other.born))
    }
}

/// The identity of a file in values that stay the same after a reboot, another mount order and a re-plugged card.
package struct FileIdentity: Hashable, Sendable {
    /// The name of the configured folder.
    package var folder: String
    /// Path below the folder's path.
    package var relative: FilePath
    package var size: Int64
    /// Nanoseconds since 1970, UTC.
    package var modified: Int64
    /// `nil` where the file system assigns new numbers at every mount (FAT, many FUSE).
    package var inode: UInt64?
    package var born: Int64?
    /// The file system's UUID, or its mount source. Never the device number.
    package var fileSystem: String?

    package init(
        folder: String, relative: FilePath, size: Int64, modified: Int64, inode: UInt64?, born: Int64?,
        fileSystem: String?
    ) {
        self.folder = folder
        self.relative = relative
        self.size = size
        self.modified = modified
        self.inode = inode
        self.born = born
        self.fileSystem = fileSystem
    }

    /// Whether both are the same version of the same file: same place, size and time, and no known value differs.
    ///
    /// A value that one side lacks (an inode on FAT, a birth time on an old kernel) does not count as a difference.
    package func isSameVersion(as other: FileIdentity) -> Bool {
        guard folder == other.folder, relative == other.relative else { return false }
        return version.isSame(
            as: other.version, areOnOneFileSystem: fileSystem != nil && fileSystem == other.fileSystem)
    }

    package var version: FileVersion { FileVersion(size: size, modified: modified, inode: inode, born: born) }
}

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
