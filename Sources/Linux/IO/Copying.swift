internal import CLinux
package import Core
internal import Glibc

// What a copy of a large file asks of the kernel: holes, room, the page cache, and to be let by others.

extension Descriptor {
    /// Bytes that the file takes on its disk, as far as the file system tells: less than its size when it has holes.
    package borrowing func allocated(named path: FilePath) throws(SystemError) -> Int64 {
        var look = sluice_look()
        try withNumber { number throws(SystemError) in
            _ = try systemCall("statx", on: path.display) { sluice_statx(number, "", &look) }
        }
        return look.blocks * 512
    }

    /// The next stretch that holds data, from `offset` on (lseek(2), `SEEK_DATA`); `nil` when only a hole is left.
    ///
    /// For how much room a copy needs and where, not for what it holds: file systems were wrong about their holes.
    package borrowing func data(from offset: Int64, named path: FilePath) throws(SystemError) -> Range<Int64>? {
        try withNumber { number throws(SystemError) in
            let start: Int64
            do throws(SystemError) {
                start = try systemCall("lseek", on: path.display) { sluice_next_data(number, offset) }
            } catch {
                if error.code == ENXIO { return nil }
                throw error
            }
            let end = try systemCall("lseek", on: path.display) { sluice_next_hole(number, start) }
            return start..<max(start, end)
        }
    }

    /// Reserves blocks for a part of the file without changing its size (fallocate(2)).
    ///
    /// - Returns: `nil` when it worked; else why not: full, or the file system cannot.
    package borrowing func reserve(_ range: Range<Int64>, named path: FilePath) -> SystemError? {
        withNumber { number in
            sluice_reserve_range(number, range.lowerBound, Int64(range.count)) == 0
                ? nil : SystemError(call: "fallocate", subject: path.display, code: errno)
        }
    }

    /// Returns when these bytes are with the disk or the server, without its promise to keep them (sync_file_range(2)), and what went
    /// wrong on the way: the kernel tells it here, and the sync that follows would not hear of it.
    package borrowing func flush(from offset: Int64, count: Int64, named path: FilePath) throws(SystemError) {
        do throws(SystemError) {
            try withNumber { number throws(SystemError) in
                _ = try systemCall("sync_file_range", on: path.display) { sluice_wait_range(number, offset, count) }
            }
        } catch {
            // Some file systems cannot: the sync does all of it then.
            guard [EINVAL, ENOSYS, ESPIPE].contains(error.code) else { throw error }
        }
    }
}

/// The priority of this thread's reads and writes, as ioprio_get(2) has it.
func ioPriority() -> CInt { sluice_io_priority() }
func setIOPriority(_ priority: CInt) -> Bool { sluice_set_io_priority(priority) == 0 }

/// Whether there is nothing but zeros.
package func isZero(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let start = bytes.baseAddress else { return true }
    return sluice_is_zero(start, bytes.count) != 0
}

/// Runs `body` with its reads and writes behind everybody else's, where the disk's scheduler heeds that (ioprio_set(2)).
///
/// The last place of the ordinary class and not the idle class, which a camera that never stops writing would starve. A
/// service's sandbox may forbid it, which costs nothing but the courtesy.
package func withLowPriority<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
    let before = sluice_io_priority()
    // linux/ioprio.h: the class above bit 13, below it the place, 7 being the last.
    let (idle, last): (CInt, CInt) = (3, 2 << 13 | 7)
    // Whoever started us may have put all of it behind everybody already.
    let isLowered = before >= 0 && before >> 13 != idle && sluice_set_io_priority(last) == 0
    // The thread does other work after this.
    defer { if isLowered { _ = sluice_set_io_priority(before) } }
    return try body()
}

extension Files {
    /// Why a file of `source` could not share its blocks with a file in `folder`, found out without leaving a trace;
    /// `nil` when it could.
    ///
    /// - Throws: What keeps it from being found out.
    package static func refusesSharing(
        from source: borrowing OpenFolder, into folder: FilePath
    ) throws(SystemError) -> SystemError? {
        let target = try nameless(in: folder)
        let model = try nameless(in: folder)
        if let failure = clone(model, to: target, named: folder) { return failure }
        // The kernel compares the file systems first, and only then objects that this is a folder.
        guard let failure = source.clone(to: target), failure.code != EISDIR else { return nil }
        return failure
    }

    private static func nameless(in folder: FilePath) throws(SystemError) -> Descriptor {
        let place = try Descriptor.open(folder, for: .folder)
        return try place.withNumber { number throws(SystemError) in
            Descriptor(adopting: try systemCall("open", on: folder.display) { sluice_nameless_file(number) })
        }
    }

    /// Removes a folder with everything in it; links are removed and not followed. Not there is fine.
    package static func removeTree(_ folder: FilePath) throws(SystemError) {
        guard let look = try FileLook.ifPresent(at: folder) else { return }
        guard look.isDirectory else { return try removeIfPresent(folder) }
        for name in try names(in: folder) { try removeTree(folder.appending(name)) }
        do { try systemCall("rmdir", on: folder.display) { folder.withCString { rmdir($0) } } } catch {
            guard error.isMissing else { throw error }
        }
    }

    /// How many names a file has.
    package static func links(of file: borrowing Descriptor, named path: FilePath) throws(SystemError) -> Int {
        var look = sluice_look()
        try file.withNumber { number throws(SystemError) in
            _ = try systemCall("statx", on: path.display) { sluice_statx(number, "", &look) }
        }
        return Int(look.links)
    }
}

extension SystemError {
    /// FICLONE was refused because these two files can never share blocks: other file systems, or one that cannot
    /// (ioctl_ficlonerange(2)).
    package var refusesSharing: Bool { [EXDEV, EOPNOTSUPP, ENOTTY, EINVAL, ENOSYS].contains(code) }
    /// EIO and its like: the disk, and not a person, has to be asked.
    package var isOfDisk: Bool {
        [EIO, ENODEV, ENXIO, EREMOTEIO, EUCLEAN, ESHUTDOWN, ENOMEDIUM, ENOTCONN].contains(code)
    }
}
