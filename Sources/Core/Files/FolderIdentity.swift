/// Which directory a configured folder was, in words that hold after a reboot.
package struct FolderIdentity: Hashable, Sendable, Codable {
    /// UUID or mount source of its file system; `nil` where that is not known. Never a device number.
    package var fileSystem: String?
    package var inode: UInt64
    /// Birth time, ns since 1970, where the file system keeps one.
    package var born: Int64?
    /// The user that it belongs to.
    package var owner: UInt32

    package init(fileSystem: String?, inode: UInt64, born: Int64?, owner: UInt32) {
        self.fileSystem = fileSystem
        self.inode = inode
        self.born = born
        self.owner = owner
    }

    /// The same directory, whoever owns it by now. What one side does not know does not count against it.
    package func isSameDirectory(as other: FolderIdentity) -> Bool {
        func agree<T: Equatable>(_ a: T?, _ b: T?) -> Bool { a == nil || b == nil || a == b }
        return inode == other.inode && agree(born, other.born) && agree(fileSystem, other.fileSystem)
    }

    /// What to make of the directory that stands under a configured path now.
    package enum Verdict: Hashable, Sendable {
        /// The remembered one.
        case same
        /// Another one, of a user who may put one there: it is remembered from now on.
        case replaced
        /// Another one, of somebody else: nothing in it is looked at until a person accepts it.
        case refused
    }

    /// - Parameters:
    ///   - found: What stands there now.
    ///   - daemon: The user with whose rights this process works.
    package func verdict(on found: FolderIdentity, daemon: UInt32) -> Verdict {
        // Without a birth time the number may be that of a directory that was made anew: then its owner counts too.
        if isSameDirectory(as: found), owner == found.owner || born != nil && found.born != nil { return .same }
        return [0, daemon, owner].contains(found.owner) ? .replaced : .refused
    }

    /// Whether a symbolic link in a configured path may lead to a directory: it belongs to root, to the daemon's user, or to
    /// the owner of that directory, who could have put the directory itself there.
    package static func mayLead(linkOf owner: UInt32, toDirectoryOf target: UInt32, daemon: UInt32) -> Bool {
        [0, daemon, target].contains(owner)
    }
}

/// Where a source stands: a configured folder, and the path below it.
///
/// Not a ``FilePath``, so that nothing opens it as one: everything below a folder is reached through the open folder.
package struct SourcePath: Hashable, Sendable {
    /// The folder's path as configured when the source was found.
    package var root: FilePath
    package var relative: FilePath

    package init(root: FilePath, relative: FilePath) {
        self.root = root
        self.relative = relative
    }

    /// The last part.
    package var name: FilePath { relative.name }
    /// The whole path for people, hooks and reports. Not to be opened.
    package var shown: FilePath { root.appending(relative) }
    package var display: String { shown.display }
    /// Another name in the same directory.
    package func sibling(_ name: FilePath) -> SourcePath {
        SourcePath(root: root, relative: relative.parent.appending(name))
    }
}
