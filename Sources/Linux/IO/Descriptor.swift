package import Core
internal import Glibc

/// An open file descriptor with exactly one owner.
///
/// The compiler refuses a copy, so exactly one owner closes it: the last one that holds it.
package struct Descriptor: ~Copyable, Sendable {
    private let number: CInt

    /// Takes ownership of `number`, which must be open and have no other owner.
    package init(adopting number: CInt) { self.number = number }

    package enum Purpose: Sendable {
        /// An existing file, for reading. A final symbolic link is refused (`ELOOP`); a FIFO does not block.
        case reading
        /// A new file, for writing and reading back; an existing name is refused (`EEXIST`). Mode 0600.
        case creating
        /// A file for writing, created when missing; its content stays. Mode 0600.
        case updating
        /// A folder, as the base of other calls or for syncing it.
        case folder
    }

    package static func open(_ path: FilePath, for purpose: Purpose) throws(SystemError) -> Descriptor {
        try open(path, in: AT_FDCWD, for: purpose)
    }

    /// Opens a name below this folder.
    package borrowing func open(_ relative: FilePath, for purpose: Purpose) throws(SystemError) -> Descriptor {
        try Self.open(relative, in: number, for: purpose)
    }

    private static func open(
        _ path: FilePath, in folder: CInt, for purpose: Purpose
    ) throws(SystemError) -> Descriptor {
        let flags: CInt =
            switch purpose {
            case .reading: O_RDONLY | O_NOFOLLOW | O_NONBLOCK
            case .creating: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW
            case .updating: O_RDWR | O_CREAT | O_NOFOLLOW
            case .folder: O_RDONLY | O_DIRECTORY
            }
        return Descriptor(
            adopting: try systemCall("open", on: path.display) {
                path.withCString { openat(folder, $0, flags | O_CLOEXEC, mode_t(0o600)) }
            })
    }

    /// Another number for the same open file.
    package borrowing func duplicate(named path: FilePath) throws(SystemError) -> Descriptor {
        Descriptor(adopting: try systemCall("fcntl", on: path.display) { fcntl(number, F_DUPFD_CLOEXEC, 0) })
    }

    /// Lends the number for the length of `body`. Storing it outlives the loan.
    package borrowing func withNumber<R: ~Copyable, E: Error>(_ body: (CInt) throws(E) -> R) throws(E) -> R {
        try body(number)
    }

    /// Closes now, and throws the kernel's error.
    ///
    /// Use this after writing: on a network mount or with a full quota, close may give the first and only report of
    /// lost data. A value that goes out of scope is closed too, but its error is ignored.
    package consuming func close(named path: FilePath) throws(SystemError) {
        let number = self.number
        discard self
        if Glibc.close(number) != 0 { throw SystemError(call: "close", subject: path.display, code: errno) }
    }

    deinit { _ = Glibc.close(number) }
}

extension FilePath {
    /// Lends the bytes with a terminating NUL.
    package func withCString<R, E: Error>(_ body: (UnsafePointer<CChar>) throws(E) -> R) throws(E) -> R {
        let bytes = self.bytes
        let terminated = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count + 1)
        defer { terminated.deallocate() }
        for (index, byte) in bytes.enumerated() { (terminated + index).initialize(to: CChar(bitPattern: byte)) }
        (terminated + bytes.count).initialize(to: 0)
        return try body(terminated)
    }
}
