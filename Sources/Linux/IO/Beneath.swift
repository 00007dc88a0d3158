internal import CLinux
package import Core
internal import Glibc

// Operations on names below a folder where other users choose names. Every step is relative to an open folder and
// follows no symbolic link, so that a planted link leads nowhere.

extension Files {
    /// Opens a folder by one name below `folder`, without following a symbolic link (`ELOOP` or `ENOTDIR` then).
    package static func openFolder(
        _ name: FilePath, in folder: borrowing Descriptor
    ) throws(SystemError) -> Descriptor {
        try folder.withNumber { number throws(SystemError) in
            Descriptor(
                adopting: try systemCall("openat", on: name.display) {
                    name.withCString { openat(number, $0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
                })
        }
    }

    /// Makes a folder by one name below `folder`. `false` when the name exists already.
    package static func makeFolder(
        _ name: FilePath, in folder: borrowing Descriptor, mode: UInt32 = 0o750
    ) throws(SystemError) -> Bool {
        try folder.withNumber { number throws(SystemError) in
            do throws(SystemError) {
                try systemCall("mkdirat", on: name.display) { name.withCString { mkdirat(number, $0, mode_t(mode)) } }
                return true
            } catch {
                if error.exists { return false }
                throw error
            }
        }
    }

    /// Opens a file by one name below `folder` to write and read it. The caller handles files that are not regular.
    ///
    /// - Parameter mode: Makes the file with this mode minus the process's umask, and refuses an existing name
    ///   (`EEXIST`). `nil` opens an existing file.
    package static func openFile(
        _ name: FilePath, in folder: borrowing Descriptor, creating mode: UInt32?
    ) throws(SystemError) -> Descriptor {
        let flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (mode == nil ? 0 : O_CREAT | O_EXCL)
        return try folder.withNumber { number throws(SystemError) in
            Descriptor(
                adopting: try systemCall("open", on: name.display) {
                    name.withCString { openat(number, $0, flags, mode_t(mode ?? 0)) }
                })
        }
    }

    /// Whether files can be made in `folder`, found out without a visible name (`O_TMPFILE`).
    ///
    /// - Returns: `nil` where the file system cannot do that.
    package static func canMakeFiles(in folder: borrowing Descriptor, named path: FilePath) throws(SystemError) -> Bool?
    {
        do throws(SystemError) {
            _ = try folder.withNumber { number throws(SystemError) in
                Descriptor(adopting: try systemCall("open", on: path.display) { sluice_nameless_file(number) })
            }
            return true
        } catch {
            // EISDIR: a kernel or a network file system that misunderstands the flag.
            guard error.code == EOPNOTSUPP || error.code == EISDIR || error.code == EINVAL else { throw error }
            return nil
        }
    }

    /// Renames from one name below `folder` to another, and replaces an existing file.
    package static func rename(
        _ from: FilePath, to: FilePath, in folder: borrowing Descriptor
    ) throws(SystemError) {
        try folder.withNumber { number throws(SystemError) in
            _ = try systemCall("renameat", on: to.display) {
                from.withCString { from in to.withCString { renameat(number, from, number, $0) } }
            }
        }
    }

    /// Removes a file's name below `folder`.
    ///
    /// - Returns: `false` if it did not exist.
    @discardableResult
    package static func removeIfPresent(_ name: FilePath, in folder: borrowing Descriptor) throws(SystemError) -> Bool {
        do { try remove(name, in: folder) } catch {
            if error.isMissing { return false }
            throw error
        }
        return true
    }

    /// Removes a file's name below `folder`.
    package static func remove(_ name: FilePath, in folder: borrowing Descriptor) throws(SystemError) {
        try folder.withNumber { number throws(SystemError) in
            _ = try systemCall("unlinkat", on: name.display) { name.withCString { unlinkat(number, $0, 0) } }
        }
    }
}

extension Descriptor {
    /// Writes as much as possible at `offset`.
    ///
    /// - Returns: How many bytes were written, and why not all of them.
    package borrowing func write(
        _ content: UnsafeRawBufferPointer, at offset: Int64, named path: FilePath
    ) -> (count: Int, error: SystemError?) {
        var done = 0
        while done < content.count {
            do {
                done += try withNumber { number throws(SystemError) in
                    try systemCall("pwrite", on: path.display) {
                        pwrite(
                            number, content.baseAddress?.advanced(by: done), content.count - done, Int(offset) + done)
                    }
                }
            } catch { return (done, error) }
        }
        return (done, nil)
    }

    /// Cuts or extends the file (ftruncate(2)).
    package borrowing func setSize(_ size: Int64, named path: FilePath) throws(SystemError) {
        try withNumber { number throws(SystemError) in
            _ = try systemCall("ftruncate", on: path.display) { ftruncate(number, Int(size)) }
        }
    }

    /// Sets the permission bits exactly (fchmod(2)).
    package borrowing func setMode(_ mode: UInt32, named path: FilePath) throws(SystemError) {
        try withNumber { number throws(SystemError) in
            _ = try systemCall("fchmod", on: path.display) { fchmod(number, mode_t(mode)) }
        }
    }

    /// Gives the file to a group (fchown(2)). Bits beyond the permissions are lost.
    package borrowing func setGroup(_ group: UInt32, named path: FilePath) throws(SystemError) {
        try withNumber { number throws(SystemError) in
            _ = try systemCall("fchown", on: path.display) { fchown(number, uid_t.max, group) }
        }
    }

    /// Takes the lock of an open file. The kernel releases it when the process ends, in any way (flock(2)).
    ///
    /// - Returns: `false` when another process has it.
    package borrowing func tryLock(named path: FilePath) throws(SystemError) -> Bool {
        try withNumber { number throws(SystemError) in
            do throws(SystemError) {
                try systemCall("flock", on: path.display) { flock(number, LOCK_EX | LOCK_NB) }
                return true
            } catch {
                if error.code == EWOULDBLOCK { return false }
                throw error
            }
        }
    }

    /// Releases the lock.
    ///
    /// A program that is being started has a copy of the descriptor until its exec: if this call only closed ours, that
    /// copy would hold the lock until then.
    package borrowing func unlock() { withNumber { _ = flock($0, LOCK_UN) } }
}
