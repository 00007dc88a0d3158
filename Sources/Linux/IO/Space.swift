internal import CLinux
package import Core
internal import Glibc

/// The free space and the type of a file system (statfs(2)).
package struct Space: Hashable, Sendable {
    /// Bytes available to an ordinary user.
    package let free: Int64
    package let total: Int64
    /// Number of files that can still be created; `Int64.max` where the file system does not count them.
    package let filesFree: Int64
    /// `f_type`, as in statfs(2).
    package let type: Int64

    package init(at path: FilePath) throws(SystemError) {
        var space = sluice_space()
        try systemCall("statfs", on: path.display) { path.withCString { sluice_statfs($0, &space) } }
        self.init(space)
    }

    /// For the file system of an open file or folder.
    package init(of file: borrowing Descriptor, named path: FilePath) throws(SystemError) {
        var space = sluice_space()
        try systemCall("fstatfs", on: path.display) { file.withNumber { sluice_fstatfs($0, &space) } }
        self.init(space)
    }

    private init(_ space: sluice_space) {
        free = space.free_to_us
        total = space.total
        filesFree = space.files_free
        type = space.type
    }

    /// A program reports the figures (FUSE), and some report nonsense.
    package var isFUSE: Bool { type == 0x6573_5546 }

    /// Whether the file system loses its content at a reboot: tmpfs or ramfs.
    package var isMemory: Bool { type == 0x0102_1994 || type == 0x8584_58F6 }
}

extension Files {
    /// Makes `to` share the blocks of `from` (ioctl_ficlonerange(2)).
    ///
    /// - Returns: `nil` on success; otherwise the reason: mostly that the file system cannot do it.
    package static func clone(
        _ from: borrowing Descriptor, to: borrowing Descriptor, named path: FilePath
    ) -> SystemError? {
        from.withNumber { source in
            to.withNumber { target in
                sluice_clone(target, source) == 0
                    ? nil : SystemError(call: "ioctl FICLONE", subject: path.display, code: errno)
            }
        }
    }

    /// Reserves blocks without changing the size, so that a full disk shows at the start (fallocate(2)).
    ///
    /// - Returns: `nil` on success; otherwise the reason: the disk is full, or the file system cannot do it.
    package static func reserve(_ size: Int64, _ file: borrowing Descriptor, named path: FilePath) -> SystemError? {
        file.withNumber { number in
            sluice_reserve(number, size) == 0
                ? nil : SystemError(call: "fallocate", subject: path.display, code: errno)
        }
    }
}

extension Descriptor {
    /// Starts writing these bytes to the disk, without waiting (sync_file_range(2)).
    package borrowing func startFlushing(from offset: Int64, count: Int64) {
        // Only a head start for the later fsync, which reports every error.
        withNumber { _ = sluice_sync_range($0, offset, count) }
    }
}
