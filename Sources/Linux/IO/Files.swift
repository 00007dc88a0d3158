internal import CLinux
package import Core
internal import Glibc

// Operations on names, folders and file status. Each function is one system call, or the few that always belong
// together.

extension FileStatus {
    /// The status of `path`, without following a final symbolic link.
    package init(at path: FilePath) throws(SystemError) { try self.init(AT_FDCWD, path, shown: path) }

    /// The status of an open file.
    package init(of descriptor: borrowing Descriptor, named path: FilePath) throws(SystemError) {
        self = try descriptor.withNumber { number throws(SystemError) in
            try FileStatus(number, FilePath(""), shown: path)
        }
    }

    /// The status of a name below an open folder.
    package init(at relative: FilePath, in folder: borrowing Descriptor) throws(SystemError) {
        self = try folder.withNumber { number throws(SystemError) in try FileStatus(number, relative, shown: relative) }
    }

    private init(_ folder: CInt, _ path: FilePath, shown: FilePath) throws(SystemError) {
        var status = sluice_look()
        try systemCall("statx", on: shown.display) { path.withCString { sluice_statx(folder, $0, &status) } }
        self.init(
            device: status.device, inode: status.inode, size: status.size, modified: status.modified,
            changed: status.changed,
            born: status.has_born != 0 ? status.born : nil, mode: status.mode)
    }

    /// Like ``ifPresent(at:)``, for a name below an open folder.
    package static func ifPresent(
        at relative: FilePath, in folder: borrowing Descriptor
    ) throws(SystemError) -> FileStatus? {
        do { return try FileStatus(at: relative, in: folder) } catch {
            if error.isMissing { return nil }
            throw error
        }
    }

    /// `nil` when the name does not exist; other errors are thrown.
    package static func ifPresent(at path: FilePath) throws(SystemError) -> FileStatus? {
        do { return try FileStatus(at: path) } catch {
            if error.isMissing { return nil }
            throw error
        }
    }
}

/// Operations on names.
package enum Files {
    /// Makes `path` and its missing parents, each with `mode`. Existing folders stay as they are.
    ///
    /// - Parameter durably: Syncs the parent of each folder that was made, so that a durable file in it cannot
    ///   disappear with its folder.
    package static func makeFolders(
        _ path: FilePath, mode: UInt32 = 0o750, durably: Bool = false
    ) throws(SystemError) {
        if let status = try FileStatus.ifPresent(at: path), status.isDirectory { return }
        let parent = path.parent
        if !parent.isEmpty && parent != path { try makeFolders(parent, mode: mode, durably: durably) }
        do { try systemCall("mkdir", on: path.display) { path.withCString { mkdir($0, mode_t(mode)) } } } catch {
            guard error.exists else { throw error }
        }
        if durably { try syncFolder(parent.isEmpty ? "." : parent) }
    }

    package static func rename(_ from: FilePath, to: FilePath) throws(SystemError) {
        try systemCall("rename", on: from.display) {
            from.withCString { from in to.withCString { Glibc.rename(from, $0) } }
        }
    }

    /// Removes a file's name.
    package static func remove(_ path: FilePath) throws(SystemError) {
        try systemCall("unlink", on: path.display) { path.withCString { unlink($0) } }
    }

    /// Removes an empty folder.
    package static func removeFolder(_ path: FilePath) throws(SystemError) {
        try systemCall("rmdir", on: path.display) { path.withCString { rmdir($0) } }
    }

    /// Removes a file's name; a missing name is no error.
    package static func removeIfPresent(_ path: FilePath) throws(SystemError) {
        do { try remove(path) } catch { guard error.isMissing else { throw error } }
    }

    /// Makes a symbolic link.
    package static func makeLink(_ path: FilePath, to target: FilePath) throws(SystemError) {
        try systemCall("symlink", on: path.display) {
            path.withCString { path in target.withCString { symlink($0, path) } }
        }
    }

    /// Makes the names in `folder` durable.
    package static func syncFolder(_ folder: FilePath) throws(SystemError) {
        try Descriptor.open(folder, for: .folder).sync(named: folder)
    }

    /// The names in `folder`, without `.` and `..`, unsorted.
    package static func names(in folder: FilePath) throws(SystemError) -> [FilePath] {
        let descriptor = try Descriptor.open(folder, for: .folder)
        let copy = try descriptor.withNumber { number throws(SystemError) in
            try systemCall("fcntl", on: folder.display) { fcntl(number, F_DUPFD_CLOEXEC, 0) }
        }
        guard let stream = fdopendir(copy) else {
            let code = errno
            _ = Glibc.close(copy)
            throw SystemError(call: "fdopendir", subject: folder.display, code: code)
        }
        defer { closedir(stream) }
        var names: [FilePath] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                if errno != 0 { throw SystemError(call: "readdir", subject: folder.display, code: errno) }
                return names
            }
            // The record is shorter than the type, so the name is read in place and not from a copy of the struct.
            guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { continue }
            let start = UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: CChar.self)
            let name = FilePath(bytes: UnsafeRawBufferPointer(start: start, count: strlen(start)))
            if name != "." && name != ".." { names.append(name) }
        }
    }

    /// The whole content of a small file.
    ///
    /// - Parameter limit: A larger file is refused with `EFBIG`.
    package static func read(_ path: FilePath, limit: Int = 1 << 20) throws(SystemError) -> [UInt8] {
        let descriptor = try Descriptor.open(path, for: .reading)
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let got = try descriptor.read(into: &buffer, named: path)
            if got == 0 { return content }
            content += buffer[..<got]
            if content.count > limit { throw SystemError(call: "read", subject: path.display, code: EFBIG) }
        }
    }

    /// Replaces a small file atomically and durably: temporary name, sync, rename, sync of the folder.
    ///
    /// - Parameter mode: The exact mode; by default only its owner may use it.
    package static func replace(
        _ path: FilePath, with content: [UInt8], mode: UInt32? = nil
    ) throws(SystemError) {
        let partial = FilePath(bytes: path.bytes + Array(".part".utf8))
        try removeIfPresent(partial)
        do {
            let descriptor = try Descriptor.open(partial, for: .creating)
            if let mode { try descriptor.setMode(mode, named: partial) }
            try descriptor.write(content, named: partial)
            try descriptor.sync(named: partial)
            try descriptor.close(named: partial)
            try rename(partial, to: path)
        } catch {
            // On a full disk a partial file would take the space of the next. The first error is the one worth
            // reporting.
            try? removeIfPresent(partial)
            throw error
        }
        try syncFolder(path.parent.isEmpty ? "." : path.parent)
    }

    /// Replaces a small file atomically for its readers: temporary name beside it, exact mode, rename. It is not
    /// synced: a file that is rewritten soon is not worth a wait for the disk, and after a power cut it is written
    /// again.
    package static func publish(_ path: FilePath, _ content: [UInt8], mode: UInt32) throws(SystemError) {
        let partial = FilePath(bytes: path.bytes + Array(".part".utf8))
        try removeIfPresent(partial)
        do {
            let descriptor = try Descriptor.open(partial, for: .creating)
            try descriptor.setMode(mode, named: partial)
            try descriptor.write(content, named: partial)
            try descriptor.close(named: partial)
            try rename(partial, to: path)
        } catch {
            // On a full disk a partial file would take the space of the next. The first error is the one worth
            // reporting.
            try? removeIfPresent(partial)
            throw error
        }
    }
}

extension Descriptor {
    /// Returns when the written bytes would survive a power cut (fsync(2)).
    package borrowing func sync(named path: FilePath) throws(SystemError) {
        try withNumber { number throws(SystemError) in _ = try systemCall("fsync", on: path.display) { fsync(number) } }
    }

    /// Reads at the descriptor's position. 0 at the end.
    package borrowing func read(into buffer: inout [UInt8], named path: FilePath) throws(SystemError) -> Int {
        try withNumber { number throws(SystemError) in
            try systemCall("read", on: path.display) {
                buffer.withUnsafeMutableBytes { Glibc.read(number, $0.baseAddress, $0.count) }
            }
        }
    }

    /// Reads at `offset`. Returns fewer bytes than requested only at the end.
    package borrowing func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, named path: FilePath
    ) throws(SystemError) -> Int {
        var done = 0
        while done < buffer.count {
            let got = try withNumber { number throws(SystemError) in
                try systemCall("pread", on: path.display) {
                    pread(number, buffer.baseAddress?.advanced(by: done), buffer.count - done, Int(offset) + done)
                }
            }
            if got == 0 { break }
            done += got
        }
        return done
    }

    /// Writes all of `content` at the descriptor's position.
    package borrowing func write(_ content: [UInt8], named path: FilePath) throws(SystemError) {
        var done = 0
        while done < content.count {
            done += try withNumber { number throws(SystemError) in
                try systemCall("write", on: path.display) {
                    content.withUnsafeBytes { Glibc.write(number, $0.baseAddress?.advanced(by: done), $0.count - done) }
                }
            }
        }
    }

    package borrowing func write(_ content: UnsafeRawBufferPointer, named path: FilePath) throws(SystemError) {
        var done = 0
        while done < content.count {
            done += try withNumber { number throws(SystemError) in
                try systemCall("write", on: path.display) {
                    Glibc.write(number, content.baseAddress?.advanced(by: done), content.count - done)
                }
            }
        }
    }

    /// Sets both times, in nanoseconds since 1970.
    package borrowing func setModified(_ nanoseconds: Int64, named path: FilePath) throws(SystemError) {
        // The part below the second counts forward, also before 1970 (utimensat(2)).
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        let time = timespec(
            tv_sec: Int(rest < 0 ? seconds - 1 : seconds), tv_nsec: Int(rest < 0 ? rest + 1_000_000_000 : rest))
        try withNumber { number throws(SystemError) in
            _ = try systemCall("futimens", on: path.display) {
                [time, time].withUnsafeBufferPointer { futimens(number, $0.baseAddress) }
            }
        }
    }

    /// Gives a copy the permissions of its original, without set-id bits, and its owner and group as far as this process may.
    package borrowing func copyAccess(of original: borrowing Descriptor, named path: FilePath) throws(SystemError) {
        var status = stat()
        try original.withNumber { number throws(SystemError) in
            _ = try systemCall("fstat", on: path.display) { fstat(number, &status) }
        }
        let (owner, group, mode) = (status.st_uid, status.st_gid, status.st_mode)
        // With an access control list the middle bits are the mask, and not the rights of the group (acl(5)).
        let list = try original.attribute("system.posix_acl_access", named: path)
        try withNumber { number throws(SystemError) in
            // Only root may give files away, and other users only to groups of theirs: otherwise the file stays this
            // user's.
            let isOfGroup = fchown(number, owner, group) == 0 || fchown(number, uid_t.max, group) == 0
            var kept = mode & 0o777
            if let list { kept = kept & ~0o070 | (AccessList.group(in: list) & (mode >> 3) & 0o7) << 3 }
            // Another group must not have more rights than all other users.
            if !isOfGroup { kept = kept & ~0o070 | kept & (kept & 0o007) << 3 }
            // Last, because a change of the owner clears bits.
            _ = try systemCall("fchmod", on: path.display) { fchmod(number, kept) }
        }
        // Where the file system has no lists, only the bits remain.
        if let list { try? setAttribute("system.posix_acl_access", to: list, named: path) }
    }

    /// Tells the kernel that these bytes will not be needed again; has no effect on unwritten pages.
    package borrowing func forget(from offset: Int64, count: Int64) {
        // Only advice: on a file system that ignores it, only cache is wasted.
        withNumber { _ = posix_fadvise($0, Int(offset), Int(count), POSIX_FADV_DONTNEED) }
    }
}
