internal import CLinux
package import Core
internal import Glibc

/// The directories above a configured folder, and who could put another one in its place.
package enum FolderParents {
    /// The nearest directory above `path` in which somebody else could rename the folder or put a link in its place, in words that
    /// follow its path; `nil` where nobody could. Waits for the disk.
    ///
    /// Root, the daemon's user and the folder's owner may: it is theirs. In a sticky directory only the owner of an entry may
    /// rename it (inode(7)).
    /// - Parameters:
    ///   - owner: Who may as well; `nil` for whom the directory belongs to that is there now.
    ///   - known: Where the directory is that `path` was opened as; without it the path is followed to it.
    package static func weakest(
        above path: FilePath, trusting owner: UInt32? = nil, at known: FilePath? = nil
    ) -> (directory: FilePath, why: String)? {
        // What is not there yet is told of by others.
        guard let real = known ?? Files.real(path), let top = look(real) else { return nil }
        let trusted: Set<UInt32> = [0, geteuid(), owner ?? top.owner]
        if let weak = weakest(above: real, top.owner, trusted) { return weak }
        // Each link on the way can be replaced where it stands.
        var at = path.normalised
        while !at.isEmpty, at != "/" {
            if let link = look(at), link.mode & 0o170000 == 0o120000, let folder = Files.real(at.parent),
                let weak = weakest(above: folder.appending(at.name), link.owner, trusted)
            {
                return weak
            }
            at = at.parent
        }
        return nil
    }

    /// - Parameters:
    ///   - path: Without links but, perhaps, its last part.
    ///   - owner: Of what it names.
    private static func weakest(
        above path: FilePath, _ owner: UInt32, _ trusted: Set<UInt32>
    ) -> (directory: FilePath, why: String)? {
        var owner = owner
        var at = path.parent
        while !at.isEmpty {
            guard let parent = look(at) else { return nil }
            if !trusted.contains(parent.owner) {
                return (at, "belongs to user \(Accounts.shown(parent.owner))")
            }
            let isSticky = parent.mode & 0o1000 != 0
            if !isSticky || !trusted.contains(owner) {
                if parent.mode & 0o002 != 0 { return (at, "can be written by everybody") }
                if parent.mode & 0o020 != 0, parent.group != 0 {
                    return (at, "can be written by group \(parent.group)")
                }
            }
            if at == "/" { break }
            owner = parent.owner
            at = at.parent
        }
        return nil
    }

    private static func look(_ path: FilePath) -> (owner: UInt32, group: UInt32, mode: UInt32)? {
        var status = stat()
        guard path.withCString({ lstat($0, &status) }) == 0 else { return nil }
        return (status.st_uid, status.st_gid, status.st_mode)
    }
}
