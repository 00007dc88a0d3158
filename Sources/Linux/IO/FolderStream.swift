internal import CLinux
package import Core
internal import Glibc

/// An open folder that is read name by name, without making a value for each.
///
/// Owned by one thread. It continues to read the same folder when that is renamed.
package final class FolderStream {
    package enum Kind: Sendable {
        case file, folder
        /// Links, sockets, devices, FIFOs.
        case other
        /// The listing contains no type: the caller has to look.
        case unknown
    }

    private let stream: OpaquePointer
    /// Lent by the stream; closed with it.
    let number: CInt
    private let path: FilePath

    /// - Parameter followsLink: Follows a symbolic link under this name; otherwise it is refused (`ENOTDIR` or
    ///   `ELOOP`).
    package convenience init(_ path: FilePath, followsLink: Bool = false) throws(SystemError) {
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | (followsLink ? 0 : O_NOFOLLOW)
        try self.init(
            adopting: try systemCall("open", on: path.display) { path.withCString { open($0, flags) } }, named: path)
    }

    /// Lists an open directory.
    convenience init(_ folder: consuming Descriptor, named path: FilePath) throws(SystemError) {
        // The stream closes its descriptor itself, so it gets one of its own.
        let number = try folder.withNumber { number throws(SystemError) in
            try systemCall("fcntl", on: path.display) { fcntl(number, F_DUPFD_CLOEXEC, 0) }
        }
        try self.init(adopting: number, named: path)
    }

    private init(adopting opened: CInt, named path: FilePath) throws(SystemError) {
        guard let stream = fdopendir(opened) else {
            let code = errno
            _ = Glibc.close(opened)
            throw SystemError(call: "fdopendir", subject: path.display, code: code)
        }
        self.stream = stream
        number = opened
        self.path = path
    }

    deinit { closedir(stream) }

    /// The status of the folder itself.
    package func status() throws(SystemError) -> FileStatus {
        var status = sluice_look()
        try systemCall("statx", on: path.display) { sluice_statx(number, "", &status) }
        return FileStatus(status)
    }

    /// The real path of the folder, with every link resolved; `nil` without `/proc`.
    package var realPath: FilePath? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = buffer.withUnsafeMutableBytes { buffer in
            guard let start = buffer.baseAddress?.assumingMemoryBound(to: CChar.self) else { return 0 }
            return readlink("/proc/self/fd/\(number)", start, buffer.count)
        }
        return count > 0 ? FilePath(bytes: buffer[..<count]) : nil
    }

    /// Restarts the listing, with the present names.
    ///
    /// Needed also before the first name: Btrfs lists the names from the time when the folder was opened (Linux 6.5 and
    /// later; rewinddir(3) corrects that since 6.6).
    package func rewind() { rewinddir(stream) }

    /// Lends the next name (without `.` and `..`). The pointer may also be read for the NUL after it.
    ///
    /// - Returns: Whether there was one.
    package func next(_ body: (UnsafeBufferPointer<UInt8>, Kind) -> Void) throws(SystemError) -> Bool {
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                if errno != 0 { throw SystemError(call: "readdir", subject: path.display, code: errno) }
                return false
            }
            // The record is shorter than the type, so the name is read in place and not from a copy of the struct.
            guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { continue }
            let start = UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: UInt8.self)
            let name = UnsafeBufferPointer(start: start, count: Int(strlen(entryName(start))))
            if name.first == UInt8(ascii: "."), name.count == 1 || (name.count == 2 && name[1] == UInt8(ascii: ".")) {
                continue
            }
            let kind: Kind =
                switch Int(entry.pointee.d_type) {
                case Int(DT_REG): .file
                case Int(DT_DIR): .folder
                case Int(DT_UNKNOWN): .unknown
                default: .other
                }
            body(name, kind)
            return true
        }
    }

    /// All names that are not read yet.
    package func names() throws(SystemError) -> [FilePath] {
        var names: [FilePath] = []
        while try next({ name, _ in names.append(FilePath(fromKernel: name)) }) {}
        return names
    }

    /// The status of a name that ``next(_:)`` lends; `nil` when it is gone by now.
    package func status(at name: UnsafeBufferPointer<UInt8>) throws(SystemError) -> FileStatus? {
        guard let start = name.baseAddress else { return nil }
        var status = sluice_look()
        do {
            try systemCall("statx", on: "\(path.display)/\(FilePath(fromKernel: name).display)") {
                sluice_statx(number, entryName(start), &status)
            }
        } catch {
            if error.isMissing { return nil }
            throw error
        }
        return FileStatus(status)
    }

    /// The error of a failed status call for a name.
    func failure(at name: UnsafeBufferPointer<UInt8>, code: CInt) -> SystemError {
        SystemError(call: "statx", subject: "\(path.display)/\(FilePath(fromKernel: name).display)", code: code)
    }
}

/// A name in the kernel's bytes, as a C string.
func entryName(_ start: UnsafePointer<UInt8>) -> UnsafePointer<CChar> {
    UnsafeRawPointer(start).assumingMemoryBound(to: CChar.self)
}

extension FileStatus {
    init(_ status: sluice_look) {
        self.init(
            device: status.device, inode: status.inode, size: status.size, modified: status.modified,
            changed: status.changed,
            born: status.has_born != 0 ? status.born : nil, mode: status.mode)
    }
}
