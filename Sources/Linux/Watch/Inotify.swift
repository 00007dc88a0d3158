package import Core
internal import Glibc

/// The kernel's events about folders (inotify(7)). One instance serves a whole process.
///
/// A final class, not `Sendable`: one thread owns it.
package final class Inotify {
    /// The kind of an event. Names repeat those of inotify(7).
    package struct Kind: OptionSet, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        package static let closeWrite = Kind(rawValue: UInt32(IN_CLOSE_WRITE))
        package static let movedFrom = Kind(rawValue: UInt32(IN_MOVED_FROM))
        package static let movedTo = Kind(rawValue: UInt32(IN_MOVED_TO))
        package static let create = Kind(rawValue: UInt32(IN_CREATE))
        package static let delete = Kind(rawValue: UInt32(IN_DELETE))
        package static let deleteSelf = Kind(rawValue: UInt32(IN_DELETE_SELF))
        package static let moveSelf = Kind(rawValue: UInt32(IN_MOVE_SELF))
        package static let unmount = Kind(rawValue: UInt32(IN_UNMOUNT))
        /// Events were lost; it is unknown which.
        package static let overflow = Kind(rawValue: UInt32(IN_Q_OVERFLOW))
        /// The watch is gone.
        package static let ignored = Kind(rawValue: UInt32(IN_IGNORED))
        /// A name appeared or disappeared in the folder, or the folder itself did.
        package static let names: Kind = [.movedFrom, .movedTo, .create, .delete, .deleteSelf, .moveSelf]
        /// The event is about a folder.
        package static let isFolder = Kind(rawValue: UInt32(IN_ISDIR))
    }

    package struct Event: Sendable {
        /// The watch that it came from; -1 for an overflow.
        package let watch: Int32
        package let kind: Kind
        /// Pairs the two halves of a rename.
        package let cookie: UInt32
        /// Empty when the event is about the watched folder itself.
        package let name: FilePath
    }

    private let descriptor: Descriptor
    private let buffer = UnsafeMutableRawBufferPointer.allocate(
        byteCount: 64 << 10, alignment: MemoryLayout<inotify_event>.alignment)
    private let limit: Int
    private var watchCount = 0

    /// - Parameter limit: The most watches to take; one more is refused as if the kernel's own limit were reached.
    /// - Throws: `EMFILE` when the user has too many instances (`fs.inotify.max_user_instances`).
    package init(limit: Int = .max) throws(SystemError) {
        self.limit = limit
        descriptor = Descriptor(
            adopting: try systemCall("inotify_init1", on: "") {
                inotify_init1(CInt(IN_NONBLOCK | IN_CLOEXEC))
            })
    }

    deinit { buffer.deallocate() }

    package func withNumber<R, E: Error>(_ body: (CInt) throws(E) -> R) throws(E) -> R {
        try descriptor.withNumber(body)
    }

    /// Watches an open folder; watching it again gives the same number.
    ///
    /// Without `IN_EXCL_UNLINK`, which hides the closing of files that are published by a hard link, and without
    /// `IN_MODIFY`, which fires for every write.
    ///
    /// - Parameter kinds: The events to report.
    /// - Throws: `ENOSPC` when the user has too many watches (`fs.inotify.max_user_watches`).
    package func watch(
        _ folder: borrowing FolderStream, named path: FilePath, for kinds: Kind = [.names, .closeWrite]
    ) throws(SystemError) -> Int32 {
        guard watchCount < limit else {
            throw SystemError(call: "inotify_add_watch", subject: path.display, code: ENOSPC)
        }
        let mask = kinds.rawValue | UInt32(IN_ONLYDIR)
        // By the open folder and not by its path: a name that changes between the two calls cannot separate them.
        let link = FilePath("/proc/self/fd/\(folder.number)")
        let watch = try descriptor.withNumber { number throws(SystemError) in
            try systemCall("inotify_add_watch", on: path.display) {
                link.withCString { inotify_add_watch(number, $0, mask) }
            }
        }
        return watch
    }

    /// Removes a watch. If the kernel has dropped it already, that is no error.
    package func unwatch(_ watch: Int32) {
        // Fails only with EINVAL, which means that it is gone already.
        descriptor.withNumber { _ = inotify_rm_watch($0, watch) }
    }

    /// The caller counts its watches, since only it knows which numbers it had before.
    package func countWatch() { watchCount += 1 }
    package func uncountWatch() { watchCount -= 1 }

    /// Reads once and passes on the events, in order.
    ///
    /// - Returns: Whether there were any.
    package func read(_ body: (Event) -> Void) throws(SystemError) -> Bool {
        let got: Int
        do {
            got = try descriptor.withNumber { number throws(SystemError) in
                try systemCall("read", on: "inotify") { Glibc.read(number, buffer.baseAddress, buffer.count) }
            }
        } catch {
            if error.code == EAGAIN { return false }
            throw error
        }
        let header = MemoryLayout<inotify_event>.size
        var at = 0
        while at + header <= got {
            let raw = buffer.loadUnaligned(fromByteOffset: at, as: inotify_event.self)
            let name = UnsafeRawBufferPointer(buffer)[(at + header)..<(at + header + Int(raw.len))]
            body(
                Event(
                    watch: raw.wd, kind: Kind(rawValue: raw.mask), cookie: raw.cookie,
                    name: FilePath(fromKernel: Array(name.prefix { $0 != 0 }))))
            at += header + Int(raw.len)
        }
        return got > 0
    }

    /// The kernel's own limit on watches, for messages.
    package static var watchLimit: String { setting("/proc/sys/fs/inotify/max_user_watches") }
    package static var instanceLimit: String { setting("/proc/sys/fs/inotify/max_user_instances") }

    private static func setting(_ path: FilePath) -> String {
        // Only for a message, which says "unknown" without /proc.
        guard let content = try? Files.read(path) else { return "unknown" }
        return String(decoding: content.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }
}

extension SystemError {
    /// `ENOSPC` of inotify_add_watch(2): the limit on watches, not the disk.
    package var isWatchLimit: Bool { call == "inotify_add_watch" && code == ENOSPC }
    /// ELOOP: a symbolic link where none is followed.
    package var isLink: Bool { code == ELOOP }
}
