internal import CLinux
package import Core
internal import Glibc

/// An open directory, and the names below it.
///
/// No symbolic link below it is followed, and no name leads out of it, regardless of who may write there: openat2(2)
/// with `RESOLVE_BENEATH`, `RESOLVE_NO_SYMLINKS` and `RESOLVE_NO_MAGICLINKS`, or one openat(2) with `O_NOFOLLOW` for
/// each directory on the way. A link ends in `ELOOP`. Mounts below it are entered: bind mounts, subvolumes and
/// automounts work as usual.
package struct OpenFolder: ~Copyable, Sendable {
    /// How names with several components are resolved.
    enum Resolver: Sendable {
        /// By the kernel, in one call (openat2(2), Linux 5.6).
        case kernel
        /// One directory after another: for older kernels, and where a system call filter refuses openat2.
        case steps

        /// Tested once: a filter answers `EPERM`, an older kernel `ENOSYS`.
        static let standard: Resolver = {
            let probe = sluice_open_beneath(AT_FDCWD, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
            if probe >= 0 { _ = Glibc.close(probe) }
            // Any other error is about that directory, and not about the call.
            return probe < 0 && (errno == ENOSYS || errno == EPERM) ? .steps : .kernel
        }()
    }

    private let descriptor: Descriptor
    private let resolver: Resolver
    /// The path at which it was opened, for messages.
    package let path: FilePath

    init(_ descriptor: consuming Descriptor, named path: FilePath, by resolver: Resolver = .standard) {
        self.descriptor = descriptor
        self.path = path
        self.resolver = resolver
    }

    /// Opens a directory by its path; symbolic links in the path are followed.
    package init(following path: FilePath) throws(SystemError) {
        self.init(try Descriptor.open(path, for: .folder), named: path)
    }

    /// Lends the number for the length of `body`.
    package borrowing func withNumber<R: ~Copyable, E: Error>(_ body: (CInt) throws(E) -> R) throws(E) -> R {
        try descriptor.withNumber(body)
    }

    /// Makes the names in it durable (fsync(2)).
    package borrowing func sync() throws(SystemError) { try descriptor.sync(named: path) }

    // MARK: File status

    /// The status of a name, without following a link.
    ///
    /// - Parameter relative: Empty for the directory itself.
    package borrowing func status(at relative: FilePath) throws(SystemError) -> FileStatus {
        try withParent(of: relative) { folder, name throws(SystemError) in
            var status = sluice_look()
            try systemCall("statx", on: shown(relative)) { name.withCString { sluice_statx(folder, $0, &status) } }
            return FileStatus(status)
        }
    }

    /// Like ``status(at:)``; `nil` when the name does not exist.
    package borrowing func statusIfPresent(at relative: FilePath) throws(SystemError) -> FileStatus? {
        do { return try status(at: relative) } catch {
            if error.isMissing { return nil }
            throw error
        }
    }

    /// Like ``status(at:)``, but a network file system queries its server instead of using its cache.
    package borrowing func status(freshAt relative: FilePath) throws(SystemError) -> FileStatus {
        try withParent(of: relative) { folder, name throws(SystemError) in
            var status = sluice_look()
            try systemCall("statx", on: shown(relative)) {
                name.withCString { sluice_statx_fresh(folder, $0, &status) }
            }
            return FileStatus(status)
        }
    }

    /// The number of the mount that contains a name, as in mountinfo; `nil` if the kernel does not report it (before
    /// 5.8).
    borrowing func mountNumber(at relative: FilePath) -> UInt64? {
        // A name that cannot be reached has no mount that could be named.
        let number =
            (try? withParent(of: relative) { folder, name throws(SystemError) in
                name.withCString { sluice_mount_number(folder, $0) }
            }) ?? 0
        return number == 0 ? nil : number
    }

    /// The number of the mount that contains it; `nil` if the kernel does not report it (before 5.8).
    package var mount: UInt64? { mountNumber(at: "") }

    /// The number of its mount, which no later mount of this boot gets; `nil` if the kernel does not report it (before
    /// 6.8).
    package var uniqueMount: UInt64? {
        let number = withNumber { sluice_unique_mount_number($0, "") }
        return number == 0 ? nil : number
    }

    /// Whether the name exists, for any kind of file.
    package borrowing func has(_ relative: FilePath) throws(SystemError) -> Bool {
        try statusIfPresent(at: relative) != nil
    }

    /// The real path of the directory, with every link resolved; `nil` without `/proc`.
    package var realPath: FilePath? { withNumber { Files.linkTarget(FilePath("/proc/self/fd/\($0)")) } }

    /// Tests whether files in it could share their blocks with a file: the kernel refuses a directory last (`EISDIR`).
    borrowing func clone(to file: borrowing Descriptor) -> SystemError? {
        Files.clone(descriptor, to: file, named: path)
    }

    // MARK: Opening

    /// Opens a file below it. The caller handles files that are not regular; a FIFO does not block.
    package borrowing func open(_ relative: FilePath, for purpose: Descriptor.Purpose) throws(SystemError) -> Descriptor
    {
        try open(relative, flags: purpose.flags | O_NOFOLLOW, mode: 0o600)
    }

    /// Opens a directory below it, or itself once more for an empty name.
    package borrowing func folder(_ relative: FilePath) throws(SystemError) -> OpenFolder {
        OpenFolder(
            try open(relative, flags: O_RDONLY | O_DIRECTORY | O_NONBLOCK), named: path.appending(relative),
            by: resolver)
    }

    /// Opens the directory that contains a name.
    package borrowing func parent(of relative: FilePath) throws(SystemError) -> OpenFolder {
        try folder(relative.parent)
    }

    /// Opens a directory below it to list it.
    package borrowing func stream(_ relative: FilePath) throws(SystemError) -> FolderStream {
        try FolderStream(
            try open(relative, flags: O_RDONLY | O_DIRECTORY | O_NONBLOCK), named: path.appending(relative))
    }

    private borrowing func open(
        _ relative: FilePath, flags: CInt, mode: UInt32 = 0
    ) throws(SystemError) -> Descriptor {
        let flags = flags | O_CLOEXEC
        try refuseWayOut(relative)
        switch resolver {
        case .kernel:
            let name: FilePath = relative.isEmpty ? "." : relative
            return try descriptor.withNumber { number throws(SystemError) in
                Descriptor(
                    adopting: try systemCall("openat2", on: shown(relative)) {
                        name.withCString { name in
                            // EAGAIN: a component was renamed meanwhile.
                            for _ in 0..<100 {
                                let opened = sluice_open_beneath(
                                    number, name, flags, flags & O_CREAT == 0 ? 0 : mode)
                                if opened >= 0 || errno != EAGAIN { return opened }
                            }
                            return -1
                        }
                    })
            }
        case .steps:
            return try withParent(of: relative) { folder, name throws(SystemError) in
                let name: FilePath = name.isEmpty ? "." : name
                return Descriptor(
                    adopting: try refusingLinks(folder, name, relative) {
                        name.withCString { openat(folder, $0, flags | O_NOFOLLOW, mode_t(mode)) }
                    })
            }
        }
    }

    /// Lends the directory that contains a name, and the name in it; for an empty `relative` the directory itself and
    /// an empty name.
    private borrowing func withParent<R: ~Copyable>(
        of relative: FilePath, _ body: (_ folder: CInt, _ name: FilePath) throws(SystemError) -> R
    ) throws(SystemError) -> R {
        let above = relative.parent
        if above.isEmpty {
            // `/a` has an empty parent too, and would lead out.
            try refuseWayOut(relative)
            return try descriptor.withNumber { number throws(SystemError) in try body(number, relative) }
        }
        let openFlags = sluice_path_flag() | O_DIRECTORY
        switch resolver {
        case .kernel:
            try refuseWayOut(relative.name)
            let folder = try open(above, flags: openFlags)
            return try folder.withNumber { number throws(SystemError) in try body(number, relative.name) }
        case .steps:
            try refuseWayOut(relative)
            var folder = try descriptor.withNumber { number throws(SystemError) in try step(number, ".", relative) }
            for part in above.components {
                folder = try folder.withNumber { number throws(SystemError) in try step(number, part, relative) }
            }
            return try folder.withNumber { number throws(SystemError) in try body(number, relative.name) }
        }
    }

    private borrowing func step(
        _ folder: CInt, _ part: FilePath, _ relative: FilePath
    ) throws(SystemError) -> Descriptor {
        let flags = sluice_path_flag() | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
        return Descriptor(
            adopting: try refusingLinks(folder, part, relative) { part.withCString { openat(folder, $0, flags) } })
    }

    /// With `O_DIRECTORY` the kernel reports a link as no directory (`ENOTDIR`): the error is changed to the one of
    /// openat2.
    private borrowing func refusingLinks(
        _ folder: CInt, _ name: FilePath, _ relative: FilePath, _ call: () -> CInt
    ) throws(SystemError) -> CInt {
        do { return try systemCall("openat", on: shown(relative), call) } catch {
            var status = sluice_look()
            guard error.code == ENOTDIR, name.withCString({ sluice_statx(folder, $0, &status) }) == 0,
                status.mode & 0o170000 == 0o120000
            else { throw error }
            throw SystemError(call: error.call, subject: error.subject, code: ELOOP)
        }
    }

    private borrowing func refuseWayOut(_ relative: FilePath) throws(SystemError) {
        guard relative.isAbsolute || relative.components.contains("..") else { return }
        throw SystemError(call: "open", subject: shown(relative), code: EXDEV)
    }

    private borrowing func shown(_ relative: FilePath) -> String { path.appending(relative).display }

    // MARK: Changing names

    /// Removes a file's name in this directory.
    package borrowing func remove(_ name: FilePath) throws(SystemError) {
        try descriptor.withNumber { number throws(SystemError) in
            _ = try systemCall("unlink", on: shown(name)) { name.withCString { unlinkat(number, $0, 0) } }
        }
    }

    /// Removes a file's name in this directory; a missing name is no error.
    package borrowing func removeIfPresent(_ name: FilePath) throws(SystemError) {
        do { try remove(name) } catch { guard error.isMissing else { throw error } }
    }

    /// Renames in this directory, and replaces an existing file.
    borrowing func rename(_ from: FilePath, to: FilePath, in target: borrowing OpenFolder) throws(SystemError) {
        try descriptor.withNumber { source throws(SystemError) in
            try target.withNumber { number throws(SystemError) in
                _ = try systemCall("rename", on: shown(from)) {
                    from.withCString { from in to.withCString { renameat(source, from, number, $0) } }
                }
            }
        }
    }

    /// Makes the directories of `relative` that are missing, each with `mode`, and opens the last.
    ///
    /// - Parameter durably: Syncs the parent of each directory that was made, so that a durable file in it cannot
    ///   disappear with its directory.
    package borrowing func makingFolders(
        _ relative: FilePath, mode: UInt32 = 0o750, durably: Bool = false
    ) throws(SystemError) -> OpenFolder {
        var at = try folder("")
        for part in relative.components {
            let isMade = try at.withNumber { number throws(SystemError) in
                do throws(SystemError) {
                    try systemCall("mkdir", on: at.path.appending(part).display) {
                        part.withCString { mkdirat(number, $0, mode_t(mode)) }
                    }
                    return true
                } catch {
                    if error.exists { return false }
                    throw error
                }
            }
            if isMade && durably { try at.sync() }
            at = try at.folder(part)
        }
        return at
    }
}

extension Descriptor.Purpose {
    /// For open(2), without the flags that say which links are followed.
    fileprivate var flags: CInt {
        switch self {
        case .reading: O_RDONLY | O_NONBLOCK
        case .creating: O_RDWR | O_CREAT | O_EXCL
        case .updating: O_RDWR | O_CREAT
        case .folder: O_RDONLY | O_DIRECTORY
        }
    }
}
