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
    package static func weakest(above path: FilePath) -> (directory: FilePath, why: String)? {
        // What is not there yet is told of by others.
        guard let real = Files.real(path), let top = look(real) else { return nil }
        let trusted: Set<UInt32> = [0, geteuid(), top.owner]
        var entry = top
        var at = real.parent
        while !at.isEmpty {
            guard let parent = look(at) else { return nil }
            if !trusted.contains(parent.owner) {
                return (at, "belongs to user \(Accounts.shown(parent.owner))")
            }
            let isSticky = parent.mode & 0o1000 != 0
            if !isSticky || !trusted.contains(entry.owner) {
                if parent.mode & 0o002 != 0 { return (at, "can be written by everybody") }
                if parent.mode & 0o020 != 0, parent.group != 0 {
                    return (at, "can be written by group \(parent.group)")
                }
            }
            if at == "/" { break }
            entry = parent
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
