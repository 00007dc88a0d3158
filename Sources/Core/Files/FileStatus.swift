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
