internal import CLinux
package import Core
internal import Glibc

/// The directories above a configured folder, and the users who could replace it.
package enum FolderParents {
    /// The nearest directory above `path` in which another user could rename the folder or replace it by a link, as a
    /// text that follows its path; `nil` where there is none. Waits for the disk.
    ///
    /// Root, the daemon's user and the folder's owner are trusted. In a sticky directory only the owner of an entry may
    /// rename it (inode(7)).
    /// - Parameters:
    ///   - owner: A user who is also trusted; `nil` for the owner of the present directory.
    ///   - known: The real path of the directory that was opened as `path`; without it the path is resolved.
    package static func weakest(
        above path: FilePath, trusting owner: UInt32? = nil, at known: FilePath? = nil
    ) -> (directory: FilePath, why: String)? {
        // A missing folder is reported elsewhere.
        guard let real = known ?? Files.real(path), let top = status(real) else { return nil }
        let trusted: Set<UInt32> = [0, geteuid(), owner ?? top.owner]
        return weakest(onTheWayTo: real, trusted) ?? weakest(onTheWayTo: path, trusted)
    }

    /// The kernel's own limit (path_resolution(7)).
    private static let maxLinks = 40

    /// The last directory on the way to `path` in which another user could replace the entry that is followed. A link
    /// leads on through directories of its own.
    private static func weakest(
        onTheWayTo path: FilePath, _ trusted: Set<UInt32>
    ) -> (directory: FilePath, why: String)? {
        var weak: (directory: FilePath, why: String)?
        // The path never contains a link.
        guard var at = path.isAbsolute ? "/" : Files.real(".") else { return nil }
        var names = Array(path.components.reversed())
        var links = 0
        while let name = names.popLast() {
            if name == "." { continue }
            if name == ".." {
                at = at.parent
                continue
            }
            let entry = at.appending(name)
            guard let directory = status(at), let found = status(entry) else { return weak }
            if let why = weakness(of: at, directory, forEntryOf: found.owner, trusted) { weak = (at, why) }
            guard found.mode & 0o170000 == 0o120000 else {
                at = entry
                continue
            }
            links += 1
            guard links <= maxLinks, let target = Files.linkTarget(entry) else { return weak }
            names += target.components.reversed()
            if target.isAbsolute { at = "/" }
        }
        return weak
    }

    /// Describes which other users could replace an entry, as a text that follows the directory's path.
    private static func weakness(
        of path: FilePath, _ directory: Owner, forEntryOf owner: UInt32, _ trusted: Set<UInt32>
    ) -> String? {
        if !trusted.contains(directory.owner) { return "belongs to user \(UserDatabase.shown(directory.owner))" }
        let isSticky = directory.mode & 0o1000 != 0
        if isSticky, trusted.contains(owner) { return nil }
        if directory.mode & 0o002 != 0 { return "can be written by every user" }
        if let list = Files.attribute("system.posix_acl_access", of: path) {
            // The middle bits are the mask then, and not the rights of the group (acl(5)).
            for entry in AccessList.entries(in: list) where entry.mayWrite && directory.mode & 0o020 != 0 {
                switch entry.kind {
                case .user where !trusted.contains(entry.number):
                    return "can be written by user \(UserDatabase.shown(entry.number)), by its access control list"
                case .group where entry.number != 0:
                    return "can be written by group \(entry.number), by its access control list"
                case .owningGroup where directory.group != 0: return "can be written by group \(directory.group)"
                default: break
                }
            }
            return nil
        }
        if directory.mode & 0o020 != 0, directory.group != 0 { return "can be written by group \(directory.group)" }
        return nil
    }

    private typealias Owner = (owner: UInt32, group: UInt32, mode: UInt32)

    private static func status(_ path: FilePath) -> Owner? {
        var status = stat()
        guard path.withCString({ lstat($0, &status) }) == 0 else { return nil }
        return (status.st_uid, status.st_gid, status.st_mode)
    }
}
