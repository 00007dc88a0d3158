internal import CLinux
package import Core
internal import Glibc

// Kernel calls for copying large files: holes, reservations, the page cache, and low priority.

extension Descriptor {
    /// Bytes that the file occupies on its disk, as far as the file system reports it: less than its size when it has
    /// holes.
    package borrowing func allocated(named path: FilePath) throws(SystemError) -> Int64 {
        var status = sluice_look()
        try withNumber { number throws(SystemError) in
            _ = try systemCall("statx", on: path.display) { sluice_statx(number, "", &status) }
        }
        return status.blocks * 512
    }

    /// The next range with data, from `offset` on (lseek(2), `SEEK_DATA`); `nil` when only a hole is left.
    ///
    /// Use it for the amount and place of the space that a copy needs, not for its content: file systems were wrong
    /// about their holes.
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
    /// - Returns: `nil` on success; otherwise the reason: the disk is full, or the file system cannot do it.
    package borrowing func reserve(_ range: Range<Int64>, named path: FilePath) -> SystemError? {
        withNumber { number in
            sluice_reserve_range(number, range.lowerBound, Int64(range.count)) == 0
                ? nil : SystemError(call: "fallocate", subject: path.display, code: errno)
        }
    }

    /// Returns when these bytes have reached the disk or the server, which has not promised to keep them yet
    /// (sync_file_range(2)). Throws the errors on the way: the kernel reports them here, and a later sync would not
    /// report them.
    package borrowing func flush(from offset: Int64, count: Int64, named path: FilePath) throws(SystemError) {
        do throws(SystemError) {
            try withNumber { number throws(SystemError) in
                _ = try systemCall("sync_file_range", on: path.display) { sluice_wait_range(number, offset, count) }
            }
        } catch {
            // Some file systems cannot do this: then the sync does all the work.
            guard [EINVAL, ENOSYS, ESPIPE].contains(error.code) else { throw error }
        }
    }
}

/// The I/O priority of this thread, in the form of ioprio_get(2).
func ioPriority() -> CInt { sluice_io_priority() }
func setIOPriority(_ priority: CInt) -> Bool { sluice_set_io_priority(priority) == 0 }

/// Whether all bytes are zero.
package func isZero(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let start = bytes.baseAddress else { return true }
    return sluice_is_zero(start, bytes.count) != 0
}

/// Runs `body` with the lowest I/O priority, where the disk's scheduler respects it (ioprio_set(2)).
///
/// It uses the last level of the ordinary class and not the idle class, which a camera that never stops writing would
/// starve. If a service's sandbox forbids the call, `body` runs with normal priority.
package func withLowPriority<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
    let before = sluice_io_priority()
    // linux/ioprio.h: the class is above bit 13, the level below it, and 7 is the last level.
    let (idle, last): (CInt, CInt) = (3, 2 << 13 | 7)
    // The parent process may have set a low priority already.
    let isLowered = before >= 0 && before >> 13 != idle && sluice_set_io_priority(last) == 0
    // The thread does other work after this.
    defer { if isLowered { _ = sluice_set_io_priority(before) } }
    return try body()
}

extension Files {
    /// Why a file of `source` could not share its blocks with a file in `folder`, found out without changing anything;
    /// `nil` when it could.
    ///
    /// - Throws: An error that prevents the test.
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

    /// Removes a folder with its content; links are removed and not followed. A missing folder is no error.
    package static func removeTree(_ folder: FilePath) throws(SystemError) {
        guard let status = try FileStatus.ifPresent(at: folder) else { return }
        guard status.isDirectory else { return try removeIfPresent(folder) }
        for name in try names(in: folder) { try removeTree(folder.appending(name)) }
        do { try systemCall("rmdir", on: folder.display) { folder.withCString { rmdir($0) } } } catch {
            guard error.isMissing else { throw error }
        }
    }

    /// The number of names of a file.
    package static func links(of file: borrowing Descriptor, named path: FilePath) throws(SystemError) -> Int {
        var status = sluice_look()
        try file.withNumber { number throws(SystemError) in
            _ = try systemCall("statx", on: path.display) { sluice_statx(number, "", &status) }
        }
        return Int(status.links)
    }
}

extension SystemError {
    /// FICLONE was refused because these two files can never share blocks: they are on different file systems, or on
    /// one without the feature (ioctl_ficlonerange(2)).
    package var refusesSharing: Bool { [EXDEV, EOPNOTSUPP, ENOTTY, EINVAL, ENOSYS].contains(code) }
    /// The same, for all files of the two file systems. EINVAL may be about these two files alone: on Btrfs, one of them has
    /// no checksums.
    package var isOfFileSystem: Bool { code == EXDEV || code == EOPNOTSUPP }
    /// EIO and similar: the error comes from the disk, and a person has to check it.
    package var isOfDisk: Bool {
        [EIO, ENODEV, ENXIO, EREMOTEIO, EUCLEAN, ESHUTDOWN, ENOMEDIUM, ENOTCONN].contains(code)
    }
}
