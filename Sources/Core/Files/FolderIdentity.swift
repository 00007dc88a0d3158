/// The identity of the directory behind a configured folder, in values that stay the same after a reboot.
package struct FolderIdentity: Hashable, Sendable, Codable {
    /// UUID or mount source of its file system; `nil` where that is not known. Never a device number.
    package var fileSystem: String?
    package var inode: UInt64
    /// Birth time, ns since 1970, where the file system keeps one.
    package var born: Int64?
    /// The user who owns it.
    package var owner: UInt32

    package init(fileSystem: String?, inode: UInt64, born: Int64?, owner: UInt32) {
        self.fileSystem = fileSystem
        self.inode = inode
        self.born = born
        self.owner = owner
    }

    /// Whether both are the same directory, regardless of the present owner. A value that one side lacks does not count
    /// as a difference.
    package func isSameDirectory(as other: FolderIdentity) -> Bool {
        func agree<T: Equatable>(_ a: T?, _ b: T?) -> Bool { a == nil || b == nil || a == b }
        return inode == other.inode && agree(born, other.born) && agree(fileSystem, other.fileSystem)
    }

    /// The judgement of the directory that is under a configured path now.
    package enum Verdict: Hashable, Sendable {
        /// The remembered directory.
        case same
        /// Another directory, of a user who may put one there: it is remembered from now on.
        case replaced
        /// Another directory, of another user: its content is ignored until a person accepts it.
        case refused
    }

    /// - Parameters:
    ///   - found: The directory at the path now.
    ///   - daemon: The user with whose rights this process works.
    package func verdict(on found: FolderIdentity, daemon: UInt32) -> Verdict {
        // Without a birth time the inode number may belong to a directory that was created again: then its owner counts
        // too.
        if isSameDirectory(as: found), owner == found.owner || born != nil && found.born != nil { return .same }
        return [0, daemon, owner].contains(found.owner) ? .replaced : .refused
    }

    /// Whether a symbolic link in a configured path may lead to a directory. It may if it belongs to root, to the
    /// daemon's user, or to the owner of that directory, who could have put the directory itself there.
    package static func mayLead(linkOf owner: UInt32, toDirectoryOf target: UInt32, daemon: UInt32) -> Bool {
        [0, daemon, target].contains(owner)
    }
}

/// The location of a source: a configured folder, and the path below it.
///
/// Not a ``FilePath``, so that no code opens it as one: files below a folder are reached through the open folder.
package struct SourcePath: Hashable, Sendable {
    /// The folder's path as configured when the source was found.
    package var root: FilePath
    package var relative: FilePath

    package init(root: FilePath, relative: FilePath) {
        self.root = root
        self.relative = relative
    }

    /// The last component.
    package var name: FilePath { relative.name }
    /// The whole path for people, hooks and reports. It must not be opened.
    package var shown: FilePath { root.appending(relative) }
    package var display: String { shown.display }
    /// Another name in the same directory.
    package func sibling(_ name: FilePath) -> SourcePath {
        SourcePath(root: root, relative: relative.parent.appending(name))
    }
}
