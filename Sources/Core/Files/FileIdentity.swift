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

    /// Whether both are certainly on different file systems.
    package func isOnOtherDisk(than other: FileIdentity) -> Bool {
        Self.areOtherDisks(fileSystem, other.fileSystem)
    }

    /// Whether these are certainly the names of different file systems, as in ``fileSystem``. The name of a device
    /// (`vfat:/dev/sda1`) is that of another one after a restart.
    package static func areOtherDisks(_ one: String?, _ other: String?) -> Bool {
        one != other && identifiesDisk(one) && identifiesDisk(other)
    }

    /// Whether a name, as in ``fileSystem``, is that of one disk only.
    package static func identifiesDisk(_ name: String?) -> Bool { name.map { !$0.contains(":/dev/") } ?? false }

    package var version: FileVersion { FileVersion(size: size, modified: modified, inode: inode, born: born) }
}
